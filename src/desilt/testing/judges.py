"""Judges of single steps: what a job condemned or took in one was free just before it, by the naive oracle."""

from collections.abc import Callable
from datetime import datetime
from typing import Generic, TypeVar

from desilt.lake.repository import LakeRepository
from desilt.records import removals as tombstones
from desilt.records.removals import State
from desilt.sstable.ranges import FOLDER as RANGES
from desilt.testing import oracle

T = TypeVar("T")
ROWS = (
    "SELECT (SELECT MAX(generation) FROM repositories), (SELECT COUNT(*) FROM commits), "
    "(SELECT COUNT(*) FROM staging), (SELECT MAX(address) FROM staging), (SELECT COUNT(*) FROM tickets), "
    "(SELECT COUNT(*) FROM tombstones WHERE state = 'condemned'), (SELECT COUNT(*) FROM tombstones), "
    "(SELECT COUNT(*) FROM tombstones WHERE state IN ('restored', 'restoring')), (SELECT COUNT(*) FROM dropped)"
)
"""What shows that the oracle would give another answer."""


class Remembered(Generic[T]):
    """An answer of the oracle, asked for again only when something has changed."""

    def __init__(self, repository: LakeRepository, ask: Callable[[], T]) -> None:
        self._repository, self._ask = repository, ask
        self._seen: tuple[object, ...] | None = None
        self._answer: T

    def __call__(self) -> T:
        with self._repository.database.read() as tx:
            seen = (self._repository.clock(), *(tx.one(ROWS) or ()))
        if seen != self._seen:
            self._seen, self._answer = seen, self._ask()
        return self._answer


class Removals:
    """Of objects and tables, by what was ``free`` before each step."""

    def __init__(self, repository: LakeRepository, free: Callable[[], set[str]]) -> None:
        self.condemned: set[str] = set()
        self._repository, self._free = repository, Remembered(repository, free)
        self._stones = Remembered(repository, self._read_stones)
        self._known: set[tuple[str, str]] = set()
        self._may_go: set[str] = set()

    def before(self) -> None:
        self._known, self._may_go = self._stones(), self._free()

    def after(self) -> None:
        new = {address for address, _ in self._stones() - self._known}
        assert new <= self._may_go, f"condemned, and not free: {sorted(new - self._may_go)}"
        self.condemned |= new

    def _read_stones(self) -> set[tuple[str, str]]:
        with self._repository.database.read() as tx:
            runs = tombstones.runs_in(tx, self._repository.uid, *State)
            stones = [one for run in runs for one in tombstones.of_run(tx, self._repository.uid, run)]
        return {(one.address, one.run) for one in stones if one.state is not State.RESTORED}


class Takings:
    """Of commits, by what the oracle lets a collection take; and of what only they had, once they are gone."""

    def __init__(self, repository: LakeRepository, before: datetime) -> None:
        self.taken: set[str] = set()
        self._removals = Removals(repository, lambda: unreferenced(repository))
        self._history = Remembered(repository, lambda: set(oracle.history(repository)))
        self._free = Remembered(repository, lambda: oracle.collectable_commits(repository, before))
        self._made: set[str] = set()
        self._may_go: set[str] = set()

    def before(self) -> None:
        self._made, self._may_go = self._history(), self._free()
        self._removals.before()

    def after(self) -> None:
        gone = self._made - self._history()
        assert gone <= self._may_go, f"taken, and not free: {sorted(gone - self._may_go)}"
        self.taken |= gone
        self._removals.after()


class Histories:
    """Of edits: what no ref or hold reaches any more is older than the limit, and none of them pointed to it."""

    def __init__(self, repository: LakeRepository, before: datetime) -> None:
        self.abandoned: set[str] = set()
        self._repository, self._before = repository, before
        self._reached: set[str] = set()
        self._tips: set[str] = set()

    def before(self) -> None:
        self._reached, self._tips = oracle.reached(self._repository), oracle.tips(self._repository)

    def after(self) -> None:
        lost = self._reached - oracle.reached(self._repository)
        made = oracle.history(self._repository)
        wrong = {name for name in lost if name in self._tips or made[name].created_at >= self._before}
        assert not wrong, f"abandoned, though young or pointed at: {sorted(wrong)}"
        self.abandoned |= lost


def unreferenced(repository: LakeRepository) -> set[str]:
    """The addresses of objects and tables that nothing holds and nobody ordered to be kept."""
    now = repository.clock()
    held = oracle.committed(repository) | oracle.staged(repository)
    held |= oracle.ordered(repository, now, oracle.old(repository, now))
    needed = {commit.metarange for commit in oracle.history(repository).values()}
    needed |= {listed.id for metarange in needed for listed in repository.ranges.metarange(metarange)}
    tables = {RANGES + name for name in oracle.tables(repository) if name not in needed}
    return (set(oracle.stored(repository)) - held) | tables
