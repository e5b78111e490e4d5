"""`desilt runs`: every run there was, and what became of it."""

import click

from desilt.cli.changes import as_json as in_json
from desilt.cli.changes import change_of
from desilt.cli.command import REPO, DesiltGroup
from desilt.cli.common import with_repository
from desilt.cli.complete import runs as runs_known
from desilt.cli.config import everywhere
from desilt.cli.output import done, emit, one_line
from desilt.cli.reports import show as show_report
from desilt.cli.run_files import export, open_page
from desilt.domain.units import many, size
from desilt.errors import BadRequest
from desilt.jobs import registry
from desilt.jobs.unfinished import give_up as end
from desilt.records.ledger import RunState
from desilt.repository.protocol import Repository
from desilt.runs.known import KnownRun, every, report_of


class ListedByDefault(DesiltGroup):
    """`desilt runs REPO` is `desilt runs list REPO`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        named = bool(args) or everywhere(ctx, REPO) is not None
        if named and (not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names)):
            args.insert(0, "list")
        return super().parse_args(ctx, args)


@click.group(cls=ListedByDefault)
def runs() -> None:
    """List the runs of a repository (`desilt runs REPO`), or tell of one (`desilt runs show REPO RUN`)."""


runs.add_command(open_page)
runs.add_command(export)


@runs.command("list")
@with_repository
@click.option("--job", help="Only runs of this job, such as gc.")
def list_runs(repository: Repository, job: str | None, as_json: bool) -> None:
    """List runs, the newest first: plans, and what was swept, even where the run's folder is gone."""
    found = every(repository, job=job)
    if job is not None and not found and job not in registry.names():
        raise BadRequest(f"there is no job {job!r}; there are {', '.join(registry.names())}")
    emit(
        (row(known, as_json=as_json) for known in found),
        ["run", "job", "started", "state", "planned", "removed", "size"],
        as_json=as_json,
        empty="No runs yet; begin with `desilt gc plan`.",
    )


def row(known: KnownRun, *, as_json: bool) -> dict[str, object]:
    swept = known.swept
    facts = {"run": known.id, "job": known.job, "started": known.started_at, "state": known.state}
    if as_json:
        return {
            **facts,
            "planned": known.planned.objects,
            "removed": swept.removed if swept else 0,
            "size": swept.bytes if swept else 0,
            "bytes_planned": known.planned.bytes,
            "failed": swept.failed if swept else 0,
            "edits": known.edits,
            "refs": known.refs,
        }
    if not registry.traits(known.job).removes:
        return {**facts, "planned": planned(known), "removed": "", "size": ""}
    return {
        **facts,
        "planned": planned(known),
        "removed": swept.removed if swept else 0,
        "size": size(swept.bytes) if swept else "",
    }


def planned(known: KnownRun) -> str:
    """So many objects, and what is done to history: “12”, “4 edits, 1 ref”, “12, 3 commits”."""
    history = (known.edits, registry.traits(known.job).edits), (known.refs, "ref")
    parts = [many(number, noun) for number, noun in history if number]
    return ", ".join([f"{known.planned.objects}", *parts] if known.planned.objects or not parts else parts)


@runs.command()
@with_repository
@click.argument("run", shell_complete=runs_known)
def show(repository: Repository, run: str, as_json: bool) -> None:
    """Tell of RUN (its id, the beginning of it, or `last`): what it planned, and what became of that."""
    report = report_of(repository, run)
    if as_json:
        click.echo(one_line(in_json(report, change_of(repository, report))))
    else:
        show_report(repository, report)


@runs.command("give-up")
@with_repository
@click.argument("run", shell_complete=runs_known)
def give_up(repository: Repository, run: str, as_json: bool) -> None:
    """End RUN, which was cut off, without finishing it: for a job that is not installed any more.

    What it has removed stays removed. What it was about to remove stays gone for readers, and comes back with
    `desilt restore`.
    """
    end(repository, run)
    done(f"Gave up run {run}", {"run": run, "state": RunState.ABANDONED}, as_json=as_json)
