"""A plan carried out: guard, sweep, audit, and the report of what came of it."""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from desilt.errors import Refused, RunGivenUp, StorageFailed
from desilt.jobs import versions, watermark
from desilt.jobs.job import STORED, Job
from desilt.jobs.report import done, marks_of, publish
from desilt.jobs.situation import let_pass, situation
from desilt.logs import logger
from desilt.records import ledger
from desilt.records.database import Transaction
from desilt.records.ledger import BatchRow, RunState
from desilt.render.report import PageList
from desilt.runs.known import outcome
from desilt.runs.report import Report
from desilt.runs.steps import Action
from desilt.sweep.guard import guard
from desilt.sweep.guard import row as row_of
from desilt.sweep.limits import Limits
from desilt.sweep.steps import carry_out
from desilt.sweep.steps import fates as fates_of
from desilt.sweep.sweep import Sweep

log = logger(__name__)


def execute(job: Job[Any], work: Sweep, report: Report, limits: Limits, listed: PageList | None = None) -> Report:
    """Carry a plan out, or on where it was cut off; one that was carried out is only told of.

    ``listed`` is what goes as the page of the plan lists it, where that was made a moment ago.
    """
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
    job.first(work)
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
    fates = carry_out(replace(work, tables=job.traits.tables, per_second=limits.max_deletes_per_second))
    _audit(job, work)
    seconds = {**report.seconds, "sweep": round(time.monotonic() - began, 3)}
    return _told(work, replace(report, seconds=seconds), fates, listed)


def _told(
    work: Sweep, report: Report, fates: Mapping[str, str] | None = None, listed: PageList | None = None
) -> Report:
    """The report of a run that is over, with what came of it; written unless it was."""
    repository, made = work.repository, work.plan
    if report.swept is None:
        swept = outcome(repository, made.run)
        report = replace(
            report,
            swept=swept,
            bucket_versions=versions.left_by(repository, work.executor, made, swept),
            objections=(),
            refs={**fates_of(repository, made), **(fates or {})},
            history={**report.history, **done(repository, work.folder, made)},
            marks=marks_of(repository) if made.action is Action.MARK else {},
            place=report.place
            if report.place == work.executor.place
            else f"{report.place}; swept {work.executor.place}",
        )
        publish(repository, work.folder, report, made, listed)
    return report


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
