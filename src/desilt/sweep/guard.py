"""Reasons not to sweep. Each is its own error; none of them leaves anything removed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction

from desilt.errors import (
    FirstRun,
    NothingHeld,
    OtherPolicy,
    StalePlan,
    TooMany,
    TooMuch,
    WentBack,
    WrongTime,
)
from desilt.lake.ledger import RunRow
from desilt.runs.plan import Plan
from desilt.runs.report import Amount

CLOCKS = timedelta(minutes=10)  # how far they may be apart
WINDOW = timedelta(days=1)  # over which shares are summed up: small steps count together


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a run may do unasked."""

    max_plan_age: timedelta = timedelta(days=1)
    max_share: float = 0.3
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
    runs: Sequence[RunRow]  # of the plan's job, newest first
    recent: Amount  # removed within the window
    same_past: bool  # whether the database still has the history that the plan saw
    lost: str  # what earlier plans have seen and it has no longer; "" if nothing
    edited: int = 0  # the generation at which history was last edited


def guard(plan: Plan, limits: Limits, seen: Situation, *, resuming: bool) -> None:
    """Refuse to sweep ``plan`` if anything speaks against it. A run that was cut off passed the limits before."""
    check_clocks(limits, seen)
    check_age(plan, limits, seen)
    check_history(plan, limits, seen)
    if plan.repository != seen.repository:
        raise OtherPolicy(plan.run, "was made for another repository")
    if plan.policy != seen.policy:
        raise OtherPolicy(plan.run, f"was made for {plan.policy!r}, the repository now has {seen.policy!r}")
    if not resuming and plan.generation < seen.edited and (plan.history or plan.watches):
        raise OtherPolicy(plan.run, "was made before history was edited")
    going = plan.removes
    if resuming or not (going.objects or plan.refs or plan.edits):
        return
    if not limits.confirm and not any(
        run.policy == plan.policy and (run.objects or run.refs or run.edits) for run in seen.runs
    ):
        raise FirstRun(plan.job, plan.run)
    if not going.objects:
        return
    if not plan.held and not limits.allow_empty:
        raise NothingHeld(seen.name)
    if limits.max_objects is not None and going.objects > limits.max_objects:
        raise TooMany(going.objects, limits.max_objects)
    if not (data := plan.removes_objects).objects:
        return
    check_share("objects", data.objects, plan.stored.objects, seen.recent.objects, limits.max_share)
    check_share("bytes", data.bytes, plan.stored.bytes, seen.recent.bytes, limits.max_share)


def check_clocks(limits: Limits, seen: Situation) -> None:
    if abs(seen.now - seen.store_now) > CLOCKS:
        raise WrongTime(seen.now, seen.store_now, "the object store's")
    last = max((run.ended_at or run.started_at for run in seen.runs), default=seen.now)
    if last - seen.now > CLOCKS and not limits.clock_is_right:
        raise WrongTime(seen.now, last, "the last run was at", "mend this one, or pass --clock-is-right if it is")


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
        raise WentBack(seen.lost)


def check_share(what: str, going: int, total: int, recent: int, limit: float) -> None:
    if going + recent > Fraction(str(limit)) * (total + recent):
        raise TooMuch(what, going, total, limit, recent)
