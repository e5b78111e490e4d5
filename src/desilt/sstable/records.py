"""Sorted runs of records, as Arrow columns: laid over each other, compared, taken by key."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

DIFFERENCES = pa.schema(
    [
        pa.field("key", pa.binary(), nullable=False),
        pa.field("left", pa.binary()),
        pa.field("right", pa.binary()),
    ]
)
"""One row per key whose values differ; null where a side lacks it. In key order."""


class Feed:
    """A sorted stream of batches, taken up to a key at a time."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches: Iterator[pa.RecordBatch] = iter(batches)
        self._held: list[pa.RecordBatch] = []

    def first(self) -> bytes | None:
        """The first key that is left."""
        return key_at(self._held[0], 0) if self._fill() else None

    def last(self) -> bytes | None:
        """The last key of the batch at hand: more may follow it."""
        return key_at(self._held[0], -1) if self._fill() else None

    def take(self, upto: bytes | None) -> list[pa.RecordBatch]:
        """Everything up to and with key ``upto``; None takes all."""
        taken = []
        while self._fill():
            batch = self._held.pop()
            size = batch.num_rows if upto is None else position_after(batch, upto)
            if size:
                taken.append(batch.slice(0, size))
            if size < batch.num_rows:
                self._held.append(batch.slice(size))
                break
        return taken

    def _fill(self) -> bool:
        while not self._held:
            batch = next(self._batches, None)
            if batch is None:
                return False
            if batch.num_rows:
                self._held.append(batch)
        return True


def key_at(batch: pa.RecordBatch, row: int) -> bytes:
    key: bytes = batch.column(0)[row].as_py()
    return key


def position_after(batch: pa.RecordBatch, key: bytes) -> int:
    """How many rows of ``batch`` have a key up to ``key``."""
    if key_at(batch, -1) <= key:
        return int(batch.num_rows)
    place: int = bisect_right(range(batch.num_rows), key, key=lambda row: key_at(batch, row))
    return place


def paired(pairs: Sequence[tuple[bytes, bytes | None]], schema: pa.Schema) -> pa.RecordBatch:
    """Pairs of key and value as columns."""
    keys, values = zip(*pairs, strict=True) if pairs else ((), ())
    return pa.record_batch([pa.array(keys, pa.binary()), pa.array(values, pa.binary())], schema=schema)


def joined(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """``batches`` as one."""
    found = list(batches)
    if not found:
        return pa.record_batch([pa.nulls(0, field.type) for field in schema], schema=schema)
    return pa.concat_batches(found)


def overlay(base: pa.RecordBatch, changes: pa.RecordBatch) -> pa.RecordBatch:
    """``base`` with ``changes`` made: their values set, their nulls gone. In key order."""
    untouched = base.filter(pc.invert(pc.is_in(base["key"], value_set=changes["key"])))
    made = changes.filter(pc.is_valid(changes["value"])).cast(base.schema)
    if not made.num_rows:
        return untouched
    return in_key_order(pa.concat_batches([untouched, made]))


def differing(left: pa.RecordBatch, right: pa.RecordBatch) -> pa.RecordBatch:
    """Where two runs of records over the same keys differ, as :data:`DIFFERENCES`."""
    match = pc.index_in(left["key"], value_set=right["key"])
    on_right = right["value"].take(match)
    changed = pc.fill_null(pc.not_equal(left["value"], on_right), True)
    only_right = right.filter(pc.invert(pc.is_in(right["key"], value_set=left["key"])))
    ours = pa.record_batch([left["key"], left["value"], on_right], schema=DIFFERENCES).filter(changed)
    theirs = pa.record_batch(
        [only_right["key"], pa.nulls(only_right.num_rows, pa.binary()), only_right["value"]], schema=DIFFERENCES
    )
    return in_key_order(pa.concat_batches([ours, theirs]))


def in_key_order(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.take(pc.sort_indices(batch["key"]))
