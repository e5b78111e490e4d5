"""What commands share: the REPO argument, --db, --json."""

import functools
import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import click

from desilt.cli.attempt import Interrupt
from desilt.cli.command import REPO, RepoArgument
from desilt.errors import BadRequest, DesiltError
from desilt.records import ledger, locks
from desilt.records.ledger import RunState
from desilt.repository.opening import repository_at
from desilt.repository.protocol import Repository

REPO_HELP = """REPO is a directory and a repository in it, DIRECTORY#NAME (or lake:///DIRECTORY#NAME),
or s3://BUCKET/PREFIX#NAME with its database from --db or DESILT_DB. #NAME may be left out where there is only one.
On a lakeFS server it is lakefs://NAME, or lakefs+https://HOST/NAME, with the keys that lakectl has.
An Icechunk repository is icechunk+file:///DIRECTORY or icechunk+s3://BUCKET/PREFIX."""

REPEATABLE = ("plan", "run", "sweep", "restore", "purge", "pins", "simulate", "fsck", "explain")

Command = Callable[..., None]


db_option = click.option(
    "--db",
    envvar="DESILT_DB",
    metavar="URL",
    help="The lake's database, where it is not in the directory itself. On a lakeFS server, and of an "
    "Icechunk repository: where desilt keeps its own records.  [~/.local/state/desilt/records.db]",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a line.")


def with_repository(command: Command) -> Command:
    """Open REPO before, close it after; the command gets a Repository."""

    @click.argument(REPO, cls=RepoArgument)
    @db_option
    @json_option
    @functools.wraps(command)
    def wrapped(repo: str, db: str | None, **rest: Any) -> None:
        with repository_at(repo, db=db) as repository:
            try:
                check_kind(repository)
                command(repository, **rest)
            except BaseException:
                note_way_on(repository, repo)
                raise

    wrapped.__doc__ = f"{inspect.cleandoc(command.__doc__ or '')}\n\n{REPO_HELP}"
    return wrapped


def check_kind(repository: Repository) -> None:
    """Refuse all commands of a job, or of a group, that cannot be given to a repository of this kind."""
    for word in click.get_current_context().command_path.split():
        if reason := repository.refuses.get(word):
            raise BadRequest(reason)


def pairs(_context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """``k=v`` options as a dict."""
    found = {}
    for value in values:
        key, equals, text = value.partition("=")
        if not key or not equals:
            raise click.BadParameter(f"{value!r} is not KEY=VALUE")
        found[key] = text
    return found


metadata_option = click.option("--meta", multiple=True, callback=pairs, metavar="KEY=VALUE", help="May be repeated.")


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
    with repository.records.read() as tx:
        if locks.holder(tx, repository.uid) is not None:
            return None
        rows = ledger.every(tx, repository.uid)
    return next((row.id for row in rows if row.state is RunState.SWEEPING), None)
