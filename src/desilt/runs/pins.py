"""What keeps the bytes: for every branch, tag, hold and staging area, how much it keeps alone, and with others."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from desilt import __version__
from desilt.runs.report import Amount

NOTHING = "nothing: waits for collection"
NAMED = 3  # of the pins of a group, where people read it


@dataclass(frozen=True, slots=True)
class Pin:
    """Something that keeps objects."""

    name: str  # as people call it: "branch main", "tag v1", "hold 3f2a (audit)", "staged on main"
    alone: Amount  # what goes if it alone went
    reaches: Amount  # what it keeps at all, with others or without


@dataclass(frozen=True, slots=True)
class PinGroup:
    """Pins that keep something together: it goes when all of them went."""

    pins: tuple[str, ...]
    amount: Amount


@dataclass(frozen=True, slots=True)
class Pins:
    """All that is kept, and by what. Every object is in exactly one of: a pin's ``alone``, a group, ``nothing``."""

    repository: str
    at: datetime
    total: Amount
    nothing: Amount  # in commits that no pin reaches
    pins: tuple[Pin, ...]  # those first that keep most alone
    groups: tuple[PinGroup, ...]  # the biggest first, as many as were asked for
    groups_left: int  # and how many more there are
    left: Amount  # with so much
    version: str = __version__

    @property
    def alone(self) -> Amount:
        """What one pin keeps, whichever it is."""
        return sum((pin.alone for pin in self.pins), Amount())

    @property
    def together(self) -> Amount:
        """What several pins keep."""
        return sum((group.amount for group in self.groups), self.left)

    @property
    def kept(self) -> Amount:
        """What any pin keeps."""
        return self.alone + self.together

    def to_json(self) -> str:
        facts: dict[str, Any] = {
            "repository": self.repository,
            "at": self.at.isoformat(),
            "total": asdict(self.total),
            "kept": asdict(self.kept),
            "alone": asdict(self.alone),
            "together": asdict(self.together),
            "nothing": asdict(self.nothing),
            "pins": [asdict(pin) for pin in self.pins],
            "groups": [{"pins": list(group.pins), **asdict(group.amount)} for group in self.groups],
            "groups_left": {"groups": self.groups_left, **asdict(self.left)},
            "version": self.version,
        }
        return json.dumps(facts, indent=1, ensure_ascii=False) + "\n"


def told_apart(groups: Sequence[PinGroup], named: int = NAMED) -> list[tuple[Sequence[str], str]]:
    """Each group as ``several`` tells it, and no two alike: names come first that fewest of the others have."""
    common = Counter(name for group in groups for name in group.pins)
    members = [sorted(group.pins, key=lambda name: common[name]) for group in groups]
    found = [several(names, named) for names in members]
    for longer in range(named + 1, max(map(len, members), default=0) + 1):
        seen = Counter(map(str, found))
        if len(seen) == len(found):
            break
        found = [
            several(names, longer) if seen[str(one)] > 1 else one for names, one in zip(members, found, strict=True)
        ]
    return found


def several(names: Sequence[str], named: int = NAMED) -> tuple[Sequence[str], str]:
    """The first of some names, and in words how many more there are; a single one more is named."""
    more = len(names) - named
    return (names[:named], f"and {more:,} more") if more > 1 else (names, "")
