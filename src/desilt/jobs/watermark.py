"""Where the next run of a job begins: read, and moved on once a run has swept all that it planned.

It moves only from where the run began. If another run came between, or was cut off, what
either knows is not all there is to know: the next one looks at everything.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from desilt.columns.files import as_json
from desilt.executors.executor import Executor
from desilt.jobs import leftovers
from desilt.records import ledger, watermarks
from desilt.records.database import Transaction
from desilt.records.ledger import BatchRow
from desilt.repository.protocol import Repository
from desilt.runs.plan import Plan


def standing(repository: Repository, job: str, *, version: int) -> tuple[str, Mapping[str, Any]] | None:
    """The run that swept last, and what it left; None if one was cut off since, or it was another version."""
    with repository.records.read() as tx:
        found = watermarks.find(tx, repository.uid, job)
        cut_off = ledger.sweeping(tx, repository.uid, job=job)
    if found is None or cut_off:
        return None
    return found if found[1].get("version") == version else None


def current(repository: Repository, job: str) -> str:
    """The run whose watermark stands, though a run need not begin there; "" if none does."""
    with repository.records.read() as tx:
        found = watermarks.find(tx, repository.uid, job)
    return found[0] if found else ""


def moving(
    repository: Repository, executor: Executor, plan: Plan, batches: Sequence[BatchRow]
) -> Callable[[Transaction], None]:
    """What moves it on, in the transaction that ends a run; a job without one is left alone."""
    following = plan.next
    if following is None:
        return lambda _: None
    value = following.value
    if value is not None and following.again:
        left = leftovers.gather(repository, executor, plan, batches, following.settled)
        value = {**value, following.again: [*value[following.again], *map(as_json, left)]}

    def move(tx: Transaction) -> None:
        found = watermarks.find(tx, repository.uid, plan.job)
        if value is not None and (found[0] if found else "") == following.base:
            watermarks.write(tx, repository.uid, plan.job, plan.run, value)
        else:
            watermarks.forget(tx, repository.uid, plan.job)

    return move
