"""What a mark comes to, in figures that add up, and the files that say it row by row."""

from collections import Counter
from dataclasses import dataclass, field

from desilt.columns.breakdown import Breakdown
from desilt.columns.files import HeldFile
from desilt.columns.together import together
from desilt.runs.steps import PlanFile

EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Missing:
    """Objects that are held, and not there."""

    count: int = 0
    examples: tuple[str, ...] = ()  # addresses

    def __add__(self, other: "Missing") -> "Missing":
        return Missing(self.count + other.count, tuple(sorted({*self.examples, *other.examples})[:EXAMPLES]))


@dataclass(frozen=True, slots=True)
class Counts:
    """So much stays and goes; objects and bytes are counted side by side."""

    objects: Counter[tuple[str, str]] = field(default_factory=Counter)  # by branch uid (of what goes) and reason
    bytes: Counter[tuple[str, str]] = field(default_factory=Counter)
    gone: Breakdown = field(default_factory=Breakdown)  # what goes
    done_objects: Counter[str] = field(default_factory=Counter)  # by branch: settled, and kept for good
    done_bytes: Counter[str] = field(default_factory=Counter)
    passed: int = 0  # out of scope
    stored_objects: int = 0  # where a job counts them as it goes
    stored_bytes: int = 0
    files: tuple[PlanFile, ...] = ()
    pending: tuple[HeldFile, ...] = ()
    missing: Missing = field(default_factory=Missing)  # where a job looks for such

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            together(self.objects, other.objects),
            together(self.bytes, other.bytes),
            self.gone + other.gone,
            together(self.done_objects, other.done_objects),
            together(self.done_bytes, other.done_bytes),
            self.passed + other.passed,
            self.stored_objects + other.stored_objects,
            self.stored_bytes + other.stored_bytes,
            self.files + other.files,
            self.pending + other.pending,
            self.missing + other.missing,
        )
