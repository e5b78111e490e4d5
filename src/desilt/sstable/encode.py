"""Columns to block entries: what each record takes in a block, and the bytes of all of them at once.

An entry's bytes depend on one thing besides its own record and the one before:
whether it begins a restart. So sizes are known for both cases before any block
is cut, and once the cuts are made all bytes are joined in C++.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from desilt.sstable import varint
from desilt.sstable.decode import SET, SUFFIX, words
from desilt.sstable.slices import cut, from_layout, joined, layout
from desilt.sstable.varint import Bytes, Ints

SUFFIX_BYTES = SET.to_bytes(SUFFIX, "little")
ENDING = pa.scalar(SUFFIX_BYTES, pa.binary())


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes per entry: ``whole`` at a restart, ``shared`` elsewhere, and lakeFS's ``guess`` before it adds one."""

    whole: Ints
    shared: Ints
    guess: Ints


@dataclass(frozen=True, slots=True)
class Draft:
    """Records about to be cut into blocks."""

    keys: Bytes  # internal keys, one after another
    offsets: Ints
    prefix: Ints  # how many bytes a key has in common with the one before
    values: pa.Array
    value_sizes: Ints

    def sizes(self) -> Sizes:
        key, value = np.diff(self.offsets), self.value_sizes
        rest = key - self.prefix
        value_width = varint.widths(value)
        key_width = varint.widths(key)
        return Sizes(
            whole=1 + key_width + value_width + key + value,
            shared=varint.widths(self.prefix) + varint.widths(rest) + value_width + rest + value,
            guess=key + value + 4 + key_width + value_width,
        )

    def encode(self, restarts: Ints) -> tuple[Bytes, Ints]:
        """All entries, those at ``restarts`` whole: the bytes, and where each begins and the last one ends."""
        shared = self.prefix.copy()
        shared[restarts] = 0
        starts, ends = self.offsets[:-1] + shared, self.offsets[1:]
        heads = from_layout(*varint.encode_columns(shared, ends - starts, self.value_sizes))
        return layout(joined(heads, cut(self.keys, starts, ends), self.values))


def draft(records: pa.RecordBatch) -> Draft:
    """``records``, which are in key order, measured."""
    values = records["value"]
    internal = joined(records["key"], ENDING)
    keys, offsets = layout(internal)
    return Draft(keys, offsets, common_prefixes(keys, offsets), values, np.diff(layout(values)[1]))


def common_prefixes(keys: Bytes, offsets: Ints) -> Ints:
    """For each key, how many of its first bytes the key before it has too; eight bytes are compared at a time."""
    padded = np.append(keys, np.zeros(8, np.uint8))
    sizes = np.diff(offsets)
    most = np.zeros(len(sizes), np.int64)
    most[1:] = np.minimum(sizes[1:], sizes[:-1])
    found = np.zeros(len(sizes), np.int64)
    row = np.flatnonzero(most)
    at = 0
    while len(row):
        differ = words(padded, offsets[row] + at) ^ words(padded, offsets[row - 1] + at)
        lowest = differ & (~differ + np.uint64(1))
        same = np.where(differ == 0, 8, np.bitwise_count(lowest - np.uint64(1)) >> 3).astype(np.int64)
        found[row] = at + same
        at += 8
        row = row[(same == 8) & (most[row] > at)]
    return np.minimum(found, most)
