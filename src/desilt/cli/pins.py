"""`desilt pins`: what keeps the bytes."""

from collections.abc import Iterator
from pathlib import Path

import click

from desilt.cli.command import DesiltCommand
from desilt.cli.common import with_repository
from desilt.cli.files import to_be_written
from desilt.cli.output import emit, one_line
from desilt.cli.place import with_executor
from desilt.cli.reports import bold, told
from desilt.domain.units import many, size
from desilt.executors.executor import Executor
from desilt.jobs.pins.pins import LIMIT
from desilt.jobs.pins.pins import pins as find_out
from desilt.render.pins import render
from desilt.repository.protocol import Repository
from desilt.runs.pins import NOTHING, Pins, told_apart
from desilt.runs.report import Amount


@click.command(cls=DesiltCommand)
@with_repository
@click.option("--limit", type=click.IntRange(0), default=LIMIT, show_default=True, help="Groups to be told one by one.")
@click.option(
    "--html",
    "page",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    callback=to_be_written,
    metavar="FILE",
    help="Write a page with bars, too.",
)
@with_executor
def pins(repository: Repository, limit: int, page: Path | None, executor: Executor, as_json: bool) -> None:
    """Say which branch, tag, hold or staging area keeps how many bytes, alone and together; remove nothing.

    What one keeps alone comes back once it is gone and history is collected: the answer to "what would I get back if I
    deleted tag v1?". What several keep together comes back when all of them are gone. A branch, a tag and a hold on a
    commit keep that commit and all its ancestors; a hold on a prefix keeps paths that begin so, in any commit.

    Sizes are those that entries tell, and every object counts once. What runs have removed does not count.
    """
    found = find_out(repository, executor, limit=limit)
    executor.watch.ends()
    if page is not None:
        page.write_text(render(found), encoding="utf-8")
    if as_json:
        click.echo(one_line(found.to_json()))
        return
    show(found)
    if page is not None:
        click.echo(f"\nThe page is {page}")


def show(found: Pins) -> None:
    """What each keeps, then what several keep together."""
    wait = "waits" if found.nothing.objects == 1 else "wait"
    waits = f"; {told(found.nothing)} {wait} for collection" if found.nothing.objects else ""
    click.echo(f"{told(found.kept)} {'is' if found.kept.objects == 1 else 'are'} kept{waits}.")
    click.echo(f"\n{bold('Alone')}: {told(found.alone)}; what each keeps alone, and what it reaches")
    emit(by_pin(found), ["pin", "alone", "objects", "reaches", "objects reached"], as_json=False)
    if found.together.objects:
        click.echo(f"\n{bold('Together')}: {told(found.together)}; they go when all that keep them went")
        emit(by_group(found), ["size", "objects", "kept by"], as_json=False)


def by_pin(found: Pins) -> Iterator[dict[str, object]]:
    if found.nothing.objects:
        yield row(NOTHING, found.nothing, found.nothing)
    for pin in found.pins:
        yield row(pin.name, pin.alone, pin.reaches)


def row(name: str, alone: Amount, reaches: Amount) -> dict[str, object]:
    amounts = {"alone": size(alone.bytes), "objects": f"{alone.objects:,}"}
    return {"pin": name, **amounts, "reaches": size(reaches.bytes), "objects reached": f"{reaches.objects:,}"}


def by_group(found: Pins) -> Iterator[dict[str, object]]:
    for group, (names, more) in zip(found.groups, told_apart(found.groups), strict=True):
        yield together(group.amount, f"{', '.join(names)} {more}".rstrip())
    if found.groups_left:
        yield together(found.left, f"{many(found.groups_left, 'more group')}; see --limit")


def together(amount: Amount, names: str) -> dict[str, object]:
    return {"size": size(amount.bytes), "objects": f"{amount.objects:,}", "kept by": names}
