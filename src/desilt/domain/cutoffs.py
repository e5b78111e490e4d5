"""A policy with every duration already subtracted from *now*. Nothing past this module reads a clock.

:func:`resolve` gives :class:`Cutoffs`; its ``table`` has the shape in which runs keep
what they applied: a row for a rule's ``days``, one for each entry of its
``branch_days``, as written. Tables of two runs make a :func:`current_rule`.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase

from desilt.domain.policy import Policy, Rule
from desilt.domain.times import check_date

DAY = timedelta(hours=24)
WILDCARD = re.compile(r"\*|\?|\[!?\]?[^\]]*\]")


@dataclass(frozen=True, slots=True)
class Cutoff:
    """Entries under ``prefix`` on ``branch`` created before ``before`` may go."""

    rule_id: str
    prefix: str
    branch: str | None  # a name or a glob; None: every branch without a row of its own
    before: datetime


@dataclass(frozen=True, slots=True)
class CurrentRule:
    """What a run is about to apply to a prefix on a branch, and what the last one applied there."""

    prefix: str
    branch: str | None
    date_to_be_deleted: datetime
    last_deleted: datetime | None  # None: never, so everything from the beginning counts


@dataclass(frozen=True, slots=True)
class Cutoffs:
    """The enabled rules of a policy, at one moment, for the branches there are."""

    now: datetime
    rules: tuple[Rule, ...]
    branches: tuple[str, ...]

    @property
    def table(self) -> tuple[Cutoff, ...]:
        """The policy table, as written: what a run records, and the next one reads."""
        return tuple(
            Cutoff(rule.id, rule.prefix, branch, self.now - days * DAY)
            for rule in self.rules
            for branch, days in [(None, rule.days), *rule.branch_days.items()]
            if days is not None
        )

    @property
    def by_branch(self) -> tuple[tuple[Rule, str, datetime], ...]:
        """Every rule on every branch there is that it covers, globs and defaults decided: what a join needs."""
        return tuple(
            (rule, branch, before)
            for rule in self.rules
            for branch in self.branches
            if (before := self.before(rule, branch)) is not None
        )

    def before(self, rule: Rule, branch: str) -> datetime | None:
        """What is strictly earlier may go, as far as ``rule`` and ``branch`` are asked; None: not covered."""
        days = days_for(rule, branch) if rule.enabled else None
        return None if days is None else self.now - days * DAY

    def threshold(self, path_rules: Iterable[Rule], branch: str, *, current: bool) -> datetime | None:
        """The latest cutoff, since of the rules that match a path any one removes; ``current``: the head has it."""
        asked = (rule for rule in path_rules if not (current and rule.noncurrent_only))
        found = (self.before(rule, branch) for rule in asked)
        return max((before for before in found if before is not None), default=None)


def resolve(policy: Policy, branches: Iterable[str], now: datetime) -> Cutoffs:
    """``policy`` as it stands at ``now``."""
    enabled = tuple(rule for rule in policy.rules if rule.enabled)
    return Cutoffs(check_date(now), enabled, tuple(sorted(set(branches))))


def days_for(rule: Rule, branch: str) -> int | None:
    """By name, else by the most specific glob, else the rule's ``days``; None: ``rule`` does not cover ``branch``."""
    if chosen := deciding(rule.branch_days, branch):
        return max(rule.branch_days[entry] for entry in chosen)
    return rule.days


def deciding(entries: Collection[str], branch: str) -> list[str]:
    """Of names and globs the one that speaks for ``branch``: its name, else the glob with most plain characters.

    Several that are equally specific are all given: the caller takes the longer period.
    """
    if branch in entries:
        return [branch]
    fitting = {entry: len(WILDCARD.sub("", entry)) for entry in entries if fnmatchcase(branch, entry)}
    return [entry for entry, plain in fitting.items() if plain == max(fitting.values())]


def matching(policy: Policy, path: str) -> tuple[Rule, ...]:
    """The enabled rules for ``path``. Prefixes are plain strings: ``a`` matches ``ab``."""
    return tuple(rule for rule in policy.rules if rule.enabled and path.startswith(rule.prefix))


def decided(table: Iterable[Cutoff], branch: str | None) -> dict[str, datetime]:
    """For each prefix of ``table``, the cutoff it had on ``branch``: the latest, when several rules share a prefix."""
    entries: dict[tuple[str, str], dict[str | None, datetime]] = {}
    for row in table:
        entries.setdefault((row.rule_id, row.prefix), {})[row.branch] = row.before
    found: dict[str, datetime] = {}
    for (_, prefix), rows in entries.items():
        own = {name: before for name, before in rows.items() if name is not None}
        chosen = deciding(own, branch) if branch is not None else []
        before = min(own[name] for name in chosen) if chosen else rows.get(None)
        if before is not None:
            found[prefix] = max(before, found.get(prefix, before))
    return found


def current_rule(now_table: Sequence[Cutoff], last_table: Sequence[Cutoff]) -> list[CurrentRule]:
    """Each prefix and branch of ``now_table``, in its order, beside what the last run that swept applied there."""
    latest: dict[tuple[str, str | None], datetime] = {}
    for row in now_table:
        key = (row.prefix, row.branch)
        latest[key] = max(row.before, latest.get(key, row.before))
    return [
        CurrentRule(prefix, branch, before, decided(last_table, branch).get(prefix))
        for (prefix, branch), before in latest.items()
    ]


def minimum_per_branch(rows: Iterable[CurrentRule]) -> Mapping[str | None, datetime | None]:
    """The earliest ``last_deleted`` of each branch's rows; None, the beginning, is earlier than every date."""
    found: dict[str | None, datetime | None] = {}
    for row in rows:
        seen = found.setdefault(row.branch, row.last_deleted)
        found[row.branch] = min(seen, row.last_deleted) if seen and row.last_deleted else None
    return found
