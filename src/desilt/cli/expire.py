"""`desilt expire` and `desilt abandon`: history made shorter."""

import functools
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import click

from desilt.cli.command import DesiltCommand, DesiltGroup
from desilt.cli.common import with_repository
from desilt.cli.complete import refs as refs_known
from desilt.cli.job import CLOCK_HELP, DEFAULT, Words, plan_and_show, run_and_show
from desilt.cli.metrics import with_metrics
from desilt.cli.params import COUNTS, DAY_OR_SPAN, MOMENT, SHARE
from desilt.cli.place import with_executor
from desilt.cli.progress import Told
from desilt.domain.expiry import Omission
from desilt.domain.modes import MODES, Mode
from desilt.errors import BadRequest
from desilt.executors.executor import Executor, Here
from desilt.jobs.expire import job as expiration
from desilt.repository.protocol import Repository
from desilt.sweep.limits import Limits

Command = Callable[..., None]


@click.group(cls=DesiltGroup)
def expire() -> None:
    """Hide history from before a date; keep what refs point to, and what rules keep.

    The oldest commit of each branch and tag that is young enough gets the root as its parent, or the nearest commit
    that a rule keeps: in place, with its own id and time. No object is removed and no commit is: what no ref reaches
    any more can be read by its id until `desilt collect` takes it.
    """


def with_wish(command: Command) -> Command:
    """What to expire, as options; the command gets ``ask``."""

    @click.option(
        "--older-than", type=DAY_OR_SPAN, required=True, help="Commits from before this date, or older than 30d."
    )
    @click.option("--keep-last", type=click.IntRange(1), help="Keep so many commits of each branch and tag.")
    @click.option(
        "--keep",
        type=COUNTS,
        help="Keep one commit, the newest, of each of the last N hours, days, weeks, months, years that have any: "
        "hourly=24,daily=7,weekly=4,monthly=12,yearly=3.",
    )
    @click.option("--delete-expired-tags", is_flag=True, help="Tags on commits that are older go.")
    @click.option(
        "--delete-expired-branches",
        is_flag=True,
        help="Branches on commits that are older go; never the default branch, nor one with staged entries or open "
        "uploads.",
    )
    @click.option(
        "--sizes/--no-sizes",
        default=True,
        help="Say what a collection afterwards would free; that looks at every entry.  [yes]",
    )
    @click.option(
        "--mode",
        type=click.Choice(MODES),
        help="What becomes of an old commit that a branch or a tag points to. design: it stays as it is, with all it "
        "descends from. v1: it stays, and gets the root as its parent; the history of others leads past it. v2: the "
        "same, but it stays in the history of others; what is old and nothing points to leaves history at once, and "
        "cannot be read by its id any more. v1 and v2 are what Icechunk's own library does to its two formats, and "
        "there only; lakes have design alone.  [the repository's own]",
    )
    @click.option("--now", type=MOMENT, help="Count ages from this time; it may look back.")
    @click.option(
        "--max-share",
        type=SHARE,
        default=DEFAULT.max_share,
        help="Of the commits that refs reach: not more are abandoned, counted from the most within 30 days.  [30%]",
    )
    @functools.wraps(command)
    def wrapped(
        repository: Repository,
        *values: Any,
        older_than: datetime | timedelta,
        keep_last: int | None,
        keep: dict[str, int] | None,
        delete_expired_tags: bool,
        delete_expired_branches: bool,
        mode: Mode | None,
        sizes: bool,
        now: datetime | None,
        max_share: float,
        **rest: Any,
    ) -> None:
        ask = {
            "now": now,
            "older_than": older_than,
            "keep": keep,
            "keep_last": keep_last,
            "delete_expired_tags": delete_expired_tags,
            "delete_expired_branches": delete_expired_branches,
            "mode": mode,
            "sizes": sizes,
        }
        command(repository, *values, ask=ask, limits=Limits(max_share=max_share), **rest)

    return wrapped


@expire.command()
@with_repository
@with_metrics
@with_wish
@with_executor
def plan(repository: Repository, executor: Executor, ask: Words, limits: Limits, as_json: bool) -> None:
    """Say which commits would be edited, which would be abandoned, and by which refs; change nothing.

    The plan is written into the repository, below _desilt/runs/expire/: history.json with every commit, and
    report.html with a picture of history before and after. `desilt sweep` carries it out.
    """
    plan_and_show(expiration.job, repository, executor, ask, limits, as_json=as_json)


@expire.command()
@with_repository
@with_metrics
@with_wish
@click.option("--confirm", is_flag=True, help="I have seen a plan of this, of the same age or a younger one.")
@click.option("--clock-is-right", is_flag=True, help=CLOCK_HELP)
@with_executor
def run(
    repository: Repository,
    executor: Executor,
    ask: Words,
    limits: Limits,
    confirm: bool,
    clock_is_right: bool,
    as_json: bool,
) -> None:
    """Plan, then edit history as planned, in one transaction.

    The first run needs --confirm: look at a plan before. It covers later runs that hide history as old, or older; not
    younger. Where branches or tags have moved since the plan was made, it is decided again, and only what still holds
    is done. The default branch, and branches with staged entries or open tickets, are never deleted.
    """
    limits = replace(limits, confirm=confirm, clock_is_right=clock_is_right)
    run_and_show(expiration.job, repository, executor, ask, limits, as_json=as_json)


@click.command(cls=DesiltCommand)
@with_repository
@click.argument("ref", shell_complete=refs_known)
@click.argument("commits", metavar="FIRST..LAST")
def abandon(repository: Repository, ref: str, commits: str, as_json: bool) -> None:
    """Leave the commits from FIRST, the newest, down to LAST out of the history of REF.

    The commit above FIRST gets the commit below LAST as its parent, in place. Refused where a branch or a tag points
    to one of them, and for the tip and the root. They can be read by their ids until `desilt collect` takes them.
    """
    first, between, last = commits.partition("..")
    if not (first and between and last) or last.startswith(".") or ".." in last:
        said = f"{commits!r} is not FIRST..LAST; write two commits of {ref!r} with two dots between them"
        raise BadRequest(f"{said}, the newest first")
    ask, limits = {"wish": Omission(ref, first, last)}, Limits(confirm=True, max_share=1.0)  # they are named one by one
    told = Told()
    try:
        run_and_show(expiration.job, repository, Here(told), ask, limits, as_json=as_json)
    finally:
        told.ends()
