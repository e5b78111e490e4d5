"""The moment of removal: what stands between a verdict and an object that came to be held since."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol

import pyarrow as pa

from desilt.columns.arrays import Flags
from desilt.objects.store import Outcome
from desilt.records.database import Transaction
from desilt.records.ledger import BatchRow, RunRow
from desilt.records.locks import Lock
from desilt.records.removals import State, Tombstone
from desilt.repository.sealed import Sealed
from desilt.repository.snapshot import Revision


class Safety(StrEnum):
    """What stands between a verdict and the removal of something that came to be held since."""

    ATOMIC = "atomic"  # one transaction: whoever holds the object comes before it, or finds it gone
    CONDITIONAL = "conditional"  # one conditional write: it fails if anything has moved
    GRACE = "grace"  # nothing but age: what is held is read again right before, and a race of that length remains


@dataclass(frozen=True, slots=True)
class Rules:
    """A policy that a verdict went by, and the refs that it was seen with."""

    job: str
    document: Mapping[str, Any]
    fingerprint: str
    given: bool  # with the run, not set for the repository
    branches: Mapping[str, str]  # heads by name
    tags: Mapping[str, str]
    told: tuple[str, ...] = ()  # what there was to be agreed to, of a policy that was given


@dataclass(frozen=True, slots=True)
class Reliance:
    """What verdicts took for granted. A worker that has judged just now relies on nothing but the moment."""

    at: datetime  # that ages were counted to
    made_at: datetime  # by the clock
    dropped_for: timedelta = timedelta(0)  # what was pointed to since then is left alone
    rules: Rules | None = None  # None: whatever any commit has is kept
    judged: Sealed | None = None  # the names of the tables that were taken into account; None: nobody vouches for any
    taken: Sealed | None = None  # the ids of commits that went before
    least_age: timedelta | None = None  # what is younger may be a writer's; None: as a repository has it by itself


@dataclass(frozen=True, slots=True)
class Batch:
    """Objects of a run that are condemned together, judged at a revision."""

    run: str
    number: int
    rows: pa.Table  # PLAN
    since: Revision


class Held(Protocol):
    """What has come to be held since a revision."""

    @property
    def generation(self) -> int:
        """The number of the revision up to which it has looked."""

    def catch_up(self) -> None:
        """Read what has since the last look."""

    def holds(self, rows: pa.Table) -> Flags:
        """Which of a plan's rows are held by it."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of the past of a repository's records."""

    known: frozenset[Revision]  # of those that were asked for
    edited: int = 0  # the revision at which history was last edited
    recovered: int = -1  # the revision at which restored records were brought up to date
    ask_again_from: datetime | None = None  # what was agreed to before then is asked again
    since_copy: datetime | None = None  # from when on what is staged may be lost with records


class Gate(Protocol):
    """The moment of removal, and what comes right before and after it."""

    @property
    def safety(self) -> Safety: ...

    def settle_moves(self) -> None:
        """Carry out, or give up, what somebody was cut off at."""

    def check(self) -> None:
        """Refuse to go on where the records know less than the store."""

    def standing(self, revisions: Collection[Revision]) -> Standing: ...

    def quiet_since(self, *others: datetime | None) -> datetime | None:
        """The last that was done here before the clock may have jumped; ``others`` are traces known besides."""

    def last_trace(self) -> datetime | None:
        """The latest that anything was done here, by whichever clock; None where the clock is meant to be moved."""

    def begin(self, lock: Lock, run: RunRow | None, *, now: datetime, clock_is_right: bool) -> None:
        """The guard let a run pass; with its row, it is on record before it removes anything."""

    def held(self, run: str, since: Revision, relies_on: Reliance, *, swept: bool = False) -> Held:
        """What has come to be held since; where nobody vouches for what verdicts took into account, what ever was.

        Of a run that has ``swept``, policies may have been replaced by now.
        """

    def condemn(self, batch: Batch, held: Held, relies_on: Reliance, lock: Lock) -> Mapping[str, str]:
        """Make a batch gone for everybody; but for what is held again, and by what.

        A batch that was condemned before stays as it was.
        """

    def sure(self, batch: Batch, lock: Lock) -> None:
        """Refuse to go on if this batch is somebody else's by now, or done."""

    def settle(self, batch: Batch, lock: Lock, done: BatchRow, outcomes: Sequence[Outcome], usual: State) -> None:
        """What became of what was condemned, in the ledger; whoever comes second changes nothing."""

    def end(self, lock: Lock, write: Callable[[Transaction], None]) -> None:
        """A run is over: what it writes, and what nobody asks for any more is forgotten."""

    def restoring(self, lock: Lock, run: str) -> AbstractContextManager[Transaction]:
        """A transaction from which on it is known that what ``run`` had removed may be there again."""

    def following(self, lock: Lock, run: str) -> None:
        """From here on it is known that what was marked may be tagged, or gone."""

    def forget(self, stones: Sequence[Tombstone], since: Revision, lock: Lock) -> None:
        """Tombstones that nothing points to any more, as of a revision, leave the ledger; all, or none if refs moved.

        What a staging area has by now stays.
        """

    def release_copied(self, tx: Transaction) -> None:
        """What was kept because records were restored is garbage like any other."""
