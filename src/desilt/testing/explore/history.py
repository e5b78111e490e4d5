"""A history: what happened, one line for each step, and what came of it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Harm(StrEnum):
    """What must not come of any history, and one that may."""

    LOSS = "loss"  # an entry that people can see has no object
    LEAK = "leak"  # an object that nobody holds stays for ever
    STUCK = "stuck"  # a flow can never finish
    LEFT = "left"  # an object that nobody holds is left to the collector: no violation


class Line(NamedTuple):
    """One step of a history."""

    who: str
    what: str


@dataclass(frozen=True, slots=True)
class History:
    """A shortest way to a harm."""

    harm: Harm
    lines: tuple[Line, ...]
    because: str

    def __str__(self) -> str:
        width = max((len(line.who) for line in self.lines), default=0)
        steps = [f"{line.who:<{width}}  {line.what}" for line in self.lines]
        return "\n".join([*steps, f"=> {self.harm}: {self.because}"])
