"""`desilt demo`: a small lake, built, shown, its garbage collected."""

import json
import tempfile
from dataclasses import asdict
from datetime import datetime
from itertools import islice
from pathlib import Path

import click

from desilt.cli.command import DesiltCommand
from desilt.cli.common import db_option
from desilt.cli.graph import draw
from desilt.cli.lake.history import refs_of
from desilt.cli.output import plain
from desilt.cli.place import started
from desilt.cli.progress import Told
from desilt.cli.reports import outcome
from desilt.cli.reports import told as described
from desilt.cli.tables import show_table
from desilt.cli.ways_on import quoted
from desilt.demo import story
from desilt.domain.address import uid_time
from desilt.domain.units import size
from desilt.errors import AlreadyExists
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.runner import run
from desilt.lake.fsck import check
from desilt.lake.lake import Lake, Location, locate
from desilt.lake.layout import LAYOUT
from desilt.lake.repository import LakeRepository
from desilt.objects import open_store
from desilt.records.passwords import without_password
from desilt.sweep.limits import Limits
from desilt.testing import oracle
from desilt.testing.scenario import replay

NAME = "demo"
WORDS = {
    "committed": "held by a commit",
    "staged": "staged on a branch",
    "ticket": "of an upload that is under way",
    "young": "younger than an upload may take",
}


@click.command(cls=DesiltCommand)
@click.option("--keep", metavar="DIR", help="Keep the lake in DIR, or in s3://BUCKET/PREFIX, to look around in.")
@db_option
@click.option("--collect/--no-collect", default=True, help="Whether to remove the garbage, or only to show it.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def demo(keep: str | None, db: str | None, collect: bool, as_json: bool) -> None:
    """Replay six weeks of a small lake: branches, merges, copies, a deleted branch; show what is garbage in it, and
    collect that.

    Everything happens in a temporary directory that is removed at the end, unless you --keep it. In a bucket, its
    database is where --db says, and objects carry the dates that they have in the story.
    """
    with tempfile.TemporaryDirectory(prefix="desilt-demo-") as temporary:
        location = locate(f"{keep or Path(temporary) / 'lake'}#{NAME}", db=db if keep else None)
        check_empty(location)
        lake = Lake.create(location)
        heading("Six weeks of a lake", quiet=as_json)
        repository = replay(lake, NAME, story(), say=None if as_json else tell)
        figures = look(repository, as_json=as_json)
        figures |= collected(repository, as_json=as_json) if collect else {}
        if as_json:
            click.echo(json.dumps(figures, default=plain))
        lake.close()
    if keep and not as_json:
        heading("Look around", quiet=False)
        for command in ("lake log {} --all --graph", "lake ls {} main -r", "lake diff {} v1 main", "runs {}"):
            more = f" --db {quoted(without_password(db))}" if db else ""
            click.echo(f"  desilt {command.format(f'{location.storage}#{NAME}')}{more}")


def check_empty(location: Location) -> None:
    """Refuse to build a story among somebody's objects."""
    if location.is_directory:
        if Path(location.storage).is_dir() and any(Path(location.storage).iterdir()):
            raise AlreadyExists("directory", location.storage, "give --keep an empty or a new one")
    elif any(batch.num_rows for batch in islice(open_store(location.storage).list(), 1)):
        raise AlreadyExists("lake or other objects in", location.storage, "give --keep an empty bucket or prefix")


def tell(moment: datetime, text: str) -> None:
    click.echo(f"  {click.style(f'{moment:%Y-%m-%d}', dim=True)}  {text}")


def look(repository: LakeRepository, *, as_json: bool) -> dict[str, object]:
    """Sizes, the graph, and the garbage."""
    stored, garbage = oracle.stored(repository), oracle.garbage(repository)
    branches = [branch_row(repository, branch.name, as_json=as_json) for branch in repository.branches()]
    left = garbage_rows(repository, garbage, as_json=as_json)
    if not as_json:
        heading("What each branch shows")
        show_table(branches, ["branch", "entries", "bytes", "staged"])
        heading("How it came about")
        names: dict[str, list[str]] = {}
        for name, target in refs_of(repository):
            names.setdefault(target, []).append(name)
        for line in draw(list(repository.log(*names)), names):
            click.echo(f"  {line}")
        heading("What is garbage today")
        click.echo(f"  {len(stored)} objects are stored, {size(sum(stored.values()))}.")
        click.echo(f"  {len(garbage)} of them, {size(sum(garbage.values()))}, are in no commit and no staging area:")
        show_table(left, ["uploaded to", "objects", "bytes", "oldest"])
    return {
        "stored": counted(stored),
        "garbage": counted(garbage),
        "branches": branches,
        "garbage_by_branch": left,
    }


def collected(repository: LakeRepository, *, as_json: bool) -> dict[str, object]:
    """What a run removes, and what it leaves."""
    heading("Collecting it, on Spark", quiet=as_json)
    told = Told()
    before = oracle.stored(repository)
    limits = Limits(max_share=1.0, confirm=True)  # more than the usual 30 % of so small a lake
    (report,) = run(uncommitted.job, repository, started(told), limits=limits)
    told.ends()
    after = oracle.stored(repository)
    sound = check(repository).sound
    if not as_json and report.swept:
        click.echo(f"  {outcome(report.swept)}.")
        for reason, amount in report.keep.items():
            click.echo(f"  {described(amount)} kept: {WORDS.get(reason, reason)}.")
        rows = [
            {"": name, "objects": len(stored), "bytes": size(sum(stored.values()))}
            for name, stored in (("before", before), ("after", after))
        ]
        show_table(rows, ["", "objects", "bytes"])
        if sound:
            click.echo("  Every file of every branch, tag and commit is still there.")
    return {"collected": asdict(report.swept) if report.swept else None, "after": counted(after), "sound": sound}


def counted(stored: dict[str, int]) -> dict[str, int]:
    return {"objects": len(stored), "bytes": sum(stored.values())}


def branch_row(repository: LakeRepository, name: str, *, as_json: bool) -> dict[str, object]:
    sizes = [entry.size for entry in repository.list(name) if hasattr(entry, "size")]
    staged = sum(1 for _ in repository.uncommitted(name))
    return {
        "branch": name,
        "entries": len(sizes),
        "bytes": sum(sizes) if as_json else size(sum(sizes)),
        "staged": staged,
    }


def garbage_rows(repository: LakeRepository, garbage: dict[str, int], *, as_json: bool) -> list[dict[str, object]]:
    names = {branch.uid: branch.name for branch in repository.branches()}
    found: dict[str, list[str]] = {}
    for address in garbage:
        found.setdefault(names.get(LAYOUT.group_of(address), "a deleted branch"), []).append(address)
    rows = []
    for where, addresses in sorted(found.items(), key=lambda pair: -len(pair[1])):
        total = sum(garbage[address] for address in addresses)
        oldest = min(uid_time(address.rsplit("/", 1)[-1]) for address in addresses)
        row = {"uploaded to": where, "objects": len(addresses), "bytes": total if as_json else size(total)}
        rows.append({**row, "oldest": oldest})
    return rows


def heading(text: str, *, quiet: bool = False) -> None:
    if not quiet:
        click.echo(f"\n{click.style(text, bold=True)}")
