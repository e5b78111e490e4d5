"""`desilt upkeep`: a lake kept in order by one file and one command."""

import sys
from dataclasses import asdict
from typing import BinaryIO

import click

from desilt.cli.command import DesiltGroup
from desilt.cli.common import with_repository
from desilt.cli.files import decoded, label
from desilt.cli.findings import show_findings, warn
from desilt.cli.job import CLOCK_HELP
from desilt.cli.metrics import note, note_codes, with_metrics
from desilt.cli.output import done, json_line, shown, when
from desilt.cli.place import with_executor
from desilt.cli.reports import bold, told
from desilt.cli.tables import show_table
from desilt.cli.ways_on import command, quoted
from desilt.domain.run import UPKEEP
from desilt.domain.units import size
from desilt.executors.executor import Executor
from desilt.jobs.documents import written
from desilt.render.upkeep import offer
from desilt.repository.protocol import Repository
from desilt.runs.report import Amount
from desilt.runs.upkeep import PAGE, STOPPED, StepReport, StepState, UpkeepReport
from desilt.upkeep import kept as keeping
from desilt.upkeep.chain import ALL, Chain
from desilt.upkeep.document import Upkeep, read_upkeep

CODES = {StepState.PARTLY: 3, StepState.REFUSED: 10, StepState.WAITS: 10, StepState.FAILED: 1, StepState.NOT_TRIED: 1}
file_argument = click.argument("file", type=click.File("rb"), metavar="UPKEEP")
file_option = click.option(
    "--file", "file", type=click.File("rb"), metavar="FILE", help="Go by this file, not by what is set."
)


@click.group(cls=DesiltGroup)
def upkeep() -> None:
    """Keep a lake in order: one file says what it does about its past, one command does what is due.

    \b
      lifecycle: {policy: {rules: {logs: {prefix: logs/, days: 30}}}}
      expire: {older_than: 30d, keep: "daily=7, weekly=4, monthly=12"}
      collect: {every: 7d}
      gc: {to: trash, every: 1d, max_share: 20%}
      trash: {older_than: 14d}

    A section for each step that is wanted, with the options of its job; `every` so often; `max_share`, `max_objects`,
    `allow_empty` and `max_deletes_per_second` as far as they are to differ. Jobs of other packages are steps like ours.
    """


@upkeep.command("set")
@with_repository
@file_argument
@click.option("--confirm", is_flag=True, help="It is meant so, whatever lint wants said twice.")
def set_(repository: Repository, file: BinaryIO, confirm: bool, as_json: bool) -> None:
    """Check UPKEEP, a file of JSON or YAML (- is stdin), and let later runs go by it.

    A lifecycle policy in it becomes the one of the repository, as `desilt lifecycle set` would make it.
    """
    wanted = read(file)
    found = keeping.findings(repository, wanted)
    keeping.agree(found, confirm=confirm)
    made = keeping.keep(repository, wanted, found)
    if not as_json:
        warn(found)
    steps = ", ".join(step.name for step in wanted.steps)
    text = f"Set an upkeep for {repository.name}: {steps}. See what it would do: {command('upkeep plan')}"
    row = {"repository": repository.name, "set_at": made.at, "steps": [step.name for step in wanted.steps]}
    done(text, {**row, "findings": list(map(asdict, found))}, as_json=as_json)


@upkeep.command()
@with_repository
def get(repository: Repository, as_json: bool) -> None:
    """Print the upkeep that runs go by, and when it was set; as YAML that `desilt upkeep set` reads."""
    made = keeping.kept(repository)
    if as_json:
        row = {"repository": repository.name, "set_at": made.at, "upkeep": made.upkeep.document}
        click.echo(json_line(row))
    else:
        click.echo(f"# The upkeep of {repository.name}, set {when(made.at)} UTC")
        click.echo(written(made.upkeep.document), nl=False)


@upkeep.command()
@with_repository
@file_argument
def lint(repository: Repository, file: BinaryIO, as_json: bool) -> None:
    """Say what UPKEEP, a file of JSON or YAML (- is stdin), cannot mean, or should say twice; set nothing.

    Exits with 0 if there is no error, with 1 if there is, and with 2 where it cannot be read at all.
    """
    show_findings(keeping.findings(repository, read(file)), as_json=as_json)


@upkeep.command()
@with_repository
@with_metrics
@file_option
@with_executor
def plan(repository: Repository, file: BinaryIO | None, executor: Executor, as_json: bool) -> None:
    """Say what each step that is due would do, and what would be stored at the end of it; remove nothing.

    Every step leaves a plan of its own, with its report; one page tells of all, below _desilt/runs/upkeep/.
    """
    given = wanted(repository, file)
    chain = Chain(repository, executor, given, sweeps=False, given=file is not None, file=named(file))
    show(repository, executor, chain, as_json=as_json)


@upkeep.command()
@with_repository
@with_metrics
@file_option
@click.option(
    "--confirm",
    "confirm",
    multiple=True,
    metavar="STEP",
    help=f"I have seen a plan of this step; `{ALL}` is every step. May be repeated.",
)
@click.option("--clock-is-right", is_flag=True, help=CLOCK_HELP)
@with_executor
def run(
    repository: Repository,
    file: BinaryIO | None,
    confirm: tuple[str, ...],
    clock_is_right: bool,
    executor: Executor,
    as_json: bool,
) -> None:
    """Do what is due, in the right order: each step with its own plan, guards and record.

    A refusal that is about the lake (a clock, a restored database, damage) stops everything. One about a limit or a
    policy stops its own step, and what depends on it; the rest goes on. Exit codes: 0 all that was due is done, 3 some
    objects could not be removed, 10 a step was refused, 11 another run is at work, 1 something failed.
    """
    steps = [name for one in confirm for name in one.replace(",", " ").split()]
    chain = Chain(
        repository,
        executor,
        wanted(repository, file),
        sweeps=True,
        given=file is not None,
        file=named(file),
        confirm=steps,
        clock_is_right=clock_is_right,
    )
    show(repository, executor, chain, as_json=as_json)


def wanted(repository: Repository, file: BinaryIO | None) -> Upkeep:
    if file is None:
        return keeping.kept(repository).upkeep
    given = read(file)
    found = keeping.findings(repository, given)
    keeping.agree(found, confirm=True)
    warn(found)
    return given


def named(file: BinaryIO | None) -> str:
    """As it can be given again."""
    return "" if file is None or file is sys.stdin.buffer else quoted(str(file.name))


def read(file: BinaryIO) -> Upkeep:
    return read_upkeep(decoded(file), name=label(file))


def show(repository: Repository, executor: Executor, chain: Chain, *, as_json: bool) -> None:
    """Carry it out, say what came of it, and leave with its exit code."""
    found = chain()
    executor.watch.ends()
    note(*chain.finished, *chain.reports.values())
    note_codes({one.step: CODES.get(one.state, 0) for one in found.steps} | {UPKEEP: found.exit_code})
    if as_json:
        click.echo(found.to_json(), nl=False)
    else:
        show_steps(found)
        click.echo(f"\nThe page is {repository.uri}_desilt/runs/{UPKEEP}/{found.run}/{PAGE}")
        show_ways_on(found)
    show_stopped(found)
    if found.exit_code:
        raise click.exceptions.Exit(found.exit_code)


def show_steps(found: UpkeepReport) -> None:
    going = "removed" if found.swept else "would go"
    rows = [
        {
            "step": one.step,
            "state": one.state.value,
            going: size((one.removed if found.swept else one.planned).bytes),
            "objects": f"{(one.removed if found.swept else one.planned).objects:,}",
            "freed later": size(one.frees.bytes) if one.frees.objects else "",
            "": said(one),
        }
        for one in found.steps
    ]
    show_table(rows, ["step", "state", going, "objects", "freed later", ""])
    click.echo()
    if found.stored.objects:
        end = "is stored now" if found.swept and not found.freed_later.objects else "is stored at the end of it"
        before, after = in_trash(found.trash), in_trash(found.trash_left)
        click.echo(f"{bold('Before')}: {told(found.stored)}{before}. {bold(size(found.left.bytes))} {end}{after}.")
    if found.freed_later.objects:
        click.echo(f"{told(found.freed_later)} of what goes is freed by a later collection, once its days are over.")


def in_trash(amount: Amount) -> str:
    return f", and {told(amount)} in the trash" if amount.objects else ""


def said(step: StepReport) -> str:
    if step.due:
        return f"due {step.due[:16].replace('T', ' ')}"
    if step.state in (StepState.REFUSED, StepState.FAILED):
        return f"{told(step.planned)} would go" if step.planned.objects else ""  # why not is told below
    history = [f"{name} {number:,}" for name, number in step.history.items() if number]
    return step.why or ", ".join(history)


def show_ways_on(found: UpkeepReport) -> None:
    """What guards say to each step, and what would be let pass."""
    for one in found.steps:
        facts = "; ".join(objection.fact for objection in one.objections)
        settings, sweep = offer(found, one) if facts else ("", "")
        if facts and one.state not in STOPPED:
            click.echo(f"\n{bold(one.step)}: {facts}")
        if settings:
            click.echo(f"  if that is right, the section of {one.step} must say: {settings}")
        elif sweep:
            click.echo(f"  if all of that is right: {command('sweep', one.run, one.passes or '')}")
    if found.command:
        once = ", once that is set" if any(one.objections and offer(found, one)[0] for one in found.steps) else ""
        click.echo(f"\nTo agree to all of it{once}: {command('upkeep run', found.command)}")


def show_stopped(found: UpkeepReport) -> None:
    """Where a scheduler's mail comes from: what somebody must look at."""
    for one in found.steps:
        if one.state in (StepState.REFUSED, StepState.FAILED):
            facts = "; ".join(objection.fact for objection in one.objections) or one.why
            click.echo(f"error: {one.step}: {shown(facts)}", err=True)
