"""Bars from the left, each of one part or of several, side by side."""

from dataclasses import dataclass

from drawing.lines import Level
from drawing.scales import Scale
from drawing.svg import Box, line, rect, text, wide

HIGH = 20.0  # of a bar
STEP = 28.0  # from one bar to the next
BETWEEN = 12.0  # more of it, between groups
LEAST = 0.8  # of a part: what is there is seen


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a bar; its words are shown where there is room."""

    value: float
    colour: str
    words: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar with its name before it and its sum behind it."""

    name: str
    parts: tuple[Part, ...]
    ends: str
    begins_group: bool = False


@dataclass(frozen=True, slots=True)
class Bars:
    """A panel of bars."""

    title: str
    x: Scale
    bars: tuple[Bar, ...]
    levels: tuple[Level, ...] = ()
    names: float = 120.0  # pixels for the names
    room: float = 64.0  # pixels to the right, for the sums

    @property
    def height(self) -> float:
        """What all bars take, with the axis below."""
        groups = sum(bar.begins_group for bar in self.bars[1:])
        return (22 if self.title else 0) + 18 * bool(self.levels) + STEP * len(self.bars) + BETWEEN * groups + 46

    def drawn(self, whole: Box) -> str:
        top = (22 if self.title else 0) + 18 * bool(self.levels)
        box = Box(whole.x + self.names, whole.y + top, whole.width - self.names - self.room, self.height - top - 46)
        drawn = [text(whole.x, whole.y + 8, self.title, "strong f-ink") if self.title else ""]
        for tick in self.x.ticks:
            x = box.x + box.width * self.x.at(tick)
            drawn.append(line((x, box.y), (x, box.bottom)))
            drawn.append(text(x, box.bottom + 17, self.x.words(tick), "middle f-soft"))
        drawn.append(text(box.x + box.width / 2, box.bottom + 35, self.x.title, "middle f-soft"))
        y = box.y + 4
        for number, bar in enumerate(self.bars):
            y += BETWEEN if number and bar.begins_group else 0
            drawn.append(self._bar(box, y, bar))
            y += STEP
        for level in self.levels:
            x = box.x + box.width * self.x.at(level.value)
            drawn.append(line((x, box.y - 6), (x, box.bottom), "hair dash s-ink"))
            ends = x + wide(level.words) > whole.right  # no room behind it
            drawn.append(text(x - 6 if ends else x + 6, box.y - 6, level.words, "end f-ink" if ends else "f-ink"))
        return "".join(drawn)

    def _bar(self, box: Box, y: float, bar: Bar) -> str:
        drawn, x = [text(box.x - 10, y + 14, bar.name, "end f-ink")], box.x
        for part in bar.parts:
            width = box.width * self.x.at(part.value)
            if width > 0:
                drawn.append(rect(Box(x, y, max(width - 1, LEAST), HIGH), f"f-{part.colour}", rx=2))
            if part.words and wide(part.words) + 8 <= width:
                drawn.append(text(x + width / 2, y + 14, part.words, "middle f-ink"))
            x += width
        drawn.append(text(x + 7, y + 14, bar.ends, "strong f-ink"))
        return "".join(drawn)
