"""Many small pieces of work, done by Spark's executors, each to its own result.

A piece writes what it makes into the object store, under a name that only it
uses: done twice, it is done once. What comes back to the driver is small.
"""

import pickle
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Weigh = Callable[[Any], int]
POLL_SECONDS = 0.5


class Watch(Protocol):
    """Somebody who wants to know how far it is."""

    def begins(self, stage: str) -> None: ...

    def advance(self, objects: int) -> None:
        """So many more objects are dealt with in this stage."""


class Nobody:
    """Looks the other way."""

    def begins(self, stage: str) -> None: ...

    def advance(self, objects: int) -> None: ...


class Spread(Protocol):
    """Where work is done."""

    watch: Watch

    @property
    def width(self) -> int:
        """How many pieces are worked on at once."""

    def __call__(
        self, work: Callable[[Item], Result], items: Sequence[Item], *, weigh: Weigh | None = None
    ) -> list[Result]:
        """The result of ``work`` for each of ``items``, in their order; any failure is raised.

        ``weigh`` says of a result how many objects it stands for, for those who watch.
        """


class InProcess:
    """One piece after the other, right here."""

    width = 1

    def __init__(self, watch: Watch | None = None) -> None:
        self.watch: Watch = watch or Nobody()

    def __call__(
        self, work: Callable[[Item], Result], items: Sequence[Item], *, weigh: Weigh | None = None
    ) -> list[Result]:
        results = []
        for item in items:
            results.append(work(item))
            self.watch.advance(weigh(results[-1]) if weigh else 0)
        return results


in_process = InProcess()


class OnSpark:
    """On the executors of a session, one task to an item."""

    def __init__(self, spark: Any, watch: Watch | None = None) -> None:
        self._spark = spark
        self.watch: Watch = watch or Nobody()

    @property
    def width(self) -> int:
        return int(self._spark.sparkContext.defaultParallelism)

    def __call__(
        self, work: Callable[[Item], Result], items: Sequence[Item], *, weigh: Weigh | None = None
    ) -> list[Result]:
        if not items:
            return []
        context = self._spark.sparkContext
        weight = context.accumulator(0) if weigh else None

        def run(piece: tuple[int, bytes]) -> tuple[int, bytes]:
            number, item = piece
            result = work(pickle.loads(item))
            if weigh and weight is not None:
                weight.add(weigh(result))
            return number, pickle.dumps(result)

        # Plain tasks, not a frame: nothing here is columns, and there is no query to plan.
        pieces = [(number, pickle.dumps(item)) for number, item in enumerate(items)]
        with polled(weight, self.watch):
            done = dict(context.parallelize(pieces, len(pieces)).map(run).collect())
        if len(done) != len(items):
            raise AssertionError(f"{len(items)} pieces of work were given out, {len(done)} came back")
        return [pickle.loads(done[number]) for number in range(len(items))]


@contextmanager
def polled(weight: Any, watch: Watch) -> Iterator[None]:
    """Tell ``watch`` how an accumulator grows; tasks that ran twice count twice, so it is for the eye only."""
    if weight is None:
        yield
        return
    ended, told = threading.Event(), 0

    def tell() -> None:
        nonlocal told
        if grown := weight.value - told:
            told += grown
            watch.advance(grown)

    def polling() -> None:
        while not ended.wait(POLL_SECONDS):
            tell()

    thread = threading.Thread(target=polling, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        tell()
