"""The commit graph, drawn in text: one commit a line, newest first, a lane for each line of descent.

:func:`draw` shows commits as they are, :func:`draw_change` what an expiration does to them: signs tell the fates
apart, and colours say the same again. Of a message the first line is shown, as far as it fits beside the rest.
"""

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

import click
from rich.cells import cell_len, set_cell_size

from desilt.cli.output import shown, when
from desilt.domain.history import Commit
from desilt.domain.units import many
from desilt.render import lanes
from desilt.render.lanes import LaneRow, Spot
from desilt.runs.history import FILE, GONE, Dot, Fate, HistoryChange

LINES = 60  # of a change, both pictures together; the second gets no more than half of them
SIGNS = {Fate.KEPT: "●", Fate.POINTED: "◆", Fate.EDITED: "✎", Fate.ABANDONED: "○", Fate.RELEASED: "◌"}
COLOURS = {
    Fate.KEPT: "green",
    Fate.POINTED: "cyan",
    Fate.EDITED: "yellow",
    Fate.ABANDONED: "bright_black",
    Fate.RELEASED: "red",
}
RUN, DELETED = "┊", "✗"  # many commits on one line; a ref that goes
COLUMNS = 100  # where there is no terminal to ask


def draw(commits: Sequence[Commit], names: Mapping[str, Sequence[str]], *, width: int | None = None) -> Iterator[str]:
    """``commits`` with children before parents, labelled with the ``names`` of the refs on them."""
    width = width or _columns()
    rows = lanes.rows((commit.id, commit.parents) for commit in commits)
    for commit, row in zip(commits, rows, strict=True):
        yield from _lines(row, "●", _label(commit, names.get(commit.id, ()), _room(row, width)))


def draw_change(change: HistoryChange, *, colour: bool | None = None, width: int | None = None) -> Iterator[str]:
    """History before and after, and what the signs mean; in colour on a terminal, unless told."""
    colour, width = sys.stdout.isatty() if colour is None else colour, width or _columns()
    all_before, all_after = lanes.before(change), lanes.after(change)
    after = _picture(all_after, change, LINES // 2, width, colour=colour, edited=True)
    before = _picture(all_before, change, LINES - len(after), width, colour=colour)
    yield _title("Before", len(all_before), colour)
    yield from before
    yield ""
    yield _title("After", len(all_after), colour)
    yield from after
    yield ""
    yield _legend(change, colour)


def _columns() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else COLUMNS


def _picture(
    spots: Sequence[Spot], change: HistoryChange, most: int, width: int, *, colour: bool, edited: bool = False
) -> list[str]:
    """The lines of one picture; fewer commits where lines between lanes take the room."""
    folded, tried = lanes.folded(spots), most
    while True:
        near = lanes.nearest(folded, most=tried, deleted=change.deleted)
        lines = _drawn(near, change, width, colour=colour, edited=edited)
        if len(lines) <= most or tried == 1:
            break
        tried = max(min(len(near) - 1, len(near) * most // len(lines)), 1)
    if left := lanes.shown(folded) - lanes.shown(near):
        lines.append(f"… {many(left, 'commit')} further from what changes left out; {FILE} of the run has all")
    return lines


def _drawn(spots: Sequence[Spot], change: HistoryChange, width: int, *, colour: bool, edited: bool) -> list[str]:
    lines: list[str] = []
    for spot, row in zip(spots, lanes.rows((spot.id, spot.parents) for spot in spots), strict=True):
        sign = SIGNS[spot.fate] if len(spot.dots) == 1 else RUN
        words = _many(spot)
        if len(spot.dots) == 1:
            words = _one(spot, change, colour, edited, _room(row, width))
        if colour:
            sign = click.style(sign, fg=COLOURS[spot.fate], bold=spot.fate not in GONE)
            words = click.style(words, dim=True) if spot.fate in GONE else words
        lines += _lines(row, sign, words)
    return lines


def _one(spot: Spot, change: HistoryChange, colour: bool, edited: bool, room: int) -> str:
    dot = spot.dots[0]
    names = [_ref(name, name in change.deleted, colour) for name in spot.refs]
    was = f"  · was on {_short(dot.before)}" if edited and dot.fate is Fate.EDITED else ""
    return _told(dot.id, names, dot.message, f"{_when(dot)}{was}{_cut(spot)}", room)


def _told(commit: str, names: Sequence[str], message: str, rest: str, room: int) -> str:
    """A commit in ``room`` columns: where they are too few, its message is cut, and nothing else is."""
    refs = f"({', '.join(names)}) " if names else ""
    head, tail = f"{commit[:12]}  {refs}", f"  · {rest}"
    words = shown("".join(message.strip().splitlines()[:1]))
    left = max(room - cell_len(click.unstyle(head + tail)), 1)
    if cell_len(words) > left:
        words = f"{set_cell_size(words, left - 1).rstrip()}…"
    return f"{head}{words}{tail}"


def _room(row: LaneRow, width: int) -> int:
    """The columns that the lanes leave to the words beside them."""
    return width - 2 * max(lane for lane, on in enumerate(row.used) if on) - 3


def _many(spot: Spot) -> str:
    oldest, newest = (_when(spot.dots[at])[:10] for at in (-1, 0))
    return f"… {many(len(spot.dots), 'commit')}, {spot.fate}  · {oldest} to {newest}{_cut(spot)}"


def _ref(name: str, deleted: bool, colour: bool) -> str:
    words = f"{shown(name)} {DELETED}" if deleted else shown(name)
    if not colour:
        return words
    return click.style(words, fg="red", strikethrough=True) if deleted else click.style(words, bold=True)


def _short(ids: Sequence[str]) -> str:
    return ", ".join(one[:12] for one in ids) or "nothing"


def _when(dot: Dot) -> str:
    try:
        made = datetime.fromisoformat(dot.created_at)
    except ValueError:
        return shown(dot.created_at)
    return when(made.astimezone(UTC) if made.tzinfo else made)


def _title(word: str, commits: int, colour: bool) -> str:
    return f"{click.style(word, bold=True) if colour else word}: {many(commits, 'commit')}"


def _legend(change: HistoryChange, colour: bool) -> str:
    words = []
    for fate, sign in SIGNS.items():
        if count := change.count(fate):
            words.append(f"{click.style(sign, fg=COLOURS[fate]) if colour else sign} {fate} {count:,}")
    if change.deleted:
        words.append(f"{DELETED} ref deleted {len(change.deleted):,}")
    return "   ".join(words)


def _cut(spot: Spot) -> str:
    parents = f"{spot.cut:,} parents" if spot.cut > 1 else "parent"
    return f"  · {parents} left out" if spot.cut else ""


def _lines(row: LaneRow, sign: str, words: str) -> Iterator[str]:
    """The line of a commit, below those of the lanes that join it and above those of the lanes it opens."""
    used = list(row.used)
    for lane in row.joined:
        used[lane] = True
    for lane in row.joined:
        yield _bridge(used, row.lane, lane, "╯")
        used[lane] = False
    cells = (sign if lane == row.lane else "│" if on else " " for lane, on in enumerate(used))
    yield f"{' '.join(cells).rstrip()}  {words}"
    for way in row.ways[1:]:
        if way.lane == len(used):
            used.append(True)
        used[way.lane] = True
        yield _bridge(used, row.lane, way.lane, "╮" if way.new else "┤")


def _bridge(used: Sequence[bool], own: int, other: int, end: str) -> str:
    first, last = sorted((own, other))
    cells = []
    for lane, on in enumerate(used):
        if lane in (first, last):
            cell = "├" if lane == first else end if lane == other else "┤"
        elif first < lane < last:
            cell = "┼" if on else "─"
        else:
            cell = "│" if on else " "
        cells.append(cell + ("─" if first <= lane < last else " "))
    return "".join(cells).rstrip()


def _label(commit: Commit, names: Sequence[str], room: int) -> str:
    called = [shown(name.replace("tag: ", "tag ", 1)) for name in names]  # as they are called in a change
    return _told(commit.id, called, commit.message, when(commit.created_at), room)
