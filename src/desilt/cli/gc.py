"""`desilt gc`: uncommitted garbage."""

import functools
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import click

from desilt.cli.command import DesiltGroup
from desilt.cli.common import with_repository
from desilt.cli.job import Words, plan_and_show, run_and_show, with_ask, with_limits
from desilt.cli.metrics import with_metrics
from desilt.cli.params import SPAN
from desilt.cli.place import with_executor
from desilt.executors.executor import Executor
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.gc.options import Options
from desilt.repository.protocol import Repository
from desilt.sweep.limits import Limits

Command = Callable[..., None]
USUAL = Options()


@click.group(cls=DesiltGroup)
def gc() -> None:
    """Remove objects that were uploaded and never became, or are no longer, part of anything.

    An object goes when no commit holds it, whether a ref reaches that commit or not; no staging area of any branch;
    no open ticket; when the store's clock and the time in its own name both call it older than a ticket lives
    (24 hours, and ten minutes more for clocks); and when nothing staged has pointed to it for a day.

    A run begins where the last one ended: it lists only what is new, and looks again at what no commit held then.

    On a lakeFS server, age counts from the server's own grace period, and what is held is read again right before it
    goes. There --rules server goes further: what only commits have that the server's rules let go, goes to the trash.
    """


def with_scope(command: Command) -> Command:
    """What to look at, as options; the command gets ``ask`` with it."""

    @click.option("--branch", help="Only what was uploaded to this branch; a deleted one by its uid.")
    @click.option("--inventory", metavar="URI", help="A listing in place of ours: an S3 Inventory, Parquet or CSV.")
    @click.option("--max-inventory-age", type=SPAN, default=USUAL.max_inventory_age, help="Not older.  [2d]")
    @click.option(
        "--dropped-for",
        type=SPAN,
        default=USUAL.dropped_for,
        help="Leave alone what was staged until then: somebody may be reading it.  [1d]",
    )
    @click.option(
        "--rules",
        type=click.Choice(["server"]),
        help="On a lakeFS server: also what only commits have that its rules (lakectl gc set-config) let go.",
    )
    @click.option(
        "--tags",
        type=click.Choice(["hold"]),
        help="With --rules: keep what tags name; the server's rules know no tags.",
    )
    @with_ask
    @with_limits
    @functools.wraps(command)
    def wrapped(
        *values: Any,
        ask: Words,
        limits: Limits,
        branch: str | None,
        inventory: str | None,
        max_inventory_age: timedelta,
        dropped_for: timedelta,
        rules: str | None,
        tags: str | None,
        **rest: Any,
    ) -> None:
        scoped = {
            **ask,
            "branch": branch,
            "inventory": inventory,
            "max_inventory_age": max_inventory_age,
            "dropped_for": dropped_for,
            "after_restore": limits.after_restore,
            "rules": rules,
            "tags": tags,
        }
        command(*values, ask=scoped, limits=limits, **rest)

    return wrapped


@gc.command()
@with_repository
@with_metrics
@with_scope
@with_executor
def plan(repository: Repository, ask: Words, limits: Limits, executor: Executor, as_json: bool) -> None:
    """Say what would be removed, and why; remove nothing.

    The plan is written into the repository, below _desilt/runs/gc/: Parquet files with every object that would go,
    report.json, and report.html to open in a browser. `desilt sweep` carries it out.
    """
    plan_and_show(uncommitted.job, repository, executor, ask, limits, as_json=as_json)


@gc.command()
@with_repository
@with_metrics
@with_scope
@with_executor
def run(repository: Repository, ask: Words, limits: Limits, executor: Executor, as_json: bool) -> None:
    """Plan, then remove what was planned.

    The first run needs --confirm: look at a plan before. It covers later runs that do the same or less; not one that
    deletes if it was --to trash, looks at more than its --branch, or has a shorter --dropped-for. A run that was cut
    off is finished first. Guards refuse to go on (exit code 10, nothing removed) where something looks wrong: too large
    a share, no holder at all, clocks that disagree. Objects that somebody holds again by now are left alone and
    counted. Exit code 3: some could not be removed, and the next run tries again.
    """
    run_and_show(uncommitted.job, repository, executor, ask, limits, as_json=as_json)
