"""The sentence that every job shares: open a run, mark, plan, report; guard, sweep, audit.

plan     removes nothing, needs no lock, and leaves only its folder behind
sweep    carries a plan out, or takes it up where it was cut off
run      both, after finishing what an earlier run left unfinished
"""

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from desilt.clock import ManualClock
from desilt.domain.run import Run, new_run
from desilt.domain.times import check_date
from desilt.errors import (
    BadRequest,
    Conflict,
    JournalBroken,
    MissingTable,
    NotFound,
    OutgrownPolicy,
    OutsidePrefix,
    PlanOutdated,
    Refused,
    RunGivenUp,
    StalePlan,
    StorageFailed,
    Unreadable,
)
from desilt.executors.executor import Executor
from desilt.jobs import registry, watermark
from desilt.jobs.guarded import against
from desilt.jobs.job import STORED, Job, Mark, Request, Work
from desilt.jobs.report import done, planned, publish
from desilt.jobs.situation import check_clock, let_pass, situation
from desilt.logs import logger, under_way
from desilt.objects import store_clock
from desilt.records import ledger, locks, watermarks
from desilt.records.database import Transaction
from desilt.records.ledger import BatchRow, RunRow, RunState
from desilt.records.locks import Lock
from desilt.repository.protocol import Repository
from desilt.runs import folder as folders
from desilt.runs import plan as plans
from desilt.runs.folder import Folder
from desilt.runs.history import FILE as HISTORY
from desilt.runs.known import outcome
from desilt.runs.plan import Plan
from desilt.runs.report import Report, read_report
from desilt.sweep.guard import guard
from desilt.sweep.guard import row as row_of
from desilt.sweep.limits import Limits
from desilt.sweep.steps import carry_out
from desilt.sweep.steps import fates as fates_of
from desilt.sweep.sweep import Sweep

DEFAULT = Limits()
log = logger(__name__)


def plan(
    job: Job[Any],
    repository: Repository,
    executor: Executor,
    request: Request[Any] | None = None,
    limits: Limits = DEFAULT,
) -> Report:
    """Mark what may go, remove nothing; the plan and its report are in the run's folder.

    The report says what guards would say to a sweep with ``limits``.
    """
    probed = store_clock.last_asked(repository.store)
    wanted = request or job.ask()
    opened = open_run(repository, job.name, now=wanted.now)
    with under_way(opened.id):
        return _plan(job, repository, executor, wanted, opened, probed, limits)[1]


def run(
    job: Job[Any],
    repository: Repository,
    executor: Executor,
    request: Request[Any] | None = None,
    limits: Limits = DEFAULT,
) -> list[Report]:
    """Finish what an earlier run left unfinished, then plan and sweep; a report of each."""
    probed = store_clock.last_asked(repository.store)
    wanted = request or job.ask()
    opened = open_run(repository, job.name, now=wanted.now)
    with under_way(opened.id), locks.held(repository.records, repository.uid, run=opened.id) as lock:
        repository.gate.settle_moves()  # a run that was cut off as it began is one to be finished
        finished = [_finish(repository, executor, row, limits, lock) for row in unfinished(repository)]
        made, report = _plan(job, repository, executor, wanted, opened, probed, limits)
        return [*filter(None, finished), _sweep(job, Sweep(repository, made, lock, executor), report, limits)]


def sweep(repository: Repository, executor: Executor, run_id: str, limits: Limits = DEFAULT) -> Report:
    """Carry out the plan of a run; one that was swept before is only told of."""
    found = folders.find(repository.store, repository.prefix, run_id)
    folder, job = Folder(repository.store, repository.prefix, found), registry.find(found.job)
    made, report = plans.read(folder, repository.secret), read_report(folder.get_text("report.json"))
    with under_way(made.run), locks.held(repository.records, repository.uid, run=made.run) as lock:
        repository.gate.settle_moves()
        for row in unfinished(repository):
            if row.id != made.run:
                _finish(repository, executor, row, limits, lock)
        return _sweep(job, Sweep(repository, made, lock, executor), report, limits)


def unfinished(repository: Repository) -> list[RunRow]:
    """Runs of any job that began to sweep and were cut off, oldest first."""
    with repository.records.read() as tx:
        rows = ledger.every(tx, repository.uid)
    return [row for row in reversed(rows) if row.state is RunState.SWEEPING]


def open_run(repository: Repository, job: str, *, now: datetime | None) -> Run:
    """A run at ``now``, which may look back freely, and ahead only where the clock is a manual one."""
    clock = repository.clock()
    if now is not None:
        check_date(now)
    repository.gate.quiet_since()  # before the store is asked for the time, and nobody can tell any more
    check_clock(repository)
    if not isinstance(repository.clock, ManualClock) and now is not None and now > clock:
        raise BadRequest(f"--now {now.isoformat()} is ahead of this clock, {clock.isoformat()}; look back only")
    last = next((run_id for _, run_id in folders.runs_of(repository.store, repository.prefix, job=job)), None)
    return new_run(job, now=now or clock, started_at=clock, entropy=os.urandom(4), last=last)


def _plan(
    job: Job[Any],
    repository: Repository,
    executor: Executor,
    request: Request[Any],
    opened: Run,
    probed: datetime | None,
    limits: Limits,
) -> tuple[Plan, Report]:
    log.info("planning %s of %r as of %s", job.name, repository.name, opened.now.isoformat())
    repository.gate.check()
    marked = _mark(job, Work(opened, repository, repository.source(executor), executor, request))
    folder = Folder(repository.store, repository.prefix, opened)
    evidence = marked.evidence if registry.is_ours(job) else replace(marked.evidence, judged=None)
    made = Plan(
        opened.id,
        job.name,
        opened.now,
        repository.uid,
        repository.gate.safety,
        request.action,
        repository.store.delete_batch,
        evidence,
        marked.steps,
        marked.next,
        probed,
    )
    found, passes = against(job, repository, made, limits)
    report = planned(repository, opened, marked, made)
    report = replace(report, place=executor.place, objections=found, passes=passes)
    executor.watch.begins("report")
    if marked.figures.change is not None:
        folder.put_text(HISTORY, marked.figures.change.to_json())
    publish(repository, folder, report, made)
    plans.write(folder, made, repository.secret)
    log.info("planned: %s objects of %s bytes would go", made.removes.objects, made.removes.bytes)
    return made, report


def _mark(job: Job[Any], work: Work[Any]) -> Mark:
    gate = work.repository.gate
    edited = gate.standing([]).edited
    try:
        return job.mark(work)
    except MissingTable as error:
        if gate.standing([]).edited == edited:
            raise
        raise Conflict("commits were collected while the plan was made; plan again") from error


def _sweep(job: Job[Any], work: Sweep, report: Report, limits: Limits) -> Report:
    repository, made, gate = work.repository, work.plan, work.repository.gate
    with repository.records.read() as tx:
        known = ledger.find(tx, repository.uid, made.run)
    if known is not None and known.state is RunState.ABANDONED:
        raise RunGivenUp(made.run)
    if known is not None and known.state is not RunState.SWEEPING:
        return _told(work, report)
    gate.settle_moves()
    gate.check()
    if made.removes.objects and not job.traits.keeps_copied:
        source = repository.source(work.executor)
        source.check_inventory(source.folders(source.groups()))
    seen = situation(job, repository, made)
    try:
        guard(made, limits, seen, resuming=known is not None)
    except Refused as reason:
        log.warning("refused (%s): %s", reason.code, reason)
        raise
    began = time.monotonic()
    row = row_of(made, limits, seen, work.lock.fence) if known is None else None
    gate.begin(work.lock, row, now=seen.now, clock_is_right=limits.clock_is_right)
    let_pass(repository, made)
    log.info("sweeping %s batches%s", made.batches, "" if known is None else ", where an earlier try was cut off")
    fates = carry_out(replace(work, tables=job.traits.tables))
    _audit(job, work)
    seconds = {**report.seconds, "sweep": round(time.monotonic() - began, 3)}
    return _told(work, replace(report, seconds=seconds), fates)


def _told(work: Sweep, report: Report, fates: Mapping[str, str] | None = None) -> Report:
    """The report of a run that is over, with what came of it; written unless it was."""
    repository, made = work.repository, work.plan
    if report.swept is None:
        report = replace(
            report,
            swept=outcome(repository, made.run),
            objections=(),
            refs={**fates_of(repository, made), **(fates or {})},
            history={**report.history, **done(repository, work.folder, made)},
            place=report.place
            if report.place == work.executor.place
            else f"{report.place}; swept {work.executor.place}",
        )
        publish(repository, work.folder, report, made)
    return report


def _finish(repository: Repository, executor: Executor, row: RunRow, limits: Limits, lock: Lock) -> Report | None:
    """Take up a run that was cut off; None if it is too late for that, and the next looks at everything again."""
    try:
        job = registry.find(row.job)
    except NotFound:
        said = f"run {row.id} of {row.job!r} was cut off, and no package here brings that job"
        raise Conflict(f"{said}; install it again, then give the same command") from None
    with under_way(row.id):
        log.info("%s was cut off, and is taken up again", row.job)
        return _taken_up(job, repository, executor, row, limits, lock)


def _taken_up(
    job: Job[Any], repository: Repository, executor: Executor, row: RunRow, limits: Limits, lock: Lock
) -> Report | None:
    try:
        folder = Folder(repository.store, repository.prefix, folders.find(repository.store, repository.prefix, row.id))
        made, report = plans.read(folder, repository.secret), read_report(folder.get_text("report.json"))
        return _sweep(job, Sweep(repository, made, lock, executor), report, limits)
    except JournalBroken:
        raise  # of the repository, not of the run
    except (StalePlan, PlanOutdated, OutgrownPolicy, OutsidePrefix, NotFound, Unreadable) as reason:
        with repository.records.write() as tx:
            locks.check(tx, lock)
            left = ledger.find(tx, repository.uid, row.id)
            if left is not None and left.state is not RunState.SWEEPING:
                raise  # it is over, and on record: only its report is missing
            log.warning("given up (%s): %s", reason.code, reason)
            ledger.end(tx, repository.uid, row.id, RunState.ABANDONED, at=repository.clock(), fence=lock.fence)
            watermarks.forget(tx, repository.uid, job.name)
        return None


def _audit(job: Job[Any], work: Sweep) -> None:
    """Every planned object has an outcome, and they add up: then the run is over, and the watermark moves."""
    repository, made = work.repository, work.plan
    with repository.records.read() as tx:
        batches = ledger.batches(tx, repository.uid, made.run)
    total = ledger.total(batches)
    complete = [row.number for row in batches] == list(range(made.batches)) and all(row.file for row in batches)
    if not complete or total.asked + total.held_again != made.removes.objects:
        raise StorageFailed(f"run {made.run} is not complete; go on with `desilt sweep`")
    if total.asked != total.removed + total.gone + total.failed:
        raise AssertionError(f"run {made.run}: asked {total.asked}, {total}")
    job.publish(repository, made, batches)
    move = watermark.moving(repository, work.executor, made, batches)
    state = RunState.PARTLY if total.failed else RunState.SWEPT

    def write(tx: Transaction) -> None:
        move(tx)
        if made.evidence.after_restore and made.evidence.measure == STORED and job.traits.keeps_copied:
            repository.gate.release_copied(tx)
        ledger.end(tx, repository.uid, made.run, state, at=repository.clock(), fence=work.lock.fence)

    repository.gate.end(work.lock, write)
    log.info("%s: %s removed, %s gone, %s failed, %s held again", state.value, *_outcome(total))


def _outcome(total: BatchRow) -> tuple[int, int, int, int]:
    return total.removed, total.gone, total.failed, total.held_again
