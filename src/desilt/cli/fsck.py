"""`desilt fsck`: whether a repository is sound."""

from dataclasses import asdict
from typing import Any

import click

from desilt.cli.command import DesiltCommand
from desilt.cli.common import with_repository
from desilt.cli.output import json_line, shown
from desilt.cli.progress import Progress
from desilt.domain.units import many, size
from desilt.repository.findings import ERRORS, FACTS, Finding, Findings
from desilt.repository.protocol import Repository
from desilt.sstable.ranges import FOLDER as RANGES

SHOWN = 5  # findings of a kind; --json has more
WAYS_ON = {
    "missing-commit": "restore the database from a copy",
    "collected-commit": "restore the database from a copy",
    "corrupt-commit": "restore the database from a copy",
    "missing-table": "restore these files, below {tables}, from a copy of the objects",
    "condemned-table": "sweep nothing more; keep a copy of these files, below {tables}, and restore the database",
    "corrupt-table": "restore these files, below {tables}, from a copy of the objects",
    "missing-object": "restore the objects from a copy, or put the paths again",
    "wrong-size": "restore the objects from a copy, or put the paths again",
    "wrong-bytes": "restore the objects from a copy, or put the paths again",
    "stray-staging": "keep a copy of the database; these changes can no longer be committed",
    "commit-time": "jobs that go by age may misjudge these commits; restore the database from a copy",
    "newer-journal": "the database was restored from a copy; bring back what it lacks with `desilt lake recover`",
    "broken-journal": "restore these files, below _desilt/journal/, from a copy; if there is none, "
    "`desilt lake recover --give-up` begins the journal anew",
    "unknown-partition": "the database was restored from a copy; see `desilt lake recover`",
    "generation": "merges may choose a wrong base; restore the database from a copy",
}


@click.command(cls=DesiltCommand)
@with_repository
@click.option("--deep", is_flag=True, help="Read every object as well, and compare its MD5.")
def fsck(repository: Repository, deep: bool, as_json: bool) -> None:
    """Check every ref, commit, table, entry and object of REPO. Nothing is changed.

    Errors are things that should never be: an entry whose object is missing, a table that is damaged.
    Facts are worth knowing: what runs removed, and what no commit or branch holds.
    Exits with 0 if there is no error, with 1 if there is.
    """
    watch = FsckProgress()
    found = repository.fsck(deep=deep, progress=watch)
    watch.finish()
    if as_json:
        click.echo(json_line(document(repository, found)))
    else:
        show(repository, found)
    if not found.sound:
        raise click.exceptions.Exit(1)


class FsckProgress:
    """Progress that learns how much there is when the reading begins."""

    def __init__(self) -> None:
        self._progress: Progress | None = None

    def __call__(self, amount: int, total: int) -> None:
        self._progress = self._progress or Progress("Reading objects", total=total, in_bytes=True).begin()
        self._progress.advance(amount)

    def finish(self) -> None:
        if self._progress is not None:
            self._progress.finish()


def document(repository: Repository, found: Findings) -> dict[str, Any]:
    return {
        "repository": repository.name,
        "sound": found.sound,
        "deep": found.deep,
        "totals": asdict(found.totals),
        "counts": found.counts,
        "left_out": found.left_out,
        "findings": [{**asdict(one), "severity": one.severity} for one in found.findings],
    }


def show(repository: Repository, found: Findings) -> None:
    looked, a_lake = found.totals, repository.layout.tables == RANGES
    tables, place = (RANGES, "lake") if a_lake else (repository.uri, "repository")
    where = [f"{looked.inside:,} in the tables themselves"] if looked.inside else []
    where += [f"{looked.outside:,} outside the {place}"] if looked.outside else []
    click.echo(
        f"Checked {repository.name}: {looked.commits:,} commits, {looked.tables:,} tables, "
        f"{looked.entries:,} entries{' (' * bool(where)}{', '.join(where)}{')' * bool(where)}, "
        f"{looked.objects:,} objects of {size(looked.bytes)}{', every byte read' if found.deep else ''}"
    )
    for title, kinds in (("errors", ERRORS), ("facts", FACTS)):
        there = [kind for kind in kinds if kind in found.counts]
        for kind in there:
            click.echo(f"\n{title[:-1]}: {kind}, {found.counts[kind]:,} × {kinds[kind]}")
            for one in found.of(kind)[:SHOWN]:
                click.echo(f"  {about(one)}: {shown(one.fact)}" if one.fact else f"  {about(one)}")
            if found.counts[kind] > SHOWN:
                click.echo(f"  … and {found.counts[kind] - SHOWN:,} more; --json lists up to 1,000")
            if kind in WAYS_ON:
                click.echo(f"  → {WAYS_ON[kind].format(tables=tables)}")
    for text in found.left_out:
        click.echo(f"\nleft out: {text}")
    click.echo("\nSound: no errors." if found.sound else f"\nNot sound: {many(found.errors, 'error')}.")


def about(one: Finding) -> str:
    """What a finding is about, on one line."""
    words = dict(one.about)
    if "path" in words:
        words.pop("address", None)
        at = words.get("ref") or words.get("commit", "")
        where = f" at {shown(at)}" if at else ""
        return f"{shown(words['path'])}{where}{', staged' if 'staging' in words and 'ref' in words else ''}"
    return ", ".join(f"{name} {shown(value)}" for name, value in words.items() if name != "parent")
