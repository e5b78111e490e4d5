"""A store whose objects are only told of: listed from a shape, removed by a call that takes its time and does no more.

Everything else (tables, plans, outcomes, caches) is in a real directory. The pretence
is put over :class:`LocalStore` in every process that a piece of work runs in.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from desilt.executors.executor import Executor, Item, Result, Weigh
from desilt.objects.local import LocalStore
from desilt.objects.store import LISTING, Outcome, nothing
from desilt.objects.store import Result as Removal
from large_lake import COMMITTED, OLD, SIZE, STAGED, Shape

really_list = LocalStore.list


@dataclass(frozen=True, slots=True)
class Pretence:
    """What is stored, and how long a call takes that deletes some."""

    shape: Shape
    prefix: str  # of the repository
    call_seconds: float

    def begin(self) -> None:
        """From here on, in this process."""
        LocalStore.list = lambda store, *given, **words: self.listed(store, *given, **words)  # type: ignore[method-assign]
        LocalStore.delete_many = lambda _, keys, **words: self.removed(keys, **words)  # type: ignore[method-assign]

    def listed(
        self, store: LocalStore, prefix: str = "", *, after: str = "", until: str = ""
    ) -> Iterator[pa.RecordBatch]:
        """What is committed and staged is there, and nothing else: as after a run."""
        if not prefix.startswith(f"{self.prefix}branches/"):
            yield from really_list(store, prefix, after=after, until=until)
            return
        for branch in range(self.shape.branches):
            last = self.shape.addresses_of(np.array([min((branch + 1) * self.shape.each, self.shape.objects) - 1]))
            key = self.prefix + last[0].as_py()
            folder = key[: key.rindex("/") + 1]
            if key > after and (folder.startswith(prefix) or prefix.startswith(folder)):  # else nothing of it is made
                rows = rows_of(
                    keys(self.shape.addresses_of(self.shape.numbers(branch, COMMITTED, STAGED)), self.prefix)
                )
                rows = rows.filter(pc.and_(pc.starts_with(rows["key"], prefix), pc.greater(rows["key"], after)))
                if until:
                    rows = rows.filter(pc.less(rows["key"], until))
                if rows.num_rows:
                    yield rows

    def removed(self, keys: Sequence[str], *, between: Callable[[], None] = nothing) -> list[Outcome]:
        between()
        time.sleep(self.call_seconds)
        return [Outcome(key, Removal.REMOVED) for key in keys]


@dataclass(frozen=True, slots=True)
class Pretending:
    """An executor whose tasks take part."""

    executor: Executor
    pretence: Pretence

    @property
    def watch(self) -> Any:
        return self.executor.watch

    @property
    def width(self) -> int:
        return self.executor.width

    @property
    def place(self) -> str:
        return self.executor.place

    def __call__(
        self, work: Callable[[Item], Result], items: Sequence[Item], *, rows: int = 0, weigh: Weigh | None = None
    ) -> list[Result]:
        return self.executor(partial(pretend, self.pretence, work), items, rows=rows, weigh=weigh)


def pretend(pretence: Pretence, work: Callable[[Item], Result], item: Item) -> Result:
    pretence.begin()
    return work(item)


def keys(addresses: pa.Array, prefix: str) -> pa.Array:
    return pc.binary_join_element_wise(prefix, addresses, "")


def rows_of(found: pa.Array) -> pa.RecordBatch:
    """Keys as a store lists them."""
    times = pa.array(np.full(len(found), int(OLD.timestamp()) * 1_000_000)).cast(LISTING.field("modified_at").type)
    return pa.record_batch([found, pa.array(np.full(len(found), SIZE)), times], schema=LISTING)
