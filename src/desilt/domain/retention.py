"""The retention document of a repository: which entries expire, on which branches, after how long.

The format is lakeFS's of 2020: rules with a status, a filter and an expiration. A prefix is
``<branch>/<path prefix>``, one plain string: ``main/logs/`` is what lies below ``logs/`` on main, ``main/`` all of it,
``dev`` every branch whose name begins so. A rule may say up to three things:

all             any entry expires that is older
noncurrent      one that is committed, and has been in no head of the branch for as long
uncommitted     one that is only staged

Of several rules that match, any one expires. Weeks and days are summed; a day is 24 hours.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from desilt.domain.document import MAX_DAYS, bad, fields, items, shown, text
from desilt.domain.policy import KeepRule

TOP = ("description", "rules")
OF_RULE = ("status", "filter", "expiration")
OF_FILTER = ("prefix",)
OF_PERIOD = ("weeks", "days")
ENABLED, DISABLED = "enabled", "disabled"
SHORTEST = timedelta(hours=2)


class Kind(StrEnum):
    """What a period is for."""

    ALL = "all"
    NONCURRENT = "noncurrent"
    UNCOMMITTED = "uncommitted"


@dataclass(frozen=True, slots=True)
class Period:
    """As it was written."""

    weeks: float = 0
    days: float = 0

    @property
    def span(self) -> timedelta:
        return timedelta(weeks=self.weeks, days=self.days)

    def to_json(self) -> dict[str, float]:
        return {name: value for name in OF_PERIOD if (value := getattr(self, name))}


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """What expires below a prefix."""

    number: int  # its place, from 1
    enabled: bool
    prefix: str
    periods: Mapping[Kind, Period]

    @property
    def branch_and_path(self) -> tuple[str, str | None]:
        """The branch, or how its name begins, and below which prefix of its paths; None: the name may go on."""
        branch, divided, path = self.prefix.partition("/")
        return branch, path if divided else None

    def path_on(self, branch: str) -> str | None:
        """The prefix of paths that it is about on a branch; None: it is not about that branch."""
        name, path = self.branch_and_path
        if path is None:
            return "" if branch.startswith(name) else None
        return path if branch == name else None


@dataclass(frozen=True, slots=True)
class RuleExpiry:
    """One thing that an enabled rule says."""

    rule: RetentionRule
    kind: Kind

    @property
    def id(self) -> str:
        """As plans, tombstones and reports name it."""
        return f"rule {self.rule.number} ({self.kind})"

    @property
    def span(self) -> timedelta:
        return self.rule.periods[self.kind].span

    def before(self, now: datetime) -> datetime:
        """What is strictly earlier has expired."""
        return now - self.span


@dataclass(frozen=True, slots=True)
class Retention:
    """The whole document."""

    rules: tuple[RetentionRule, ...]
    description: str = ""

    @property
    def expiries(self) -> tuple[RuleExpiry, ...]:
        """What it says, rule by rule; disabled ones say nothing."""
        return tuple(
            RuleExpiry(rule, kind) for rule in self.rules if rule.enabled for kind in Kind if kind in rule.periods
        )

    def to_json(self) -> dict[str, object]:
        """A document that :func:`parse` reads as this one."""
        return {
            **({"description": self.description} if self.description else {}),
            "rules": [
                {
                    "status": ENABLED if rule.enabled else DISABLED,
                    "filter": {"prefix": rule.prefix} if rule.prefix else {},
                    "expiration": {kind.value: period.to_json() for kind, period in rule.periods.items()},
                }
                for rule in self.rules
            ],
        }

    def fingerprint(self, keep: Iterable[KeepRule] = ()) -> str:
        """Equal for documents that mean the same, beside the same keep rules."""
        means = sorted((one.rule.prefix, one.kind.value, one.span.total_seconds()) for one in self.expiries)
        kept = sorted([one.prefix or "", one.glob or ""] for one in keep)
        return hashlib.sha256(json.dumps([means, kept]).encode()).hexdigest()

    def staged_expires(self, branch: str, path: str, created_at: datetime, now: datetime) -> bool:
        """Whether an entry that is staged on a branch has expired."""
        return any(
            one.kind is not Kind.NONCURRENT
            and (prefix := one.rule.path_on(branch)) is not None
            and path.startswith(prefix)
            and created_at < one.before(now)
            for one in self.expiries
        )

    def periods_on(self, branch: str) -> tuple[tuple[str, timedelta] | None, ...]:
        """What it says of commits on a branch: two branches with the same answer are treated alike."""
        found = []
        for one in self.expiries:
            path = one.rule.path_on(branch) if one.kind is not Kind.UNCOMMITTED else None
            found.append(None if path is None else (path, one.span))
        return tuple(found)


def parse(document: object) -> Retention:
    """What ``document`` says; errors name the rule and the field."""
    said = fields("retention", document, TOP)
    if "rules" not in said:
        raise bad("retention", "it has no rules", "write a list of rules below 'rules'")
    rules = items("rules", said["rules"])
    if not rules:
        raise bad("retention", "it has no rules", "write at least one")
    about = text("retention", said, "description") or ""
    return Retention(tuple(_rule(number, body) for number, body in enumerate(rules, 1)), about)


def _rule(number: int, body: object) -> RetentionRule:
    where = f"rule {number}"
    said = fields(where, body, OF_RULE)
    for name in OF_RULE:
        if name not in said:
            raise bad(where, f"it has no {name}", _WANTED[name])
    status = text(where, said, "status")
    if status not in (ENABLED, DISABLED):
        raise bad(where, f"status is {shown(status)}", f"write {ENABLED!r} or {DISABLED!r}")
    prefix = text(f"{where}, filter", fields(f"{where}, filter", said["filter"], OF_FILTER), "prefix") or ""
    if prefix.startswith("/"):
        raise bad(f"{where}, filter", f"prefix {shown(prefix)} begins with a slash", "write <branch>/<path prefix>")
    place = f"{where}, expiration"
    periods = fields(place, said["expiration"], tuple(Kind))
    if not periods:
        raise bad(place, "it says nothing", f"write at least one of {', '.join(Kind)}")
    found = {kind: _period(f"{place}, {kind}", periods[kind]) for kind in Kind if kind in periods}
    return RetentionRule(number, status == ENABLED, prefix, found)


_WANTED = {
    "status": f"write {ENABLED!r} or {DISABLED!r}",
    "filter": 'write {"prefix": "<branch>/<path>"}; {} is everything',
    "expiration": 'write one such as {"noncurrent": {"days": 30}}',
}


def _period(where: str, body: object) -> Period:
    said = fields(where, body, OF_PERIOD)
    if not said:
        raise bad(where, "it has neither weeks nor days", "write at least one of them")
    found = Period(*(_number(where, said, name) for name in OF_PERIOD))
    if not SHORTEST <= found.span <= timedelta(days=MAX_DAYS):
        fact = f"it comes to {found.span.total_seconds() / 3600:g} hours"
        raise bad(where, fact, f"give at least 2 hours and at most {MAX_DAYS:,} days, weeks and days together")
    return found


def _number(where: str, said: Mapping[str, object], name: str) -> float:
    value = said.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_DAYS:  # NaN neither
        raise bad(where, f"{name} is {shown(value)}", f"write a number of {name}, 0 to {MAX_DAYS:,}")
    return value
