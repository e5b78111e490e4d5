"""`desilt sweep`, `restore` and `purge`: plans carried out, and what came of them taken back or made final."""

from dataclasses import asdict
from datetime import timedelta

import click

from desilt.cli.common import with_repository
from desilt.cli.output import done
from desilt.cli.params import Span
from desilt.cli.reports import SWEPT_IN_PART, finish, show, told
from desilt.cli.sweeping import CLOCK_HELP, Told, master_option, on_spark, with_limits
from desilt.jobs import trash
from desilt.jobs.running import sweep as carry_out
from desilt.lake.repository import Repository
from desilt.runs.report import Amount
from desilt.sweep.guard import Limits
from desilt.sweep.purging import Purged


@click.command()
@with_repository
@click.argument("run")
@with_limits
@master_option
def sweep(repository: Repository, run: str, limits: Limits, master: str | None, as_json: bool) -> None:
    """Carry out the plan of RUN: remove what it says, in the way it says, and nothing else.

    RUN is the id of a run, the beginning of one, or `last`. What was cut off goes on where it stopped; what was swept
    already is only shown. Every object is checked again at the moment it goes: whatever somebody holds by now is kept.
    """
    progress = Told()
    report = carry_out(repository, on_spark(master, progress), run, limits)
    progress.finish()
    if as_json:
        click.echo(report.to_json(), nl=False)
    else:
        show(repository, report)
    finish(report)


@click.command()
@with_repository
@click.argument("run")
@click.option("--prefix", default="", help="Only addresses that begin so.")
@master_option
def restore(repository: Repository, run: str, prefix: str, master: str | None, as_json: bool) -> None:
    """Bring back what RUN moved to the trash and what is still there.

    Each object goes back to its place, and whoever points to it can read it again. The next runs leave it alone for as
    long as a ticket lives (24 hours); if nothing holds it then, it is garbage like any other.
    """
    progress = Told()
    back = trash.bring_back(repository, on_spark(master, progress), run, prefix=prefix)
    progress.finish()
    text = f"{told(Amount(back.restored, back.bytes))} restored"
    text += f"; {back.missing:,} are no longer in the trash" if back.missing else ""
    text += f"; {back.failed:,} failed, try again" if back.failed else ""
    counts = {"restored": back.restored, "bytes": back.bytes, "missing": back.missing, "failed": back.failed}
    done(text, counts, as_json=as_json)
    if back.failed:
        raise click.exceptions.Exit(SWEPT_IN_PART)


@click.command()
@with_repository
@click.option("--older-than", type=Span(), default=trash.DAYS, help="What is in the trash for so long.  [7d]")
@click.option("--run", "run", help="Only what this run moved there.")
@click.option("--clock-is-right", is_flag=True, help=CLOCK_HELP)
@master_option
def purge(
    repository: Repository,
    older_than: timedelta,
    run: str | None,
    clock_is_right: bool,
    master: str | None,
    as_json: bool,
) -> None:
    """Empty the trash: what is in it for longer than its days is removed for good."""
    progress = Told()
    spread = on_spark(master, progress)
    found = trash.empty(repository, spread, older_than=older_than, run_id=run, clock_is_right=clock_is_right)
    progress.finish()
    total = sum(found.values(), Purged())
    text = f"{told(Amount(total.objects, total.bytes))} of {len(found)} runs removed for good"
    done(text + (f"; {total.failed:,} failed, try again" if total.failed else ""), asdict(total), as_json=as_json)
    if total.failed:
        raise click.exceptions.Exit(SWEPT_IN_PART)
