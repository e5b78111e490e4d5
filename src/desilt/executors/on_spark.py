"""Pieces of work on the executors of a Spark session: the only module that hands anything to Spark.

Work is given out as a frame of numbers, one task to a number, so that any session will do: one of this process, of a
cluster, of spark-submit, or of Spark Connect, which has frames and nothing else.
"""

import pickle
import re
import secrets
import threading
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from desilt.errors import BadRequest, DesiltError, WorkersDiffer, WorkFailed
from desilt.executors import package, task, workers
from desilt.executors.executor import Item, Nobody, Result, Watch, Weigh
from desilt.executors.piece import RAISED, parcel
from desilt.logs import logger

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

POLL_SECONDS = 0.5
AT_ONCE = 32 << 20  # bytes that one frame carries: servers of Spark Connect take four times that
ERROR = re.compile(r"[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit)\b")
NUMBERS = 1 << 20  # more than any cluster has cores
log = logger(__name__)


class OnSpark:
    """On the executors of a session, one task to an item."""

    def __init__(self, spark: Any, watch: Watch | None = None) -> None:
        if not all(hasattr(spark, name) for name in ("range", "conf", "createDataFrame")):
            what = f"{type(spark).__module__}.{type(spark).__name__}"
            raise BadRequest(f"{what} is no Spark session; give a SparkSession, of this process or of Spark Connect")
        self._spark = spark
        self._connect = workers.by_connect(spark)
        self.watch: Watch = watch or Nobody()

    @cached_property
    def width(self) -> int:
        if not self._connect:
            return int(self._spark.sparkContext.defaultParallelism)
        part = workers.functions_of(self._spark).spark_partition_id()
        return int(self._spark.range(0, NUMBERS).select(part).distinct().count())

    @cached_property
    def place(self) -> str:
        master = self._spark.conf.get("spark.master", "a cluster")
        return f"on Spark ({master}, by Spark Connect)" if self._connect else f"on Spark ({master})"

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
        sent = parcel(work, items, weigh)
        if len(sent) > AT_ONCE and len(items) > 1:  # the parts share little, or it would be small
            half = len(items) // 2
            return self(work, items[:half], weigh=weigh) + self(work, items[half:], weigh=weigh)
        seal = secrets.token_hex(16)
        with raised_by_tasks(seal):
            self._prepare()
            done = dict(self._answers(sent, len(items), name_of(work), seal, weigh))
        if done.keys() != set(range(len(items))):
            raise AssertionError(f"{len(items)} pieces of work were given out, {len(done)} came back")
        return [done[number] for number in range(len(items))]

    def frame(
        self, work: Callable[[Item], Iterable[tuple[Any, ...]]], items: Sequence[Item], schema: str
    ) -> "DataFrame":
        """The rows that ``work`` makes of each of ``items``, as a frame; they are made where and when it is read.

        A piece's rows are in memory at once, so pieces are to be small.
        """
        self._prepare()
        made = workers.sendable(task.rows_of(parcel(work, items), _mine(), secrets.token_hex(16)), name_of(work))
        numbers = workers.numbered(self._spark, len(items), made, f"array<struct<{schema}>>")
        frame: DataFrame = numbers.select(workers.functions_of(self._spark).inline("came"))
        return frame

    def _answers(self, sent: bytes, count: int, name: str, seal: str, weigh: Weigh | None) -> Iterator[tuple[int, Any]]:
        """By number, what came of each piece: all at the end, or, by Spark Connect, as they come."""
        watched = weigh is not None and type(self.watch) is not Nobody
        weight = self._spark.sparkContext.accumulator(0) if watched and not self._connect else None
        run = workers.sendable(task.given_out(sent, _mine(), seal, weight), name)
        answers = workers.numbered(self._spark, count, run, "binary")
        if not self._connect:
            with polled(weight, self.watch):
                rows = answers.collect()
            yield from ((row["id"], pickle.loads(row["came"])) for row in rows)
            return
        for row in answers.toLocalIterator():
            result = pickle.loads(row["came"])
            if watched and weigh is not None:
                self.watch.advance(weigh(result))
            yield row["id"], result

    def _prepare(self) -> None:
        """A cluster's workers may lack this package; those that Spark starts on this machine have what we have."""
        if self._connect:
            workers.prepare(self._spark, self._spark.session_id, self.width)
        elif not self._spark.sparkContext.master.startswith("local["):
            workers.prepare(self._spark, self._spark.sparkContext.applicationId, self.width)


def _mine() -> tuple[str, str]:
    mine = package.this()
    return mine.version, mine.modules


def name_of(work: Callable[..., Any]) -> str:
    """What Spark calls it in its plans and pages."""
    return str(getattr(work, "__name__", type(work).__name__))


@contextmanager
def raised_by_tasks(seal: str) -> Iterator[None]:
    """On the driver: what a task raised of ours, raised again as what it was.

    Spark tells text, in which names may be that anybody chose: ``seal`` is known to this piece of work alone.
    """
    try:
        yield
    except DesiltError:
        raise
    except Exception as failed:
        said = str(failed)
        if found := re.search(rf"{RAISED} {seal} <([A-Za-z0-9+/=]+)>", said):
            error: DesiltError = pickle.loads(b64decode(found[1]))
            raise error from failed
        log.info("Spark says: %s", said)
        if differs := re.search(rf"{task.SAYS} {seal}: (.+)", said):
            raise WorkersDiffer(differs[1], f"the driver has {package.this()}; {workers.INSTALL}") from failed
        raise WorkFailed(in_a_line(said)) from failed


def in_a_line(said: str) -> str:
    """What a task failed of: where Python raised it, the last line of that; else the first of all."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    raised = [line for line in lines if ERROR.match(line)]
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
