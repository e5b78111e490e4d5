"""The hashes of tables: what a table is named by, and the keys that a range ends at.

Both depend on content alone, not on file bytes: two tables with the same records
have the same id, whoever wrote them.
"""

import hashlib
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from desilt.domain.identity import hash_map
from desilt.sstable.slices import joined, layout

BAR = pa.scalar(b"|", pa.binary())
FNV_START = np.uint64(0xCBF29CE484222325)
FNV_PRIME = np.uint64(0x100000001B3)


class TableHash:
    """A table's id while its records come in, in any number of batches."""

    def __init__(self) -> None:
        self._sha = hashlib.sha256()

    def add(self, keys: pa.Array, values: pa.Array) -> None:
        if not len(keys):
            return
        forms = joined(_lengths(keys), keys, BAR, _lengths(values), values, BAR)
        self._sha.update(layout(forms)[0].data)

    def finish(self, kind: str, said: Mapping[str, str] | None = None) -> str:
        """The id of a table of this kind with the records added so far, and what it says of itself besides."""
        whole = self._sha.copy()
        whole.update(hash_map({"type": kind, **(said or {})}))
        return whole.hexdigest()


def fnv64a(keys: pa.Array) -> npt.NDArray[np.uint64]:
    """The 64-bit FNV-1a hash of each key: byte by byte, but of all keys at once."""
    data, offsets = layout(keys)
    sizes = np.diff(offsets)
    longest_first = np.argsort(-sizes, kind="stable")
    at, sizes = offsets[:-1][longest_first], sizes[longest_first]
    hashes = np.full(len(keys), FNV_START)
    for n in range(int(sizes[0]) if len(keys) else 0):
        going = int(np.searchsorted(-sizes, -n, "left"))  # keys longer than n
        hashes[:going] ^= data.take(at[:going] + n)
        hashes[:going] *= FNV_PRIME
    out = np.empty_like(hashes)
    out[longest_first] = hashes
    return out


def _lengths(column: pa.Array) -> pa.Array:
    """Each value's length in decimal digits."""
    return pc.cast(pc.cast(pc.binary_length(column), pa.string()), pa.binary())
