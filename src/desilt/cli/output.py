"""How results look: tables for people, plain lines for pipes, JSON for programs."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import click

from desilt.cli.tables import show_table
from desilt.errors.base import told

Row = Mapping[str, Any]


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


def emit_one(row: Row, *, as_json: bool) -> None:
    """One thing, field by field."""
    if as_json:
        click.echo(json_line(row))
        return
    width = max(len(name) for name in row)
    for name, value in row.items():
        click.echo(f"{name:<{width}}  {shown(value)}")


def one_line(text: str) -> str:
    """A document of JSON on one line."""
    return json.dumps(json.loads(text), ensure_ascii=False)


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
