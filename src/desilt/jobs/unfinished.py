"""Runs that began to sweep and were cut off: found, taken up where they stopped, or given up."""

from typing import Any

from desilt.errors import (
    BadRequest,
    Conflict,
    JournalBroken,
    NotFound,
    OutgrownPolicy,
    OutsidePrefix,
    PlanOutdated,
    StalePlan,
    Unreadable,
)
from desilt.executors.executor import Executor
from desilt.jobs import registry
from desilt.jobs.execution import execute
from desilt.jobs.job import Job
from desilt.logs import logger, under_way
from desilt.records import ledger, locks, watermarks
from desilt.records.ledger import RunRow, RunState
from desilt.records.locks import Lock
from desilt.repository.protocol import Repository
from desilt.runs import folder as folders
from desilt.runs import plan as plans
from desilt.runs.folder import Folder
from desilt.runs.report import Report, read_report
from desilt.sweep.limits import Limits
from desilt.sweep.sweep import Sweep

log = logger(__name__)


def unfinished(repository: Repository) -> list[RunRow]:
    """Runs of any job that began to sweep and were cut off, oldest first."""
    with repository.records.read() as tx:
        return ledger.sweeping(tx, repository.uid)[::-1]


def give_up(repository: Repository, run_id: str) -> None:
    """End a run that was cut off and cannot be finished; what it condemned stays gone, or comes back by a restore."""
    row = next((one for one in unfinished(repository) if one.id == run_id), None)
    if row is None:
        raise NotFound("unfinished run", run_id, "see `desilt runs`")
    with under_way(row.id), locks.held(repository.records, repository.uid, run=row.id) as lock:
        _end_unfinished(repository, row, lock)


def _end_unfinished(repository: Repository, row: RunRow, lock: Lock) -> None:
    with repository.records.write() as tx:
        locks.check(tx, lock)
        left = ledger.find(tx, repository.uid, row.id)
        if left is None or left.state is not RunState.SWEEPING:
            raise Conflict(f"run {row.id} is over")
        ledger.end(tx, repository.uid, row.id, RunState.ABANDONED, at=repository.clock(), fence=lock.fence)
        watermarks.forget(tx, repository.uid, row.job)


def finish(repository: Repository, executor: Executor, row: RunRow, limits: Limits, lock: Lock) -> Report | None:
    """Take up a run that was cut off; None if it is too late for that, and the next looks at everything again."""
    try:
        job = registry.find(row.job)
    except (NotFound, BadRequest) as error:
        said = f"run {row.id} of {row.job!r} was cut off, and no package here brings that job"
        way_out = f"install it again, or give the run up with `desilt runs give-up {row.id}`"
        raise Conflict(f"{said}; {way_out}") from error
    with under_way(row.id):
        log.info("%s was cut off, and is taken up again", row.job)
        return _taken_up(job, repository, executor, row, limits, lock)


def _taken_up(
    job: Job[Any], repository: Repository, executor: Executor, row: RunRow, limits: Limits, lock: Lock
) -> Report | None:
    try:
        folder = Folder(repository.store, repository.prefix, folders.find(repository.store, repository.prefix, row.id))
        made, report = plans.read(folder, repository.secret), read_report(folder.get_text("report.json"))
        return execute(job, Sweep(repository, made, lock, executor), report, limits)
    except JournalBroken:
        raise  # of the repository, not of the run
    except (StalePlan, PlanOutdated, OutgrownPolicy, OutsidePrefix, NotFound, Unreadable) as reason:
        try:
            _end_unfinished(repository, row, lock)
        except Conflict:
            raise reason from None  # it is over, and on record: only its report is missing
        log.warning("given up (%s): %s", reason.code, reason)
        return None
