"""What a guard looks at besides the plan: clocks, earlier runs, and whether the database still knows its own past."""

from collections.abc import Iterator
from datetime import datetime

from desilt.clock import ManualClock
from desilt.domain.run import Run, started
from desilt.errors import DesiltError
from desilt.jobs.job import Job
from desilt.lake import ledger, repositories, restored, timekeeping, traces
from desilt.lake.database import Transaction
from desilt.lake.repository import Repository
from desilt.runs import folder as folders
from desilt.runs import plan as plans
from desilt.runs.folder import Folder
from desilt.runs.plan import Plan, run_of
from desilt.runs.report import Amount
from desilt.sweep.guard import CLOCKS, WINDOW, Situation


def situation(job: Job, repository: Repository, made: Plan) -> Situation:
    """How things are as ``made`` is about to be swept."""
    now = repository.clock()
    quiet = quiet_since(repository, made.probed)  # before the store is asked for the time
    earlier = [plan for plan in seen_before(repository, job) if plan.run != made.run]
    with repository.database.read() as tx:
        runs = ledger.every(tx, repository.uid)
        recovered, ask_again_from = restored.recovery(tx, repository.uid)
        return Situation(
            now,
            timekeeping.store_time(repository.store),
            repository.uid,
            repository.name,
            job.policy(repository, made),
            [row for row in runs if row.id != made.run],
            Amount(*ledger.removed_since(tx, repository.uid, now - WINDOW)),
            same_past=knows(tx, repository, made),
            edited=repositories.edited(tx, repository.uid),
            lost=lost(tx, repository, made, earlier),
            against=job.against(repository, made) if made.removes.objects or made.refs else "",
            recovered=recovered,
            ask_again_from=ask_again_from,
            since_copy=None if job.heeds_copies else restored.kept_since(repository.core),
            quiet_since=quiet,
        )


def quiet_since(repository: Repository, *others: datetime | None) -> datetime | None:
    """The last that was done here before the clock may have jumped; ``others`` are traces that are known besides.

    It is remembered: whoever asks the store for the time next leaves a trace of this clock.
    """
    if isinstance(repository.clock, ManualClock):
        return None  # it is meant to be moved
    now = repository.clock()
    times = [one for one in (*others, timekeeping.last_asked(repository.store)) if one is not None]
    with repository.database.read() as tx:
        found = traces.quiet_since(tx, repository.core, now, times)
    if found is not None:
        with repository.database.write() as tx:
            traces.suspect(tx, repository.uid, found, now)
    return found


def let_pass(repository: Repository, made: Plan) -> None:
    """Write down that the guard had nothing against ``made``."""
    folder = Folder(repository.store, repository.prefix, run_of(made))
    folder.put_json(plans.SWEPT, {"at": repository.clock().isoformat(), "generation": made.generation})


def seen_before(repository: Repository, job: Job) -> Iterator[Plan]:
    """Plans in the store, newest first, back to the last one that was swept."""
    for name, run_id in folders.runs_of(repository.store, repository.prefix, job=job.name):
        folder = Folder(repository.store, repository.prefix, Run(run_id, name, started(run_id)))
        try:
            yield plans.read(folder, repository.core.secret)
        except DesiltError:
            continue  # unfinished, or unreadable: it tells nothing
        if folder.has(plans.SWEPT) and started(run_id) <= repository.clock() + CLOCKS:  # else a clock was wrong then
            return


def knows(tx: Transaction, repository: Repository, plan: Plan) -> bool:
    """Whether the database has the very move of refs that ``plan`` saw last."""
    known = repositories.mark_at(tx, repository.uid, plan.generation) == plan.mark
    return known and repositories.generation(tx, repository.uid) >= plan.generation


def lost(tx: Transaction, repository: Repository, made: Plan, earlier: list[Plan]) -> str:
    """What the database has no longer; "" if nothing."""
    for plan in earlier:
        if not knows(tx, repository, plan):
            return f"the database does not know generation {plan.generation} of refs, which plan {plan.run} saw"
        collected = plan.generation < repositories.edited(tx, repository.uid)  # or history was edited, at least
        if plan.commits > made.commits and plan.generation <= made.generation and not collected:
            return f"there are {made.commits:,} commits, plan {plan.run} saw {plan.commits:,}"
    return ""
