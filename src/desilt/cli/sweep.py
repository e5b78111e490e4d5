"""`desilt sweep`, `restore` and `purge`: plans carried out, and what came of them taken back or made final."""

from dataclasses import asdict
from datetime import timedelta

import click

from desilt.cli.command import DesiltCommand
from desilt.cli.common import with_repository
from desilt.cli.complete import runs as runs_known
from desilt.cli.job import CLOCK_HELP, max_deletes_option, with_limits
from desilt.cli.metrics import note, with_metrics
from desilt.cli.output import done, one_line
from desilt.cli.params import SPAN
from desilt.cli.place import with_executor
from desilt.cli.reports import SWEPT_IN_PART, finish, show, told
from desilt.cli.ways_on import ways_past
from desilt.domain.units import many
from desilt.executors.executor import Executor
from desilt.jobs import purge as purge_job
from desilt.jobs import trash
from desilt.jobs.runner import sweep as carry_out
from desilt.repository.protocol import Repository
from desilt.runs.report import Amount
from desilt.sweep.limits import Limits
from desilt.sweep.purge import Purged


@click.command(cls=DesiltCommand)
@with_repository
@with_metrics
@click.argument("run", shell_complete=runs_known)
@with_limits
@with_executor
def sweep(repository: Repository, run: str, limits: Limits, executor: Executor, as_json: bool) -> None:
    """Carry out the plan of RUN: remove what it says, in the way it says, and nothing else.

    RUN is the id of a run, the beginning of one, or `last`. What was cut off goes on where it stopped; what was swept
    already is only shown. Every object is checked again at the moment it goes: whatever somebody holds by now is kept.
    """
    with ways_past():
        report = carry_out(repository, executor, run, limits)
    note(report)
    executor.watch.ends()
    if as_json:
        click.echo(one_line(report.to_json()))
    else:
        show(repository, report)
    finish(report)


@click.command(cls=DesiltCommand)
@with_repository
@click.argument("run", shell_complete=runs_known)
@click.option("--prefix", default="", help="Only addresses that begin so.")
@with_executor
def restore(repository: Repository, run: str, prefix: str, executor: Executor, as_json: bool) -> None:
    """Bring back what RUN moved to the trash and what is still there.

    Each object goes back to its place, and whoever points to it can read it again. The next runs leave it alone for as
    long as a ticket lives (24 hours); if nothing holds it then, it is garbage like any other. Of an Icechunk repository
    of format 2 the files come back, and not the list of snapshots in `repo`: what that was lies in overwritten/.
    """
    back = trash.bring_back(repository, executor, run, prefix=prefix)
    executor.watch.ends()
    text = f"{told(Amount(back.restored, back.bytes))} restored"
    text += f"; {back.missing:,} are no longer in the trash" if back.missing else ""
    text += f"; {back.failed:,} failed, try again" if back.failed else ""
    counts = {"restored": back.restored, "bytes": back.bytes, "missing": back.missing, "failed": back.failed}
    done(text, counts, as_json=as_json)
    if back.failed:
        raise click.exceptions.Exit(SWEPT_IN_PART)


@click.command(cls=DesiltCommand)
@with_repository
@with_metrics
@click.option("--older-than", type=SPAN, default=purge_job.DAYS, help="What is in the trash for so long.  [7d]")
@click.option("--run", "run", help="Only what this run moved there.")
@click.option("--clock-is-right", is_flag=True, help=CLOCK_HELP)
@max_deletes_option
@with_executor
def purge(
    repository: Repository,
    older_than: timedelta,
    run: str | None,
    clock_is_right: bool,
    max_deletes_per_second: int | None,
    executor: Executor,
    as_json: bool,
) -> None:
    """Empty the trash: what is in it for longer than its days is removed for good."""
    found = purge_job.empty(
        repository,
        executor,
        older_than=older_than,
        run_id=run,
        clock_is_right=clock_is_right,
        max_deletes_per_second=max_deletes_per_second,
    )
    executor.watch.ends()
    total = sum(found.values(), Purged())
    text = f"{told(Amount(total.objects, total.bytes))} of {many(len(found), 'run')} removed for good"
    text += f"; {total.failed:,} failed, try again" if total.failed else ""
    text += f"; {total.left:,} left, on their way back" if total.left else ""
    done(text, asdict(total), as_json=as_json)
    for run_id, gone in found.items():
        if gone.held:
            kept = many(gone.held, "object")
            click.echo(f"warning: run {run_id} stays in the trash: people ordered {kept} of it to be kept", err=True)
    if total.failed:
        raise click.exceptions.Exit(SWEPT_IN_PART)
