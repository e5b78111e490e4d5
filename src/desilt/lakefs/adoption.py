"""The records of a repository elsewhere handed over to this database, once nobody may be at work with the old one."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, runtime_checkable

import pyarrow.compute as pc

from desilt.clock import ManualClock
from desilt.domain.units import size
from desilt.errors import Conflict, Refused, span
from desilt.objects import store_clock
from desilt.objects.store import ObjectStore
from desilt.records import elsewhere, locks
from desilt.records.locks import Lock
from desilt.repository import lease
from desilt.repository.lease import Keeper, Link
from desilt.repository.protocol import Repository

BESIDE = "_desilt/"  # all that desilt writes
TRASH = "_desilt/trash/"
STILL = timedelta(hours=1)  # for which nobody may have written anything
RUN = "adopt"


@runtime_checkable
class Adoptable(Repository, Protocol):
    """A repository whose records are in a database of desilt's own."""

    def keeper(self, lock: Lock | None = None) -> Keeper: ...

    def commits_lost(self) -> int:
        """How many commits that were seen before are there no longer, though nothing of its own takes any."""

    def accept_history(self) -> None:
        """Let what is there now be what should be."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """What counted before, and what counts now."""

    records: str  # where they are now
    before: str  # where they were; "" if nothing was removed yet, by anybody
    last_run: str
    last_at: str
    trashed: int  # objects that restore no longer finds
    trashed_bytes: int
    commits_lost: int  # that the server had and has no longer

    @property
    def told(self) -> list[str]:
        said = [f"From now on the records of this repository are in {self.records}."]
        return said + _losses(self)


def adopt(repository: Adoptable, *, confirm: bool) -> Adopted:
    """Let these records count; refused without ``confirm``, and while a run may be at work."""
    store, prefix, records = repository.store, repository.prefix, repository.records
    mine, last = elsewhere.name_of(records), lease.newest(store, prefix)
    lost = repository.commits_lost()
    if not lost and last is not None and _counts(last, repository):
        raise Conflict(f"the records of this repository are in {records.name} already; there is nothing to do")
    foreign = last is not None and last.records != mine
    count, total = _trash(store, prefix) if foreign else (0, 0)
    place, run, at = (last.place, last.run, last.at) if last else ("", "", "")
    found = Adopted(records.name, place, run, at, count, total, lost)
    if not confirm:
        raise Refused(" ".join(_losses(found)).removesuffix("."), "if that is meant, pass --confirm")
    _check_still(repository)
    with locks.held(records, repository.uid, run=RUN, leap=True) as lock:
        repository.accept_history()
        lease.hand_over(store, prefix, repository.keeper(lock), repository.clock())
    return found


def _counts(link: Link, repository: Adoptable) -> bool:
    try:
        lease.check(link, repository.keeper())
    except Refused:
        return False
    return True


def _losses(found: Adopted) -> list[str]:
    said = []
    if found.before:
        said.append(f"The last run, or hold, was {found.last_run}, {found.last_at[:16]}, by {found.before}.")
    else:
        said.append("Nothing was removed here yet by anybody, so nothing is given up.")
    if found.before and found.before != found.records:
        said.append("Holds, policies and watermarks that are only there count no longer.")
    if found.trashed:
        said.append(f"{found.trashed:,} objects ({size(found.trashed_bytes)}) in the trash can no longer be restored.")
    if found.commits_lost:
        said.append(f"{found.commits_lost:,} commits that the server lacks by now are given up, too.")
    return said


def _check_still(repository: Adoptable) -> None:
    """Refuse while anything beside the objects is so young that a run may be at work."""
    latest = _latest(repository.store, repository.prefix)
    now = repository.clock()
    if not isinstance(repository.clock, ManualClock):
        now = store_clock.store_time(repository.store)
    if latest is not None and now - latest < STILL:
        raise Refused(
            f"desilt wrote beside the objects {span(max(now - latest, timedelta(0)))} ago, so a run may be at work",
            f"see that none is, and try again in {span(STILL - (now - latest))}",
        )


def _latest(store: ObjectStore, prefix: str) -> datetime | None:
    """When anything was last written beside the objects, but for what asks the store for its time."""
    latest: datetime | None = None
    for batch in store.list(prefix + BESIDE):
        rows = batch.filter(pc.not_equal(batch["key"], prefix + store_clock.PROBE))
        found = pc.max(rows["modified_at"]).as_py()
        latest = max(filter(None, (latest, found)), default=None)
    return latest


def _trash(store: ObjectStore, prefix: str) -> tuple[int, int]:
    sizes = [batch["size_bytes"] for batch in store.list(prefix + TRASH)]
    return sum(map(len, sizes)), sum(pc.sum(some).as_py() or 0 for some in sizes)
