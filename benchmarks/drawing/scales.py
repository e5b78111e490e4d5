"""Axes: from what was measured to a place between 0 and 1, and the ticks between."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from desilt.render.plots import ticks

Words = Callable[[float], str]
ROUND = (1, 2, 5)  # ticks of an axis of decades
MANY = 7  # ticks, beyond which only decades are told


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis: what it is of, where it begins and ends, and what is written along it."""

    title: str
    least: float
    most: float
    ticks: tuple[float, ...]
    words: Words
    by_decades: bool = False

    def at(self, value: float) -> float:
        """How far along ``value`` is."""
        if self.by_decades:
            return math.log(value / self.least) / math.log(self.most / self.least) if self.most > self.least else 0.5
        return (value - self.least) / (self.most - self.least)


def count(number: float) -> str:
    """A number in few letters: 300 k, 20 M."""
    for unit, name in ((1e6, " M"), (1e3, " k")):
        if number >= unit:
            return f"{number / unit:.3g}{name}"
    return f"{number:.3g}"


def from_zero(title: str, values: Iterable[float], words: Words = count) -> Scale:
    """An axis that begins at 0, in steps that people count in."""
    most = max([*values, 0.0])
    unit = 10.0 ** min(0, math.floor(math.log10(most))) if most else 1.0  # steps are whole numbers of it
    steps = [round(tick * unit, 9) for tick in ticks(max(1, math.ceil(round(most / unit, 6))))]
    return Scale(title, 0.0, steps[-1], tuple(steps), words)


def sizes(title: str, values: Iterable[float], words: Words = count) -> Scale:
    """An axis by decades, whose ticks are the sizes that were measured."""
    known = sorted(set(values))
    return Scale(title, known[0], known[-1], tuple(known), words, by_decades=True)


def decades(title: str, values: Iterable[float], words: Words = count) -> Scale:
    """An axis by decades, with round ticks on both sides of what was measured."""
    known = [value for value in values if value > 0]
    rounds = _rounds(min(known), max(known))
    told = rounds if len(rounds) <= MANY else [tick for tick in rounds if math.log10(tick) == round(math.log10(tick))]
    return Scale(f"{title}, by decades", rounds[0], rounds[-1], tuple(told), words, by_decades=True)


def _rounds(least: float, most: float) -> Sequence[float]:
    every = [one * 10.0**power for power in range(-6, 10) for one in ROUND]
    first = max(index for index, one in enumerate(every) if one <= least)
    last = min(index for index, one in enumerate(every) if one >= most)
    return [round(one, 9) for one in every[first : last + 1]]
