"""What commands share that plan and sweep: their options, where the work is done, signs of life, and what is shown."""

import functools
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import click

from desilt import spark
from desilt.cli import changes
from desilt.cli.changes import change_of
from desilt.cli.params import Moment, Share, Span
from desilt.cli.progress import Progress
from desilt.cli.reports import finish, show, show_ways_on
from desilt.jobs.job import Ask, Job
from desilt.jobs.running import plan, refusal, run
from desilt.lake.repository import Repository
from desilt.runs.plan import Action
from desilt.sources.spread import OnSpark, Spread
from desilt.sweep.guard import Limits

Command = Callable[..., None]
DEFAULT = Limits()
CLOCK_HELP = "Whatever was done here before by another clock, or not for a month: this clock is right."

master_option = click.option("--master", help="A Spark cluster; by default, all cores of this machine.")


class Told:
    """Tells a terminal which stage it is in, how many objects it has dealt with, and how fast."""

    def __init__(self) -> None:
        self._progress = Progress("starting")

    def begins(self, stage: str) -> None:
        self._progress.finish()
        self._progress = Progress(stage)

    def advance(self, objects: int) -> None:
        self._progress.advance(objects)

    def finish(self) -> None:
        self._progress.finish()


def on_spark(master: str | None, told: Told) -> OnSpark:
    """The executors, watched."""
    told.begins("starting Spark")
    return OnSpark(spark.session(master=master), told)


def with_ask(command: Command) -> Command:
    """What every job can be asked, as options; the command gets ``ask``."""

    @click.option("--full", is_flag=True, help="Look at everything, whatever the last run saved.")
    @click.option("--now", type=Moment(), help="Judge ages as of this time; it may look back.")
    @click.option(
        "--to",
        "action",
        type=click.Choice([one.value for one in Action]),
        default=Action.DELETE.value,
        show_default=True,
        help="The trash can be restored from; on S3 that costs a copy of each object.",
    )
    @functools.wraps(command)
    def wrapped(*values: Any, full: bool, now: datetime | None, action: str, **rest: Any) -> None:
        command(*values, ask=Ask(now=now, full=full, action=Action(action)), **rest)

    return wrapped


def with_limits(command: Command) -> Command:
    """The guards as options; the command gets ``limits``."""

    @click.option("--max-plan-age", type=Span(), default=DEFAULT.max_plan_age, help="Refuse an older plan.  [1d]")
    @click.option(
        "--max-share",
        type=Share(),
        default=DEFAULT.max_share,
        help="Of all objects or bytes, within a day; and less than the most there was within 30 days.  [30%]",
    )
    @click.option("--max-objects", type=click.IntRange(0), help="Refuse to remove more objects than this.")
    @click.option("--allow-empty", is_flag=True, help="Go on although nothing at all is held.")
    @click.option(
        "--confirm", is_flag=True, help="I have seen a plan of this; needed the first time, and for more than then."
    )
    @click.option(
        "--after-restore", is_flag=True, help="The database was restored from a copy; what it lost may go, too."
    )
    @click.option("--clock-is-right", is_flag=True, help=CLOCK_HELP)
    @functools.wraps(command)
    def wrapped(
        *values: Any,
        max_plan_age: timedelta,
        max_share: float,
        max_objects: int | None,
        allow_empty: bool,
        confirm: bool,
        after_restore: bool,
        clock_is_right: bool,
        **rest: Any,
    ) -> None:
        limits = Limits(max_plan_age, max_share, max_objects, allow_empty, confirm, after_restore, clock_is_right)
        command(*values, limits=limits, **rest)

    return wrapped


def plan_and_show(
    job: Job, repository: Repository, spread: Spread, told: Told, ask: Ask, limits: Limits, *, as_json: bool
) -> None:
    """Plan, then say what would go, what stays, and how to go on."""
    report = plan(job, repository, spread, ask)
    told.finish()
    if as_json:
        click.echo(changes.as_json(report, change_of(repository, report)), nl=False)
    else:
        show(repository, report)
        show_ways_on(report, refusal(job, repository, report.run, limits))


def run_and_show(
    job: Job, repository: Repository, spread: Spread, told: Told, ask: Ask, limits: Limits, *, as_json: bool
) -> None:
    """Plan and sweep, say what came of it, and leave with the exit code that it deserves."""
    reports = run(job, repository, spread, ask, limits)
    told.finish()
    for finished in reports[:-1]:
        click.echo(f"Run {finished.run}, which was cut off, is finished now.", err=True)
    if as_json:
        click.echo(changes.as_json(reports[-1], change_of(repository, reports[-1])), nl=False)
    else:
        show(repository, reports[-1])
    for report in reports:
        finish(report)
