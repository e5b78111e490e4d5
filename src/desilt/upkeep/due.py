"""When a step is due: so long after its job was last carried out, by whomever."""

from datetime import datetime, timedelta

from desilt.records import ledger
from desilt.records.ledger import RunState
from desilt.repository.protocol import Repository
from desilt.upkeep.document import StepWish

SLACK = timedelta(hours=1)  # a scheduler is a little early or late: a day is over after 23 hours


def due_at(repository: Repository, step: StepWish) -> datetime | None:
    """The moment from which on it is; None: it always is, or was never done."""
    if step.every is None:
        return None
    with repository.records.read() as tx:
        rows = ledger.every(tx, repository.uid, job=step.name)
    last = next((row.started_at for row in rows if row.state is RunState.SWEPT), None)
    return None if last is None else last + step.every - min(SLACK, step.every / 10)
