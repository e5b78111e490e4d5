"""What commands share: the REPO argument, --db, --json, and errors as one line."""

import functools
import inspect
import os
import sys
from collections.abc import Callable
from typing import Any

import click

from desilt.errors import BadRequest, DesiltError
from desilt.lake.lake import Lake, locate

REPO_HELP = """REPO is a directory and a repository in it, DIRECTORY#NAME (or lake:///DIRECTORY#NAME),
or s3://BUCKET/PREFIX#NAME with its database from --db or DESILT_DB. #NAME may be left out where there is only one."""

Command = Callable[..., None]

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
            command(lake.repository(location.repository), **rest)
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


def run(group: click.Group, arguments: list[str] | None = None) -> int:
    """Run a command line; its exit code. Anything desilt means to say is one line on stderr."""
    try:
        words = sys.argv[1:] if arguments is None else arguments
        with group.make_context("desilt", words) as context:
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
        return complain("stopped; what was done so far stays done", 130)
    except BrokenPipeError:  # the reader of our output went away
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return complain(f"{error.filename or 'the system'}: {error.strerror}", 1)


def complain(text: str, code: int) -> int:
    line = " ".join(text.split())
    click.echo(f"error: {line}".encode(errors="backslashreplace"), err=True)
    return code
