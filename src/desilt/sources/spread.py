"""Many small pieces of work, done by Spark's executors, each to its own result.

A piece writes what it makes into the object store, under a name that only it
uses: done twice, it is done once. What comes back to the driver is small.
"""

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import pyarrow as pa

Item = TypeVar("Item")
Result = TypeVar("Result")
RESULTS = "number long, result binary"


class Spread(Protocol):
    """Where work is done."""

    @property
    def width(self) -> int:
        """How many pieces are worked on at once."""

    def __call__(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """The result of ``work`` for each of ``items``, in their order; any failure is raised."""


class InProcess:
    """One piece after the other, right here."""

    width = 1

    def __call__(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        return [work(item) for item in items]


in_process = InProcess()


class OnSpark:
    """On the executors of a session, one task to an item."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark

    @property
    def width(self) -> int:
        return int(self._spark.sparkContext.defaultParallelism)

    def __call__(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        if not items:
            return []
        payload = [pickle.dumps(item) for item in items]

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    result = pickle.dumps(work(pickle.loads(payload[number])))
                    yield pa.RecordBatch.from_arrays([pa.array([number]), pa.array([result])], ["number", "result"])

        frame = self._spark.range(0, len(items), 1, len(items)).mapInArrow(run, RESULTS)
        done = {row["number"]: row["result"] for row in frame.collect()}
        if len(done) != len(items):
            raise AssertionError(f"{len(items)} pieces of work were given out, {len(done)} came back")
        return [pickle.loads(done[number]) for number in range(len(items))]
