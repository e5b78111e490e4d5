"""Objects by all that points to them: how many, and how many bytes, each set of pins keeps.

A *pin* is a branch, a tag, a hold or a staging area. Sets of them are bits, cut
into words, so that thousands of pins cost a few columns and an object's set is
what the sets of its pointers come to, or-ed together.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from desilt.columns.buckets import HASH, present
from desilt.columns.hashing import Hashes

POINTERS = pa.schema([(HASH, pa.uint64()), ("place", pa.int64()), ("size_bytes", pa.int64())])
"""One row per pointer to an object: an entry, staged or committed, or an order to keep; ``place`` finds its pins."""

WORD = 64  # pins
STIR = np.uint64(0xBF58476D1CE4E5B9)
DOWN = np.uint64(31)
Words = npt.NDArray[np.uint64]


def in_words(sets: Sequence[int], pins: int) -> Words:
    """``sets`` of so many ``pins``, each a row: its bits in words, the lowest first."""
    width = 8 * max(1, -(-pins // WORD))
    data = b"".join(one.to_bytes(width, "little") for one in sets)
    return np.frombuffer(data, "<u8").reshape(len(sets), width // 8)


def counted(pointers: pa.Table, gone: Hashes, sets: Words) -> Iterator[tuple[int, int, int]]:
    """Sets of pins (as bits), and the objects and bytes that each keeps: every object once, under all its pins.

    ``gone`` (sorted) are not counted. Where entries differ about a size, the larger counts.
    """
    order = np.argsort(pointers[HASH].to_numpy(), kind="stable")  # of sorted runs, which it merges
    hashes, places, sizes = (pointers[name].to_numpy()[order] for name in POINTERS.names)
    if not len(hashes):
        return
    starts = np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]]))
    there = ~present(hashes[starts], gone)
    volumes = np.maximum.reduceat(sizes, starts)[there]
    _, first, which = np.unique(_keys(places, starts, sets)[there], return_index=True, return_inverse=True)
    objects, volume = np.bincount(which), np.zeros(len(first), np.int64)
    np.add.at(volume, which, volumes)
    ends = np.append(starts[1:], len(hashes))
    spans = zip(starts[there][first].tolist(), ends[there][first].tolist(), strict=True)
    for (start, end), count, size in zip(spans, objects.tolist(), volume.tolist(), strict=True):
        bits = np.bitwise_or.reduce(sets[places[start:end]], axis=0)
        yield int.from_bytes(bits.astype("<u8").tobytes(), "little"), count, size


def _keys(places: npt.NDArray[np.int64], starts: npt.NDArray[np.int64], sets: Words) -> Hashes:
    """A number for each object, the same for the same set of pins; one word is its own, several are stirred into one.

    Two sets of several words share a number by a chance of one in 2^64.
    """
    keys = np.zeros(len(starts), np.uint64)
    for word in np.ascontiguousarray(sets.T):
        keys ^= np.bitwise_or.reduceat(word[places], starts)
        keys *= STIR
        keys ^= keys >> DOWN
    return keys
