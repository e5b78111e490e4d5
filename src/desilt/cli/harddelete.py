"""`desilt harddelete`: what was never committed goes once nothing points to it any more."""

import sys
from dataclasses import asdict
from datetime import timedelta

import click

from desilt.cli.command import DesiltGroup
from desilt.cli.common import with_repository
from desilt.cli.job import max_deletes_option
from desilt.cli.metrics import note, with_metrics
from desilt.cli.output import done, emit_one, json_line, one_line
from desilt.cli.params import SHARE, SPAN
from desilt.cli.progress import Told
from desilt.cli.reports import SWEPT_IN_PART, finish, outcome, page, told
from desilt.cli.ways_on import command
from desilt.domain.units import many
from desilt.errors import BadRequest, span
from desilt.jobs.harddelete.setting import setting_of
from desilt.jobs.harddelete.worker import hard_delete_of, keep_removing, remove
from desilt.repository.hard_delete import GRACE, MAX_SHARE, HardDeleteSetting, WantedBack
from desilt.repository.protocol import Repository
from desilt.runs.report import Amount, Report

SHOWN = 10  # paths that are not restored; --json has all
share_option = click.option(
    "--max-share",
    type=SHARE,
    help="Stop if more than this share of all objects would go within an hour, such as 50%.",
)


@click.group(cls=DesiltGroup)
def harddelete() -> None:
    """Remove what was never committed as soon as nothing points to it any more: overwritten, removed, reset.

    Off unless it is switched on. The transaction that drops the last staged reference to an upload condemns it. For a
    grace period `restore` stages it again; then a worker removes it: `desilt harddelete run`, once or with --watch.
    What was ever committed is never touched: that is for `desilt lifecycle`, `retention` and `collect`. What was
    staged before it was on, and what crashes leave behind, `desilt gc` collects as ever.
    """


@harddelete.command()
@with_repository
@click.option("--grace", type=SPAN, default=GRACE, help="How long what is dropped can be restored.  [10m]")
@click.option(
    "--max-share",
    type=SHARE,
    default=MAX_SHARE,
    help="Workers stop if more than this share of all objects would go within an hour.  [50%]",
)
def on(repository: Repository, grace: timedelta, max_share: float, as_json: bool) -> None:
    """Switch hard delete on, or set it otherwise; what is staged already is left to `desilt gc`."""
    setting = setting_of(grace, max_share)
    hard_delete_of(repository).switch(setting)
    how = "as each command ends" if not grace else f"{span(grace)} after nothing points to them any more"
    text = f"Hard delete is on for {repository.name}: uploads that are never committed go {how}."
    way_on = "" if not grace else f"\nLet a worker run: {command('harddelete run', '--watch')}"
    done(f"{text}{way_on}", {"repository": repository.name, "on": True, **facts(setting)}, as_json=as_json)


@harddelete.command()
@with_repository
def off(repository: Repository, as_json: bool) -> None:
    """Switch hard delete off: what is staged is left to `desilt gc`; what was condemned, a last `run` removes."""
    hard_delete = hard_delete_of(repository)
    watched, found = hard_delete.switch(None), hard_delete.discards()
    text = f"Hard delete is off for {repository.name}"
    text += f"; {many(watched, 'staged upload')} left to `desilt gc`" if watched else ""
    if waiting := found.waiting + found.claimed:
        text += f"; {many(waiting, 'object')} condemned before: {command('harddelete run')} removes them"
    row = {"repository": repository.name, "on": False, "released": watched, "waiting": found.waiting + found.claimed}
    done(text, row, as_json=as_json)


@harddelete.command()
@with_repository
def status(repository: Repository, as_json: bool) -> None:
    """Say whether hard delete is on, what it watches, and what waits to be removed."""
    hard_delete = hard_delete_of(repository)
    setting, found = hard_delete.setting(), hard_delete.discards()
    if as_json:
        row = {"repository": repository.name, "on": setting is not None, **facts(setting), **asdict(found)}
        click.echo(json_line(row))
        return
    says = f"on, grace {span(setting.grace)}, at most {setting.max_share:.0%} within an hour" if setting else "off"
    emit_one(
        {
            "hard delete": says,
            "watched": f"{many(found.fresh, 'staged upload')} never committed",
            "waiting": f"{told(Amount(found.waiting, found.waiting_bytes))}, can be restored",
            "claimed": f"{told(Amount(found.claimed, found.claimed_bytes))} by workers",
            "due now": many(found.due, "object"),
            "oldest": found.oldest or "",
            "removed": f"{many(found.removed, 'object')} within the hour, of {found.stored:,}",
        },
        as_json=False,
    )


@harddelete.command()
@with_repository
@with_metrics
@click.option("--watch", is_flag=True, help="Go on until it is stopped, removing what becomes due.")
@share_option
@max_deletes_option
def run(
    repository: Repository, watch: bool, max_share: float | None, max_deletes_per_second: int | None, as_json: bool
) -> None:
    """Remove what has waited for its grace; one worker, or as many as you like at once.

    Workers take no lock: each claims some objects, and has them for ten minutes. One that is killed leaves its claim to
    the others. What somebody ordered to be kept meanwhile (`desilt hold`) stays. If too large a share of the lake
    would go within an hour, nothing goes, and the command ends with 10.
    """
    if not watch:
        progress = Told()
        try:
            report = remove(
                repository, max_share=max_share, max_deletes_per_second=max_deletes_per_second, watch=progress
            )
        finally:
            progress.ends()
        show(repository, report, as_json=as_json)
        return
    if not as_json:
        click.echo("Watching; Ctrl-C ends it, and nothing is lost by that.", err=True)
    for report in keep_removing(repository, max_share=max_share, max_deletes_per_second=max_deletes_per_second):
        note(report)
        if as_json:
            click.echo(one_line(report.to_json()))
        elif report.swept:
            click.echo(f"Run {report.run}: {outcome(report.swept)}")
        sys.stdout.flush()


@harddelete.command()
@with_repository
@click.option("--branch", help="What was staged on this branch.")
@click.option("--prefix", metavar="PATH", help="What was staged below it.")
@click.option("--address", "addresses", multiple=True, metavar="ADDRESS", help="One object; may be given often.")
@click.option("--all", "everything", is_flag=True, help="Whatever waits.")
def restore(
    repository: Repository,
    branch: str | None,
    prefix: str | None,
    addresses: tuple[str, ...],
    everything: bool,
    as_json: bool,
) -> None:
    """Stage again what was reset or removed by mistake, as long as no worker has claimed it.

    An entry comes back to its path if that was not written since. All of it comes back in one transaction.
    """
    if not (branch or prefix or addresses or everything):
        raise BadRequest("say what is to come back: --branch, --prefix, --address or --all")
    back = hard_delete_of(repository).restore(WantedBack(branch, prefix or "", addresses))
    done(f"{told(Amount(back.objects, back.bytes))} staged again", asdict(back), as_json=as_json)
    if not as_json:
        for path in back.written[:SHOWN]:
            click.echo(f"{path} was written since, or its branch is gone: not restored", err=True)
        if more := len(back.written[SHOWN:]):
            click.echo(f"… and {more:,} more", err=True)
        if back.late:
            click.echo(f"{many(back.late, 'object')} too late: a worker has claimed them", err=True)
    if back.written or back.late:
        raise click.exceptions.Exit(SWEPT_IN_PART)


def show(repository: Repository, report: Report | None, *, as_json: bool) -> None:
    """What a worker did."""
    if report is None:
        waiting = hard_delete_of(repository).discards()
        later = f"; {many(waiting.waiting, 'object')} can still be restored" if waiting.waiting else ""
        done(f"Nothing is due{later}", {"run": None, **asdict(waiting)}, as_json=as_json)
        return
    note(report)
    if as_json:
        click.echo(one_line(report.to_json()))
    elif report.swept:
        click.echo(f"Run {report.run}: {outcome(report.swept)}")
        click.echo(f"The whole list is in {page(repository, report)}")
    finish(report)


def facts(setting: HardDeleteSetting | None) -> dict[str, object]:
    if setting is None:
        return {}
    return {"grace_seconds": setting.grace.total_seconds(), "max_share": setting.max_share}
