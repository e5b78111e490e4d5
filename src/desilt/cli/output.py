"""How results look: tables for people, plain lines for pipes, JSON for programs."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import click
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

Row = Mapping[str, Any]
NUMBERS = ("size", "entries", "objects", "bytes", "staged", "alone", "reaches", "objects reached")


def console() -> Console:
    return Console(highlight=False, markup=False, soft_wrap=True)


def emit(rows: Iterable[Row], columns: Sequence[str], *, as_json: bool, empty: str = "") -> None:
    """Rows: one JSON object a line, or a table of ``columns`` on a terminal, or tab-separated lines elsewhere."""
    if as_json:
        for row in rows:
            click.echo(json.dumps(row, default=plain, ensure_ascii=False))
    elif not sys.stdout.isatty():
        for row in rows:
            click.echo("\t".join(shown(row[column]) for column in columns))
    else:
        show_table(rows, columns, empty=empty)


def show_table(rows: Iterable[Row], columns: Sequence[str], *, empty: str = "") -> None:
    """A table for people, wherever it is printed."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        table.add_column(column, justify="right" if column in NUMBERS else "left")
    for row in rows:
        table.add_row(*(Text(shown(row[column])) for column in columns))
    if table.row_count:
        console().print(Padding(table, (0, 0, 0, 2), expand=False))
    elif empty:
        click.echo(empty, err=True)


def emit_one(row: Row, *, as_json: bool) -> None:
    """One thing, field by field."""
    if as_json:
        click.echo(json.dumps(row, default=plain, ensure_ascii=False))
        return
    width = max(len(name) for name in row)
    for name, value in row.items():
        click.echo(f"{name:<{width}}  {shown(value)}")


def done(text: str, row: Row, *, as_json: bool) -> None:
    """What a command did: a sentence, or the same as JSON."""
    click.echo(json.dumps(row, default=plain, ensure_ascii=False) if as_json else text)


def shown(value: object) -> str:
    """A value on one line, with nothing in it that a terminal would obey."""
    if isinstance(value, datetime):
        return when(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={shown(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return " ".join(shown(item) for item in value)
    text = "" if value is None else str(value)
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def plain(value: object) -> object:
    """What JSON has no word for."""
    return when(value, precise=True) if isinstance(value, datetime) else str(value)


def when(moment: datetime, *, precise: bool = False) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if precise else "%Y-%m-%d %H:%M:%S")
