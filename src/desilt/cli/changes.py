"""What a run does to history, for people and for programs."""

import json
from dataclasses import asdict

import click

from desilt.cli.graph import draw_change
from desilt.cli.tables import show_table
from desilt.domain.units import many, size
from desilt.errors import NotFound, Unreadable
from desilt.repository.protocol import Repository
from desilt.runs import folder as folders
from desilt.runs.folder import Folder
from desilt.runs.history import FILE, Fate, HistoryChange, read_change
from desilt.runs.report import Report


def change_of(repository: Repository, report: Report) -> HistoryChange | None:
    """What the run of ``report`` does to history; None if it is not about that, or cannot be read any more."""
    folder = Folder(repository.store, repository.prefix, folders.find(repository.store, repository.prefix, report.run))
    try:
        return read_change(folder.get_text(FILE))
    except (NotFound, Unreadable):
        return None


def as_json(report: Report, change: HistoryChange | None) -> str:
    """The report, and with it every commit that is edited or abandoned, every ref that stays or goes."""
    if change is None:
        return report.to_json()
    return json.dumps({**json.loads(report.to_json()), "change": asdict(change)}, indent=1) + "\n"


def show_change(report: Report, change: HistoryChange) -> None:
    """Figures, the picture before and after, and refs."""
    edited, abandoned, released = map(change.count, (Fate.EDITED, Fate.ABANDONED, Fate.RELEASED))
    would = "would be " if report.swept is None else ""
    leaving = f"{many(released, 'commit')} {would}released, " if released else ""
    click.echo(
        f"Run {report.run}: {many(edited, 'commit')} {would}edited, {many(abandoned, 'commit')} {would}abandoned, "
        f"{leaving}"
        f"{many(len(change.deleted), 'ref')} {would}deleted. No object is removed."
    )
    if left := report.history.get("edits left out"):
        click.echo(
            f"{many(left, 'edit')} of the plan did not hold any more, and {'was' if left == 1 else 'were'} left out."
        )
    if edited or change.deleted:
        click.echo()
        for line in draw_change(change):
            click.echo(line)
    gone = "Refs that go" if report.swept is None else "Refs deleted"
    for heading, refs in ((gone, change.deleted), ("Old refs that stay", change.skipped)):
        if refs:
            click.echo(f"\n{click.style(heading, bold=True)}")
            show_table([{"ref": ref, "why": why} for ref, why in refs.items()], ["ref", "why"])
    show_freed(report)
    if abandoned and report.swept is not None:
        click.echo("\nWhat was abandoned can be read by its id, until `desilt collect` takes it.")
    if released:
        click.echo(f"\nWhat {'would be' if report.swept is None else 'was'} released can no longer be opened.")


def show_freed(report: Report) -> None:
    """What a collection afterwards would free, by ref."""
    for note in report.notes:
        click.echo(f"\n{note}.")
    if report.frees is None or not report.loses_commits:
        return
    total = report.frees.total
    amount = f"{many(total.objects, 'object')} of {size(total.bytes)}"
    click.echo(f"\n{click.style('A collection afterwards', bold=True)} would free {amount}.")
    show_table(
        [
            {"ref": one.ref, "alone": size(one.alone.bytes), "with others": size(one.together.bytes)}
            for one in report.frees.by
            if one.alone.objects or one.together.objects
        ],
        ["ref", "alone", "with others"],
    )
