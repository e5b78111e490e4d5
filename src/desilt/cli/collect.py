"""`desilt collect`: what no ref reaches any more."""

import functools
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import click

from desilt.cli.command import DesiltGroup
from desilt.cli.common import with_repository
from desilt.cli.job import Words, plan_and_show, purge_option, purging, run_and_show, with_limits
from desilt.cli.metrics import with_metrics
from desilt.cli.params import MOMENT, SPAN
from desilt.cli.place import with_executor
from desilt.executors.executor import Executor
from desilt.jobs.collect import job as collection
from desilt.jobs.collect.options import Options
from desilt.repository.protocol import Repository
from desilt.runs.steps import CHOICES
from desilt.sweep.limits import Limits

Command = Callable[..., None]
USUAL = Options()


@click.group(cls=DesiltGroup)
def collect() -> None:
    """Remove commits that no branch, tag or hold reaches, and all that only they had.

    Commits first: from then on, whoever asks for one is told that it is gone. Then the objects that nothing else has
    (no other commit, staging area, ticket or hold), the ranges and metaranges that no commit has, and files of desilt
    itself that nobody needs: folders of old runs, caches. `desilt expire` and deleted branches and tags leave such
    commits behind; until they are collected, they can be read by their ids, and a new branch or tag saves them.

    In an Icechunk repository: snapshots that nothing reaches, then transaction logs, manifests and chunks that no other
    snapshot needs, all older than 7 days by the store's clock. What is young stays, with all that it needs, and a chunk
    that is needed and missing stops the run. All of it goes to the trash unless you say --to delete. `desilt restore`
    brings files back; which snapshots `repo` listed before is told by the copies of it in overwritten/.
    """


def with_scope(command: Command) -> Command:
    """What to leave alone, as options; the command gets ``ask``."""

    @click.option(
        "--older-than",
        type=SPAN,
        help="Leave younger commits and files alone.  [24h, and 10m for clocks; in an Icechunk repository 7d]",
    )
    @click.option(
        "--unreached-for",
        type=SPAN,
        default=USUAL.unreached_for,
        help="Leave commits alone that a ref or an expiration released since.  [1d; Icechunk does not tell]",
    )
    @click.option("--keep-runs", type=SPAN, default=USUAL.keep_runs, help="Keep the folders of younger runs.  [90d]")
    @click.option("--now", type=MOMENT, help="Judge ages as of this time; it may look back.")
    @click.option("--full", is_flag=True, help="Look at everything, whatever the last run saved.")
    @click.option(
        "--unsafe",
        is_flag=True,
        help="Icechunk: --older-than may be less than an hour. Open sessions lose what they have written before.",
    )
    @click.option(
        "--accept-missing",
        type=click.IntRange(0),
        default=USUAL.accept_missing,
        metavar="N",
        help="Icechunk: go on although up to N chunks that are needed are missing.  [0]",
    )
    @click.option(
        "--backups-older-than",
        type=SPAN,
        help="Icechunk: also move copies of `repo` in overwritten/ to the trash; its log of operations ends there.",
    )
    @click.option(
        "--to",
        "action",
        type=click.Choice([one.value for one in CHOICES]),
        help="Icechunk: the trash can be restored from.  [trash]",
    )
    @purge_option
    @functools.wraps(command)
    def wrapped(
        *values: Any,
        older_than: timedelta | None,
        unreached_for: timedelta,
        keep_runs: timedelta,
        now: datetime | None,
        full: bool,
        unsafe: bool,
        accept_missing: int,
        backups_older_than: timedelta | None,
        action: str | None,
        purge_versions: bool,
        **rest: Any,
    ) -> None:
        ask = {
            "now": now,
            "full": full,
            "older_than": older_than,
            "unreached_for": unreached_for,
            "keep_runs": keep_runs,
            "unsafe": unsafe,
            "accept_missing": accept_missing,
            "backups_older_than": backups_older_than,
            "action": purging(action) if purge_versions else action,
        }
        command(*values, ask=ask, **rest)

    return wrapped


@collect.command()
@with_repository
@with_metrics
@with_scope
@with_limits
@with_executor
def plan(repository: Repository, ask: Words, limits: Limits, executor: Executor, as_json: bool) -> None:
    """Say what would be removed, and why; remove nothing.

    The plan is written into the repository, below _desilt/runs/collect/: the commits that would go, Parquet files
    with every object and every range, report.json and report.html. `desilt sweep` carries it out.
    """
    plan_and_show(collection.job, repository, executor, ask, limits, as_json=as_json)


@collect.command()
@with_repository
@with_metrics
@with_scope
@with_limits
@with_executor
def run(repository: Repository, ask: Words, limits: Limits, executor: Executor, as_json: bool) -> None:
    """Plan, then remove what was planned; of an embedded lake there is no way back from it.

    The first run needs --confirm: look at a plan before. It covers later runs with the same --older-than and the same
    --unreached-for, or a longer one. Commits that a ref or a hold reaches by now are left alone, with all they have.
    Exit code 3: some files could not be removed, and a later run tries again. The next run of `desilt gc` looks at
    everything once more.
    """
    run_and_show(collection.job, repository, executor, ask, limits, as_json=as_json)
