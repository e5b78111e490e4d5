"""Pieces of work on the executors of a Spark session: the only module that hands anything to Spark."""

import pickle
import re
import secrets
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from desilt.errors import BadRequest, DesiltError, WorkFailed
from desilt.executors.executor import Item, Nobody, Result, Watch, Weigh
from desilt.logs import logger

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

POLL_SECONDS = 0.5
RAISED = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit)\b")
log = logger(__name__)


class OnSpark:
    """On the executors of a session, one task to an item."""

    def __init__(self, spark: Any, watch: Watch | None = None) -> None:
        if not hasattr(type(spark), "sparkContext"):
            what = f"{type(spark).__module__}.{type(spark).__name__}"
            raise BadRequest(
                f"{what} is no Spark session that runs tasks; give a SparkSession, not one of Spark Connect"
            )
        self._spark = spark
        self.watch: Watch = watch or Nobody()

    @property
    def width(self) -> int:
        return int(self._spark.sparkContext.defaultParallelism)

    @property
    def place(self) -> str:
        return f"on Spark ({self._spark.sparkContext.master})"

    def __call__(
        self,
        work: Callable[[Item], Result],
        items: Sequence[Item],
        *,
        rows: int = 0,  # noqa: ARG002  others choose by it
        weigh: Weigh | None = None,
    ) -> list[Result]:
        if not items:
            return []
        context = self._spark.sparkContext
        weight = context.accumulator(0) if weigh else None
        seal = secrets.token_hex(16)

        def run(piece: tuple[int, bytes]) -> tuple[int, bytes]:
            number, item = piece
            with told_to_the_driver(seal):
                result = work(pickle.loads(item))
            if weigh and weight is not None:
                weight.add(weigh(result))
            return number, pickle.dumps(result)

        # Plain tasks, not a frame: nothing here is columns, and there is no query to plan.
        pieces = [(number, pickle.dumps(item)) for number, item in enumerate(items)]
        with raised_by_tasks(seal), polled(weight, self.watch):
            done = dict(context.parallelize(pieces, len(pieces)).map(run).collect())
        if len(done) != len(items):
            raise AssertionError(f"{len(items)} pieces of work were given out, {len(done)} came back")
        return [pickle.loads(done[number]) for number in range(len(items))]

    def frame(
        self, work: Callable[[Item], Iterable[tuple[Any, ...]]], items: Sequence[Item], schema: str
    ) -> "DataFrame":
        """The rows that ``work`` makes of each of ``items``, as a frame; they are made where and when it is read."""

        def rows(item: bytes) -> Iterator[tuple[Any, ...]]:
            yield from work(pickle.loads(item))

        context = self._spark.sparkContext
        pieces = context.parallelize([pickle.dumps(item) for item in items], max(1, len(items)))
        made: DataFrame = self._spark.createDataFrame(pieces.flatMap(rows), schema)
        return made


@contextmanager
def told_to_the_driver(seal: str) -> Iterator[None]:
    """In a task: an error of ours is raised as text that the driver can read; Spark tries again as with any other."""
    try:
        yield
    except DesiltError as error:
        raise RuntimeError(f"desilt raised {seal} <{b64encode(pickle.dumps(error)).decode()}>: {error}") from error


@contextmanager
def raised_by_tasks(seal: str) -> Iterator[None]:
    """On the driver: what a task raised of ours, raised again as what it was.

    Spark tells text, in which names may be that anybody chose: ``seal`` is known to this piece of work alone.
    """
    try:
        yield
    except Exception as failed:
        said = str(failed)
        found = re.search(rf"desilt raised {seal} <([A-Za-z0-9+/=]+)>", said)
        if found is None:
            log.info("Spark says: %s", said)
            raise WorkFailed(in_a_line(said)) from failed
        error: DesiltError = pickle.loads(b64decode(found[1]))
        raise error from failed


def in_a_line(said: str) -> str:
    """What a task failed of: where Python raised it, the last line of that; else the first of all."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    raised = [line for line in lines if RAISED.match(line)]
    return (raised or lines or ["nothing was said"])[-1 if raised else 0]


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
