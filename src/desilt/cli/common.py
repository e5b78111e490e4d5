"""What commands share: the REPO argument, --db, --json, and errors as one line, Ctrl-C among them."""

import functools
import inspect
import io
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any

import click

from desilt import spark
from desilt.errors import BadRequest, DesiltError
from desilt.errors.base import sentence
from desilt.lake import ledger, locks
from desilt.lake.lake import Lake, locate
from desilt.lake.ledger import RunState
from desilt.lake.repository import Repository

REPO_HELP = """REPO is a directory and a repository in it, DIRECTORY#NAME (or lake:///DIRECTORY#NAME),
or s3://BUCKET/PREFIX#NAME with its database from --db or DESILT_DB. #NAME may be left out where there is only one."""

STOPPED = 130  # as shells have it: 128, and the number of SIGINT
REPEATABLE = ("plan", "run", "sweep", "restore", "purge", "pins", "simulate", "fsck", "explain")

Command = Callable[..., None]


@dataclass(slots=True)
class Interrupt:
    """Whether Ctrl-C was pressed, and how to go on after it."""

    happened: bool = False
    way_on: str = ""


db_option = click.option(
    "--db", envvar="DESILT_DB", metavar="URL", help="The lake's database, where it is not in the directory itself."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a line.")


def with_repository(command: Command) -> Command:
    """Open REPO before, close it after; the command gets a Repository."""

    @click.argument("repo")
    @db_option
    @json_option
    @functools.wraps(command)
    def wrapped(repo: str, db: str | None, **rest: Any) -> None:
        location = locate(repo, db=db)
        lake = Lake.open(location)
        try:
            repository = lake.repository(location.repository)
            try:
                command(repository, **rest)
            except BaseException:
                note_way_on(repository, repo)
                raise
        finally:
            lake.close()

    wrapped.__doc__ = f"{inspect.cleandoc(command.__doc__ or '')}\n\n{REPO_HELP}"
    return wrapped


def pairs(_context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """``k=v`` options as a dict."""
    found = {}
    for value in values:
        key, equals, text = value.partition("=")
        if not key or not equals:
            raise click.BadParameter(f"{value!r} is not KEY=VALUE")
        found[key] = text
    return found


def note_way_on(repository: Repository, repo: str) -> None:
    """After Ctrl-C: how a command on ``repo`` is gone on with, where the same command does that."""
    context = click.get_current_context()
    if not isinstance(context.obj, Interrupt) or not context.obj.happened or context.info_name not in REPEATABLE:
        return
    context.obj.way_on = "; to go on, give the same command again"
    if context.info_name in ("run", "sweep"):
        with suppress(DesiltError):
            if run_id := cut_off(repository):
                context.obj.way_on = f"; the same command finishes run {run_id}, as does `desilt sweep {repo} {run_id}`"


def cut_off(repository: Repository) -> str | None:
    """The run that began to sweep and is at it no longer."""
    with repository.database.read() as tx:
        if locks.holder(tx, repository.uid) is not None:
            return None
        rows = ledger.every(tx, repository.uid)
    return next((row.id for row in rows if row.state is RunState.SWEEPING), None)


def run(group: click.Group, arguments: list[str] | None = None) -> int:
    """Run a command line; its exit code. Anything desilt means to say is one line on stderr."""
    code = STOPPED
    with interruptible() as interrupt:
        try:
            code = attempt(group, sys.argv[1:] if arguments is None else arguments, interrupt)
        except BaseException:
            if not interrupt.happened:
                raise
    if interrupt.happened:
        return complain(f"stopped; what was done so far stays done{interrupt.way_on}", STOPPED)
    return code


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """In the block, Ctrl-C ends Spark and is raised; nothing is heard of what fails because of that."""
    interrupt, before, stderr = Interrupt(), signal.getsignal(signal.SIGINT), sys.stderr

    def stop(_number: int, _frame: FrameType | None) -> None:
        spark.stop(at_once=interrupt.happened)
        interrupt.happened = True
        logging.disable()
        sys.stderr = io.StringIO()
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread() or not callable(before):  # it may be ignored
        yield interrupt
        return
    signal.signal(signal.SIGINT, stop)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN if interrupt.happened else before)
        if interrupt.happened:
            spark.end()
            sys.stderr = stderr
            logging.disable(logging.NOTSET)
            signal.signal(signal.SIGINT, before)


def attempt(group: click.Group, words: list[str], interrupt: Interrupt) -> int:
    try:
        with group.make_context("desilt", words, obj=interrupt) as context:
            group.invoke(context)
        sys.stdout.flush()
        return 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as asked:
        click.echo(asked.format_message())
        return 0
    except DesiltError as error:
        return complain(str(error), error.exit_code)
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "desilt"
        return complain(f"{error.format_message()} (see `{where} --help`)", BadRequest.exit_code)
    except click.ClickException as error:
        return complain(error.format_message(), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return complain("stopped; what was done so far stays done", STOPPED)
    except BrokenPipeError:  # the reader of our output went away
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return complain(f"{error.filename or 'the system'}: {error.strerror}", 1)


def complain(text: str, code: int) -> int:
    line = " ".join(sentence(text).split())
    click.echo(f"error: {line}".encode(errors="backslashreplace"), err=True)
    return code
