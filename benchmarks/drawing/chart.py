"""A drawing of panels under one title, with a legend for all of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from drawing.bars import Bars
from drawing.lines import Lines
from drawing.svg import WIDTH, Box, document, line, rect, tag, text, wide

EDGE = 24.0
GUTTER = 28.0
HEAD = 64.0
ROW = 20.0  # of a legend
Panel = Lines | Bars


@dataclass(frozen=True, slots=True)
class Key:
    """What a colour stands for."""

    name: str
    colour: str
    is_line: bool = True
    dashed: bool = False


def chart(title: str, about: str, keys: Sequence[Key], rows: Sequence[Sequence[Panel]], height: float = 250.0) -> str:
    """Rows of panels that share the width; those of bars are as high as their bars."""
    legend, y = _legend(keys)
    drawn = [legend]
    for row in rows:
        high = max(panel.height if isinstance(panel, Bars) else height for panel in row)
        wide_each = (WIDTH - 2 * EDGE - GUTTER * (len(row) - 1)) / len(row)
        for number, panel in enumerate(row):
            drawn.append(panel.drawn(Box(EDGE + number * (wide_each + GUTTER), y, wide_each, high)))
        y += high + 16
    return document(title, about, y, "".join(drawn))


def _legend(keys: Sequence[Key]) -> tuple[str, float]:
    """The keys in as many rows as they need, and where they end."""
    drawn, x, y = list[str](), EDGE, HEAD + 12
    for key in keys:
        icon = 30 if key.is_line else 21
        takes = icon + wide(key.name, 12.5) + 18
        if x > EDGE and x + takes > WIDTH - EDGE:
            x, y = EDGE, y + ROW
        if key.is_line:
            drawn.append(line((x, y - 4), (x + 22, y - 4), f"open s-{key.colour}{' dash' if key.dashed else ''}"))
            drawn.append(tag("circle", cx=x + 11, cy=y - 4, r=3.5, class_=f"f-{key.colour}"))
        else:
            drawn.append(rect(Box(x, y - 10, 14, 12), f"f-{key.colour}", rx=2))
        drawn.append(text(x + icon, y, key.name, "f-ink"))
        x += takes
    return "".join(drawn), (y + 26 if keys else HEAD + 8)
