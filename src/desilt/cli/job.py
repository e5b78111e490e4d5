"""What commands share that plan and sweep: their options, and what is shown."""

import functools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import click

from desilt.cli import changes
from desilt.cli.changes import change_of
from desilt.cli.metrics import note
from desilt.cli.output import json_line
from desilt.cli.params import MOMENT, SHARE, SPAN
from desilt.cli.reports import finish, show
from desilt.cli.ways_on import show_ways_on, sweeping, ways_past
from desilt.errors import Refused
from desilt.executors.executor import Executor
from desilt.jobs.job import Job
from desilt.jobs.runner import plan, run
from desilt.repository.protocol import Repository
from desilt.runs.known import report_of
from desilt.runs.report import Report
from desilt.runs.steps import CHOICES, Action
from desilt.sweep.limits import Limits

Command = Callable[..., None]
Words = dict[str, Any]
DEFAULT = Limits()
CLOCK_HELP = "Whatever was done here before by another clock, or not for a month: this clock is right."


purge_option = click.option(
    "--purge-versions",
    is_flag=True,
    help="On S3, where a bucket keeps versions: remove all of what goes, for good; asks for each object.",
)


def purging(action: str | None = None) -> str:
    """The action of whoever wants versions purged, and ``action`` besides."""
    if action == Action.TRASH:
        raise click.UsageError("--purge-versions leaves nothing to restore: leave it out, or --to trash")
    return Action.PURGE_VERSIONS.value


max_deletes_option = click.option(
    "--max-deletes-per-second",
    type=click.IntRange(1),
    metavar="N",
    help="All executors and machines together, of this repository.",
)


def with_ask(command: Command) -> Command:
    """What every job can be asked, as options; the command gets ``ask``, the words of :meth:`Job.ask`."""

    @click.option("--full", is_flag=True, help="Look at everything, whatever the last run saved.")
    @click.option("--now", type=MOMENT, help="Judge ages as of this time; it may look back.")
    @click.option(
        "--to",
        "action",
        type=click.Choice([one.value for one in CHOICES]),
        help="The trash can be restored from; on S3 that costs a copy of each object.  [delete; on a lakeFS server, "
        "trash for what is committed]",
    )
    @purge_option
    @functools.wraps(command)
    def wrapped(
        *values: Any, full: bool, now: datetime | None, action: str | None, purge_versions: bool, **rest: Any
    ) -> None:
        chosen = purging(action) if purge_versions else action
        command(*values, ask={"now": now, "full": full, "action": chosen}, **rest)

    return wrapped


def with_limits(command: Command) -> Command:
    """The guards as options; the command gets ``limits``."""

    @click.option("--max-plan-age", type=SPAN, default=DEFAULT.max_plan_age, help="Refuse an older plan.  [1d]")
    @click.option(
        "--max-share",
        type=SHARE,
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
    @max_deletes_option
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
        max_deletes_per_second: int | None,
        **rest: Any,
    ) -> None:
        limits = Limits(
            *(max_plan_age, max_share, max_objects, allow_empty, confirm, after_restore, clock_is_right),
            max_deletes_per_second=max_deletes_per_second,
        )
        command(*values, limits=limits, **rest)

    return wrapped


def plan_and_show(
    job: Job[Any], repository: Repository, executor: Executor, ask: Words, limits: Limits, *, as_json: bool
) -> None:
    """Plan, then say what would go, what stays, and how to go on."""
    report = plan(job, repository, executor, job.asked(repository, **ask), limits)
    note(report)
    executor.watch.ends()
    if as_json:
        show_json(repository, report)
    else:
        show(repository, report)
        show_ways_on(report)


def run_and_show(
    job: Job[Any], repository: Repository, executor: Executor, ask: Words, limits: Limits, *, as_json: bool
) -> None:
    """Plan and sweep, say what came of it, and leave with the exit code that it deserves."""
    with ways_past(), told_in_json(repository, as_json=as_json):
        reports = run(job, repository, executor, job.asked(repository, **ask), limits)
    note(*reports)
    executor.watch.ends()
    for finished in reports[:-1]:
        click.echo(f"Run {finished.run}, which was cut off, is finished now.", err=True)
    if as_json:
        show_json(repository, reports[-1])
    else:
        show(repository, reports[-1])
    for report in reports:
        finish(report)


def show_json(repository: Repository, report: Report) -> None:
    """One object, with the command that carries it out, if guards let any."""
    facts = json.loads(changes.as_json(report, change_of(repository, report)))
    if report.does and report.swept is None and report.passes is not None:
        facts["command"] = sweeping(report)
    click.echo(json_line(facts))


@contextmanager
def told_in_json(repository: Repository, *, as_json: bool) -> Iterator[None]:
    """What is refused is told to programs too: its plan, with all that guards have against it."""
    try:
        yield
    except Refused as reason:
        if as_json and reason.run:
            show_json(repository, report_of(repository, reason.run))
        raise
