"""The sentence that every job shares: open a run, mark, plan, report; guard, sweep, audit.

plan     removes nothing, needs no lock, and leaves only its folder behind
sweep    carries a plan out, or takes it up where it was cut off
run      both, after finishing what an earlier run left unfinished
"""

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256

from desilt.clock import ManualClock
from desilt.domain.run import Run, new_run
from desilt.domain.times import check_date
from desilt.errors import (
    BadRequest,
    Conflict,
    JournalBroken,
    MissingTable,
    NotFound,
    OtherPolicy,
    OutgrownPolicy,
    OutsidePrefix,
    Refused,
    StalePlan,
    StorageFailed,
    Unreadable,
    WrongTime,
)
from desilt.jobs import every
from desilt.jobs.job import Ask, Job, Marked
from desilt.jobs.place import opening
from desilt.jobs.reporting import done, planned, publish
from desilt.jobs.situation import let_pass, quiet_since, situation
from desilt.lake import dropped, ledger, locks, moves, repositories, tickets, timekeeping, traces, watermarks
from desilt.lake.events import run_began
from desilt.lake.ledger import RunRow, RunState
from desilt.lake.locks import Lock
from desilt.lake.repository import Repository
from desilt.lake.restored import check_partitions
from desilt.runs import folder as folders
from desilt.runs import plan as plans
from desilt.runs.folder import Folder
from desilt.runs.history import FILE as HISTORY
from desilt.runs.plan import Plan, run_of
from desilt.runs.report import Report, Swept, read_report
from desilt.sources.inventory import every_partition
from desilt.sources.lake import LakeSource
from desilt.sources.spread import Spread
from desilt.sweep.branches import fates as fates_of
from desilt.sweep.guard import CLOCKS, Limits, Situation, guard
from desilt.sweep.guard import row as row_of
from desilt.sweep.sweeping import pieces, sweep_piece

TICKET_LIVES = 2  # after which the row of an expired ticket is dropped
AS_USUAL, DEFAULT = Ask(), Limits()


def plan(job: Job, repository: Repository, spread: Spread, ask: Ask = AS_USUAL) -> Report:
    """Mark what may go, remove nothing; the plan and its report are in the run's folder."""
    probed = timekeeping.last_asked(repository.store)
    return _plan(job, repository, spread, ask, open_run(repository, job.name, now=ask.now), probed)[1]


def run(
    job: Job, repository: Repository, spread: Spread, ask: Ask = AS_USUAL, limits: Limits = DEFAULT
) -> list[Report]:
    """Finish what an earlier run left unfinished, then plan and sweep; a report of each."""
    probed = timekeeping.last_asked(repository.store)
    opened = open_run(repository, job.name, now=ask.now)
    with locks.held(repository.database, repository.uid, run=opened.id) as lock:
        moves.settle(repository.core)  # a run that was cut off as it began is one to be finished
        finished = [_finish(repository, spread, row, limits, lock) for row in unfinished(repository)]
        made, report = _plan(job, repository, spread, ask, opened, probed)
        return [*filter(None, finished), _sweep(job, repository, spread, made, report, limits, lock)]


def sweep(repository: Repository, spread: Spread, run_id: str, limits: Limits = DEFAULT) -> Report:
    """Carry out the plan of a run; one that was swept before is only told of."""
    found = folders.find(repository.store, repository.prefix, run_id)
    folder, job = Folder(repository.store, repository.prefix, found), every.find(found.job)
    made, report = plans.read(folder, repository.core.secret), read_report(folder.get_text("report.json"))
    with locks.held(repository.database, repository.uid, run=made.run) as lock:
        moves.settle(repository.core)
        for row in unfinished(repository):
            if row.id != made.run:
                _finish(repository, spread, row, limits, lock)
        return _sweep(job, repository, spread, made, report, limits, lock)


def unfinished(repository: Repository) -> list[RunRow]:
    """Runs of any job that began to sweep and were cut off, oldest first."""
    with repository.database.read() as tx:
        rows = ledger.every(tx, repository.uid)
    return [row for row in reversed(rows) if row.state is RunState.SWEEPING]


def open_run(repository: Repository, job: str, *, now: datetime | None) -> Run:
    """A run at ``now``, which may look back freely, and ahead only where the clock is a manual one."""
    clock = repository.clock()
    if now is not None:
        check_date(now)
    quiet_since(repository)  # before the store is asked for the time, and nobody can tell any more
    check_clock(repository)
    if not isinstance(repository.clock, ManualClock) and now is not None and now > clock:
        raise BadRequest(f"--now {now.isoformat()} is ahead of this clock, {clock.isoformat()}; look back only")
    last = next((run_id for _, run_id in folders.runs_of(repository.store, repository.prefix, job=job)), None)
    return new_run(job, now=now or clock, started_at=clock, entropy=os.urandom(4), last=last)


def check_clock(repository: Repository) -> None:
    """Refuse to go on with a clock that the object store's contradicts."""
    clock, store_now = repository.clock(), timekeeping.store_time(repository.store)
    if abs(clock - store_now) > CLOCKS:
        raise WrongTime(clock, store_now, "the object store's")


def _plan(
    job: Job, repository: Repository, spread: Spread, ask: Ask, opened: Run, probed: datetime | None
) -> tuple[Plan, Report]:
    moves.check(repository.core)
    marked = _mark(job, repository, spread, ask, opened)
    folder = Folder(repository.store, repository.prefix, opened)
    made = Plan(
        run=opened.id,
        job=job.name,
        now=opened.now,
        repository=repository.uid,
        policy=marked.policy,
        action=ask.action,
        generation=marked.generation,
        mark=marked.mark,
        commits=marked.inputs["commits"],
        held=marked.held,
        stored=marked.stored,
        measure=marked.measure,
        batch=repository.store.delete_batch,
        base=marked.base,
        files=marked.answer.files,
        saves=marked.saves,
        refs=tuple(marked.refs),
        history=marked.history,
        tidies=tuple(marked.tidies),
        watches=marked.watches,
        period=None if marked.period is None else marked.period // timedelta(microseconds=1),
        probed=probed,
        after_restore=ask.after_restore,
        ranges=sha256(judged).hexdigest() if (judged := folder.judged_ranges()) else "",
        dropped_for=marked.dropped_for // timedelta(microseconds=1),
    )
    report = planned(repository, opened, marked, ask.action)
    spread.watch.begins("report")
    if marked.change is not None:
        folder.put_text(HISTORY, marked.change.to_json())
    publish(repository, folder, report, made)
    plans.write(folder, made, repository.core.secret)
    return made, report


def _mark(job: Job, repository: Repository, spread: Spread, ask: Ask, opened: Run) -> Marked:
    with repository.database.read() as tx:
        edited = repositories.edited(tx, repository.uid)
    try:
        return job.mark(opened, LakeSource(repository, spread), spread, ask)
    except MissingTable as error:
        with repository.database.read() as tx:
            if repositories.edited(tx, repository.uid) == edited:
                raise
        raise Conflict("commits were collected while the plan was made; plan again") from error


def _sweep(
    job: Job, repository: Repository, spread: Spread, made: Plan, report: Report, limits: Limits, lock: Lock
) -> Report:
    folder = Folder(repository.store, repository.prefix, run_of(made))
    with repository.database.read() as tx:
        known = ledger.find(tx, repository.uid, made.run)
    if known is not None and known.state is RunState.ABANDONED:
        raise OtherPolicy(made.run, "was cut off, and given up")
    if known is not None and known.state is not RunState.SWEEPING:
        return _told(repository, folder, made, report)
    moves.settle(repository.core)
    moves.check(repository.core)
    if made.removes.objects and not job.heeds_copies:
        check_partitions(repository.core, every_partition(repository.store, repository.prefix))
    seen = situation(job, repository, made)
    guard(made, limits, seen, resuming=known is not None)
    began = time.monotonic()
    _begin(repository, made, limits, seen, lock, known)
    let_pass(repository, made)
    with repository.database.read() as tx:
        done = {row.number for row in ledger.batches(tx, repository.uid, made.run) if row.file}
    fates = dict(job.before(repository, lock, made)) if job.before else {}
    spread.watch.begins("sweep")
    spread(sweep_piece, pieces(made, lock, opening(repository, spread), done, sent_at=repository.clock()), weigh=int)
    fates |= job.after(repository, lock, made) if job.after else {}
    _audit(job, repository, spread, made, lock)
    seconds = {**report.seconds, "sweep": round(time.monotonic() - began, 3)}
    return _told(repository, folder, made, replace(report, seconds=seconds), fates)


def _begin(
    repository: Repository, made: Plan, limits: Limits, seen: Situation, lock: Lock, known: RunRow | None
) -> None:
    """The run is on record, in the database and beside the objects, before it removes anything."""
    with moves.moving(repository.core) as move:
        locks.check(move.tx, lock)
        if limits.clock_is_right:
            traces.agree(move.tx, repository.uid, seen.now)
        traces.passed(move.tx, repository.uid, seen.now)
        if known is None:
            move.do(run_began(row_of(made, limits, seen, lock.fence)))


def _told(
    repository: Repository, folder: Folder, made: Plan, report: Report, told: Mapping[str, str] | None = None
) -> Report:
    """The report of a run that is over, with what came of it; written unless it was."""
    if report.swept is None:
        report = replace(
            report,
            swept=outcome(repository, made.run),
            refs={**fates_of(repository, made), **(told or {})},
            history={**report.history, **done(repository, folder, made)},
        )
        publish(repository, folder, report, made)
    return report


def outcome(repository: Repository, run_id: str) -> Swept | None:
    """What the ledger says of a run."""
    with repository.database.read() as tx:
        row, total = ledger.find(tx, repository.uid, run_id), ledger.total(ledger.batches(tx, repository.uid, run_id))
    if row is None:
        return None
    counts = total.asked, total.removed, total.gone, total.failed, total.held_again, total.removed_bytes
    return Swept(row.state, row.action, *counts)


def _finish(repository: Repository, spread: Spread, row: RunRow, limits: Limits, lock: Lock) -> Report | None:
    """Take up a run that was cut off; None if it is too late for that, and the next looks at everything again."""
    job = every.find(row.job)
    try:
        folder = Folder(repository.store, repository.prefix, folders.find(repository.store, repository.prefix, row.id))
        made, report = plans.read(folder, repository.core.secret), read_report(folder.get_text("report.json"))
        return _sweep(job, repository, spread, made, report, limits, lock)
    except JournalBroken:
        raise  # of the repository, not of the run
    except (StalePlan, OtherPolicy, OutgrownPolicy, OutsidePrefix, NotFound, Unreadable):
        with repository.database.write() as tx:
            locks.check(tx, lock)
            ledger.end(tx, repository.uid, row.id, RunState.ABANDONED, at=repository.clock(), fence=lock.fence)
            watermarks.forget(tx, repository.uid, job.name)
        return None


def _audit(job: Job, repository: Repository, spread: Spread, made: Plan, lock: Lock) -> None:
    """Every planned object has an outcome, and they add up: then the run is over, and the watermark moves."""
    with repository.database.read() as tx:
        batches = ledger.batches(tx, repository.uid, made.run)
    total = ledger.total(batches)
    complete = [row.number for row in batches] == list(range(made.batches)) and all(row.file for row in batches)
    if not complete or total.asked + total.held_again != made.removes.objects:
        raise StorageFailed(f"run {made.run} is not complete; go on with `desilt sweep`")
    if total.asked != total.removed + total.gone + total.failed:
        raise AssertionError(f"run {made.run}: asked {total.asked}, {total}")
    save = job.save(made, LakeSource(repository, spread), spread, batches)
    state = RunState.PARTLY if total.failed else RunState.SWEPT
    now = repository.clock()
    with repository.database.write() as tx:
        locks.check(tx, lock)
        save(tx)
        tickets.forget(tx, repository.uid, before=now - TICKET_LIVES * repository.core.ticket_life)
        dropped.forget(tx, repository.uid, before=now - dropped.KEPT)
        ledger.end(tx, repository.uid, made.run, state, at=now, fence=lock.fence)


def refusal(job: Job, repository: Repository, run_id: str, limits: Limits = DEFAULT) -> Refused | None:
    """What a guard would say to a sweep of this plan now."""
    folder = Folder(repository.store, repository.prefix, folders.find(repository.store, repository.prefix, run_id))
    made = plans.read(folder, repository.core.secret)
    try:
        guard(made, limits, situation(job, repository, made), resuming=False)
    except Refused as reason:
        return reason
    return None
