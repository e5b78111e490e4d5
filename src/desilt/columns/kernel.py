"""Every address judged, bucket by bucket, on the executors: the scaffold that all judges share.

Buckets come in parts, neighbours together; how many depends on how much there is
to judge, and on nothing else, so that what a part leaves behind is the same
wherever it is judged. A task opens each file once, judges some neighbouring
parts, and brings back a small answer; answers are added up. What a task cannot
read as it was written it names, and then there is no answer at all.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any, Generic, Protocol, TypeVar

from desilt.columns import memory
from desilt.columns.buckets import Bucket, deserved, every
from desilt.columns.files import Files, HeldFile
from desilt.errors import Damaged
from desilt.executors.executor import Executor, Weigh
from desilt.objects import open_store

Answer = TypeVar("Answer")
T = TypeVar("T")
ROWS_AT_ONCE = 1 << 19  # of the largest input, in one bucket: smaller ones cost more calls than they save memory
FEW_PARTS = 32  # up to so many, each bucket is a part
BUCKETS_TO_A_PART = 2  # where there are very many: each part leaves a file; a million keys of 1 KB fit an array
TASKS_TO_A_WORKER = 4  # at most: somebody who watches sees something, and no worker waits long for the last one
ROWS_TO_A_TASK = 8_000_000  # at least, where every worker has one: to begin a task takes Spark a tenth of a second
Part = tuple[Bucket, ...]


class Judge(Protocol[Answer]):
    """What there is to be judged, and by what. It is pickled and sent to every task."""

    def inputs(self) -> Iterable[Sequence[HeldFile]]:
        """The sets of files that it reads."""

    def judge(self, files: Files, buckets: Sequence[Bucket], /) -> Answer:
        """What a part comes to; what several answer is added up with ``+``."""

    def within(self, _buckets: Sequence[Bucket], /) -> "Judge[Answer]":
        """So much of it as is about some neighbouring buckets: what it brings along of others is judged with those."""
        return self


@dataclass(frozen=True, slots=True)
class DamagedFiles:
    """Files that could not be read: then nothing was answered."""

    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Task(Generic[Answer]):
    """Some neighbouring parts to be judged."""

    store: str
    judge: Judge[Answer]
    parts: tuple[Part, ...]


def judge_buckets(
    executor: Executor, store: str, judge: Judge[Answer], *, weigh: Weigh | None = None, expected: int = 0
) -> Answer | DamagedFiles:
    """What ``judge`` says of all buckets together; ``expected`` is what the answers weigh, where that is known."""

    def weighed(found: Any) -> int:
        return 0 if weigh is None or isinstance(found, DamagedFiles) else weigh(found)

    sizes = [sum(file.rows for file in some) for some in judge.inputs()]
    parts = parts_for(max(sizes, default=0))
    several = cut(parts, min(len(parts), tasks_for(sum(sizes), executor.width)))
    tasks = [Task(store, judge.within([bucket for part in some for bucket in part]), some) for some in several]
    if expected:
        executor.watch.expects(expected)
    found = executor(judged, tasks, rows=sum(sizes), weigh=weighed)
    if damaged := [one.names for one in found if isinstance(one, DamagedFiles)]:
        return DamagedFiles(frozenset().union(*damaged))
    answers: list[Any] = found
    total: Answer = reduce(add, answers)
    return total


def parts_for(rows: int) -> list[Part]:
    """All buckets, as many as so many rows deserve, in parts."""
    buckets = every(deserved(rows, each=ROWS_AT_ONCE))
    return cut(buckets, max(min(len(buckets), FEW_PARTS), len(buckets) // BUCKETS_TO_A_PART))


def tasks_for(rows: int, width: int) -> int:
    """Into how many tasks so many rows are divided, for ``width`` workers."""
    return min(max(width, rows // ROWS_TO_A_TASK), TASKS_TO_A_WORKER * width)


def cut(some: Sequence[T], count: int) -> list[tuple[T, ...]]:
    """The same in ``count`` runs of neighbours, about as long as each other."""
    ends = [place * len(some) // count for place in range(count + 1)]
    return [tuple(some[start:end]) for start, end in pairwise(ends)]


def judged(task: Task[Answer]) -> Answer | DamagedFiles:
    """On an executor: the answer to one task."""
    memory.kept_for_the_next()
    try:
        files = Files(open_store(task.store))
        answers: list[Any] = [task.judge.within(part).judge(files, part) for part in task.parts]
        total: Answer = reduce(add, answers)
        return total
    except Damaged as error:  # all that are damaged are told together
        return DamagedFiles(frozenset([error.name]))
