"""A command line, run: its exit code, errors as one line, Ctrl-C among them."""

import io
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import click
from click.shell_completion import shell_complete

from desilt.errors.base import BadRequest, DesiltError, sentence

COMPLETING = "_DESILT_COMPLETE"
STOPPED = 130  # as shells have it: 128, and the number of SIGINT


@dataclass(slots=True)
class Interrupt:
    """Whether Ctrl-C was pressed, and how to go on after it."""

    happened: bool = False
    way_on: str = ""


def run(group: click.Group, arguments: list[str] | None = None) -> int:
    """Run a command line; its exit code. Anything desilt means to say is one line on stderr."""
    if instruction := os.environ.get(COMPLETING):  # it is a shell that asks
        return shell_complete(group, {}, "desilt", COMPLETING, instruction)
    code = STOPPED
    can_say_anything()
    with interruptible() as interrupt:
        try:
            code = attempt(group, sys.argv[1:] if arguments is None else arguments, interrupt)
        except BaseException:
            if not interrupt.happened:
                raise
    if interrupt.happened:
        return complain(f"stopped; what was done so far stays done{interrupt.way_on}", STOPPED)
    return code


def can_say_anything() -> None:
    """A terminal that lacks a character is shown how it is written; nothing fails for that."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and (stream.encoding or "").lower().replace("-", "") != "utf8":
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """In the block, Ctrl-C ends whoever works for us and is raised; nothing is heard of what fails because of that."""
    interrupt, before, stderr = Interrupt(), signal.getsignal(signal.SIGINT), sys.stderr

    def stop(_number: int, _frame: FrameType | None) -> None:
        for workers in at_work():
            workers.stop(at_once=interrupt.happened)
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
            for workers in at_work():
                workers.end()
            sys.stderr = stderr
            logging.disable(logging.NOTSET)
            signal.signal(signal.SIGINT, before)


def at_work() -> list[Any]:
    """The modules that have started others to work for them, of those that were loaded at all."""
    names = ("desilt.executors.session", "desilt.executors.processes")
    return [sys.modules[name] for name in names if name in sys.modules]


def attempt(group: click.Group, words: list[str], interrupt: Interrupt) -> int:
    try:
        colour = False if os.environ.get("NO_COLOR") else None  # None: where there is a terminal
        with group.make_context("desilt", words, obj=interrupt, color=colour) as context:
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
        what = f"{error.filename or 'the system'}: {error.strerror}"
        return complain(f"{what}; mend that, then give the same command again", 1)


def complain(text: str, code: int) -> int:
    line = " ".join(sentence(text).split())
    click.echo(f"error: {line}".encode(errors="backslashreplace"), err=True)
    return code
