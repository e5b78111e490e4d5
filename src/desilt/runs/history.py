"""What an expiration does to history, commit by commit: to be carried out, to be drawn, and to be read by people.

It is kept beside the plan, as ``history.json``.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

from desilt.errors import DamagedRun

FILE = "history.json"
VERSION = 1


class Fate(StrEnum):
    """What becomes of a commit; the first that is so is told."""

    ABANDONED = "abandoned"  # no ref reaches it any more
    RELEASED = "released"  # the same, and it can no longer be opened: it leaves history at once
    EDITED = "edited"  # it stays, and gets other parents
    POINTED = "pointed at"  # old, and stays because a ref or a hold names it
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class Dot:
    """A commit, with its parents before and after."""

    id: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    created_at: str  # ISO 8601, UTC
    message: str
    fate: Fate
    why: str = ""
    refs: tuple[str, ...] = ()  # that point to it, as people call them: "main", "tag v1", "hold 7f3a"
    by: tuple[str, ...] = ()  # of an abandoned or released one: the refs that reached it


GONE = frozenset({Fate.ABANDONED, Fate.RELEASED})
"""What becomes of commits that refs reach no more."""

FIELDS = tuple(one.name for one in fields(Dot))


@dataclass(frozen=True, slots=True)
class GoingCommit:
    """A commit that a run takes, as people know it."""

    id: str
    created_at: str
    message: str


@dataclass(frozen=True, slots=True)
class HistoryChange:
    """A history before and after. Dots are in order: children before their parents, newest first."""

    dots: tuple[Dot, ...]
    skipped: Mapping[str, str] = field(default_factory=dict)  # refs with old tips that stay, and why
    deleted: Mapping[str, str] = field(default_factory=dict)  # refs that go, and why

    def count(self, fate: Fate) -> int:
        return sum(dot.fate is fate for dot in self.dots)

    def to_json(self) -> str:
        """All of it; the refs that reached abandoned commits are told once for each set of them."""
        sets: dict[tuple[str, ...], int] = {}
        rows = [
            {name: getattr(dot, name) for name in FIELDS} | {"by": sets.setdefault(dot.by, len(sets))}
            for dot in self.dots
        ]
        facts = {
            "version": VERSION,
            "skipped": dict(self.skipped),
            "deleted": dict(self.deleted),
            "sets": list(sets),
            "dots": rows,
        }
        return json.dumps(facts) + "\n"


def read_change(text: str) -> HistoryChange:
    """A change from its JSON."""
    try:
        facts: dict[str, Any] = json.loads(text)
        if facts["version"] != VERSION:
            raise KeyError("version")
        sets = [tuple(names) for names in facts["sets"]]
        dots = tuple(_dot({**one, "by": sets[one["by"]]}) for one in facts["dots"])
        return HistoryChange(dots, facts["skipped"], facts["deleted"])
    except (ValueError, TypeError, KeyError, IndexError):
        raise DamagedRun(f"{FILE} of this run", "was not written by this desilt, or is damaged") from None


def _dot(facts: dict[str, Any]) -> Dot:
    lists = {name: tuple(facts[name]) for name in ("before", "after", "refs", "by")}
    return Dot(**{**facts, **lists, "fate": Fate(facts["fate"])})
