"""Bytes over time as lines: axes that people count in, and paths between them. A template writes them down."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from desilt.runs.simulation import day

WIDTH, HEIGHT = 1000.0, 100.0
TICKS = 4  # steps of an axis of sizes
STEPS = (1, 2, 2.5, 5, 10)  # by which such an axis may go


@dataclass(frozen=True, slots=True)
class PlotLine:
    """One line of a plot, the path of it, and where it ends."""

    kind: str
    path: str
    last: int


@dataclass(frozen=True, slots=True)
class Plot:
    """Lines over days, between an axis of sizes and one of time."""

    lines: tuple[PlotLine, ...]
    sizes: tuple[int, ...]  # from 0
    dates: tuple[str, ...]

    @property
    def grid(self) -> list[float]:
        """How far down each of ``sizes`` is."""
        return [HEIGHT - HEIGHT * tick / self.sizes[-1] for tick in self.sizes]


def plot(days: Sequence[datetime], amounts: Mapping[str, Sequence[int]]) -> Plot:
    """A line for each kind; one that stays at 0 says so."""
    axis = ticks(max(1, *(line[-1] for line in amounts.values())))
    lines = (PlotLine(kind, path(days, line, axis[-1]), line[-1]) for kind, line in amounts.items())
    return Plot(tuple(lines), tuple(axis), tuple(calendar(days)))


def path(days: Sequence[datetime], line: Sequence[int], most: float) -> str:
    """A line that holds its height from one day to the next."""
    whole = (days[-1] - days[0]).total_seconds()
    drawn = [f"M0 {HEIGHT:g}"]
    for at, amount in zip(days, line, strict=True):
        across = WIDTH * (at - days[0]).total_seconds() / whole if whole else 0.0
        drawn.append(f"H{across:.2f}V{HEIGHT - HEIGHT * amount / most:.2f}")
    return "".join([*drawn, f"H{WIDTH:g}"])


def calendar(days: Sequence[datetime]) -> list[str]:
    """The beginning, the middle if that is days away, and the end of an axis of time."""
    middle = days[0] + (days[-1] - days[0]) / 2
    between = [f"{middle:%Y-%m-%d}"] if days[-1] - days[0] > timedelta(days=7) else []
    return [day(days[0]), *between, *([day(days[-1])] if len(days) > 1 else [])]


def ticks(most: int) -> list[int]:
    """An axis from 0 that holds ``most``, in steps that people count in."""
    unit = 1
    while True:
        for step in STEPS:
            if unit * step * TICKS >= most and unit * step == int(unit * step):
                return [int(unit * step) * number for number in range(-(-most // int(unit * step)) + 1)]
        unit *= 10
