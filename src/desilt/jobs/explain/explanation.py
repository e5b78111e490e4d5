"""What there is to say of one address: the verdict, and everything that it rests on."""

from dataclasses import dataclass
from datetime import datetime

from desilt.records.holds import Hold
from desilt.repository.witness import Dropped, HoldingArea, HoldingTicket

REMOVED, MISSING, OUTSIDE = "removed", "missing", "outside"
"""Verdicts beside the reasons of a run, on what no run would find to judge."""


@dataclass(frozen=True, slots=True)
class HoldingCommit:
    """A commit that has an entry on the object."""

    id: str
    created_at: datetime
    committer: str
    message: str
    paths: tuple[str, ...]
    reachable: bool  # from some branch or tag


@dataclass(frozen=True, slots=True)
class HoldingRef:
    """A branch or tag that reaches a commit which holds the object."""

    kind: str
    name: str
    shows: bool  # at its last commit; else it is in its history only


@dataclass(frozen=True, slots=True)
class Removal:
    """What the ledger says of the address."""

    run: str
    rule: str
    at: datetime  # when it was condemned
    state: str
    size: int
    in_trash: bool = False
    job: str = ""  # "" where the ledger does not know the run
    policy: str = ""
    action: str = ""
    started_at: datetime | None = None
    run_state: str = ""
    restored_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """One address, and all there is to say of it."""

    address: str
    uri: str
    verdict: str = MISSING  # a Reason, or one of the above
    until: datetime | None = None  # for how long that holds by itself: of a ticket, and what is restored or young
    places: tuple[str, ...] = ()  # where the path that was asked for has this address
    exists: bool | None = None  # None: not ours to look
    size: int | None = None
    modified_at: datetime | None = None
    named_at: datetime | None = None  # the time in its name
    branch: str = ""  # that it was uploaded to; its uid, if that was deleted
    paths: tuple[str, ...] = ()
    refs: tuple[HoldingRef, ...] = ()
    commits: tuple[HoldingCommit, ...] = ()  # oldest first
    staged: tuple[HoldingArea, ...] = ()
    ticket: HoldingTicket | None = None
    dropped: Dropped | None = None
    orders: tuple[Hold, ...] = ()  # of people who want it kept: it, its path, or a commit that has it
    removal: Removal | None = None
