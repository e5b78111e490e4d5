"""What became of one step, or would."""

from contextlib import suppress
from dataclasses import replace

from desilt.errors import DesiltError
from desilt.records.ledger import RunRow
from desilt.repository.protocol import Repository
from desilt.runs.known import report_of
from desilt.runs.report import Amount, Report
from desilt.runs.upkeep import StepReport, StepState

CUT_OFF, FINISHED = "run that was cut off, and is finished first:", "finished a run that was cut off:"


def ordered_to_stay(objects: int) -> str:
    return f"{objects:,} are held by people's orders" if objects else ""


def told(step: str, report: Report) -> StepReport:
    """What a run of a job came to, as a step."""
    found = StepReport(
        step,
        StepState.NOTHING,
        run=report.run,
        action=report.action,
        planned=report.removed,
        tables=report.tables,
        history=report.history,
    )
    if report.swept is None:
        state = StepState.PLANNED if report.does else StepState.NOTHING
        return replace(found, state=state, objections=report.objections, passes=report.passes)
    removed = Amount(report.swept.removed, report.swept.bytes)
    state = StepState.PARTLY if report.left else StepState.DONE if report.does else StepState.NOTHING
    return replace(found, state=state, removed=removed)


def finished(report: Report) -> StepReport:
    """A run that was cut off before, and is not any more."""
    return replace(told(report.job, report), why=f"{FINISHED} {report.run}")


def cut_off(repository: Repository, row: RunRow) -> StepReport:
    """What is left of a run that the next one finishes."""
    found = StepReport(row.job, StepState.PLANNED, f"{CUT_OFF} {row.id}", run=row.id, action=row.action)
    with suppress(DesiltError):
        report = report_of(repository, row.id)
        gone = Amount(report.swept.removed, report.swept.bytes) if report.swept else Amount()
        return replace(found, planned=report.removed - gone, tables=report.tables)
    return found
