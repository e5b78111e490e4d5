"""Tables as wide as the terminal: what matters least is left out first, and what is typed again is never cut."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import click
from rich.cells import cell_len

from desilt.cli.verbosity import is_quiet

if TYPE_CHECKING:
    from rich.console import Console

Row = Mapping[str, Any]
GAP = 2  # between columns, and before the first
WHOLE = ("run", "commit", "id", "hold", "address")  # what is typed again
NUMBERS = (
    "size",
    "files",
    "with others",
    "would go",
    "freed later",
    "added, and still there",
    "removed",
    "entries",
    "objects",
    "bytes",
    "staged",
    "alone",
    "reaches",
    "objects reached",
    "so far",
)
LEAST = (
    "objects reached",
    "started",
    "created",
    "made",
    "oldest",
    "so far",
    "planned",
    "freed later",
    "staged",
    "kind",
    "until",
    "objects",
    "size",
)
"""Columns that a narrow terminal is not shown, the first first; `--json` has all."""
SHORTER = {"commit": 12}
"""What may be typed in part, and is told so where there is no room for the whole."""
FEW = 2  # columns that are always shown


def show_table(rows: Iterable[Row], columns: Sequence[str], *, empty: str = "", least: Sequence[str] = ()) -> None:
    """A table, wherever it is printed; ``least`` are columns that matter less than all others."""
    from desilt.cli.output import shown

    out = console()
    cells: dict[str, list[str]] = {column: [] for column in columns}
    for row in rows:
        for column in columns:
            value = row[column]
            cells[column].append(f"{value:,}" if type(value) is int else shown(value))
    if not columns or not cells[columns[0]]:
        if empty and not is_quiet():
            click.echo(empty, err=True)
        return
    print_table(out, fitting(cells, out.width, least))


def fitting(cells: Mapping[str, list[str]], width: int, first: Sequence[str] = ()) -> dict[str, list[str]]:
    """As many columns as there is room for."""
    found = {column: some for column, some in cells.items() if column or any(some)}
    if _width(map(_natural, found.items())) > width:
        found = {column: [one[: SHORTER.get(column)] for one in some] for column, some in found.items()}
    for least in (*first, *LEAST):
        if _width(map(_natural, found.items())) <= width or len(found) <= FEW:
            break
        found.pop(least, None)
    return found


def print_table(out: "Console", cells: Mapping[str, list[str]]) -> None:
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    widths = {column: _natural((column, some)) for column, some in cells.items()}
    wide = _width(widths.values()) > out.width
    kept = wide and any(column in WHOLE for column in cells)
    least = {
        column: widths[column]
        if column in WHOLE
        else _longest(word for text in (column, *some) for word in text.split())
        for column, some in cells.items()
    }
    if kept:
        out.width = max(out.width, _width(least.values()))
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
    for column in cells:
        fixed = widths[column] if kept and column in WHOLE else None
        side: Literal["left", "right"] = "right" if column in NUMBERS else "left"
        table.add_column(column, justify=side, width=fixed, min_width=least[column] if kept else None)
    for row in zip(*cells.values(), strict=True):
        table.add_row(*map(Text, row))
    out.print(Padding(table, (0, 0, 0, GAP), expand=False))


def console() -> "Console":
    from rich.console import Console  # takes as long to load as a small lake takes to list

    if os.environ.get("NO_COLOR"):  # of which rich takes the colours alone away
        return Console(highlight=False, markup=False, soft_wrap=True, color_system=None)
    return Console(highlight=False, markup=False, soft_wrap=True)


def _natural(column: tuple[str, list[str]]) -> int:
    name, some = column
    return _longest([name, *some])


def _longest(texts: Iterable[str]) -> int:
    return max(map(cell_len, texts), default=0)


def _width(columns: Iterable[int]) -> int:
    return sum(GAP + column for column in columns)
