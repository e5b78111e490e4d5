"""Hard delete, where a kind of repository has it: what was never committed goes once nothing points to it any more.

The repository itself condemns, in the transaction that drops the last reference.
What it has condemned waits for a while, and can be restored; then workers claim it,
remove it, and settle what came of it. They take no lock of runs: whoever has claimed an
object has it until its lease ends.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from desilt.objects.store import Outcome
from desilt.records.ledger import BatchRow, RunRow
from desilt.records.removals import HARD_DELETE, Tombstone

JOB = HARD_DELETE
GRACE = timedelta(minutes=10)
MAX_SHARE = 0.5
LEASE = timedelta(minutes=10)  # from a worker that is silent for so long, others take over
WINDOW = timedelta(hours=1)  # over which a share of the lake is summed up


@dataclass(frozen=True, slots=True)
class HardDeleteSetting:
    """How hard delete works, where it is on."""

    grace: timedelta = GRACE  # how long what is condemned can be restored
    max_share: float = MAX_SHARE  # of the lake, that workers remove within an hour


@dataclass(frozen=True, slots=True)
class Discards:
    """What hard delete has condemned, and what it watches, at one moment."""

    waiting: int = 0  # condemned, and can be restored
    waiting_bytes: int = 0
    claimed: int = 0  # workers are at it, or were cut off
    claimed_bytes: int = 0
    due: int = 0  # of both: nobody waits for them any more
    leased: int = 0  # of what is claimed: a worker is at it
    oldest: datetime | None = None  # when the first of them was condemned
    fresh: int = 0  # staged uploads that it would condemn
    removed: int = 0  # within the last hour
    stored: int = 0  # objects in the lake, as far as its heads and staging areas tell


@dataclass(frozen=True, slots=True)
class Claim:
    """Objects that one worker may remove, until a moment."""

    run: str
    number: int
    stones: tuple[Tombstone, ...]  # as they were before
    until: datetime


@dataclass(frozen=True, slots=True)
class WantedBack:
    """What is to be restored: all that fits."""

    branch: str | None = None
    prefix: str = ""  # of paths
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Restaged:
    """What came of it."""

    objects: int = 0
    bytes: int = 0
    written: tuple[str, ...] = ()  # paths that were written since, or whose branch is gone: not restored
    late: int = 0  # objects that a worker had claimed


class HardDelete(Protocol):
    """The side of a repository that workers and people see."""

    def setting(self) -> HardDeleteSetting | None:
        """None: it is off."""

    def switch(self, to: HardDeleteSetting | None) -> int:
        """On, off, or on otherwise; off, what is staged is left to the collector: how many uploads that are."""

    def discards(self) -> Discards: ...

    def is_due(self) -> bool:
        """Whether there may be something to claim."""

    def claim(self, run: RunRow, number: int, *, most: int) -> Claim | None:
        """Objects that are this worker's from here on, but for what is held by now; None if there are none.

        A run that is not on record begins.
        """

    def sure(self, claim: Claim) -> None:
        """Refuse to go on with what is somebody else's by now, or soon."""

    def settle(self, claim: Claim, file: str, outcomes: Sequence[Outcome]) -> BatchRow:
        """What became of what is still this claim's, in the ledger; what failed is taken up again later.

        ``file`` has it object by object.
        """

    def restore(self, wanted: WantedBack) -> Restaged:
        """Stage again what nobody has claimed, where its path was not written since."""
