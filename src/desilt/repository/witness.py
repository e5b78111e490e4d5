"""What is known of one address or one path, for somebody who asks why: `desilt explain`."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from desilt.domain.history import Commit
from desilt.repository.snapshot import Snapshot

Places = Mapping[str, Sequence[str]]  # by address: where the path that was asked for has it
Holders = Mapping[str, Mapping[str, set[str]]]  # by address and metarange: paths


@dataclass(frozen=True, slots=True)
class HoldingArea:
    """An entry in a staging area."""

    branch: str
    path: str
    hidden: bool  # by a newer one; that holds it no less


@dataclass(frozen=True, slots=True)
class HoldingTicket:
    """An upload under way, or one that never came to an end."""

    branch: str  # its uid, if it was deleted
    path: str
    until: datetime
    open: bool


@dataclass(frozen=True, slots=True)
class Dropped:
    """Where it was staged last, and until when."""

    branch: str  # its uid, if it was deleted
    path: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Uncommitted:
    """What holds, or held, an address besides commits."""

    staged: tuple[HoldingArea, ...] = ()
    ticket: HoldingTicket | None = None
    dropped: Dropped | None = None
    listed_since: datetime | None = None  # where its dates do not tell when it came to be there


class Witness(Protocol):
    """Looks things up, one by one."""

    def address_in(self, wanted: str) -> str | None:
        """``wanted`` as an address of the repository; None if it must be a path."""

    def places(self, path: str, ref: str | None) -> Places:
        """Every address of ``path``: today, or at ``ref``; of one that is nowhere today, those it ever had."""

    def seen(self, addresses: Collection[str], now: datetime) -> tuple[Snapshot, Mapping[str, Uncommitted]]:
        """History, and what holds ``addresses`` besides it, of one moment."""

    def holders(self, commits: Collection[Commit], addresses: Collection[str]) -> Holders:
        """By address: the metaranges of ``commits`` that hold it, each with the paths it has there."""

    def since_copy(self) -> datetime | None:
        """From when on uncommitted uploads stay, since records were restored; None if they were not."""
