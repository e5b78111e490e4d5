"""`desilt lake` commands about commits: commit, log, show, diff, merge, revert, reset."""

import getpass
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from typing import Any

import click

from desilt.cli.command import DesiltCommand
from desilt.cli.common import metadata_option, with_repository
from desilt.cli.complete import refs as refs_known
from desilt.cli.graph import draw
from desilt.cli.lake.at_once import may_drop
from desilt.cli.output import done, emit, emit_one, json_line, shown
from desilt.domain.history import Commit
from desilt.domain.units import many
from desilt.lake.merge import STRATEGIES, Strategy
from desilt.lake.repository import LakeRepository
from desilt.lake.views import PathChange

message_option = click.option("-m", "--message", default="", help="What the commit is for.")
committer_option = click.option("--committer", default=lambda: user(), help="By default, the user's name.")


def user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no such user, as in a bare container
        return ""


@click.command(cls=DesiltCommand)
@with_repository
@may_drop
@click.argument("branch", shell_complete=refs_known)
@click.option("-m", "--message", required=True, help="What the commit is for.")
@metadata_option
@committer_option
@click.option("--allow-empty", is_flag=True, help="Commit even if nothing is staged.")
def commit(
    repository: LakeRepository,
    branch: str,
    message: str,
    meta: dict[str, str],
    committer: str,
    allow_empty: bool,
    as_json: bool,
) -> None:
    """Commit what is staged on BRANCH."""
    made = repository.commit(branch, message, committer=committer, metadata=meta, allow_empty=allow_empty)
    done(f"Committed {made.id[:12]} on {branch}", asdict(made), as_json=as_json)


@click.command(cls=DesiltCommand)
@with_repository
@click.argument("ref", required=False, shell_complete=refs_known)
@click.option("--all", "everything", is_flag=True, help="From every branch and tag, not from one ref.")
@click.option("--graph", is_flag=True, help="Draw the commit graph.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many commits.")
def log(
    repository: LakeRepository, ref: str | None, everything: bool, graph: bool, limit: int | None, as_json: bool
) -> None:
    """Show the commits that REF (by default the default branch) descends from, newest first."""
    names: dict[str, list[str]] = {}
    for name, target in refs_of(repository):
        names.setdefault(target, []).append(name)
    tips = list(names) if everything else [ref or repository.default_branch]
    found = islice(repository.log(*tips), limit)
    if graph and not as_json:
        for line in draw(list(found), names):
            click.echo(line)
        return
    emit((commit_row(one, names) for one in found), ["commit", "created", "message", "refs"], as_json=as_json)


@click.command(cls=DesiltCommand)
@with_repository
@click.argument("ref", shell_complete=refs_known)
def show(repository: LakeRepository, ref: str, as_json: bool) -> None:
    """Show the commit at REF."""
    found = asdict(repository.resolve(ref).commit)
    if found["was"] is None and not as_json:
        del found["was"]  # its history was never edited
    emit_one(found, as_json=as_json)


@click.command(cls=DesiltCommand)
@with_repository
@click.argument("left", shell_complete=refs_known)
@click.argument("right", required=False, shell_complete=refs_known)
@click.option("--since-base", is_flag=True, help="Only what RIGHT changed since the two met.")
@click.option("--gone", is_flag=True, help="Compare hidden entries too, whose objects a run has marked.")
def diff(repository: LakeRepository, left: str, right: str | None, since_base: bool, gone: bool, as_json: bool) -> None:
    """Show what turns commit LEFT into RIGHT; with one branch alone, what is staged on it."""
    changes = (
        repository.diff(left, right, since_base=since_base, gone=gone)
        if right
        else repository.uncommitted(left, gone=gone)
    )
    print_changes(changes, as_json=as_json)


@click.command(cls=DesiltCommand)
@with_repository
@click.argument("source", shell_complete=refs_known)
@click.argument("branch", shell_complete=refs_known)
@click.option("--strategy", type=click.Choice(STRATEGIES), help="Who wins where both sides changed a path.")
@click.option("--base", metavar="REF", help="Bring what changed since this commit; else, since the two histories met.")
@message_option
@metadata_option
@committer_option
def merge(
    repository: LakeRepository,
    source: str,
    branch: str,
    strategy: Strategy | None,
    base: str | None,
    message: str,
    meta: dict[str, str],
    committer: str,
    as_json: bool,
) -> None:
    """Merge SOURCE, a ref, into BRANCH. Conflicts are listed, and nothing is changed."""
    made = repository.merge(
        source, branch, message=message, committer=committer, metadata=meta, strategy=strategy, base=base
    )
    if made is None:
        done(f"{branch} has all of {source} already", {"merged": False}, as_json=as_json)
    else:
        done(f"Merged {source} into {branch} as {made.id[:12]}", {"merged": True, **asdict(made)}, as_json=as_json)


@click.command(cls=DesiltCommand)
@with_repository
@click.argument("branch", shell_complete=refs_known)
@click.argument("ref", shell_complete=refs_known)
@click.option("--parent", type=click.IntRange(min=1), help="For a merge: the parent to go back to.")
@message_option
@committer_option
def revert(
    repository: LakeRepository, branch: str, ref: str, parent: int | None, message: str, committer: str, as_json: bool
) -> None:
    """Take back on BRANCH what the commit at REF did, by a new commit."""
    made = repository.revert(branch, ref, parent=parent, message=message, committer=committer)
    done(f"Reverted {ref} on {branch} as {made.id[:12]}", asdict(made), as_json=as_json)


@click.command(cls=DesiltCommand)
@with_repository
@may_drop
@click.argument("branch", shell_complete=refs_known)
@click.option("--all", "everything", is_flag=True, help="Everything staged on the branch.")
@click.option("--prefix", help="What is staged below a prefix.")
@click.option("--path", help="What is staged at one path.")
def reset(
    repository: LakeRepository, branch: str, everything: bool, prefix: str | None, path: str | None, as_json: bool
) -> None:
    """Forget staged changes on BRANCH: --all, below a --prefix, or at one --path."""
    if sum((everything, prefix is not None, path is not None)) != 1:
        raise click.UsageError("say what to forget: one of --all, --prefix or --path")
    count = repository.reset(branch, prefix=prefix, path=path)
    done(f"Forgot {many(count, 'staged change')} on {branch}", {"forgotten": count}, as_json=as_json)


def refs_of(repository: LakeRepository) -> Iterator[tuple[str, str]]:
    yield from ((found.name, found.head) for found in repository.branches())
    yield from ((f"tag: {found.name}", found.target) for found in repository.tags())


def commit_row(one: Commit, names: dict[str, list[str]]) -> dict[str, Any]:
    row = asdict(one)
    return {**row, "commit": one.id, "created": one.created_at, "refs": names.get(one.id, [])}


def print_changes(changes: Iterator[PathChange], *, as_json: bool) -> None:
    marks = {"added": "+", "removed": "-", "changed": "~"}
    for change in changes:
        if as_json:
            click.echo(json_line({"kind": change.kind, "path": change.path}))
        else:
            click.echo(f"{marks[change.kind]} {shown(change.path)}")
