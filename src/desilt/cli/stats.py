"""`desilt stats`: a repository in figures."""

from collections.abc import Mapping, Sequence

import click

from desilt.cli.command import DesiltCommand
from desilt.cli.common import with_repository
from desilt.cli.place import with_executor
from desilt.cli.reports import bold, told
from desilt.cli.tables import show_table
from desilt.domain.units import many, size
from desilt.executors.executor import Executor
from desilt.jobs.stats.stats import DEPTH, FOLDERS
from desilt.jobs.stats.stats import stats as find_out
from desilt.repository.protocol import Repository
from desilt.runs.report import Amount
from desilt.runs.stats import Stats

MONTHS = 24  # that a terminal is shown


@click.command(cls=DesiltCommand)
@with_repository
@click.option("--folders", type=click.IntRange(0), default=FOLDERS, show_default=True, help="The biggest, so many.")
@click.option(
    "--depth", type=click.IntRange(1, 20), default=DEPTH, show_default=True, help="Of folders, that are told apart."
)
@with_executor
def stats(repository: Repository, folders: int, depth: int, executor: Executor, as_json: bool) -> None:
    """Say how much there is by branch, folder and age, what waits, and how it grew; remove nothing.

    Sizes are those that entries tell. Every object counts once, under its first path and its oldest entry; on branches,
    it counts on each that reaches it. What nothing points to, not even an old commit, is found by `desilt gc plan`.
    """
    found = find_out(repository, executor, folders=folders, depth=depth)
    executor.watch.ends()
    if as_json:
        click.echo(found.to_json(), nl=False)
    else:
        show(found, by_rules="collect" in repository.refuses)


def show(found: Stats, *, by_rules: bool = False) -> None:
    """The sums, then each table."""
    click.echo(f"{bold(found.repository)} has {told(found.committed)} in {many(found.commits, 'commit')}.")
    way_on = "gc plan --rules server" if by_rules else "collect plan"
    for amount, words in (
        (found.waiting, f"of that waiting for collection: nothing reaches them (`desilt {way_on}`)"),
        (found.staged, "staged, and in no commit"),
        (found.trash, "in the trash (`desilt purge` empties it)"),
    ):
        if amount.objects:
            click.echo(f"  {told(amount)} {words}")
    if found.branches:
        click.echo(f"\n{bold('By branch')}: what it reaches, with its past, and what it keeps alone")
        show_table(
            [
                {
                    "branch": one.branch,
                    "reaches": size(one.reaches.bytes),
                    "objects": f"{one.reaches.objects:,}",
                    "alone": size(one.alone.bytes),
                    "staged": size(one.staged.bytes) if one.staged.objects else "",
                }
                for one in found.branches
            ],
            ["branch", "reaches", "objects", "alone", "staged"],
        )
    amounts("By folder", "folder", found.folders)
    if found.more_folders:
        click.echo(f"  and {many(found.more_folders, 'more folder')}; see --folders")
    amounts("By age", "age", found.ages)
    show_months(found)


def amounts(heading: str, column: str, some: Mapping[str, Amount]) -> None:
    if some:
        click.echo(f"\n{bold(heading)}")
        rows = [{column: name, "size": size(one.bytes), "objects": f"{one.objects:,}"} for name, one in some.items()]
        show_table(rows, [column, "size", "objects"])


def show_months(found: Stats) -> None:
    shown: Sequence[dict[str, str]] = [
        {
            "month": one.month,
            "added, and still there": size(one.added.bytes),
            "removed": size(one.removed.bytes) if one.removed.objects else "",
        }
        for one in found.months[-MONTHS:]
    ]
    if shown:
        more = f", the last {MONTHS}" if len(found.months) > MONTHS else ""
        click.echo(f"\n{bold('By month')}{more}")
        show_table(shown, ["month", "added, and still there", "removed"])
