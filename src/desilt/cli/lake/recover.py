"""`desilt lake recover`: a database that was restored from a copy, brought up to what the store knows."""

from dataclasses import asdict
from typing import Any

import click

from desilt.cli.command import DesiltCommand
from desilt.cli.common import with_repository
from desilt.cli.output import done, shown, when
from desilt.cli.progress import Told
from desilt.domain.units import many
from desilt.lake import journal
from desilt.lake.repository import LakeRepository
from desilt.recovery.recover import Recovered, Survey, survey
from desilt.recovery.recover import recover as bring_back

SHOWN = 10  # moves


@click.command(cls=DesiltCommand)
@with_repository
@click.option("--dry-run", is_flag=True, help="Only say what the store knows and the database does not.")
@click.option(
    "--give-up",
    is_flag=True,
    help="Leave the database as it is: commits, refs, holds and policies made since are lost.",
)
def recover(repository: LakeRepository, dry_run: bool, give_up: bool, as_json: bool) -> None:
    """Bring a database that was restored from a copy up to what the store knows.

    Every move of a ref, every hold and every policy is on record beside the objects, and every run has left there what
    it removed. Moves that the database lacks are made again, as they were; removals are told to it. What was staged
    since the copy is lost with the database that had it: objects that were uploaded since then, and that no commit
    has, stay until `desilt gc run --after-restore`.

    Until a restored database is recovered, nothing moves and no run removes anything.
    """
    found = survey(repository)
    if not as_json:
        show(found)
    if dry_run or not found:
        if as_json:
            done("", facts(found), as_json=True)
        return
    told = Told()
    try:
        made = bring_back(repository, give_up=give_up, watch=told)
    finally:
        told.ends()
    done(sentence(made, found), {**facts(found), "recovered": asdict(made)}, as_json=as_json)


def show(found: Survey) -> None:
    """What the store knows and the database does not."""
    if not found:
        click.echo("The database knows all that the store knows; there is nothing to recover.")
        return
    if found.moves:
        click.echo(
            f"The journal has {many(len(found.moves), 'move')} after {found.known.generation}, the database's last:"
        )
        for record in found.moves[:SHOWN]:
            click.echo(f"  {record.generation:>6}  {shown(journal.told(record))}")
        if len(found.moves) > SHOWN:
            newest = found.moves[-1]
            click.echo(f"  … and {len(found.moves) - SHOWN:,} more, up to {newest.generation}: {journal.told(newest)}")
    if found.broken:
        click.echo(f"The journal cannot be followed: {shown(found.broken)}")
    if found.runs:
        click.echo(f"{len(found.runs):,} runs swept since, which the database knows nothing of, or not all.")
    for run in found.unreadable:
        click.echo(f"What run {run} removed is not known: its plan cannot be read.")
    if found.partitions:
        click.echo(f"Objects lie in {len(found.partitions):,} partitions that the database never opened.")


def sentence(made: Recovered, found: Survey) -> str:
    """What was done."""
    if made.moves:
        first = f"Made {many(made.moves, 'move')} again, with {many(made.commits, 'commit')}"
    elif found.newest > found.known.generation:
        first = f"Gave up what the journal has after move {found.known.generation}"
    else:
        first = "The journal has no newer moves"
    parts = [first]
    if 0 < made.moves < len(found.moves):
        last = journal.told(found.moves[-1])
        parts.append(f"left the last one out ({shown(last)}), which may have been cut off: do it again if it is wanted")
    parts += [f"{made.removed:,} objects that {made.runs:,} runs removed are on record"] if made.runs else []
    parts += [f"{made.dropped:,} staged entries whose objects are gone were dropped"] if made.dropped else []
    since = f"{when(made.kept_since)} UTC" if made.kept_since else ""
    return (
        f"{'; '.join(parts)}. What was staged since the copy is lost; objects uploaded since {since} that no commit "
        "has stay until `desilt gc run --after-restore`."
    )


def facts(found: Survey) -> dict[str, Any]:
    return {
        "known": found.known.generation,
        "newest": found.newest,
        "moves": [{"generation": one.generation, "at": one.at, "did": journal.told(one)} for one in found.moves],
        "runs": [plan.run for plan in found.runs],
        "unreadable": list(found.unreadable),
        "partitions": list(found.partitions),
        "broken": found.broken,
    }
