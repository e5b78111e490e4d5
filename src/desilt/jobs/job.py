"""What a job brings to the run that all of them share: how it marks, and what it saves for its next run."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from desilt.domain.expiry import Wish
from desilt.domain.policy import Policy
from desilt.domain.run import Run
from desilt.errors import BadRequest, span
from desilt.jobs.judging import Answer
from desilt.lake.database import Transaction
from desilt.lake.dropped import KEPT
from desilt.lake.ledger import BatchRow
from desilt.lake.locks import Lock
from desilt.lake.repository import Repository
from desilt.runs.history import Change
from desilt.runs.plan import Action, Plan
from desilt.runs.report import Amount
from desilt.sources.lake import LakeSource
from desilt.sources.spread import Spread, Watch


@dataclass(frozen=True, slots=True)
class Ask:
    """What the person who starts a run wants of it."""

    now: datetime | None = None  # None: what the clock says
    branch: str | None = None  # None: the whole repository
    full: bool = False  # look at everything, whatever the last run saved
    action: Action = Action.DELETE
    inventory: str | None = None  # a listing that somebody else made
    max_inventory_age: timedelta = timedelta(hours=48)
    policy: Policy | None = None  # None: the one that was set for the repository
    wish: Wish | None = None  # of history
    older_than: timedelta | None = None  # None: what is usual for the job
    unreached_for: timedelta = timedelta(0)  # commits that something let go of since then stay
    keep_runs: timedelta = timedelta(days=90)  # the folders of runs that are younger
    dropped_for: timedelta = timedelta(days=1)  # objects that something pointed to since then stay
    after_restore: bool = False  # what a restored database lost may go


def dropped_since(ask: Ask, *clocks: datetime) -> datetime | None:
    """Since when what something pointed to is left alone, by whichever clock says longer; None: it is not."""
    if ask.dropped_for > KEPT:
        asked = span(ask.dropped_for)
        raise BadRequest(f"--dropped-for {asked} is longer than that is known; give at most {span(KEPT)}")
    return min(clocks) - ask.dropped_for if ask.dropped_for else None


@dataclass(frozen=True, slots=True)
class Marked:
    """What a mark found, and from what."""

    answer: Answer
    policy: str
    before: datetime
    branches: Mapping[str, str]  # names by uid
    inputs: Mapping[str, int]
    seconds: Mapping[str, float]  # by stage
    generation: int
    mark: str
    held: int
    stored: Amount  # all there is where it looked
    measure: str  # of what
    base: str
    saves: Mapping[str, Any] | None
    watches: Mapping[str, Any] | None = None
    refs: Sequence[Mapping[str, str]] = ()  # branches that go too
    holds: Mapping[str, Amount] = field(default_factory=dict)  # what people ordered to be kept
    besides: Amount = field(default_factory=Amount)  # ranges and metaranges: of no weight to a guard
    by: str = "branch"  # what the first key of what goes is
    history: Mapping[str, Any] | None = None  # what is done to commits
    change: Change | None = None  # the same, to be looked at
    told: Mapping[str, int] = field(default_factory=dict)  # the same, in figures
    tidies: Sequence[Mapping[str, Any]] = ()  # files of desilt itself that are needed no longer
    period: timedelta | None = None  # how long what goes was kept at least; None: the policy says so
    dropped_for: timedelta = timedelta(0)  # what something pointed to since then is left alone by a sweep, too


COMMITTED = "committed objects"
STORED = "stored objects"
COMMITS = "commits"

Fates = Callable[[Repository, Lock, Plan], Mapping[str, str]]  # what became of the refs that a plan names


class Save(Protocol):
    """What follows once every planned object has an outcome; the watermark is written in the returned function."""

    def __call__(
        self, plan: Plan, source: LakeSource, spread: Spread, batches: list[BatchRow], /
    ) -> Callable[[Transaction], None]: ...


def save_nothing(
    _plan: Plan, _source: LakeSource, _spread: Spread, _batches: list[BatchRow], /
) -> Callable[[Transaction], None]:
    """Every run looks at all there is."""
    return lambda _: None


def nothing_against(_repository: Repository, _plan: Plan) -> str:
    """Nothing is to be said against any plan."""
    return ""


@dataclass(frozen=True, slots=True)
class Job:
    """One way for data to leave."""

    name: str
    mark: Callable[[Run, LakeSource, Spread, Ask], Marked]
    policy: Callable[[Repository, Plan], str]  # what it is told to do there, by now
    save: Save = save_nothing
    before: Fates | None = None  # what is done to history before any object is touched
    after: Fates | None = None  # and to refs once all of them have an outcome
    heeds_copies: bool = False  # whether it keeps what was staged since the copy that a database was restored from
    against: Callable[[Repository, Plan], str] = nothing_against  # why its policy does not fit by now


class Stages:
    """How long each stage of a mark takes; whoever watches is told as each begins."""

    def __init__(self, watch: Watch) -> None:
        self.seconds: dict[str, float] = {}
        self._watch = watch

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        began = time.monotonic()
        self._watch.begins(stage)
        yield
        self.seconds[stage] = round(time.monotonic() - began, 3)
