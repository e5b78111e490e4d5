"""Sorted records to tables, and to the ranges that lakeFS would have cut them into.

A range ends where its content says: after a key whose hash is a multiple of the
raggedness, or when it has grown to its limit. So equal runs of records become
equal ranges, with equal ids, in whatever batches they come.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from desilt.sstable.builder import Builder, Kind, Totals
from desilt.sstable.hashing import TableHash, fnv64a
from desilt.sstable.index import ascending
from desilt.sstable.slices import layout
from desilt.sstable.stretch import Stretch
from desilt.sstable.table import RAW

NOTHING = 8  # the estimated size of an empty table: an empty data block and an empty index
ROUND = 32 * 1024  # records encoded at once


@dataclass(frozen=True, slots=True)
class Written:
    """A finished table. An empty one has empty keys."""

    id: str
    data: bytes
    min_key: bytes
    max_key: bytes
    count: int
    estimated_size: int  # before its last block was closed: as the table says it, and its metarange


def write_table(records: pa.RecordBatch, *, kind: Kind, said: Mapping[str, str] | None = None) -> Written:
    """All of ``records``, which are in key order, as one table; with what it says of itself besides."""
    writer = RangeWriter(max_size=None, raggedness=None, kind=kind, said=said)
    writer.add(records)
    (written,) = writer.finish() or [_Making(kind, said).close(estimate=NOTHING)]
    return written


class RangeWriter:
    """Takes sorted records, gives back ranges as they are complete; what it gives depends on the records alone."""

    def __init__(
        self,
        *,
        max_size: int | None = 20 * 2**20,
        raggedness: int | None = 50_000,
        kind: Kind = "ranges",
        said: Mapping[str, str] | None = None,
    ) -> None:
        self._max_size, self._raggedness, self._kind, self._said = max_size, raggedness, kind, said
        self._making = _Making(kind, said)
        self._pending = _none()  # the records of the block that is open
        self._last: bytes | None = None

    @property
    def at_boundary(self) -> bool:
        """Whether nothing is pending: the next key would begin a new range."""
        return not len(self._pending)

    def add(self, records: pa.RecordBatch) -> list[Written]:
        """The ranges that end within ``records``; ValueError, and nothing added, if a key is not above the last."""
        self._check(records)
        done: list[Written] = []
        for start in range(0, len(records), ROUND):
            fresh = records.slice(start, ROUND)
            while len(fresh):
                fresh = self._pour(fresh, done)
        return done

    def finish(self) -> list[Written]:
        """The range that was still open, if one was."""
        if self.at_boundary:
            return []
        return [self._close(Stretch(self._pending), 0, len(self._pending))]

    def _check(self, records: pa.RecordBatch) -> None:
        if not records.schema.equals(RAW) or any(column.null_count for column in records.columns):
            raise ValueError("records have a binary key and a binary value, and no nulls")
        if not len(records):
            return
        first = records["key"][0].as_py()
        if not ascending(records["key"]) or (self._last is not None and first <= self._last):
            raise ValueError("keys must come in strictly ascending order")
        self._last = records["key"][-1].as_py()

    def _pour(self, fresh: pa.RecordBatch, done: list[Written]) -> pa.RecordBatch:
        """Write what can be written; the records still to be poured, which are some when a range ended by its size."""
        held = len(self._pending)
        records = _joined(self._pending, fresh)
        stretch = Stretch(records, self._ends(fresh["key"], held))
        noted = held
        for start, stop, ends in stretch.spans:
            grown = None
            if self._max_size is not None:
                grown = stretch.reaching(start, stop, self._max_size - self._making.builder.size)
            if ends or grown is not None:
                stop = stop if grown is None else grown + 1
                self._making.note(records.slice(noted, stop - noted))
                done.append(self._close(stretch, start, stop))
                noted = stop
                if grown is not None:
                    return records.slice(stop)  # where blocks begin after this was not foreseen
            elif stop < len(records):
                block = stretch.block(start, stop)
                self._making.builder.add(block, last=stretch.key(stop - 1), following=stretch.key(stop))
            else:
                self._pending = records.slice(start)
        self._making.note(records.slice(noted))
        return _none()

    def _ends(self, keys: pa.Array, held: int) -> Sequence[int]:
        """The places after which the keys themselves end a range; those ``held`` did not."""
        if self._raggedness is None:
            return ()
        ends: list[int] = (np.flatnonzero(fnv64a(keys) % np.uint64(self._raggedness) == 0) + held + 1).tolist()
        return ends

    def _close(self, stretch: Stretch, start: int, stop: int) -> Written:
        """The range whose last block is this one; the next begins with nothing."""
        making, self._making, self._pending = self._making, _Making(self._kind, self._said), _none()
        estimate = making.builder.size + stretch.size(start, stop)
        last = stretch.key(stop - 1)
        making.builder.add(stretch.block(start, stop), last=last, following=None)
        return making.close(estimate=estimate)


class _Making:
    """A table in the making: its blocks so far, and what it will say of its records."""

    def __init__(self, kind: Kind, said: Mapping[str, str] | None) -> None:
        self.builder = Builder()
        self._kind: Kind = kind
        self._said = said
        self._hash = TableHash()
        self._totals = Totals(b"", b"", 0, 0, 0)

    def note(self, records: pa.RecordBatch) -> None:
        """These records belong to this table, whether or not their block is stored yet."""
        if not len(records):
            return
        self._hash.add(records["key"], records["value"])
        so_far, keys, values = self._totals, records["key"], records["value"]
        self._totals = Totals(
            min_key=so_far.min_key if so_far.count else keys[0].as_py(),
            max_key=keys[-1].as_py(),
            count=so_far.count + len(keys),
            key_bytes=so_far.key_bytes + len(layout(keys)[0]),
            value_bytes=so_far.value_bytes + len(layout(values)[0]),
        )

    def close(self, *, estimate: int) -> Written:
        totals = self._totals
        data = self.builder.close(kind=self._kind, totals=totals, estimate=estimate, said=self._said)
        name = self._hash.finish(self._kind, self._said)
        return Written(name, data, totals.min_key, totals.max_key, totals.count, estimate)


def _none() -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=RAW)


def _joined(pending: pa.RecordBatch, fresh: pa.RecordBatch) -> pa.RecordBatch:
    if not len(pending):
        return fresh
    columns = [pa.concat_arrays([pending[name], fresh[name]]) for name in RAW.names]
    return pa.RecordBatch.from_arrays(columns, schema=RAW)
