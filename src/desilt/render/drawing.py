"""Lanes as lines and shapes: where each is in a drawing, in pixels. A template writes them down.

A drawing stands beside a list with a row for each commit, so a row is as high as a line of that list.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from desilt.render import lanes
from desilt.render.lanes import Spot
from desilt.runs.history import GONE, Fate

HEIGHT = 28  # of a row; the style has the same number
LANE, NARROW = 18.0, 6.0  # between two lanes: as a rule, and at least
ROOM = 216.0  # what all lanes share before they get narrow
COLOURS = 6  # of lanes, in the style
RUN = "run"  # the shape of several commits told as one; that of a single commit is named for its fate


@dataclass(frozen=True, slots=True)
class DrawnLine:
    """A line, by its classes in the style and its path."""

    kind: str
    path: str


@dataclass(frozen=True, slots=True)
class Shape:
    """What stands for a commit, by its middle."""

    kind: str
    x: float
    y: float
    spot: Spot


@dataclass(frozen=True, slots=True)
class Drawing:
    """Lines first, then what stands on them."""

    width: float
    height: int
    lines: tuple[DrawnLine, ...]
    shapes: tuple[Shape, ...]


def drawing(spots: Sequence[Spot], *, is_after: bool) -> Drawing:
    """The lanes of ``spots``, a row for each."""
    rows = list(lanes.rows((spot.id, spot.parents) for spot in spots))
    width = max((len(row.used) for row in rows), default=1)
    width = max([width, *(way.lane + 1 for row in rows for way in row.ways)])
    apart = max(min(LANE, ROOM / width), NARROW)
    place = {row.id: (row.lane, at) for at, row in enumerate(rows)}
    lines, shapes = list[DrawnLine](), list[Shape]()
    for spot, row, at in zip(spots, rows, range(len(rows)), strict=True):
        for way in row.ways:
            kind = f"lane c{way.lane % COLOURS}{_kind(spot, way.parent, is_after)}"
            lines.append(DrawnLine(kind, _path((row.lane, at), way.lane, place[way.parent], apart)))
        x, y, alone = _x(row.lane, apart), _y(at), len(spot.dots) == 1
        if is_after and spot.fate is Fate.EDITED and alone:
            lines.append(DrawnLine("was", f"M{x:g} {y:g}l9 9"))
            lines.append(DrawnLine("end", _cross(x + 10.5, y + 10.5)))
        shapes.append(Shape(spot.fate.split()[0] if alone else RUN, x, y, spot))
    return Drawing(_x(width - 1, apart) + 14, HEIGHT * len(rows), tuple(lines), tuple(shapes))


def _kind(spot: Spot, parent: str, is_after: bool) -> str:
    """What sets a line apart: it leads over commits that are left out, it will be cut, or nobody will see it."""
    if parent in spot.far:
        return " far"
    if not is_after and spot.fate is Fate.EDITED and parent not in spot.dots[-1].after:
        return " severed"
    return " faint" if spot.fate in GONE else ""


def _cross(x: float, y: float) -> str:
    return f"M{x - 2:g} {y - 2:g}l4 4m0 -4l-4 4"


def _path(child: tuple[int, int], lane: int, parent: tuple[int, int], apart: float) -> str:
    """From a commit into its lane, down that lane, and into the parent: bent between rows only."""
    (at, row), (end, last) = child, parent
    drawn = f"M{_x(at, apart):g} {_y(row):g}"
    if at != lane and row + 1 < last:
        drawn += _bend(at, lane, row, apart)
        at, row = lane, row + 1
    if at != end:
        drawn += f"V{_y(last - 1):g}" if row + 1 < last else ""
        return drawn + _bend(at, end, last - 1, apart)
    return f"{drawn}V{_y(last):g}"


def _bend(start: int, end: int, row: int, apart: float) -> str:
    middle = _y(row) + HEIGHT / 2
    return f"C{_x(start, apart):g} {middle:g} {_x(end, apart):g} {middle:g} {_x(end, apart):g} {_y(row + 1):g}"


def _x(lane: int, apart: float) -> float:
    return round(LANE / 2 + lane * apart, 2)


def _y(row: int) -> float:
    return HEIGHT * (row + 0.5)
