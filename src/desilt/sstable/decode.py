"""Blocks to columns: all restart intervals of many blocks decoded side by side.

A key is written as what it adds to the key before it, except at each restart,
where it is whole. So every restart begins a *lane* that can be read without the
others, and one step reads the next entry of all lanes at once: sixteen steps,
however many blocks. Sharing may reach into the eight bytes that end a key, so it
is undone on whole internal keys, and those bytes are cut off last.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from desilt.sstable import varint
from desilt.sstable.slices import MAX_BYTES, cut, joined, layout
from desilt.sstable.varint import Bytes, Ints, Malformed

SUFFIX = 8  # sequence number and kind, after every internal key
SET = 1  # what those eight bytes say in a table of lakeFS: sequence 0, a plain value


@dataclass(frozen=True, slots=True)
class DecodedBlocks:
    """What a run of blocks holds, in order; one row per entry, except ``counts``: one per block."""

    keys: pa.Array  # user keys, their suffix gone
    suffixes: npt.NDArray[np.uint64]
    values: pa.Array
    counts: Ints


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
    kept: Ints | None  # which rows of the step before are still there; None: all


def decode(blocks: Sequence[bytes]) -> DecodedBlocks:
    """The entries of ``blocks``, or :class:`Malformed` if any of them breaks a rule of the format."""
    data = np.frombuffer(b"".join(blocks), np.uint8)
    lanes = _lanes(data, np.array([len(block) for block in blocks], np.int64))
    steps = _walk(data, lanes)
    per_lane = np.zeros(len(lanes.start), np.int64)
    for step in steps:
        per_lane[step.lane] += 1
    counts = np.bincount(lanes.block, weights=per_lane, minlength=len(blocks)).astype(np.int64)
    first = np.cumsum(per_lane) - per_lane
    total = int(per_lane.sum())
    if not total:
        nothing = pa.array([], pa.binary())
        return DecodedBlocks(nothing, np.empty(0, np.uint64), nothing, counts)
    # Row r of the result is entry order[r] in the order the steps met them.
    places = np.concatenate([first[step.lane] + n for n, step in enumerate(steps)])
    order = np.empty(total, np.int64)
    order[places] = np.arange(total)
    keys, offsets = layout(pa.concat_arrays(_keys(data, steps)))
    suffixes = words(keys, offsets[1:] - SUFFIX)[order]
    value_at = np.concatenate([step.value for step in steps])[order]
    value_end = np.concatenate([step.end for step in steps])[order]
    return DecodedBlocks(
        keys=cut(keys, offsets[:-1], offsets[1:] - SUFFIX, order=order),
        suffixes=suffixes,
        values=cut(data, value_at, value_end),
        counts=counts,
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
        steps.append(_Step(lane, shared, suffix, value, end, kept))
        going = end < stop
        kept = None
        if not going.all():
            kept = np.flatnonzero(going)
            lane, stop, length, end = lane[kept], stop[kept], length[kept], end[kept]
        at = end
    return steps


def _keys(data: Bytes, steps: list[_Step]) -> list[pa.Array]:
    """The internal keys, one column per step."""
    columns: list[pa.Array] = []
    for step in steps:
        keys = cut(data, step.suffix, step.value)
        if columns:
            before, offsets = layout(columns[-1])
            starts = offsets[:-1] if step.kept is None else offsets[step.kept]
            if len(data) + int(step.shared.sum()) > MAX_BYTES:
                raise Malformed("its keys are too large to be decoded at once")
            keys = joined(cut(before, starts, starts + step.shared), keys)
        columns.append(keys)
    return columns
