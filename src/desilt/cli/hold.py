"""`desilt hold`: orders to keep, whatever a policy says."""

from datetime import datetime, timedelta

import click

from desilt.cli.command import DesiltGroup
from desilt.cli.common import with_repository
from desilt.cli.output import done, emit, when
from desilt.cli.params import END
from desilt.executors.executor import HERE
from desilt.jobs import holds
from desilt.jobs.rules.paths import has_path
from desilt.records.holds import Hold, HoldKind
from desilt.repository.protocol import Repository

COLUMNS = ["id", "kind", "value", "state", "until", "made", "reason"]


@click.group(cls=DesiltGroup)
def hold() -> None:
    """Order something to be kept, with a reason; see what is, and lift it.

    While a hold counts no run removes what it names: `desilt lifecycle` heeds all three kinds, `desilt gc` those on an
    address (what is committed it never removes). A sweep that is under way heeds it too, from its next batch on.
    """


@hold.command()
@with_repository
@click.option("--prefix", help="Every path that begins so, on all branches and in all commits.")
@click.option("--ref", help="Everything in the commit that this branch, tag or commit points to now.")
@click.option("--address", help="One object: branches/…, as `desilt lake stat` shows it, or its whole URI.")
@click.option("--reason", required=True, metavar="TEXT", help="For whoever finds the hold in a year.")
@click.option("--until", type=END, help="When it ends, or after how long; by default, it is for good.")
def add(
    repository: Repository,
    prefix: str | None,
    ref: str | None,
    address: str | None,
    reason: str,
    until: datetime | timedelta | None,
    as_json: bool,
) -> None:
    """Keep what --prefix, --ref or --address names."""
    made = holds.hold(repository, *holds.one_of(prefix, ref, address), reason=reason, until=until)
    if made.kind is HoldKind.PREFIX and not as_json and not has_path(repository.source(HERE), made.value):
        click.echo(f"warning: no path begins with {made.value!r} today; look for a misspelling", err=True)
    end = f"until {when(made.until)} UTC" if made.until else "for good"
    text = f"Hold {made.id} keeps {made.kind} {made.value!r} {end}"
    done(text, row(made, repository.clock()), as_json=as_json)


@hold.command()
@with_repository
def ls(repository: Repository, as_json: bool) -> None:
    """List holds, the oldest first, and whether each still counts."""
    now = repository.clock()
    emit((row(one, now) for one in holds.every(repository)), COLUMNS, as_json=as_json, empty="There are no holds.")


@hold.command()
@with_repository
@click.argument("hold_id", metavar="ID")
def rm(repository: Repository, hold_id: str, as_json: bool) -> None:
    """Lift the hold ID. What it kept goes with the next run, if it is old enough."""
    holds.lift(repository, hold_id)
    done(f"Hold {hold_id} is lifted", {"id": hold_id, "removed": True}, as_json=as_json)


def row(one: Hold, now: datetime) -> dict[str, object]:
    return {
        "id": one.id,
        "kind": one.kind.value,
        "value": one.value,
        "state": "active" if one.counts(now) else "expired",
        "until": one.until,
        "made": one.made_at,
        "reason": one.reason,
    }
