"""Files that a command is given: to be read as text, or to be written."""

import os
from pathlib import Path
from typing import BinaryIO

import click

from desilt.errors import BadRequest


def decoded(file: BinaryIO) -> str:
    """What it says."""
    raw = file.read()
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise BadRequest(f"{label(file)}:{line}: this is not UTF-8; save the file as UTF-8") from None


def label(file: BinaryIO) -> str:
    """What it is called."""
    name = getattr(file, "name", "-")
    return name if isinstance(name, str) and name not in ("-", "<stdin>") else "stdin"


def to_be_written(_context: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    """Refused before minutes of work, not after."""
    if path is not None and not os.access(path.absolute().parent, os.W_OK | os.X_OK):
        raise click.BadParameter(f"{str(path)!r} cannot be written: there is no such directory, or it is closed to you")
    return path
