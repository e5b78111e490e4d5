"""A policy replayed over the past, in figures: what each day would have removed, by rule and by branch."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any

from desilt import __version__
from desilt.runs.report import Amount

NEW, OLD = "new", "old"
PAGE, FIGURES = "simulation.html", "simulation.json"

Branches = Mapping[str, Amount]  # an object on two branches counts on both


@dataclass(frozen=True, slots=True)
class Step:
    """What one day would have removed, after all the days before it."""

    at: datetime
    rules: Mapping[str, Amount]  # each object once, by the first rule that matches it
    by_rule: Mapping[str, Branches]

    @property
    def removed(self) -> Amount:
        return sum(self.rules.values(), Amount())

    @property
    def branches(self) -> dict[str, Amount]:
        return added(self.by_rule.values())


@dataclass(frozen=True, slots=True)
class Side:
    """One policy, day by day."""

    name: str
    policy: str  # its fingerprint
    steps: tuple[Step, ...]

    @property
    def removed(self) -> Amount:
        return sum((step.removed for step in self.steps), Amount())

    @property
    def rules(self) -> dict[str, Amount]:
        """All days together."""
        return added(step.rules for step in self.steps)

    @property
    def by_rule(self) -> dict[str, dict[str, Amount]]:
        return {rule: added(step.by_rule.get(rule, {}) for step in self.steps) for rule in self.rules}

    def so_far(self, rule: str | None = None) -> list[Amount]:
        """Up to and with each day: by one rule, or altogether."""
        days = (step.removed if rule is None else step.rules.get(rule, Amount()) for step in self.steps)
        return list(accumulate(days))


@dataclass(frozen=True, slots=True)
class Simulation:
    """A policy, and maybe the one it is to replace, over the same days."""

    run: str
    repository: str
    every: timedelta
    sides: tuple[Side, ...]  # the new one first
    notes: tuple[str, ...]  # what cannot be known, for people
    version: str = __version__

    @property
    def days(self) -> list[datetime]:
        return [step.at for step in self.sides[0].steps]

    def to_json(self) -> str:
        facts = {
            "run": self.run,
            "repository": self.repository,
            "from": self.days[0].isoformat(),
            "to": self.days[-1].isoformat(),
            "every_seconds": int(self.every.total_seconds()),
            "policies": {side.name: _side(side) for side in self.sides},
            "notes": list(self.notes),
            "version": self.version,
        }
        return json.dumps(facts, indent=1) + "\n"


def added(some: Iterable[Mapping[str, Amount]]) -> dict[str, Amount]:
    """Amounts of the same name together."""
    found: dict[str, Amount] = {}
    for amounts in some:
        for name, amount in amounts.items():
            found[name] = found.get(name, Amount()) + amount
    return dict(sorted(found.items()))


def day(at: datetime) -> str:
    """A day, or a moment within one."""
    return f"{at:%Y-%m-%d}" if at == at.replace(hour=0, minute=0, second=0, microsecond=0) else f"{at:%Y-%m-%d %H:%M}"


def _side(side: Side) -> dict[str, Any]:
    days = [
        {
            "at": step.at.isoformat(),
            "removed": asdict(step.removed),
            "so_far": asdict(so_far),
            "rules": _rules(step.rules, step.by_rule),
            "branches": _amounts(step.branches),
        }
        for step, so_far in zip(side.steps, side.so_far(), strict=True)
    ]
    return {
        "policy": side.policy,
        "removed": asdict(side.removed),
        "rules": _rules(side.rules, side.by_rule),
        "branches": _amounts(added(side.by_rule.values())),
        "days": days,
    }


def _rules(rules: Mapping[str, Amount], by_rule: Mapping[str, Branches]) -> dict[str, Any]:
    return {rule: {**asdict(amount), "branches": _amounts(by_rule[rule])} for rule, amount in rules.items()}


def _amounts(amounts: Mapping[str, Amount]) -> dict[str, Any]:
    return {name: asdict(amount) for name, amount in amounts.items()}
