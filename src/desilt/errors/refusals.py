"""What guards and locks say no to."""

from datetime import datetime, timedelta

from desilt.errors.base import DesiltError


class Refused(DesiltError):
    """A guard said no; nothing was removed."""

    exit_code = 10
    code = "refused"


class StalePlan(Refused):
    code = "stale-plan"

    def __init__(self, run: str, age: timedelta, limit: timedelta) -> None:
        self.run, self.age, self.limit = run, age, limit
        super().__init__(
            f"plan {run} is {span(age)} old, the limit is {span(limit)}; plan again, or raise --max-plan-age"
        )


class StaleInventory(Refused):
    code = "stale-inventory"

    def __init__(self, uri: str, age: timedelta, limit: timedelta) -> None:
        self.uri, self.age, self.limit = uri, age, limit
        super().__init__(
            f"inventory {uri} is {span(age)} old, the limit is {span(limit)}; "
            "take a newer one, or raise --max-inventory-age"
        )


class OtherPolicy(Refused):
    code = "other-policy"

    def __init__(self, run: str, fact: str) -> None:
        self.run = run
        super().__init__(f"plan {run} {fact}; plan again")


class StagedLost(Refused):
    code = "staged-lost"

    def __init__(self, since: datetime) -> None:
        super().__init__(
            f"the database was restored, and what was staged since {since:%Y-%m-%d %H:%M} UTC is lost: a staged copy "
            "may have kept what is to go; stage again what is wanted, then let go of the rest with "
            "`desilt gc run --after-restore`"
        )


class OutgrownPolicy(Refused):
    code = "outgrown-policy"

    def __init__(self, fact: str) -> None:
        super().__init__(
            f"the policy does not fit what is in the repository by now: {fact}; "
            "mend it, or if it is meant so, set it again with --confirm"
        )


class TooMuch(Refused):
    code = "too-much"

    def __init__(self, what: str, going: int, total: int, limit: float, recent: int = 0) -> None:
        self.what, self.going, self.total, self.limit = what, going, total, limit
        before = f" and {recent:,} went in the last day" if recent else ""
        share = (going + recent) / (total + recent) if total + recent else 1.0
        super().__init__(
            f"{going:,} of {total:,} {what} would go{before}: {share:.0%}, the limit is {limit:.0%}; "
            "look at the plan, then raise --max-share if it is right"
        )


class Shrinks(TooMuch):
    code = "shrinks"

    def __init__(self, what: str, left: int, largest: int, at: datetime, limit: float) -> None:
        self.what, self.left, self.largest, self.limit = what, left, largest, limit
        Refused.__init__(
            self,
            f"{left:,} {what} would be left of the {largest:,} that there were on {at:%Y-%m-%d}: "
            f"{1 - left / largest:.0%} less, the limit is {limit:.0%} within 30 days; "
            "look at the plan, then raise --max-share if it is right",
        )


class TooMany(Refused):
    code = "too-many"

    def __init__(self, objects: int, limit: int) -> None:
        self.objects, self.limit = objects, limit
        super().__init__(
            f"{objects:,} objects would go, the limit is {limit:,}; look at the plan, or raise --max-objects"
        )


class NothingHeld(Refused):
    code = "nothing-held"

    def __init__(self, repository: str) -> None:
        self.repository = repository
        super().__init__(
            f"nothing in {repository!r} is held by any commit, staging area or ticket, so everything would go; "
            "if that is so, pass --allow-empty"
        )


class FirstRun(Refused):
    code = "first-run"

    def __init__(self, job: str, run: str) -> None:
        self.job, self.run = job, run
        super().__init__(
            f"this policy of {job!r} was never carried out here before, or not as far; "
            f"look at plan {run}, then pass --confirm"
        )


class WentBack(Refused):
    code = "went-back"

    def __init__(self, fact: str, way_out: str = "bring back what it lacks with `desilt lake recover`") -> None:
        super().__init__(
            f"{fact}: was the database restored from a copy? What was held since would count as garbage; {way_out}"
        )


class WrongTime(Refused):
    code = "wrong-time"

    def __init__(
        self, ours: datetime, theirs: datetime, whose: str, way_out: str = "mend the one that is wrong"
    ) -> None:
        self.ours, self.theirs = ours, theirs
        there = f"{whose} {theirs:%Y-%m-%d %H:%M:%S} UTC"
        super().__init__(f"this clock says {ours:%Y-%m-%d %H:%M:%S} UTC, {there}; {way_out}")


class OutsidePrefix(Refused):
    code = "outside-prefix"

    def __init__(self, run: str, address: str) -> None:
        self.run, self.address = run, address
        super().__init__(f"plan {run} names {address!r}, which is not an object of this repository; plan again")


class Locked(DesiltError):
    exit_code = 11

    def __init__(self, run: str, owner: str, silent: timedelta) -> None:
        self.run, self.owner = run, owner
        super().__init__(
            f"run {run} is at work ({owner}, last heard of {span(silent)} ago); wait for it, or try again in a minute"
        )


class FencedOff(Locked):
    def __init__(self, run: str, by: str) -> None:
        self.run, self.by = run, by
        taker = f"run {by}" if by else "another"
        DesiltError.__init__(self, f"run {run} was silent for too long, and {taker} took over; nothing more was done")


def span(length: timedelta) -> str:
    """A length of time, roughly."""
    seconds = int(length.total_seconds())
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            return f"{seconds // size} {unit}{'s' * (seconds // size != 1)}"
    return f"{seconds} second{'s' * (seconds != 1)}"
