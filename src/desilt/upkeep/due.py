"""When a step is due: so long after its job was last carried out, by whomever."""

from datetime import datetime, timedelta

from desilt.domain.times import CLOCK_MARGIN
from desilt.records import ledger
from desilt.records.ledger import RunRow, RunState
from desilt.repository.protocol import Repository
from desilt.runs.plan import ONE_BRANCH
from desilt.upkeep.document import StepWish

SLACK = timedelta(hours=1)  # a scheduler is a little early or late: a day is over after 23 hours


def due_at(repository: Repository, step: StepWish) -> datetime | None:
    """The moment from which on it is; None: it always is, or was never done."""
    if step.every is None:
        return None
    now = repository.clock()
    with repository.records.read() as tx:
        rows = ledger.every(tx, repository.uid, job=step.name)
    last = next((row.started_at for row in rows if row.state is RunState.SWEPT and counts(row, step, now)), None)
    return None if last is None else last + step.every - min(SLACK, step.every / 10)


def counts(row: RunRow, step: StepWish, now: datetime) -> bool:
    """Not if it was by a clock that was ahead, nor if it looked at one branch where all are meant, or the reverse."""
    one_branch = row.measure.startswith(ONE_BRANCH)
    return row.started_at <= now + CLOCK_MARGIN and one_branch == bool(step.words.get("branch"))
