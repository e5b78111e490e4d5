"""Blocks to columns: all restart intervals of many blocks decoded side by side.

A key is written as what it adds to the key before it, except at each restart,
where it is whole. So every restart begins a *lane* that can be read without the
others, and one step reads the next entry of all lanes at once: sixteen steps,
however many blocks. Sharing may reach into the eight bytes that end a key, so it
is undone on whole internal keys, and those bytes are cut off last. A few entries
are read sooner one after another: an index, a metarange of some ranges.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from desilt.sstable import varint
from desilt.sstable.blocks import Blocks, entries
from desilt.sstable.slices import MAX_BYTES, cut
from desilt.sstable.varint import Bytes, Ints, Malformed

Matrix = npt.NDArray[np.uint8]
ROOM = 64 * 2**20  # bytes for the keys of several blocks
FEW = 8 * 1024  # bytes of a block that is read entry by entry
SUFFIX = 8  # sequence number and kind, after every internal key
SET = 1  # what those eight bytes say in a table of lakeFS: sequence 0, a plain value


@dataclass(frozen=True, slots=True)
class DecodedBlocks:
    """What a run of blocks holds, in order; one row per entry, except ``counts``: one per block."""

    keys: pa.Array  # user keys, their suffix gone
    suffixes: npt.NDArray[np.uint64]
    values: pa.Array
    counts: Ints

    def blocks(self, first: int, stop: int) -> "DecodedBlocks":
        """The same of blocks ``first`` to ``stop`` alone."""
        at, size = int(self.counts[:first].sum()), int(self.counts[first:stop].sum())
        return DecodedBlocks(
            self.keys.slice(at, size),
            self.suffixes[at : at + size],
            self.values.slice(at, size),
            self.counts[first:stop],
        )


@dataclass(frozen=True, slots=True)
class _Lanes:
    """Where each restart interval begins and ends, and which block it is in."""

    block: Ints
    start: Ints
    end: Ints


@dataclass(frozen=True, slots=True)
class _Step:
    """One entry of each lane that still had one."""

    lane: Ints
    shared: Ints
    suffix: Ints  # the unshared rest of the key begins here
    value: Ints  # and the value here
    end: Ints
    length: Ints  # of the key
    kept: Ints | None  # which rows of the step before are still there; None: all


def decode(blocks: Blocks) -> DecodedBlocks:
    """The entries of ``blocks``, or :class:`Malformed` if any of them breaks a rule of the format."""
    data = blocks.data
    if len(blocks.sizes) == 1 and len(data) <= FEW:
        return _one_by_one(data.tobytes())
    lanes = _lanes(data, blocks.sizes)
    steps = _walk(data, lanes)
    per_lane = np.zeros(len(lanes.start), np.int64)
    for step in steps:
        per_lane[step.lane] += 1
    counts = np.bincount(lanes.block, weights=per_lane, minlength=len(blocks.sizes)).astype(np.int64)
    total = int(per_lane.sum())
    if not total:
        nothing = pa.array([], pa.binary())
        return DecodedBlocks(nothing, np.empty(0, np.uint64), nothing, counts)
    width = max(int(step.length.max()) for step in steps)
    if total * width > (ROOM if len(counts) > 1 else MAX_BYTES):
        return _halved(blocks)
    first = np.cumsum(per_lane) - per_lane
    rows = [first[step.lane] + n for n, step in enumerate(steps)]
    keys = _keys(data, steps, rows, np.empty((total, width), np.uint8)).ravel()
    length, value, end = np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total, np.int64)
    for row, step in zip(rows, steps, strict=True):
        length[row], value[row], end[row] = step.length, step.value, step.end
    start = np.arange(0, total * width, width)
    stop = start + length - SUFFIX
    return DecodedBlocks(
        keys=cut(keys, start, stop), suffixes=words(keys, stop), values=cut(data, value, end), counts=counts
    )


def _one_by_one(block: bytes) -> DecodedBlocks:
    """The entries of one small block."""
    keys, values = [], []
    for key, value in entries(block):
        if len(key) < SUFFIX:
            raise Malformed("a key is too short to be one")
        keys.append(key)
        values.append(value)
    return DecodedBlocks(
        keys=pa.array([key[:-SUFFIX] for key in keys], pa.binary()),
        suffixes=np.frombuffer(b"".join(key[-SUFFIX:] for key in keys), "<u8"),
        values=pa.array(values, pa.binary()),
        counts=np.array([len(keys)], np.int64),
    )


def _halved(blocks: Blocks) -> DecodedBlocks:
    """The same in two halves: together their keys, each given as much room as the longest, would take too much."""
    middle = len(blocks.sizes) // 2
    if not middle:
        raise Malformed("its keys are too large to be decoded at once")
    at = int(blocks.sizes[:middle].sum())
    one = decode(Blocks(blocks.data[:at], blocks.sizes[:middle]))
    two = decode(Blocks(blocks.data[at:], blocks.sizes[middle:]))
    return DecodedBlocks(
        pa.concat_arrays([one.keys, two.keys]),
        np.concatenate([one.suffixes, two.suffixes]),
        pa.concat_arrays([one.values, two.values]),
        np.concatenate([one.counts, two.counts]),
    )


def words(data: Bytes, at: Ints) -> npt.NDArray[np.uint64]:
    """The eight bytes at each position as one little-endian number."""
    every = np.ndarray((max(len(data) - 7, 0),), "<u8", data, strides=(1,))
    return every[at]


def _lanes(data: Bytes, sizes: Ints) -> _Lanes:
    ends = np.cumsum(sizes)
    starts = ends - sizes
    if (sizes < 8).any():
        raise Malformed("a block is too short to be one")
    half = np.ndarray((len(data) - 3,), "<u4", data, strides=(1,))
    counts = half[ends - 4].astype(np.int64)
    stops = ends - 4 * (counts + 1)
    if (counts < 1).any() or (stops < starts).any():
        raise Malformed("a block's restarts do not fit in it")
    block = np.repeat(np.arange(len(sizes)), counts)
    heads = np.cumsum(counts) - counts
    nth = np.arange(len(block)) - heads[block]
    start = starts[block] + half[stops[block] + 4 * nth]
    end = np.append(start[1:], 0)
    end[heads + counts - 1] = stops
    if (start[heads] != starts).any() or ((start >= end) & (stops > starts)[block]).any() or (start > end).any():
        raise Malformed("a block's restarts are not in order")
    return _Lanes(block, start, end)


def _walk(data: Bytes, lanes: _Lanes) -> list[_Step]:
    lane = np.flatnonzero(lanes.start < lanes.end)
    at, stop = lanes.start[lane], lanes.end[lane]
    length = np.zeros(len(lane), np.int64)
    kept: Ints | None = None
    steps: list[_Step] = []
    while len(lane):
        shared, at = varint.decode_column(data, at, longest=varint.MAX_32)
        unshared, at = varint.decode_column(data, at, longest=varint.MAX_32)
        size, suffix = varint.decode_column(data, at, longest=varint.MAX_32)
        value = suffix + unshared
        end = value + size
        if (end > stop).any() or (shared > length).any():
            raise Malformed("an entry does not fit in its block")
        length = shared + unshared
        if (length < SUFFIX).any():
            raise Malformed("a key is too short to be one")
        steps.append(_Step(lane, shared, suffix, value, end, length, kept))
        going = end < stop
        kept = None
        if not going.all():
            kept = np.flatnonzero(going)
            lane, stop, length, end = lane[kept], stop[kept], length[kept], end[kept]
        at = end
    return steps


def _keys(data: Bytes, steps: list[_Step], rows: list[Ints], found: Matrix) -> Matrix:
    """The internal keys, each at the beginning of its row of ``found``; what follows one there means nothing.

    What a key adds is looked at as if the whole key stood before it: from as many
    bytes earlier as it shares. There are so many, as every byte it shares was added by a key before it.
    """
    width = found.shape[1]
    padded = np.concatenate([data, np.zeros(width, np.uint8)])
    anywhere = np.ndarray((len(data) + 1,), f"V{width}", padded, strides=(1,))  # a row each: copied as one
    columns = np.arange(width, dtype=np.min_scalar_type(width))
    whole, keys = found.view(anywhere.dtype)[:, 0], found[:0]
    for row, step in zip(rows, steps, strict=True):
        added = anywhere[step.suffix - step.shared].view(np.uint8).reshape(-1, width)
        if step is not steps[0]:
            before = keys if step.kept is None else keys[step.kept]
            shared = np.negative((columns < step.shared.astype(columns.dtype)[:, None]).view(np.uint8))
            added ^= (added ^ before) & shared
        whole[row], keys = added.view(anywhere.dtype)[:, 0], added
    return found
