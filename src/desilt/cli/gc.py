"""`desilt gc`: uncommitted garbage."""

from datetime import datetime

import click

from desilt import spark
from desilt.cli.common import with_repository
from desilt.cli.output import show_table
from desilt.domain.units import size
from desilt.jobs import uncommitted
from desilt.jobs.job import Ask
from desilt.jobs.running import plan as make_plan
from desilt.lake.repository import Repository
from desilt.runs.report import Amount, Report
from desilt.sources.spread import OnSpark


class Moment(click.ParamType[datetime]):
    """``2026-01-31T12:00:00Z``, with a time zone."""

    name = "time"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is not a time; write 2026-01-31T12:00:00Z", param, ctx)
        if moment.tzinfo is None:
            self.fail(f"{value!r} has no time zone; write 2026-01-31T12:00:00Z", param, ctx)
        return moment


@click.group()
def gc() -> None:
    """Find objects that were uploaded and never became, or are no longer, part of anything.

    An object goes when no commit holds it, whether a ref reaches that commit or not; no staging area of any branch;
    no open ticket; and when the store's clock and the time in its own name both call it older than a ticket lives
    (24 hours, and ten minutes more for clocks).
    """


@gc.command()
@with_repository
@click.option("--now", type=Moment(), help="Judge ages as of this time; it may look back.")
@click.option("--master", help="A Spark cluster; by default, all cores of this machine.")
def plan(repository: Repository, now: datetime | None, master: str | None, as_json: bool) -> None:
    """Say what would be removed, and why; remove nothing.

    The plan is written into the repository, below _desilt/runs/gc/: Parquet files with every object that would go,
    report.json, and report.html to open in a browser.
    """
    report = make_plan(uncommitted.job, repository, OnSpark(spark.session(master=master)), Ask(now=now))
    if as_json:
        click.echo(report.to_json(), nl=False)
    else:
        show(repository, report)


def show(repository: Repository, report: Report) -> None:
    """A report, for people."""
    click.echo(
        f"Run {report.run} looked at {told(report.removed + report.kept)} in {sum(report.seconds.values()):.1f} s."
    )
    if report.removed.objects:
        click.echo(f"\n{click.style('Would go', bold=True)}: {told(report.removed)}, all from before {report.cutoff}")
        show_table(
            [
                {"branch": branch, "reason": reason, "objects": amount.objects, "size": size(amount.bytes)}
                for branch, reasons in sorted(report.remove.items())
                for reason, amount in sorted(reasons.items())
            ],
            ["branch", "reason", "objects", "size"],
        )
        click.echo(f"\n{click.style('Biggest prefixes', bold=True)} of what would go")
        show_table(
            [
                {"prefix": prefix, "objects": amount.objects, "size": size(amount.bytes)}
                for prefix, amount in report.prefixes.items()
            ],
            ["prefix", "objects", "size"],
        )
    else:
        click.echo("\nNothing would go.")
    if report.keep:
        click.echo(f"\n{click.style('Stays', bold=True)}: {told(report.kept)}")
        show_table(
            [
                {"reason": reason, "objects": amount.objects, "size": size(amount.bytes)}
                for reason, amount in report.keep.items()
            ],
            ["reason", "objects", "size"],
        )
    page = f"{repository.core.uri}_desilt/runs/{report.job}/{report.run}/report.html"
    click.echo(f"\nEvery object that would go is in the plan; open {page}")


def told(amount: Amount) -> str:
    return f"{amount.objects:,} object{'s' * (amount.objects != 1)} of {size(amount.bytes)}"
