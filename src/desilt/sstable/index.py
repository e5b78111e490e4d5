"""Which data block may hold a key: one separator and one handle per block.

A separator is not below its block's last key and below the next block's first.
An index of two levels is flattened when it is read, so nobody else knows of it.
"""

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from desilt.sstable import varint
from desilt.sstable.blocks import TRAILER, BlockHandle, Blocks, unseal, unseal_all, whole
from desilt.sstable.decode import DecodedBlocks, decode
from desilt.sstable.slices import layout
from desilt.sstable.source import ByteSource
from desilt.sstable.varint import Ints, Malformed

INDEX_TYPE = "rocksdb.block.based.table.index.type"  # the property that tells how many levels it has


@dataclass(frozen=True)
class Index:
    """Data block ``i`` is stored from ``offsets[i]`` to ``offsets[i + 1]``, trailer included."""

    separators: pa.Array
    offsets: Ints
    partitions: list[BlockHandle]  # the index's own blocks, when there are two levels

    @cached_property
    def keys(self) -> list[bytes]:
        """The separators again, for bisection."""
        found: list[bytes] = self.separators.to_pylist()
        return found

    def __len__(self) -> int:
        return len(self.separators)

    def find(self, key: bytes) -> int:
        """The only block that may hold ``key``; ``len(self)`` when none may."""
        return bisect_left(self.keys, key)

    def blocks(self, stored: memoryview, first: int, stop: int) -> Blocks:
        """Data blocks ``first`` to ``stop``, out of the bytes they are stored in."""
        return unseal_all(stored, self.offsets[first : stop + 1] - self.offsets[first])


def read_index(source: ByteSource, handle: BlockHandle, *, two_levels: bool) -> Index:
    """The index whose root is at ``handle``."""
    entries = decode(whole(unseal(source.block(handle))))
    partitions: list[BlockHandle] = []
    if two_levels:
        top = entries
        offsets = _offsets(top)
        partitions = [BlockHandle(start, end - start - TRAILER) for start, end in pairwise(offsets.tolist())]
        entries = decode(unseal_all(source.read(int(offsets[0]), int(offsets[-1])), offsets - offsets[0]))
        if (entries.counts == 0).any():
            raise Malformed("a part of its index is empty")
        lasts = entries.keys.take(pa.array(np.cumsum(entries.counts) - 1))
        if not lasts.equals(top.keys):
            raise Malformed("the levels of its index do not agree")
    offsets = _offsets(entries)
    if offsets[0] != 0 or offsets[-1] > source.size:
        raise Malformed("its data blocks are not where they should be")
    if not ascending(entries.keys):
        raise Malformed("its index is not in order")
    return Index(entries.keys, offsets, partitions)


def ascending(keys: pa.Array) -> bool:
    """Whether each key is above the one before it."""
    return len(keys) < 2 or bool(pc.all(pc.less(keys[:-1], keys[1:])).as_py())


def _offsets(entries: DecodedBlocks) -> Ints:
    """Where the blocks these entries point to begin, and the last ends: they must follow one another."""
    if not len(entries.keys):
        raise Malformed("its index is empty")
    data, bounds = layout(entries.values)
    if not len(data):
        raise Malformed("its index points nowhere")
    offset, at = varint.decode_column(data, bounds[:-1], longest=varint.MAX_64)
    size, at = varint.decode_column(data, at, longest=varint.MAX_64)
    if (at != bounds[1:]).any() or (offset < 0).any() or (size < 0).any() or (size > 2**40).any():
        raise Malformed("its index points nowhere")
    ends = offset + size + TRAILER
    if (offset[1:] != ends[:-1]).any():
        raise Malformed("its blocks do not follow one another")
    return np.append(offset, ends[-1])
