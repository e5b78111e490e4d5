"""What a gate of any kind writes down of a batch, and asks of what others wrote: in the records, nowhere else.

A batch is on record before anything of it is touched, and again when each object has a result. Whoever comes second
changes nothing.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from desilt.columns.schemas import DIVIDER
from desilt.errors import BatchOver
from desilt.objects.store import Outcome, Result
from desilt.records import condemning, ledger
from desilt.records import removals as tombstones
from desilt.records.database import Transaction
from desilt.records.ledger import BatchRow, RunState
from desilt.records.removals import DISCARDS, MARKS, SETTLED, State
from desilt.repository.gate import Batch


def known(tx: Transaction, repository: str, batch: Batch) -> dict[str, str] | None:
    """What is left out of a batch that was condemned before; None if it was not."""
    if ledger.batch(tx, repository, batch.run, batch.number) is None:
        return None
    condemned = {one.address for one in tombstones.of_run(tx, repository, batch.run, batch=batch.number)}
    return {address: "held again" for address in batch.rows["address"].to_pylist() if address not in condemned}


def others(
    tx: Transaction, repository: str, run: str, addresses: Sequence[str], *, lately: datetime, by_rules: bool
) -> dict[str, str]:
    """Which of ``addresses`` somebody else has, or had since ``lately``: by address, who."""
    back: dict[str, str] = {}
    for address, stone in tombstones.recorded(tx, repository, addresses).items():
        if stone.run == run:
            back[address] = "the plan names it twice"
        elif stone.state is State.RESTORING or (stone.restored_at is not None and stone.restored_at >= lately):
            back[address] = "it was restored since"
        elif stone.state in MARKS:
            back[address] = f"run {stone.run} has marked it for the store to remove"
        elif stone.state in DISCARDS:
            back[address] = "hard delete removes it"
        elif stone.state is State.TRASHED:
            back[address] = f"run {stone.run} moved it to the trash"
        elif stone.state in (State.REMOVED, State.GONE) and (by_rules or stone.condemned_at >= lately):
            back[address] = f"run {stone.run} removed it"  # a stray upload may come again, a committed object not
        elif stone.state not in SETTLED and at_work(tx, repository, stone.run):
            back[address] = f"run {stone.run} is about to remove it"  # the first wins until it is settled
    return back


def ahead(
    tx: Transaction,
    repository: str,
    batch: Batch,
    back: Mapping[str, str],
    *,
    at: datetime,
    tables: str | tuple[str, ...],
) -> None:
    """A batch, but for what is held again, before anything of it is touched; ``tables`` is where tables are."""
    reasons, details = (batch.rows[name].to_pylist() for name in ("reason", "detail"))
    said = list(zip(reasons, details, strict=True))
    rule = {one: rule_of(*one) for one in set(said)}  # of many that go by one rule, it is found once
    columns = (batch.rows[name].to_pylist() for name in ("address", "size_bytes"))
    going = [row for row in zip(*columns, said, strict=True) if row[0] not in back]
    rules: dict[str, dict[str, int]] = {name: {} for name in rule.values()}
    for address, size, one in going:
        rules[rule[one]][address] = size
    condemning.condemn(tx, repository, batch.run, batch.number, rules, at=at)
    of_tables = int(bool(going) and going[0][0].startswith(tables))
    row = BatchRow(batch.number, "", asked=len(going), held_again=len(back), tables=of_tables)
    ledger.write_ahead(tx, repository, batch.run, row)


def check_open(tx: Transaction, repository: str, batch: Batch) -> None:
    """Refuse to go on if another try has done it, or it was given up: what it removed may be there again."""
    row = ledger.batch(tx, repository, batch.run, batch.number)
    if row is None or row.file or not at_work(tx, repository, batch.run):
        raise BatchOver(batch.run, batch.number)


def results(
    tx: Transaction,
    repository: str,
    prefix: str,
    batch: Batch,
    done: BatchRow,
    outcomes: Sequence[Outcome],
    usual: State,
    *,
    at: datetime,
) -> None:
    """What became of each; whoever comes second changes nothing."""
    if not ledger.write_result(tx, repository, batch.run, done, at=at):
        return
    for result, state in ((Result.GONE, State.GONE), (Result.FAILED, State.FAILED)):
        some = [one.key.removeprefix(prefix) for one in outcomes if one.result is result]
        tombstones.turn(tx, repository, batch.run, some, state)
    tombstones.settle(tx, repository, batch.run, batch.number, usual)


def at_work(tx: Transaction, repository: str, run: str) -> bool:
    """Whether a run is at work, or will be taken up again."""
    row = ledger.find(tx, repository, run)
    return row is not None and row.state is RunState.SWEEPING


def rule_of(reason: str, detail: str) -> str:
    """What an object went by: the rules that its plan names before its paths, else the reason."""
    rules, divided, _ = detail.partition(DIVIDER)
    return rules if divided else reason
