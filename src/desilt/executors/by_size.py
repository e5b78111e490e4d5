"""Work done where it fits: what is small in this process, more of it in processes beside it, what is large on Spark.

Spark takes seconds to start, and is not even loaded before there is work that is worth them.
"""

import os
from collections.abc import Callable, Sequence

from desilt.executors.executor import Executor, Here, Item, Nobody, Result, Watch, Weigh
from desilt.executors.processes import Processes

IN_ONE_PROCESS = 100_000  # rows: up to here, others take longer to start than they save
WITHOUT_SPARK = 5_000_000
"""Rows (objects and entries) up to which Spark takes longer to start than all the rest does; docs/performance.md."""


def cores_here() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class BySize:
    """Goes from one place to the next as pieces of work turn out larger, and stays there."""

    def __init__(
        self,
        watch: Watch | None = None,
        *,
        spark: Callable[[Watch], Executor] | None = None,  # None: there is none, whatever the size
        without_spark: int = WITHOUT_SPARK,  # rows; -1: nothing is done without
        cores: int | None = None,
    ) -> None:
        self.watch: Watch = watch or Nobody()
        self._start, self._without_spark, self._cores = spark, without_spark, cores or cores_here()
        self._here = Here(self.watch)
        self._beside: Processes | None = None
        self._spark: Executor | None = None

    @property
    def width(self) -> int:
        """Of where it is, or will be; asked by whoever is about to hand out work."""
        return self._on_spark().width if self._spark or self._without_spark < 0 else self._cores

    @property
    def place(self) -> str:
        return (self._spark or self._beside or self._here).place

    def __call__(
        self, work: Callable[[Item], Result], items: Sequence[Item], *, rows: int = 0, weigh: Weigh | None = None
    ) -> list[Result]:
        return self._for(rows, len(items))(work, items, rows=rows, weigh=weigh) if items else []

    def _for(self, rows: int, pieces: int) -> Executor:
        if self._spark is not None or (self._start is not None and rows > self._without_spark):
            return self._on_spark()
        if rows <= IN_ONE_PROCESS or min(pieces, self._cores) == 1:
            return self._here
        self._beside = self._beside or Processes(self._cores, self.watch)
        return self._beside

    def _on_spark(self) -> Executor:
        if self._spark is None:
            assert self._start is not None
            self.close()
            self._spark = self._start(self.watch)
        return self._spark

    def close(self) -> None:
        """End the processes that were started; Spark ends with the program."""
        if self._beside is not None:
            self._beside.close()
            self._beside = None
