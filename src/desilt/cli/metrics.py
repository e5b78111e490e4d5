"""`--metrics FILE`: what a command came to, for those who watch."""

import functools
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from desilt.cli.files import to_be_written
from desilt.errors import DesiltError
from desilt.repository.protocol import Repository
from desilt.runs.metrics import metrics
from desilt.runs.report import Report

Command = Callable[..., None]
REPORTS, CODES = "desilt.reports", "desilt.codes"


def with_metrics(command: Command) -> Command:
    """Write figures into a file, however the command ends."""

    @click.option(
        "--metrics",
        "target",
        type=click.Path(dir_okay=False, path_type=Path),
        callback=to_be_written,
        metavar="FILE",
        help="Write figures of it for Prometheus: a .prom file for the textfile collector.",
    )
    @functools.wraps(command)
    def wrapped(repository: Repository, *values: Any, target: Path | None, **rest: Any) -> None:
        code = 1
        try:
            command(repository, *values, **rest)
            code = 0
        except click.exceptions.Exit as leaving:
            code = leaving.exit_code
            raise
        except DesiltError as error:
            code = error.exit_code
            raise
        finally:
            if target is not None:
                written(target, repository, code)

    return wrapped


def note(*reports: Report) -> None:
    """What a command has to tell."""
    click.get_current_context().meta.setdefault(REPORTS, []).extend(reports)


def note_codes(codes: dict[str, int]) -> None:
    """How each of several jobs ended."""
    click.get_current_context().meta.setdefault(CODES, {}).update(codes)


def written(target: Path, repository: Repository, code: int) -> None:
    """What keeps figures from being written must not hide what the command has to say."""
    try:
        write(target, repository, code)
    except (DesiltError, OSError) as reason:
        click.echo(f"warning: {target} was not written: {reason}", err=True)


def write(target: Path, repository: Repository, code: int) -> None:
    """Whole or not at all: somebody may be reading it."""
    context = click.get_current_context()
    reports: list[Report] = context.meta.get(REPORTS, [])
    jobs = [report.job for report in reports[-1:]] if context.meta.get(CODES) is None else []
    codes = context.meta.get(CODES, {}) | dict.fromkeys(jobs or [command_of(context)], code)
    text = metrics(repository, reports, codes)
    descriptor, name = tempfile.mkstemp(dir=target.absolute().parent, prefix=f".{target.name}.")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    Path(name).chmod(0o644)  # whoever collects it is somebody else
    Path(name).replace(target)


def command_of(context: click.Context) -> str:
    """The word after `desilt`."""
    above = context
    while above.parent is not None and above.parent.parent is not None:
        above = above.parent
    return str(above.info_name)
