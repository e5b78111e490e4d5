"""The hashes lakeFS names things by: a table, an entry, and the keys a range ends at.

All of them depend on content alone: not on file bytes, addresses or times. Two
tables with the same records have the same id, whoever wrote them.
"""

import hashlib
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from desilt.sstable.slices import layout

FNV_START = np.uint64(0xCBF29CE484222325)
FNV_PRIME = np.uint64(0x100000001B3)


def hash_int(value: int) -> bytes:
    """An int64 in the form it is hashed in."""
    return b"\x02\x08" + value.to_bytes(8, "big", signed=True)


def hash_text(text: str) -> bytes:
    raw = text.encode()
    return b"\x01" + hash_int(len(raw)) + raw


def hash_map(texts: Mapping[str, str]) -> bytes:
    ordered = sorted(texts.items(), key=lambda item: item[0].encode())
    return b"\x04" + hash_int(len(texts)) + b"".join(hash_text(key) + hash_text(value) for key, value in ordered)


def entry_hash(size: int, checksum: str, metadata: Mapping[str, str], content_type: str) -> bytes:
    """An entry's identity: equal for equal objects, wherever they are kept and whenever they came."""
    form = hash_int(size) + hash_text(checksum) + hash_map(metadata)
    return hashlib.sha256(form + (hash_text(content_type) if content_type else b"")).digest()


class TableHash:
    """A table's id while its records come in, in any number of batches."""

    def __init__(self) -> None:
        self._sha = hashlib.sha256()

    def add(self, keys: pa.Array, values: pa.Array) -> None:
        if not len(keys):
            return
        bar = pa.scalar(b"|")
        forms = pc.binary_join_element_wise(_lengths(keys), keys, bar, _lengths(values), values, bar, b"")
        self._sha.update(layout(forms)[0].data)

    def finish(self, kind: str) -> str:
        """The id of a table of this kind with the records added so far."""
        whole = self._sha.copy()
        whole.update(hash_map({"type": kind}))
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
