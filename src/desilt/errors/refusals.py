"""What guards and locks say no to."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from math import ceil
from types import MappingProxyType
from typing import Any, Self

from desilt.errors.base import DesiltError, sentence


class Refused(DesiltError):
    """A guard said no; nothing was removed."""

    exit_code = 10
    code = "refused"
    let_pass: Mapping[str, Any] | None = None  # the limits that say yes to it, where there are such
    others: "tuple[Refused, ...]" = ()  # that say no as well
    passes: str | None = None  # the words that let all of them pass, where there are such
    run: str = ""
    of_lake = False  # whether it is about the lake as a whole, so that nothing else should be done there, either

    def __init__(self, fact: str = "", way_out: str = "") -> None:
        self.fact, self.way_out = fact, way_out
        super().__init__("; ".join(filter(None, [fact, way_out])))

    def with_others(self, others: "Sequence[Refused]", *, run: str, passes: str | None) -> Self:
        """The first of some refusals, which tells the others, too."""
        self.others, self.run, self.passes = tuple(others), run, passes
        if others:
            ways_out = [f"look at plan {run}, and if it is right, pass {passes}"]
            if passes is None:  # a yes to the rest would be of no use
                ways_out = [one.way_out for one in self.all if one.let_pass is None]
            self.args = (sentence("; ".join(dict.fromkeys([*(one.fact for one in self.all), *ways_out]))),)
        return self

    @property
    def all(self) -> "list[Refused]":
        """It, and the others."""
        return [self, *self.others]


class StalePlan(Refused):
    code = "stale-plan"

    def __init__(self, run: str, age: timedelta, limit: timedelta) -> None:
        self.run, self.age, self.limit = run, age, limit
        self.let_pass = {"max_plan_age": timedelta(days=ceil(age / timedelta(days=1)))}
        super().__init__(
            f"plan {run} is {span(age)} old, the limit is {span(limit)}", "plan again, or raise --max-plan-age"
        )


class StaleInventory(Refused):
    code = "stale-inventory"

    def __init__(self, uri: str, age: timedelta, limit: timedelta) -> None:
        self.uri, self.age, self.limit = uri, age, limit
        super().__init__(
            f"inventory {uri} is {span(age)} old, the limit is {span(limit)}",
            "take a newer one, or raise --max-inventory-age",
        )


class StagedLost(Refused):
    code = "staged-lost"
    of_lake = True

    def __init__(self, since: datetime) -> None:
        super().__init__(
            f"the database was restored, and what was staged since {since:%Y-%m-%d %H:%M} UTC is lost: a staged copy "
            "may have kept what is to go",
            "stage again what is wanted, then release the rest with `desilt gc run --after-restore`",
        )


class OutgrownPolicy(Refused):
    code = "outgrown-policy"

    def __init__(self, fact: str, *, confirm: bool = False) -> None:
        self.let_pass = {"confirm": True} if confirm else None
        super().__init__(
            f"the policy does not fit what is in the repository by now: {fact}",
            f"mend it, or if it is meant so, {'pass' if confirm else 'set it again with'} --confirm",
        )


class TooMuch(Refused):
    code = "too-much"

    def __init__(self, what: str, going: int, total: int, limit: float, recent: int = 0, before: int = 0) -> None:
        self.what, self.going, self.total, self.limit = what, going, total, limit
        lately = f", {recent:,} went in the last day" if recent else ""
        others = f", {before:,} by other plans before" if before else ""
        gone = recent + before
        share = (going + gone) / (total + gone) if total + gone else 1.0
        self.share = min(ceil(share * 100) / 100, 1.0)
        self.let_pass = {"max_share": self.share, "confirm": True}
        super().__init__(
            f"{going:,} of {total:,} {what} would go{others}{lately}: {share:.0%}, the limit is {limit:.0%}",
            "look at the plan, then raise --max-share if it is right",
        )


class TooFast(Refused):
    code = "too-fast"

    def __init__(self, due: int, removed: int, total: int, limit: float) -> None:
        self.due, self.removed, self.total, self.limit = due, removed, total, limit
        share = (due + removed) / total if total else 1.0
        lately = f" after {removed:,} within the hour" if removed else ""
        super().__init__(
            f"hard delete would remove {due:,} of {total:,} objects{lately}: {share:.0%}, the limit is {limit:.0%}",
            "bring back what must stay with `desilt harddelete restore`, or raise --max-share",
        )


class Shrinks(TooMuch):
    code = "shrinks"

    def __init__(self, what: str, left: int, largest: int, at: datetime, limit: float) -> None:
        self.what, self.left, self.largest, self.limit = what, left, largest, limit
        share = (largest - left) / largest if largest else 1.0
        self.share = min(ceil(share * 100) / 100, 1.0)
        self.let_pass = {"max_share": self.share, "confirm": True}
        Refused.__init__(
            self,
            f"{left:,} {what} would be left of the {largest:,} that there were on {at:%Y-%m-%d}: "
            f"{share:.0%} less, the limit is {limit:.0%} within 30 days",
            "look at the plan, then raise --max-share if it is right",
        )


class TooMany(Refused):
    code = "too-many"

    def __init__(self, objects: int, limit: int) -> None:
        self.objects, self.limit = objects, limit
        self.let_pass = {"max_objects": objects}
        super().__init__(
            f"{objects:,} objects would go, the limit is {limit:,}", "look at the plan, or raise --max-objects"
        )


class NothingHeld(Refused):
    code = "nothing-held"
    of_lake = True
    let_pass = MappingProxyType({"allow_empty": True})

    def __init__(self, repository: str) -> None:
        self.repository = repository
        super().__init__(
            f"nothing in {repository!r} is held by any commit, staging area or ticket, so everything would go",
            "if that is so, pass --allow-empty",
        )


class FirstRun(Refused):
    code = "first-run"
    let_pass = MappingProxyType({"confirm": True})

    def __init__(self, job: str, run: str) -> None:
        self.job, self.run = job, run
        super().__init__(
            f"this policy of {job!r} was never carried out here before, or not as far",
            f"look at plan {run}, then pass --confirm",
        )


class WentBack(Refused):
    code = "went-back"
    of_lake = True

    def __init__(
        self,
        fact: str,
        way_out: str = "bring back what it lacks with `desilt lake recover`",
        let_pass: Mapping[str, Any] | None = None,
    ) -> None:
        self.let_pass = let_pass
        super().__init__(
            f"{fact}: was the database restored from a copy? What was held since would count as garbage", way_out
        )


class OtherRecords(Refused):
    code = "other-records"
    of_lake = True

    def __init__(self, place: str, run: str, at: str) -> None:
        self.place, self.run = place, run
        super().__init__(
            f"the records of this repository are in {place} (run {run}, {at[:10]}), with orders to keep and the trash",
            "name that database with --db or DESILT_DB; if it is lost, see `desilt lakefs adopt --help`",
        )


class RecordsOutdated(Refused):
    code = "records-outdated"
    of_lake = True

    def __init__(self, run: str, at: str) -> None:
        self.run = run
        super().__init__(
            f"these records do not know run {run} of {at[:10]}: they are an old copy, or another has gone on since",
            "use the database that knows it; if it is lost, see `desilt lakefs adopt --help`",
        )


class WrongTime(Refused):
    code = "wrong-time"
    of_lake = True

    def __init__(
        self,
        ours: datetime,
        theirs: datetime,
        whose: str,
        way_out: str = "mend the one that is wrong",
        let_pass: Mapping[str, Any] | None = None,
    ) -> None:
        self.ours, self.theirs, self.let_pass = ours, theirs, let_pass
        there = f"{whose} {theirs:%Y-%m-%d %H:%M:%S} UTC"
        here = f"nothing is removed or brought back by this clock: it says {ours:%Y-%m-%d %H:%M:%S} UTC"
        super().__init__(f"{here}, {there}", way_out)


class OutsidePrefix(Refused):
    code = "outside-prefix"
    of_lake = True

    def __init__(self, run: str, address: str) -> None:
        self.run, self.address = run, address
        super().__init__(f"plan {run} names {address!r}, which is not an object of this repository", "plan again")


class Locked(DesiltError):
    exit_code = 11
    code = "locked"

    def __init__(self, run: str, owner: str, silent: timedelta) -> None:
        self.run, self.owner = run, owner
        super().__init__(
            f"run {run} is at work ({owner}, last heard of {span(silent)} ago); wait for it, or try again in a minute"
        )


class FencedOff(Locked):
    code = "fenced-off"

    def __init__(self, run: str, by: str) -> None:
        self.run, self.by = run, by
        taker = f"run {by}" if by else "another"
        DesiltError.__init__(self, f"run {run} was silent for too long, and {taker} took over; nothing more was done")


class BatchOver(FencedOff):
    code = "batch-over"

    def __init__(self, run: str, number: int) -> None:
        self.run, self.by, self.number = run, run, number
        DesiltError.__init__(
            self, f"batch {number} of run {run} was done by another try, or the run was given up; nothing more was done"
        )


def span(length: timedelta) -> str:
    """A length of time, roughly."""
    seconds = int(length.total_seconds())
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            return f"{seconds // size} {unit}{'s' * (seconds // size != 1)}"
    return f"{seconds} second{'s' * (seconds != 1)}"
