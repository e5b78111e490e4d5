"""Reasons not to sweep, all of them at once. Each is its own error; none of them leaves anything removed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

from desilt.domain.times import CLOCK_MARGIN
from desilt.errors import (
    EditedSince,
    FirstRun,
    HistoryLost,
    NothingHeld,
    OtherRepository,
    OutgrownPolicy,
    PolicyReplaced,
    RecoveredSince,
    Refused,
    Shrinks,
    StagedLost,
    StalePlan,
    TooMany,
    TooMuch,
    WentBack,
    WrongTime,
)
from desilt.records.ledger import RunRow, RunState
from desilt.runs.plan import ONE_BRANCH, Plan
from desilt.runs.report import Amount
from desilt.runs.steps import Action
from desilt.sweep.limits import MAX_SHARE, Limits

WINDOW = timedelta(days=1)  # over which shares are summed up: small steps count together
LONG_WINDOW = timedelta(days=30)  # within which a lake must not shrink by more, all told
SAME_PERIOD = timedelta(minutes=1)  # two runs that are told the same begin at different moments
AT_ANY_CLOCK = "if this one is right, pass --clock-is-right"
CLOCK_IS_RIGHT = {"clock_is_right": True}
WEIGHT: Mapping[str, int] = {Action.DELETE: 1, Action.PURGE_VERSIONS: 2}  # of what cannot be taken back


@dataclass(frozen=True, slots=True)
class Unfit:
    """Why a policy does not fit a repository by now."""

    fact: str
    confirm: bool = False  # whether a yes is enough


@dataclass(frozen=True, slots=True)
class Situation:
    """What a guard looks at, besides the plan."""

    now: datetime  # by the lake's clock
    store_now: datetime  # by the object store's
    repository: str  # its uid
    name: str
    policy: str
    runs: Sequence[RunRow]  # of the whole repository within thirty days, and earlier ones like this; newest first
    recent: Amount  # removed within the window
    same_past: bool  # whether the database still has the history that the plan saw
    lost: str  # what earlier plans have seen and it has no longer; "" if nothing
    before: Amount = field(default_factory=Amount)  # what other plans take before it comes to this one
    edited: int = 0  # the generation at which history was last edited
    against: Unfit | None = None  # why the policy does not fit the repository any more
    recovered: int = -1  # the generation at which a restored database was brought up to what the store knows
    ask_again_from: datetime | None = None  # what was agreed to before then is asked again
    since_copy: datetime | None = None  # from when on what is staged may be lost with a database
    last_trace: datetime | None = None  # of anybody, by whichever clock
    quiet_since: datetime | None = None  # the last trace of anybody before a gap that a clock may have jumped over

    @property
    def runs_since(self) -> Sequence[RunRow]:
        """Those whose confirmations still count."""
        return [run for run in self.runs if self.ask_again_from is None or run.started_at >= self.ask_again_from]


def guard(plan: Plan, limits: Limits, seen: Situation, *, resuming: bool) -> None:
    """Refuse to sweep ``plan`` if anything speaks against it. A run that was cut off passed the limits before."""
    found = list(objections(plan, limits, seen, resuming=resuming))
    if found:
        enough = passing(plan, limits, seen)
        raise found[0].with_others(found[1:], run=plan.run, passes=None if enough is None else enough.words())


def objections(plan: Plan, limits: Limits, seen: Situation, *, resuming: bool) -> Iterator[Refused]:
    """All that speaks against sweeping ``plan``."""
    yield from _of_repository(plan, limits, seen, resuming=resuming)
    if plan.does_something:
        yield from _of_what_goes(plan, limits, seen, resuming=resuming)


def _of_repository(plan: Plan, limits: Limits, seen: Situation, *, resuming: bool) -> Iterator[Refused]:
    """Clocks, and whether the plan is still about what is there."""
    made = plan.evidence
    yield from about_clocks(plan, limits, seen)
    yield from about_age(plan, limits, seen)
    yield from about_history(plan, limits, seen)
    if plan.repository != seen.repository:
        yield OtherRepository(plan.run)
    if made.policy != seen.policy:
        yield PolicyReplaced(plan.run, made.policy, seen.policy)
    if made.revision.number < seen.recovered:
        yield RecoveredSince(plan.run)
    if not resuming and made.revision.number < seen.edited and plan.relies_on_history:
        yield EditedSince(plan.run)


def _of_what_goes(plan: Plan, limits: Limits, seen: Situation, *, resuming: bool) -> Iterator[Refused]:
    """Whether so much may go, and whether anybody has seen that it would."""
    going = plan.removes
    if seen.since_copy is not None and going.objects:
        yield StagedLost(seen.since_copy)
    if seen.against is not None and not (seen.against.confirm and limits.confirm):
        yield OutgrownPolicy(seen.against.fact, confirm=seen.against.confirm)
    if resuming:
        return
    if not limits.confirm and not any(covers(run, plan) for run in seen.runs_since):
        yield FirstRun(plan.job, plan.run)
    if going.objects and not plan.evidence.held and not limits.allow_empty:
        yield NothingHeld(seen.name)
    if limits.max_objects is not None and going.objects > limits.max_objects:
        yield TooMany(going.objects, limits.max_objects)
    yield from exceeding(plan, limits.max_share, seen)


def passing(plan: Plan, limits: Limits, seen: Situation) -> Limits | None:
    """What would let ``plan`` pass: ``limits``, and a yes to each objection; None if there is one that has no yes."""
    for one in objections(plan, limits, seen, resuming=False):
        if one.let_pass is None:
            return None
        limits = replace(limits, **{name: _wider(getattr(limits, name), more) for name, more in one.let_pass.items()})
    return None if any(True for _ in objections(plan, limits, seen, resuming=False)) else limits


def _wider(before: Any, more: Any) -> Any:
    return more if before is None else max(before, more)


def covers(run: RunRow, plan: Plan) -> bool:
    """Whether what was agreed to with ``run`` is as much as ``plan`` does: the same, on what is as old or older.

    The whole repository is more than a branch of it, to delete is more than to move to the trash, and with all versions
    is more still.
    """
    made = plan.evidence
    if (run.job, run.policy) != (plan.job, made.policy) or not (run.objects or run.refs or run.edits):
        return False
    if run.measure != made.measure and run.measure.startswith(ONE_BRANCH):
        return False
    if WEIGHT.get(run.action, 0) < WEIGHT.get(plan.action, 0):
        return False
    if made.period is None:
        return True
    return run.period is not None and microseconds_of(made.period + SAME_PERIOD) >= run.period


def agreed_period(plan: Plan, limits: Limits, seen: Situation) -> int | None:
    """What later runs are covered by: of a run that nobody confirmed anew, what was confirmed before.

    Its own may be shorter by a minute, and each would cover the next.
    """
    before = [run.period for run in seen.runs_since if run.period is not None and covers(run, plan)]
    period = None if plan.evidence.period is None else microseconds_of(plan.evidence.period)
    if period is None or limits.confirm or not before:
        return period
    return max(period, min(before))


def microseconds_of(period: timedelta) -> int:
    """As a ledger has it."""
    return period // timedelta(microseconds=1)


def about_clocks(plan: Plan, limits: Limits, seen: Situation) -> Iterator[Refused]:
    if abs(seen.now - seen.store_now) > CLOCK_MARGIN:
        yield WrongTime(seen.now, seen.store_now, "the object store's")
    if limits.clock_is_right:
        return
    last = max((run.ended_at or run.started_at for run in seen.runs if run.job == plan.job), default=seen.now)
    if last - seen.now > CLOCK_MARGIN:
        yield WrongTime(seen.now, last, "the last run was at", f"mend this one; {AT_ANY_CLOCK}", CLOCK_IS_RIGHT)
    else:
        yield from about_a_clock_behind(seen.now, seen.last_trace)
    yield from about_a_jump(seen.now, seen.quiet_since)


def about_a_clock_behind(now: datetime, last_trace: datetime | None) -> Iterator[Refused]:
    """What is done by it is dated too early, and would be old too soon once the clock is mended."""
    if last_trace is not None and last_trace - now > CLOCK_MARGIN:
        way_out = f"mend this one; {AT_ANY_CLOCK}"
        yield WrongTime(now, last_trace, "something was done here at", way_out, CLOCK_IS_RIGHT)


def about_a_jump(now: datetime, quiet_since: datetime | None) -> Iterator[Refused]:
    """A clock that has jumped ahead calls everything old."""
    if quiet_since is not None:
        way_out = f"mend this clock if it has jumped ahead; {AT_ANY_CLOCK}"
        yield WrongTime(now, quiet_since, "but before that nothing was done here since", way_out, CLOCK_IS_RIGHT)


def check_clock_moved(now: datetime, quiet_since: datetime | None, last_trace: datetime | None) -> None:
    """Refuse to go by a clock that has jumped ahead, or fell behind."""
    for reason in (*about_a_jump(now, quiet_since), *about_a_clock_behind(now, last_trace)):
        raise reason


def about_age(plan: Plan, limits: Limits, seen: Situation) -> Iterator[Refused]:
    age = seen.now - plan.started_at
    if age > limits.max_plan_age:
        yield StalePlan(plan.run, age, limits.max_plan_age)
    if -age > CLOCK_MARGIN:
        yield WrongTime(seen.now, plan.started_at, "the plan was made at")


def about_history(plan: Plan, limits: Limits, seen: Situation) -> Iterator[Refused]:
    """A database that is older than what was planned from it knows too little of what is held."""
    if not seen.same_past:
        yield HistoryLost(plan.run)
    if seen.lost and not limits.after_restore:
        yield WentBack(seen.lost, "if that is right, pass --after-restore", {"after_restore": True})


def exceeding(plan: Plan, share: float, seen: Situation) -> list[TooMuch]:
    """What speaks against removing so much, by a limit of ``share``; of the same said twice, what weighs more."""
    commits = [shrinks("commits", plan, plan.size, plan.abandons, share, seen)] if plan.abandons else []
    return [*filter(None, commits), *_exceeding_data(plan, share, seen)]


def _exceeding_data(plan: Plan, share: float, seen: Situation) -> list[TooMuch]:
    """The same, of objects and bytes."""
    data, stored = plan.removes_objects, plan.evidence.stored - seen.before
    if not data.objects:
        return []
    at_once = [
        too_much("objects", data, stored, share, seen),
        too_much("bytes", data, stored, share, seen),
    ]
    within_a_month = [
        shrinks("objects", plan, stored, data.objects, share, seen),
        shrinks("bytes", plan, stored, data.bytes, share, seen),
    ]
    found: list[TooMuch] = []
    for some in (at_once, within_a_month):
        worst = max(filter(None, some), key=lambda one: one.share, default=None)
        if worst is not None and all(worst.share > other.share for other in found):
            found.append(worst)
    return found


def too_much(what: str, data: Amount, stored: Amount, limit: float, seen: Situation) -> TooMuch | None:
    """Of all there is, with what went lately, and what goes before."""
    going, total = sized(data, what), sized(stored, what)
    recent, before = sized(seen.recent, what), sized(seen.before, what)
    if going + recent + before > Fraction(str(limit)) * (total + recent + before):
        return TooMuch(what, going, total, limit, recent, before)
    return None


def shrinks(what: str, plan: Plan, now: Amount, going: int, limit: float, seen: Situation) -> TooMuch | None:
    """Of the most there was within thirty days: small steps on many days count together, what came in between too."""
    largest, at = sized(now, what), seen.now
    for run in seen.runs:
        if run.id == plan.run or run.measure != plan.evidence.measure or run.started_at < seen.now - LONG_WINDOW:
            continue
        if run.agreed:
            break  # somebody has seen how small it became then
        there = sized(Amount(run.stored_objects, run.stored_bytes), what)
        if there > largest:
            largest, at = there, run.started_at
    left = sized(now, what) - going
    return Shrinks(what, left, largest, at, limit) if largest - left > Fraction(str(limit)) * largest else None


def sized(amount: Amount, what: str) -> int:
    return amount.bytes if what == "bytes" else amount.objects


def row(plan: Plan, limits: Limits, seen: Situation, fence: int) -> RunRow:
    """The run as it begins: on record before anything is removed."""
    agreed = limits.confirm and limits.max_share > MAX_SHARE and bool(exceeding(plan, MAX_SHARE, seen))
    return RunRow(
        plan.run,
        plan.job,
        plan.evidence.policy,
        plan.action,
        plan.started_at,
        *(None, RunState.SWEEPING),
        *(plan.removes.objects, plan.removes.bytes),
        fence,
        refs=len(plan.refs),
        edits=plan.edits,
        measure=plan.evidence.measure,
        stored_objects=plan.size.objects,
        stored_bytes=plan.size.bytes,
        period=agreed_period(plan, limits, seen),
        agreed=int(agreed),
    )
