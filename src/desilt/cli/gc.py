"""`desilt gc`: uncommitted garbage."""

import functools
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import click

from desilt.cli.common import with_repository
from desilt.cli.params import Moment, Span
from desilt.cli.reports import finish, show, show_ways_on
from desilt.cli.sweeping import Told, master_option, on_spark, with_limits
from desilt.jobs import uncommitted
from desilt.jobs.job import Ask
from desilt.jobs.running import plan as make_plan
from desilt.jobs.running import refusal
from desilt.jobs.running import run as carry_out
from desilt.lake.repository import Repository
from desilt.runs.plan import Action
from desilt.sweep.guard import Limits

Command = Callable[..., None]


@click.group()
def gc() -> None:
    """Remove objects that were uploaded and never became, or are no longer, part of anything.

    An object goes when no commit holds it, whether a ref reaches that commit or not; no staging area of any branch;
    no open ticket; and when the store's clock and the time in its own name both call it older than a ticket lives
    (24 hours, and ten minutes more for clocks).

    A run begins where the last one ended: it lists only what is new, and looks again at what no commit held then.
    """


def with_ask(command: Command) -> Command:
    """What to look at, as options; the command gets ``ask``."""

    @click.option("--branch", help="Only what was uploaded to this branch; a deleted one by its uid.")
    @click.option("--full", is_flag=True, help="List everything, whatever the last run saved.")
    @click.option("--now", type=Moment(), help="Judge ages as of this time; it may look back.")
    @click.option(
        "--to",
        "action",
        type=click.Choice([one.value for one in Action]),
        default=Action.DELETE.value,
        show_default=True,
        help="The trash can be restored from; on S3 that costs a copy of each object.",
    )
    @click.option("--inventory", metavar="URI", help="A listing in place of ours: an S3 Inventory, Parquet or CSV.")
    @click.option("--max-inventory-age", type=Span(), default=Ask().max_inventory_age, help="Not older.  [2d]")
    @functools.wraps(command)
    def wrapped(
        *values: Any,
        branch: str | None,
        full: bool,
        now: datetime | None,
        action: str,
        inventory: str | None,
        max_inventory_age: timedelta,
        **rest: Any,
    ) -> None:
        command(*values, ask=Ask(now, branch, full, Action(action), inventory, max_inventory_age), **rest)

    return wrapped


@gc.command()
@with_repository
@with_ask
@with_limits
@master_option
def plan(repository: Repository, ask: Ask, limits: Limits, master: str | None, as_json: bool) -> None:
    """Say what would be removed, and why; remove nothing.

    The plan is written into the repository, below _desilt/runs/gc/: Parquet files with every object that would go,
    report.json, and report.html to open in a browser. `desilt sweep` carries it out.
    """
    told = Told()
    report = make_plan(uncommitted.job, repository, on_spark(master, told), ask)
    told.finish()
    if as_json:
        click.echo(report.to_json(), nl=False)
    else:
        show(repository, report)
        show_ways_on(report, refusal(uncommitted.job, repository, report.run, limits))


@gc.command()
@with_repository
@with_ask
@with_limits
@master_option
def run(repository: Repository, ask: Ask, limits: Limits, master: str | None, as_json: bool) -> None:
    """Plan, then remove what was planned.

    The first run needs --confirm: look at a plan before. A run that was cut off is finished first. Guards refuse to
    go on (exit code 10, nothing removed) where something looks wrong: too large a share, no holder at all, clocks that
    disagree. Objects that somebody holds again by now are left alone and counted. Exit code 3: some could not be
    removed, and the next run tries again.
    """
    told = Told()
    reports = carry_out(uncommitted.job, repository, on_spark(master, told), ask, limits)
    told.finish()
    for finished in reports[:-1]:
        click.echo(f"Run {finished.run}, which was cut off, is finished now.", err=True)
    if as_json:
        click.echo(reports[-1].to_json(), nl=False)
    else:
        show(repository, reports[-1])
    for report in reports:
        finish(report)
