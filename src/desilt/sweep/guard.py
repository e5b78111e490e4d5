"""Reasons not to sweep. Each is its own error; none of them leaves anything removed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction

from desilt.errors import (
    FirstRun,
    NothingHeld,
    OtherPolicy,
    OutgrownPolicy,
    Refused,
    Shrinks,
    StagedLost,
    StalePlan,
    TooMany,
    TooMuch,
    WentBack,
    WrongTime,
)
from desilt.lake.ledger import RunRow, RunState
from desilt.runs.plan import ONE_BRANCH, Action, Plan
from desilt.runs.report import Amount

CLOCKS = timedelta(minutes=10)  # how far they may be apart
WINDOW = timedelta(days=1)  # over which shares are summed up: small steps count together
LONG_WINDOW = timedelta(days=30)  # within which a lake must not shrink by more, all told
SAME_PERIOD = timedelta(minutes=1)  # two runs that are told the same begin at different moments
MAX_SHARE = 0.3
AT_ANY_CLOCK = "if this one is right, pass --clock-is-right"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a run may do unasked."""

    max_plan_age: timedelta = timedelta(days=1)
    max_share: float = MAX_SHARE
    max_objects: int | None = None
    allow_empty: bool = False
    confirm: bool = False
    after_restore: bool = False
    clock_is_right: bool = False


@dataclass(frozen=True, slots=True)
class Situation:
    """What a guard looks at, besides the plan."""

    now: datetime  # by the lake's clock
    store_now: datetime  # by the object store's
    repository: str  # its uid
    name: str
    policy: str
    runs: Sequence[RunRow]  # of the whole repository, newest first
    recent: Amount  # removed within the window
    same_past: bool  # whether the database still has the history that the plan saw
    lost: str  # what earlier plans have seen and it has no longer; "" if nothing
    edited: int = 0  # the generation at which history was last edited
    against: str = ""  # why the policy does not fit the repository any more
    recovered: int = -1  # the generation at which a restored database was brought up to what the store knows
    ask_again_from: datetime | None = None  # what was agreed to before then is asked again
    since_copy: datetime | None = None  # from when on what is staged may be lost with a database
    quiet_since: datetime | None = None  # the last trace of anybody before a gap that a clock may have jumped over

    @property
    def runs_since(self) -> Sequence[RunRow]:
        """Those that still speak for others."""
        return [run for run in self.runs if self.ask_again_from is None or run.started_at >= self.ask_again_from]


def guard(plan: Plan, limits: Limits, seen: Situation, *, resuming: bool) -> None:
    """Refuse to sweep ``plan`` if anything speaks against it. A run that was cut off passed the limits before."""
    check_clocks(plan, limits, seen)
    check_age(plan, limits, seen)
    check_history(plan, limits, seen)
    if plan.repository != seen.repository:
        raise OtherPolicy(plan.run, "was made for another repository")
    if plan.policy != seen.policy:
        raise OtherPolicy(plan.run, f"was made for {plan.policy!r}, the repository now has {seen.policy!r}")
    if plan.generation < seen.recovered:
        raise OtherPolicy(plan.run, "was made before the database was recovered")
    if not resuming and plan.generation < seen.edited and (plan.history or plan.watches):
        raise OtherPolicy(plan.run, "was made before history was edited")
    going = plan.removes
    if not (going.objects or plan.refs or plan.edits):
        return
    if seen.since_copy is not None and going.objects:
        raise StagedLost(seen.since_copy)
    if seen.against:
        raise OutgrownPolicy(seen.against)
    if resuming:
        return
    if not limits.confirm and not any(covers(run, plan) for run in seen.runs_since):
        raise FirstRun(plan.job, plan.run)
    if going.objects and not plan.held and not limits.allow_empty:
        raise NothingHeld(seen.name)
    if limits.max_objects is not None and going.objects > limits.max_objects:
        raise TooMany(going.objects, limits.max_objects)
    if reason := exceeds(plan, limits.max_share, seen):
        raise reason


def covers(run: RunRow, plan: Plan) -> bool:
    """Whether what was agreed to with ``run`` is as much as ``plan`` does: the same, on what is as old or older.

    The whole repository is more than a branch of it, and to delete is more than to move to the trash.
    """
    if (run.job, run.policy) != (plan.job, plan.policy) or not (run.objects or run.refs or run.edits):
        return False
    if run.measure != plan.measure and run.measure.startswith(ONE_BRANCH):
        return False
    if run.action != Action.DELETE and plan.action is Action.DELETE:
        return False
    if plan.period is None:
        return True
    return run.period is not None and plan.period + SAME_PERIOD // timedelta(microseconds=1) >= run.period


def agreed_period(plan: Plan, limits: Limits, seen: Situation) -> int | None:
    """What later runs are covered by: of a run that nobody confirmed anew, what was confirmed before.

    Its own may be shorter by a minute, and each would cover the next.
    """
    before = [run.period for run in seen.runs_since if run.period is not None and covers(run, plan)]
    if plan.period is None or limits.confirm or not before:
        return plan.period
    return max(plan.period, min(before))


def check_clocks(plan: Plan, limits: Limits, seen: Situation) -> None:
    if abs(seen.now - seen.store_now) > CLOCKS:
        raise WrongTime(seen.now, seen.store_now, "the object store's")
    if limits.clock_is_right:
        return
    last = max((run.ended_at or run.started_at for run in seen.runs if run.job == plan.job), default=seen.now)
    if last - seen.now > CLOCKS:
        raise WrongTime(seen.now, last, "the last run was at", f"mend this one; {AT_ANY_CLOCK}")
    check_jump(seen.now, seen.quiet_since)


def check_jump(now: datetime, quiet_since: datetime | None) -> None:
    """A clock that has jumped ahead calls everything old."""
    if quiet_since is not None:
        way_out = f"mend this clock if it has jumped ahead; {AT_ANY_CLOCK}"
        raise WrongTime(now, quiet_since, "but before that nothing was done here since", way_out)


def check_age(plan: Plan, limits: Limits, seen: Situation) -> None:
    age = seen.now - plan.started_at
    if age > limits.max_plan_age:
        raise StalePlan(plan.run, age, limits.max_plan_age)
    if -age > CLOCKS:
        raise WrongTime(seen.now, plan.started_at, "the plan was made at")


def check_history(plan: Plan, limits: Limits, seen: Situation) -> None:
    """A database that is older than what was planned from it knows too little of what is held."""
    if not seen.same_past:
        raise OtherPolicy(plan.run, "was made from a history that the database no longer has")
    if seen.lost and not limits.after_restore:
        raise WentBack(seen.lost, "if that is right, pass --after-restore")


def exceeds(plan: Plan, share: float, seen: Situation) -> Refused | None:
    """What speaks against removing so much, by a limit of ``share``; None if nothing does."""
    if plan.abandons:
        return shrinks("commits", plan, plan.abandons, share, seen)
    data = plan.removes_objects
    if not data.objects:
        return None
    return (
        too_much("objects", data.objects, plan.stored.objects, seen.recent.objects, share)
        or too_much("bytes", data.bytes, plan.stored.bytes, seen.recent.bytes, share)
        or shrinks("objects", plan, data.objects, share, seen)
        or shrinks("bytes", plan, data.bytes, share, seen)
    )


def too_much(what: str, going: int, total: int, recent: int, limit: float) -> Refused | None:
    """Of all there is, with what went lately."""
    if going + recent > Fraction(str(limit)) * (total + recent):
        return TooMuch(what, going, total, limit, recent)
    return None


def shrinks(what: str, plan: Plan, going: int, limit: float, seen: Situation) -> Refused | None:
    """Of the most there was within thirty days: small steps on many days count together, what came in between too."""
    largest, at = sized(plan.size, what), seen.now
    for run in seen.runs:
        if run.id == plan.run or run.measure != plan.measure or run.started_at < seen.now - LONG_WINDOW:
            continue
        if run.agreed:
            break  # somebody has seen how small it became then
        there = sized(Amount(run.stored_objects, run.stored_bytes), what)
        if there > largest:
            largest, at = there, run.started_at
    left = sized(plan.size, what) - going
    return Shrinks(what, left, largest, at, limit) if largest - left > Fraction(str(limit)) * largest else None


def sized(amount: Amount, what: str) -> int:
    return amount.bytes if what == "bytes" else amount.objects


def row(plan: Plan, limits: Limits, seen: Situation, fence: int) -> RunRow:
    """The run as it begins: on record before anything is removed."""
    agreed = limits.max_share > MAX_SHARE and exceeds(plan, MAX_SHARE, seen) is not None
    return RunRow(
        plan.run,
        plan.job,
        plan.policy,
        plan.action,
        plan.started_at,
        *(None, RunState.SWEEPING),
        *(plan.removes.objects, plan.removes.bytes),
        fence,
        refs=len(plan.refs),
        edits=plan.edits,
        measure=plan.measure,
        stored_objects=plan.size.objects,
        stored_bytes=plan.size.bytes,
        period=agreed_period(plan, limits, seen),
        agreed=int(agreed),
    )
