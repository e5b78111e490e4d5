"""Lines between two axes: one for each thing that was measured as something grew."""

from collections.abc import Sequence
from dataclasses import dataclass

from drawing.scales import Scale
from drawing.svg import Box, line, tag, text

APART = 15.0  # pixels between two words at the ends of lines
LEFT, TOP, BELOW = 46.0, 26.0, 42.0  # pixels for what is written around the axes
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Series:
    """One line; ``ends`` is written where it ends, ``between`` are the least and most around each point."""

    colour: str
    points: tuple[Point, ...]
    ends: str = ""
    dashed: bool = False
    between: tuple[Point, ...] = ()


@dataclass(frozen=True, slots=True)
class Level:
    """A value to compare with, drawn across the other axis."""

    value: float
    words: str
    across: bool = True  # from left to right; else from top to bottom


@dataclass(frozen=True, slots=True)
class Lines:
    """A panel of lines; what its upright axis is of stands above it."""

    x: Scale
    y: Scale
    series: tuple[Series, ...]
    levels: tuple[Level, ...] = ()
    room: float = 0.0  # pixels to the right, for the words at the ends

    def drawn(self, whole: Box) -> str:
        box = Box(whole.x + LEFT, whole.y + TOP, whole.width - LEFT - self.room, whole.height - TOP - BELOW)
        return "".join(
            [
                text(whole.x, whole.y + 8, self.y.title, "strong f-ink"),
                self._axes(box),
                *(self._level(box, level) for level in self.levels),
                *(self._band(box, one) for one in self.series if one.between),
                *(self._line(box, one) for one in self.series),
                self._ends(box),
            ]
        )

    def _place(self, box: Box, point: Point) -> Point:
        return box.x + box.width * self.x.at(point[0]), box.bottom - box.height * self.y.at(point[1])

    def _axes(self, box: Box) -> str:
        drawn = []
        for tick in self.y.ticks:
            y = box.bottom - box.height * self.y.at(tick)
            drawn.append(line((box.x, y), (box.right, y)))
            drawn.append(text(box.x - 8, y + 4, self.y.words(tick), "end f-soft"))
        for tick in self.x.ticks:
            x = box.x + box.width * self.x.at(tick)
            drawn.append(line((x, box.bottom), (x, box.bottom + 5), "hair s-soft"))
            drawn.append(text(x, box.bottom + 19, self.x.words(tick), "middle f-soft"))
        drawn.append(line((box.x, box.bottom), (box.right, box.bottom), "hair s-soft"))
        drawn.append(text(box.x + box.width / 2, box.bottom + 36, self.x.title, "middle f-soft"))
        return "".join(drawn)

    def _level(self, box: Box, level: Level) -> str:
        if level.across:
            y = box.bottom - box.height * self.y.at(level.value)
            return line((box.x, y), (box.right, y), "hair dash s-ink") + text(box.x + 6, y + 15, level.words, "f-ink")
        x = box.x + box.width * self.x.at(level.value)
        return line((x, box.y), (x, box.bottom), "hair dash s-ink") + text(x - 6, box.y + 12, level.words, "end f-ink")

    def _band(self, box: Box, one: Series) -> str:
        across = [point[0] for point in one.points]
        least = [self._place(box, (x, low)) for x, (low, _) in zip(across, one.between, strict=True)]
        most = [self._place(box, (x, high)) for x, (_, high) in zip(across, one.between, strict=True)]
        return tag("path", d=_path([*least, *reversed(most)]) + "Z", class_=f"band f-{one.colour}")

    def _line(self, box: Box, one: Series) -> str:
        places = [self._place(box, point) for point in one.points]
        kind = f"open s-{one.colour}{' dash' if one.dashed else ''}"
        dots = [tag("circle", cx=x, cy=y, r=3.5, class_=f"f-{one.colour}") for x, y in places]
        return tag("path", d=_path(places), class_=kind) + "".join(dots)

    def _ends(self, box: Box) -> str:
        """Words beside the last point of each line, moved apart where they would meet."""
        ends = [(self._place(box, one.points[-1]), one) for one in self.series if one.ends]
        drawn, above = [], float("-inf")
        for (x, y), one in sorted(ends, key=lambda end: end[0][1]):
            above = max(y + 4, above + APART)
            drawn.append(text(x + 9, above, one.ends, f"strong f-{one.colour}"))
        return "".join(drawn)


def _path(places: Sequence[Point]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
