"""How results look: tables for people, plain lines for pipes, JSON for programs."""

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import click
from rich.cells import cell_len

from desilt.cli.verbosity import is_quiet
from desilt.errors.base import told

Row = Mapping[str, Any]
GAP = 2  # between columns, and before the first
WHOLE = ("run",)  # what is typed again is never cut: beside it, cells are as narrow as words allow, and no narrower
NUMBERS = (
    "size",
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
)


def emit(rows: Iterable[Row], columns: Sequence[str], *, as_json: bool, empty: str = "") -> None:
    """Rows: one JSON object a line, or a table of ``columns`` on a terminal, or tab-separated lines elsewhere."""
    if as_json:
        for row in rows:
            click.echo(json_line(row))
    elif not sys.stdout.isatty():
        for row in rows:
            click.echo("\t".join(shown(row[column]) for column in columns))
    else:
        show_table(rows, columns, empty=empty)


def show_table(rows: Iterable[Row], columns: Sequence[str], *, empty: str = "") -> None:
    """A table for people, wherever it is printed."""
    from rich.console import Console  # takes as long to load as a small lake takes to list
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    plain = None if os.environ.get("NO_COLOR") else "auto"
    out = Console(highlight=False, markup=False, soft_wrap=True, color_system=plain)
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
    cells = [[Text(shown(row[column])) for column in columns] for row in rows]
    widths: list[int | None] = [None] * len(columns)  # as the table likes
    if any(column in WHOLE for column in columns):
        texts = [[column, *(row[place].plain for row in cells)] for place, column in enumerate(columns)]
        if _width(map(_longest, texts)) > out.width:
            words = [_longest(word for text in some for word in text.split()) for some in texts]
            widths, out.width = [*words], max(out.width, _width(words))
    for column, width in zip(columns, widths, strict=True):
        table.add_column(column, justify="right" if column in NUMBERS else "left", width=width)
    for row in cells:
        table.add_row(*row)
    if table.row_count:
        out.print(Padding(table, (0, 0, 0, GAP), expand=False))
    elif empty and not is_quiet():
        click.echo(empty, err=True)


def _longest(texts: Iterable[str]) -> int:
    return max(map(cell_len, texts), default=0)


def _width(columns: Iterable[int]) -> int:
    return sum(column + GAP for column in columns) + GAP


def emit_one(row: Row, *, as_json: bool) -> None:
    """One thing, field by field."""
    if as_json:
        click.echo(json_line(row))
        return
    width = max(len(name) for name in row)
    for name, value in row.items():
        click.echo(f"{name:<{width}}  {shown(value)}")


def done(text: str, row: Row, *, as_json: bool) -> None:
    """What a command did: a sentence, or the same as JSON."""
    click.echo(json_line(row) if as_json else told(text))


def shown(value: object) -> str:
    """A value on one line, with nothing in it that a terminal would obey."""
    if isinstance(value, datetime):
        return when(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={shown(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return " ".join(shown(item) for item in value)
    text = "" if value is None else told(str(value))
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def json_line(row: object) -> str:
    """``row`` as JSON on one line; paths in it are told as anywhere."""
    return told(json.dumps(row, default=plain, ensure_ascii=False), escape="\\\\x")


def plain(value: object) -> object:
    """What JSON has no word for."""
    return when(value, precise=True) if isinstance(value, datetime) else str(value)


def when(moment: datetime, *, precise: bool = False) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if precise else "%Y-%m-%d %H:%M:%S")
