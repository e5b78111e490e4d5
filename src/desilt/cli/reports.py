"""Reports of runs, for people."""

from datetime import datetime

import click

from desilt.cli.changes import change_of, show_change
from desilt.cli.output import when
from desilt.cli.tables import show_table
from desilt.domain.units import many, size
from desilt.repository.gate import Safety
from desilt.repository.protocol import Repository
from desilt.runs import safety, versions
from desilt.runs.report import Amount, Report, Swept
from desilt.runs.steps import Action

SWEPT_IN_PART = 3  # the exit code
DONE: dict[str, str] = {
    Action.DELETE: "removed",
    Action.TRASH: "moved to the trash",
    Action.PURGE_VERSIONS: "removed for good",
    Action.MARK: "marked, and hidden",
}


def show(repository: Repository, report: Report) -> None:
    """A report: what would go or went, what stays, and how to go on."""
    if report.safety != Safety.ATOMIC:
        click.echo(f"{bold(f'Safety: {report.safety}')}: {safety.told(report.safety)}.")
    change = change_of(repository, report)
    if change is not None:
        show_change(report, change)
    else:
        _show_objects(report)
    if report.own:
        done = "are needed no longer" if report.swept is None else "were needed no longer, and are gone"
        click.echo(f"\n{bold('Files of desilt itself')} that {done}")
        show_table(
            [{"what": name, "files": one.objects, "size": size(one.bytes)} for name, one in report.own.items()],
            ["what", "files", "size"],
        )
    click.echo(f"\nThe whole list is in {page(repository, report)}")


def _show_objects(report: Report) -> None:
    looked_at = report.removed + report.kept
    rest = report.stored.objects - looked_at.objects
    place = f" {report.place}" if report.place else ""
    known = f"; {rest:,} more are {report.unseen}" if rest else ""
    click.echo(f"Run {report.run} looked at {told(looked_at)} in {sum(report.seconds.values()):.1f} s{place}{known}.")
    if commits := report.history.get("commits collected"):
        would = "would go" if report.swept is None else "are gone" if commits > 1 else "is gone"
        them = "them" if commits > 1 else "it"
        gone = bold(f"{many(commits, 'commit')} {would}")
        click.echo(f"\n{gone}: nothing reaches {them} any more.")
    for name, count in report.inputs.items():
        if name.startswith("kept ") and count:
            click.echo(f"{many(count, 'commit')} stay{'s' * (count == 1)}: {name}.")
    for note in report.notes:
        click.echo(f"{note.removesuffix('.')}.")
    if report.removed.objects:
        _show_going(report)
    elif not commits:
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
    if report.marks:
        click.echo(f"\n{bold('Marked')}, of all runs")
        show_table(
            [
                {
                    "state": state,
                    "objects": one.objects,
                    "size": size(one.bytes),
                    "oldest": when(datetime.fromisoformat(one.oldest)),
                }
                for state, one in report.marks.items()
            ],
            ["state", "objects", "size", "oldest"],
        )
    if report.swept:
        click.echo(f"\n{bold('Done')}: {outcome(report.swept)}")
    if about := versions.told(report):
        click.echo(about)


def _show_going(report: Report) -> None:
    share = report.removed.bytes / report.stored.bytes if report.stored.bytes else 0
    would = "Would be marked" if report.action == Action.MARK else "Would go"
    verb = "Planned to go" if report.swept else would
    since = (
        "" if report.by == "rule" else f", all from before {when(datetime.fromisoformat(report.cutoff))} UTC"
    )  # rules have a cutoff each
    data = (
        f"{told(report.data)}, and {many(report.tables.objects, 'file')} of metadata" if report.tables.objects else ""
    )
    click.echo(f"\n{bold(verb)}: {data or told(report.removed)}, {share:.0%} of all bytes{since}")
    show_table(
        [
            {report.by: name, "reason": reason, "objects": amount.objects, "size": size(amount.bytes)}
            for name, reasons in sorted(report.remove.items())
            for reason, amount in sorted(reasons.items())
        ],
        [report.by, "reason", "objects", "size"],
        least=["reason"],
    )
    for name, amounts in (("age", report.ages), ("folder", report.prefixes)):
        if len(amounts) > 1:
            click.echo(f"\n{bold(f'By {name}')}")
            show_table(
                [{name: one, "objects": some.objects, "size": size(some.bytes)} for one, some in amounts.items()],
                [name, "objects", "size"],
            )


def outcome(swept: Swept) -> str:
    """What a sweep came to, as a sentence."""
    done = DONE[swept.action]
    parts = [f"{told(Amount(swept.removed, swept.bytes))} {done}"]
    parts += [f"{swept.gone:,} already gone"] if swept.gone else []
    parts += [f"{swept.failed:,} failed, to be tried again by the next run"] if swept.failed else []
    parts += [f"{swept.held_again:,} kept after all: something holds them by now"] if swept.held_again else []
    return "; ".join(parts)


def finish(report: Report) -> None:
    """Leave with the exit code that a swept run deserves."""
    if report.swept and report.left:
        if untagged := report.left - report.swept.failed:
            said = f"{many(untagged, 'object')} could not be tagged; the next run tries again, and -v tells why"
            click.echo(f"warning: {said}", err=True)
        raise click.exceptions.Exit(SWEPT_IN_PART)


def page(repository: Repository, report: Report) -> str:
    return f"{repository.uri}_desilt/runs/{report.job}/{report.run}/report.html"


def told(amount: Amount) -> str:
    return f"{many(amount.objects, 'object')} of {size(amount.bytes)}"


def bold(text: str) -> str:
    return click.style(text, bold=True)
