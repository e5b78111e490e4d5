"""Reports of runs, for people."""

import click

from desilt.cli.output import show_table
from desilt.domain.units import size
from desilt.errors import DesiltError
from desilt.lake.repository import Repository
from desilt.runs.plan import Action
from desilt.runs.report import Amount, Report, Swept

SWEPT_IN_PART = 3  # the exit code
UNSEEN = {False: "known from the last run", True: "not of age, or were looked at by an earlier run"}


def show(repository: Repository, report: Report) -> None:
    """A report: what would go or went, what stays, and how to go on."""
    looked_at = report.removed + report.kept
    rest = report.stored.objects - looked_at.objects
    known = f"; {rest:,} more are {UNSEEN[report.by == 'rule']}" if rest else ""
    click.echo(f"Run {report.run} looked at {told(looked_at)} in {sum(report.seconds.values()):.1f} s{known}.")
    if report.removed.objects:
        _show_going(report)
    else:
        click.echo("\nNothing is to go.")
    if report.keep:
        click.echo(f"\n{bold('Stays')}: {told(report.kept)}")
        show_table(
            [
                {"reason": reason, "objects": amount.objects, "size": size(amount.bytes)}
                for reason, amount in report.keep.items()
            ],
            ["reason", "objects", "size"],
        )
    if report.holds:
        click.echo(f"\n{bold('Holds')} keep")
        show_table(
            [{"hold": name, "objects": one.objects, "size": size(one.bytes)} for name, one in report.holds.items()],
            ["hold", "objects", "size"],
        )
    if report.refs:
        click.echo(f"\n{bold('Branches')}")
        show_table([{"branch": name, "": why} for name, why in report.refs.items()], ["branch", ""])
    if report.swept:
        click.echo(f"\n{bold('Done')}: {outcome(report.swept)}")
    click.echo(f"\nThe whole list is in {page(repository, report)}")


def _show_going(report: Report) -> None:
    share = report.removed.bytes / report.stored.bytes if report.stored.bytes else 0
    verb = "Planned to go" if report.swept else "Would go"
    since = "" if report.by == "rule" else f", all from before {report.cutoff}"  # rules have a cutoff each
    click.echo(f"\n{bold(verb)}: {told(report.removed)}, {share:.0%} of all bytes{since}")
    show_table(
        [
            {report.by: name, "reason": reason, "objects": amount.objects, "size": size(amount.bytes)}
            for name, reasons in sorted(report.remove.items())
            for reason, amount in sorted(reasons.items())
        ],
        [report.by, "reason", "objects", "size"],
    )
    click.echo(f"\n{bold('Biggest prefixes')} of that")
    show_table(
        [
            {"prefix": prefix, "objects": amount.objects, "size": size(amount.bytes)}
            for prefix, amount in report.prefixes.items()
        ],
        ["prefix", "objects", "size"],
    )


def show_ways_on(report: Report, refusal: DesiltError | None) -> None:
    """How to go on from a plan."""
    if not report.removed.objects and not report.refs:
        return
    if refusal is not None:
        click.echo(f"A sweep would be refused now: {refusal}")
    click.echo(f"Carry it out with: desilt sweep {click.get_current_context().params['repo']} {report.run}")
    if report.action == Action.DELETE:
        click.echo("Plan with --to trash to be able to bring things back.")


def outcome(swept: Swept) -> str:
    """What a sweep came to, as a sentence."""
    done = "moved to the trash" if swept.action == Action.TRASH else "removed"
    parts = [f"{told(Amount(swept.removed, swept.bytes))} {done}"]
    parts += [f"{swept.gone:,} already gone"] if swept.gone else []
    parts += [f"{swept.failed:,} failed, to be tried again by the next run"] if swept.failed else []
    parts += [f"{swept.held_again:,} kept after all: something holds them by now"] if swept.held_again else []
    return "; ".join(parts)


def finish(report: Report) -> None:
    """Leave with the exit code that a swept run deserves."""
    if report.swept and report.swept.failed:
        raise click.exceptions.Exit(SWEPT_IN_PART)


def page(repository: Repository, report: Report) -> str:
    return f"{repository.core.uri}_desilt/runs/{report.job}/{report.run}/report.html"


def told(amount: Amount) -> str:
    return f"{amount.objects:,} object{'s' * (amount.objects != 1)} of {size(amount.bytes)}"


def bold(text: str) -> str:
    return click.style(text, bold=True)
