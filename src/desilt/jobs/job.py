"""What a job brings to the run that all of them share: what it can be asked, how it marks, and its traits."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from desilt.columns.breakdown import Breakdown
from desilt.domain.run import Run
from desilt.domain.times import DROPPED_KNOWN_FOR
from desilt.errors import BadRequest, span
from desilt.executors.executor import Executor, Watch
from desilt.jobs.options import options_of, told
from desilt.logs import logger
from desilt.records.ledger import BatchRow
from desilt.repository.gate import Safety
from desilt.repository.protocol import Repository
from desilt.repository.source import Source
from desilt.runs.history import HistoryChange
from desilt.runs.plan import Evidence, Next, Plan
from desilt.runs.report import Amount, Freed, RuleCutoff
from desilt.runs.steps import CHOICES, Action, Step
from desilt.sweep.guard import Unfit
from desilt.sweep.sweep import Sweep

O = TypeVar("O")  # noqa: E741  the options of a job
DROPPED_FOR = timedelta(days=1)

log = logger(__name__)
COMMITTED = "committed objects"
STORED = "stored objects"
COMMITS = "commits"


@dataclass(frozen=True, slots=True)
class Request(Generic[O]):
    """What the person who starts a run wants of it."""

    options: O  # of the job itself
    now: datetime | None = None  # None: what the clock says
    action: Action = Action.DELETE
    full: bool = False  # look at everything, whatever the last run saved


ASKED = {name: one for name, one in options_of(Request).items() if name != "options"}
"""What every job can be asked."""


@dataclass(frozen=True, slots=True)
class Work(Generic[O]):
    """A mark under way."""

    run: Run
    repository: Repository
    source: Source
    executor: Executor
    request: Request[O]

    @property
    def options(self) -> O:
        return self.request.options

    @property
    def now(self) -> datetime:
        """Of what holds: as long as it does by either clock."""
        return min(self.run.now, self.repository.clock())

    @property
    def folder(self) -> str:
        return f"{self.repository.prefix}{self.run.folder}"

    def dropped_since(self, dropped_for: timedelta) -> datetime | None:
        """Since when what something pointed to is left alone, by whichever clock says longer; None: it is not."""
        if dropped_for > DROPPED_KNOWN_FOR:
            longest = span(DROPPED_KNOWN_FOR)
            raise BadRequest(f"--dropped-for {span(dropped_for)} is longer than that is known; give at most {longest}")
        return self.now - dropped_for if dropped_for else None


@dataclass(frozen=True, slots=True)
class Figures:
    """A mark in figures, for its report."""

    before: datetime  # what is from before it may go
    inputs: Mapping[str, int]
    seconds: Mapping[str, float]  # by stage
    objects: Counter[tuple[str, str]] = field(default_factory=Counter)  # by what goes (a branch, a rule) and reason
    bytes: Counter[tuple[str, str]] = field(default_factory=Counter)
    gone: Breakdown = field(default_factory=Breakdown)  # what goes, by age and by branch
    prefix_objects: Counter[str] = field(
        default_factory=Counter
    )  # the same by the folders of paths, where they are known
    prefix_bytes: Counter[str] = field(default_factory=Counter)
    by: str = "branch"  # what the first key of what goes is
    names: Mapping[str, str] = field(default_factory=dict)  # of what is no branch, if the first key is one
    holds: Mapping[str, Amount] = field(default_factory=dict)  # what people ordered to be kept
    besides: Amount = field(default_factory=Amount)  # ranges and metaranges: of no weight to a guard
    unseen: str = ""  # what is said of what was only counted; "": what the job always says
    history: Mapping[str, int] = field(default_factory=dict)  # what is done to commits
    change: HistoryChange | None = None  # the same, to be looked at
    cutoffs: tuple[RuleCutoff, ...] = ()  # where each rule has its own
    frees: Freed | None = None  # what a collection would free then
    notes: tuple[str, ...] = ()  # what else there is to know


@dataclass(frozen=True, slots=True)
class Mark:
    """What a mark found: from what, in figures, what is to be done, and what the next run begins with."""

    evidence: Evidence
    figures: Figures
    steps: tuple[Step, ...]
    next: Next | None = None


@dataclass(frozen=True, slots=True)
class Traits:
    """What else the engine must know of a job."""

    removes: bool = True  # it removes objects, not only from history
    committed: bool = True  # it removes what commits have: what it removed is gone from history
    tables: bool = False  # it may remove ranges and metaranges
    keeps_copied: bool = False  # it keeps what was staged since the copy that records were restored from
    no_way_back: str = ""  # why `desilt restore` cannot help; "": what it moved to the trash comes back
    after: tuple[str, ...] = ()  # jobs that come before it, where both are due
    needs: tuple[str, ...] = ()  # of those, jobs that it waits for if they are refused
    action: Action = Action.DELETE  # what becomes of what goes, unless people say otherwise
    edits: str = "edit"  # what one thing is called that it does to history
    unseen: str = "not looked at one by one"  # what it says of objects that are stored, and that it only counted


def nothing_against(_repository: Repository, _plan: Plan) -> Unfit | None:
    """Nothing is to be said against any plan."""
    return None


def as_planned(_repository: Repository, plan: Plan) -> str:
    """What the plan was told: there is nothing else to go by."""
    return plan.evidence.policy


def nothing_wrong(_repository: Repository, _options: Any, _confirm: bool) -> None:
    """Whatever it is told, it can be asked."""


def nothing_first(_sweep: Sweep) -> None:
    """There is nothing that cannot wait."""


def nothing_more(_repository: Repository, _plan: Plan, _batches: Sequence[BatchRow]) -> None:
    """Once a run has swept, there is nothing else to write."""


def the_same(_repository: Repository, traits: Traits) -> Traits:
    """Of a job that is alike in repositories of every kind."""
    return traits


@dataclass(frozen=True, slots=True)
class Job(Generic[O]):
    """One way for data to leave."""

    name: str
    options: type[O]
    mark: Callable[[Work[O]], Mark]
    traits: Traits = Traits()
    policy: Callable[[Repository, Plan], str] = as_planned  # what it is told to do there, by now
    against: Callable[[Repository, Plan], Unfit | None] = nothing_against  # why its policy does not fit by now
    publish: Callable[[Repository, Plan, Sequence[BatchRow]], None] = nothing_more  # for others, once swept
    first: Callable[[Sweep], None] = nothing_first  # before anything is refused, and whatever is
    check: Callable[[Repository, O, bool], None] = nothing_wrong  # refuses options that do not fit; True: said twice
    committed: Callable[[O], bool] | None = None  # whether a run with such options removes what commits have
    there: Callable[[Repository, Traits], Traits] = the_same  # its traits, where the kind of repository makes others

    @property
    def words(self) -> tuple[str, ...]:
        """All that it can be told."""
        return (*(one.name for one in options_of(self.options).values() if one.said), *ASKED)

    def request(self, repository: Repository, *, confirm: bool, **words: Any) -> Request[O]:
        """What is asked of it in ``repository``, if it fits; ``confirm`` is a yes to what should be said twice."""
        asked = self.asked(repository, **words)
        self.check(repository, asked.options, confirm)
        return asked

    def check_kind(self, repository: Repository) -> None:
        """Refuse a repository of a kind in which it cannot be done."""
        if reason := repository.refuses.get(self.name):
            raise BadRequest(reason)

    def asked(self, repository: Repository, **words: Any) -> Request[O]:
        """A request, from words; what is committed goes to the trash, unless people say otherwise, where age alone
        does not protect it from being held again.
        """
        self.check_kind(repository)
        traits = self.there(repository, self.traits)
        request = replace(self, traits=traits).ask(**words)
        committed = traits.committed if self.committed is None else self.committed(request.options)
        fenced = repository.gate.safety is Safety.ATOMIC or not committed
        if words.get("action") is not None or fenced or traits.no_way_back or not traits.removes:
            return request
        return replace(request, action=Action.TRASH)

    def ask(
        self,
        *,
        now: datetime | str | None = None,
        action: Action | str | None = None,
        full: bool = False,
        **options: Any,
    ) -> Request[O]:
        """A request, from words; the job's own ``options`` among them."""
        said = told(self.options, options, of=repr(self.name), besides=tuple(ASKED))
        asked = {"now": now, "full": full}
        given = {name: ASKED[name].read(value) for name, value in asked.items()}
        try:
            chosen = self.traits.action if action is None else Action(action)
        except ValueError:
            can = ", ".join([*CHOICES, Action.PURGE_VERSIONS])
            raise BadRequest(f"{action!r} is not what can be done; write one of {can}") from None
        if chosen is Action.TRASH and self.traits.no_way_back:
            raise BadRequest(f"{self.name!r} has no use for the trash: a run of it {self.traits.no_way_back}")
        if chosen is Action.PURGE_VERSIONS and not self.traits.removes:
            raise BadRequest(f"{self.name!r} removes no objects, and so has no versions to purge; leave that out")
        if (chosen is Action.MARK) != (self.traits.action is Action.MARK):
            raise BadRequest(f"{self.name!r} cannot {chosen.value} what goes; leave it to {self.traits.action.value}")
        return Request(self.options(**said), action=chosen, **given)


class Stages:
    """How long each stage of a mark takes; whoever watches is told as each begins."""

    def __init__(self, watch: Watch) -> None:
        self.seconds: dict[str, float] = {}
        self._watch = watch

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        began = time.monotonic()
        self._watch.begins(stage)
        log.debug("%s begins", stage)
        yield
        self.seconds[stage] = round(time.monotonic() - began, 3)
        log.info("%s took %.1f s", stage, self.seconds[stage])
