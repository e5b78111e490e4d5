"""The sentence that every job shares: open a run, mark, plan, report; guard, sweep, audit.

plan     removes nothing, needs no lock, and leaves only its folder behind
sweep    carries a plan out, or takes it up where it was cut off
run      both, after finishing what an earlier run left unfinished
"""

import os
from dataclasses import replace
from datetime import datetime
from typing import Any

from desilt.clock import ManualClock
from desilt.domain.run import Run, new_run
from desilt.domain.times import check_date
from desilt.errors import BadRequest, Conflict, MissingTable
from desilt.executors.executor import Executor
from desilt.jobs import registry
from desilt.jobs.execution import execute
from desilt.jobs.guarded import NOTHING, against
from desilt.jobs.job import Job, Mark, Request, Work
from desilt.jobs.report import planned, publish
from desilt.jobs.situation import check_clock
from desilt.jobs.unfinished import finish, unfinished
from desilt.logs import logger, under_way
from desilt.objects import store_clock
from desilt.records import locks
from desilt.render.report import PageList
from desilt.repository.protocol import Repository
from desilt.runs import folder as folders
from desilt.runs import plan as plans
from desilt.runs.folder import Folder
from desilt.runs.history import FILE as HISTORY
from desilt.runs.plan import Plan
from desilt.runs.report import Amount, Report, read_report
from desilt.sweep.limits import Limits
from desilt.sweep.sweep import Sweep
from desilt.sweep.versions import check as check_versions

DEFAULT = Limits()
log = logger(__name__)


def plan(
    job: Job[Any],
    repository: Repository,
    executor: Executor,
    request: Request[Any] | None = None,
    limits: Limits = DEFAULT,
    *,
    before: Amount = NOTHING,
) -> Report:
    """Mark what may go, remove nothing; the plan and its report are in the run's folder.

    The report says what guards would say to a sweep with ``limits``, once as much as ``before`` has gone.
    """
    probed = store_clock.last_asked(repository.store)
    job, wanted = registry.trusted(job), request or job.asked(repository)
    job.check_kind(repository)
    opened = open_run(repository, job.name, now=wanted.now)
    with under_way(opened.id):
        return _plan(job, repository, executor, wanted, opened, probed, limits, before)[1]


def run(
    job: Job[Any],
    repository: Repository,
    executor: Executor,
    request: Request[Any] | None = None,
    limits: Limits = DEFAULT,
) -> list[Report]:
    """Finish what an earlier run left unfinished, then plan and sweep; a report of each."""
    probed = store_clock.last_asked(repository.store)
    job, wanted = registry.trusted(job), request or job.asked(repository)
    job.check_kind(repository)
    opened = open_run(repository, job.name, now=wanted.now)
    with under_way(opened.id), locks.held(repository.records, repository.uid, run=opened.id) as lock:
        repository.gate.settle_moves()  # a run that was cut off as it began is one to be finished
        finished = [finish(repository, executor, row, limits, lock) for row in unfinished(repository)]
        made, report, listed = _plan(job, repository, executor, wanted, opened, probed, limits)
        return [*filter(None, finished), execute(job, Sweep(repository, made, lock, executor), report, limits, listed)]


def finish_all(repository: Repository, executor: Executor, limits: Limits = DEFAULT) -> list[Report]:
    """Finish what earlier runs left unfinished; a report of each that was."""
    if not unfinished(repository):
        return []
    with locks.held(repository.records, repository.uid, run="finish") as lock:
        repository.gate.settle_moves()
        found = [finish(repository, executor, row, limits, lock) for row in unfinished(repository)]
    return [one for one in found if one is not None]


def sweep(repository: Repository, executor: Executor, run_id: str, limits: Limits = DEFAULT) -> Report:
    """Carry out the plan of a run; one that was swept before is only told of."""
    found = folders.find(repository.store, repository.prefix, run_id)
    folder, job = Folder(repository.store, repository.prefix, found), registry.find(found.job)
    made, report = plans.read(folder, repository.secret), read_report(folder.get_text("report.json"))
    with under_way(made.run), locks.held(repository.records, repository.uid, run=made.run) as lock:
        repository.gate.settle_moves()
        for row in unfinished(repository):
            if row.id != made.run:
                finish(repository, executor, row, limits, lock)
        return execute(job, Sweep(repository, made, lock, executor), report, limits)


def open_run(repository: Repository, job: str, *, now: datetime | None) -> Run:
    """A run at ``now``, which may look back freely, and ahead only where the clock is a manual one."""
    clock = repository.clock()
    if now is not None:
        check_date(now)
    repository.gate.quiet_since()  # before the store is asked for the time, and nobody can tell any more
    check_clock(repository)
    if not isinstance(repository.clock, ManualClock) and now is not None and now > clock:
        raise BadRequest(f"--now {now.isoformat()} is ahead of this clock, {clock.isoformat()}; look back only")
    last = folders.newest(repository.store, repository.prefix)
    return new_run(job, now=now or clock, started_at=clock, entropy=os.urandom(4), last=last)


def _plan(
    job: Job[Any],
    repository: Repository,
    executor: Executor,
    request: Request[Any],
    opened: Run,
    probed: datetime | None,
    limits: Limits,
    before: Amount = NOTHING,
) -> tuple[Plan, Report, PageList]:
    log.info("planning %s of %r as of %s", job.name, repository.name, opened.now.isoformat())
    repository.gate.check()
    check_versions(repository, request.action)
    marked = _mark(job, Work(opened, repository, repository.source(executor), executor, request))
    if not registry.is_ours(job):
        marked = registry.unvouched(job, marked)
    folder = Folder(repository.store, repository.prefix, opened)
    made = Plan(
        opened.id,
        job.name,
        opened.now,
        repository.uid,
        repository.gate.safety,
        request.action,
        repository.store.delete_batch,
        marked.evidence,
        marked.steps,
        marked.next,
        probed,
    )
    found, passes = against(job, repository, made, limits, before)
    report = planned(repository, opened, marked, made)
    words = None if passes is None else passes.words() if made.does_something else ""
    report = replace(report, place=executor.place, objections=found, passes=words)
    executor.watch.begins("report")
    if marked.figures.change is not None:
        folder.put_text(HISTORY, marked.figures.change.to_json())
    listed = publish(repository, folder, report, made)
    plans.write(folder, made, repository.secret)
    log.info("planned: %s objects of %s bytes would go", made.removes.objects, made.removes.bytes)
    return made, report, listed


def _mark(job: Job[Any], work: Work[Any]) -> Mark:
    gate = work.repository.gate
    edited = gate.standing([]).edited
    try:
        return job.mark(work)
    except MissingTable as error:
        if gate.standing([]).edited == edited:
            raise
        raise Conflict("commits were collected while the plan was made; plan again") from error
