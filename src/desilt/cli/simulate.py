"""`desilt lifecycle simulate`: a policy replayed over the past."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import BinaryIO

import click

from desilt.cli.command import DesiltCommand
from desilt.cli.common import with_repository
from desilt.cli.files import decoded, label
from desilt.cli.output import one_line
from desilt.cli.params import MOMENT, SPAN
from desilt.cli.place import with_executor
from desilt.cli.reports import bold, told
from desilt.cli.tables import show_table
from desilt.domain.policy import Policy
from desilt.domain.run import SIMULATIONS
from desilt.domain.units import many, size
from desilt.executors.executor import Executor
from desilt.jobs.lifecycle.policy_file import read_policy
from desilt.jobs.lifecycle.simulate import Rehearsal
from desilt.jobs.lifecycle.simulate import simulate as replay
from desilt.repository.protocol import Repository
from desilt.runs.report import Amount
from desilt.runs.simulation import PAGE, Side, Simulation, added, day

ROWS = 40  # of days that a terminal is shown


@click.command(cls=DesiltCommand)
@with_repository
@click.option("--policy", "new", type=click.File("rb"), required=True, metavar="FILE", help="The policy to replay.")
@click.option("--against", "old", type=click.File("rb"), metavar="FILE", help="Another one, to be compared with it.")
@click.option("--from", "first", type=MOMENT, required=True, help="The first day: 2026-01-31, or a time in it.")
@click.option("--to", "last", type=MOMENT, help="The last one.  [now]")
@click.option("--every", type=SPAN, default=timedelta(days=1), help="How often a run would have been made.  [1d]")
@with_executor
def simulate(
    repository: Repository,
    new: BinaryIO,
    old: BinaryIO | None,
    first: datetime,
    last: datetime | None,
    every: timedelta,
    executor: Executor,
    as_json: bool,
) -> None:
    """Say what a policy would have removed on each day, had it been in force; remove nothing.

    Each day is judged as a run then would have been, by the commits, branches, tags and holds there were; what one day
    takes is gone on the next. A day without a time is its first moment, in UTC. It is judged by the branches and tags
    there are today: those that were deleted since are not on record. What is staged counts on the last day only.

    The figures and a page with plots are written below _desilt/runs/simulate/: simulation.json and simulation.html.
    """
    asked = Rehearsal(read(new), read(old) if old else None, first, last, every)
    found = replay(repository, executor, asked)
    executor.watch.ends()
    if as_json:
        click.echo(one_line(found.to_json()))
    else:
        show(found)
        click.echo(f"\nThe page is {repository.uri}_desilt/runs/{SIMULATIONS}/{found.run}/{PAGE}")


def read(file: BinaryIO) -> Policy:
    return read_policy(decoded(file), name=label(file))


def show(found: Simulation) -> None:
    """What would have gone, by rule, by branch and by day."""
    days, two = found.days, len(found.sides) > 1
    times = many(len(days), "time")
    click.echo(f"Run {found.run} replayed {times} from {day(days[0])} to {day(days[-1])}, and removed nothing.")
    for side in found.sides:
        by = f", by the {side.name} policy" if two else ""
        click.echo(f"\n{bold('Would have gone')}{by}: {told(side.removed)}")
        show_table(by_rule(side), ["rule", "branch", "objects", "size"])
        rows = list(by_day(side))
        if rows:
            click.echo(f"\n{bold('By day')}{by}" + (f", the last {ROWS} of {len(rows):,}" if len(rows) > ROWS else ""))
            show_table(rows[-ROWS:], ["day", "rule", "objects", "size", "so far"])
    click.echo()
    for note in found.notes:
        click.echo(note)


def by_rule(side: Side) -> Iterator[dict[str, object]]:
    for rule, amount in side.rules.items():
        branches = side.by_rule[rule]
        if len(branches) != 1:
            yield row(amount, rule=rule, branch="all together")
        for branch, part in branches.items():
            yield row(part, rule=rule, branch=branch)


def by_day(side: Side) -> Iterator[dict[str, object]]:
    so_far: dict[str, Amount] = {}
    for step in side.steps:
        so_far = added([so_far, step.rules])
        for rule, amount in step.rules.items():
            yield {**row(amount, day=day(step.at), rule=rule), "so far": size(so_far[rule].bytes)}


def row(amount: Amount, **names: str) -> dict[str, object]:
    return {**names, "objects": amount.objects, "size": size(amount.bytes)}
