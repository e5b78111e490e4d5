"""How much a command says besides its result: `-v` and `-q`, before a command's name or after it.

-v    what happens, stage by stage, as log lines on stderr; -vv more of it
-q    neither progress nor hints; results, warnings and errors only
"""

import logging
import sys
from collections.abc import Iterator

import click

from desilt.logs import formatter

VERBOSE, QUIET = "desilt.verbose", "desilt.quiet"
LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)


def with_verbosity(command: click.Command) -> None:
    """Give the command, and all below it, both options; twice is once."""
    for one in below(command):
        if any(option.name == "verbose" for option in one.params):
            continue
        one.params += [
            click.Option(
                ["-v", "--verbose"],
                count=True,
                expose_value=False,
                callback=louder,
                help="Log to stderr; -vv logs more.",
            ),
            click.Option(
                ["-q", "--quiet"], is_flag=True, expose_value=False, callback=quieter, help="No progress, no hints."
            ),
        ]


def below(command: click.Command) -> Iterator[click.Command]:
    yield command
    if isinstance(command, click.Group):
        for one in command.commands.values():
            yield from below(one)


def louder(context: click.Context, _option: click.Parameter, times: int) -> None:
    if not times or context.resilient_parsing:
        return
    if VERBOSE not in context.meta:
        listen(context.find_root())
    context.meta[VERBOSE] = min(context.meta.get(VERBOSE, 0) + times, len(LEVELS) - 1)
    logging.getLogger("desilt").setLevel(LEVELS[context.meta[VERBOSE]])


def quieter(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    context.meta[QUIET] = context.meta.get(QUIET, False) or wanted


def listen(context: click.Context) -> None:
    """Log lines go to stderr for as long as the command runs."""
    ours, handler = logging.getLogger("desilt"), logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter())
    ours.addHandler(handler)

    def stop() -> None:
        ours.removeHandler(handler)
        ours.setLevel(logging.NOTSET)

    context.call_on_close(stop)


def is_quiet() -> bool:
    """Whether nobody wants hints."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(QUIET))


def shows_progress() -> bool:
    """Whether signs of life are wanted: log lines are some already."""
    context = click.get_current_context(silent=True)
    return context is None or not (context.meta.get(QUIET) or context.meta.get(VERBOSE))
