"""A plan carried out, batch by batch, on the executors: condemned, removed, and written down.

A batch is known by its number. Its tombstones and its write-ahead record come in
one transaction, its results in another: killed at any point and done again, it
goes on from the last of the two, and sweeping twice is sweeping once.
"""

import hashlib
import io
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq

from desilt.domain.address import is_object, is_table
from desilt.errors import CorruptTable, FencedOff, NotFound, OutsidePrefix, WrongTime
from desilt.lake import ledger, locks, moves, tombstones
from desilt.lake.ledger import BatchRow
from desilt.lake.locks import Lock
from desilt.lake.repository import Repository
from desilt.lake.tombstones import State
from desilt.objects.store import ObjectStore, Outcome, Result
from desilt.runs.folder import Folder
from desilt.runs.plan import Action, Plan, PlanFile, run_of
from desilt.sweep.condemn import condemn
from desilt.sweep.guard import CLOCKS
from desilt.sweep.outcome import HELD_AGAIN, OUTCOME, write_outcome
from desilt.sweep.recheck import Recheck
from desilt.sweep.removing import Sure, now, remove

BATCHES_TO_A_PIECE = 20
COLLECT = "collect"  # the only job that is about metadata


@dataclass(frozen=True, slots=True)
class Piece:
    """Some batches of one plan file, for one task."""

    open: Callable[[], Repository]
    lock: Lock
    plan: Plan
    file: PlanFile
    first: int  # the number of the file's first batch
    numbers: range  # of the batches to sweep
    sent_at: datetime  # by the driver's clock


def pieces(
    plan: Plan, lock: Lock, open_repository: Callable[[], Repository], done: set[int], *, sent_at: datetime
) -> list[Piece]:
    """All batches of ``plan`` that are not ``done``."""
    found: list[Piece] = []
    first = 0
    for file in plan.files:
        last = first + -(-file.rows // plan.batch)
        for at in range(first, last, BATCHES_TO_A_PIECE):
            numbers = range(at, min(at + BATCHES_TO_A_PIECE, last))
            if not done.issuperset(numbers):
                found.append(Piece(open_repository, lock, plan, file, first, numbers, sent_at))
        first = last
    return found


def sweep_piece(piece: Piece) -> int:
    """On an executor: sweep these batches; how many objects they asked for."""
    repository = piece.open()
    if repository.clock() < piece.sent_at - CLOCKS:
        raise WrongTime(repository.clock(), piece.sent_at, "the driver's")
    rows = plan_rows(repository.store, piece.plan, piece.file)
    recheck = Recheck(repository, piece.plan)
    return sum(
        sweep_batch(repository, piece.lock, piece.plan, number, batch, recheck)
        for number, batch in batches(rows, piece)
    )


def batches(rows: pa.Table, piece: Piece) -> Iterator[tuple[int, pa.Table]]:
    for number in piece.numbers:
        yield number, rows.slice((number - piece.first) * piece.plan.batch, piece.plan.batch).combine_chunks()


def sweep_batch(repository: Repository, lock: Lock, plan: Plan, number: int, rows: pa.Table, recheck: Recheck) -> int:
    """One batch, from where it was left; how many objects were asked for."""
    with repository.database.read() as tx:
        known = ledger.batch(tx, repository.uid, plan.run, number)
    if known is not None and known.file:
        return known.asked
    moves.check(repository.core)
    began = now()
    back = condemn(repository, lock, plan, number, rows, recheck)

    def look() -> None:
        with repository.database.write() as tx:
            locks.check(tx, lock)
            ahead = ledger.batch(tx, repository.uid, plan.run, number)
            if ahead is None or ahead.file:  # another try has done it: what it removed may be there again
                raise FencedOff(plan.run, plan.run)

    sure = Sure(look, since=began)
    folder = Folder(repository.store, repository.prefix, run_of(plan))
    asked = [address for address in rows["address"].to_pylist() if address not in back]
    trash = [folder.trash + address for address in asked] if plan.action is Action.TRASH else None
    keys = [repository.prefix + address for address in asked]
    outcomes = remove(repository.store, keys, trash=trash, sure=sure, sleep=time.sleep) if keys else []
    if known is not None:  # cut off once: what it condemned then and is gone by now, it removed
        outcomes = [Outcome(one.key, Result.REMOVED) if one.result is Result.GONE else one for one in outcomes]
    file = f"{number:08d}-{secrets.token_hex(4)}.parquet"
    write_outcome(repository.store, folder.outcome + file, results(rows, back, outcomes))
    _record(repository, lock, plan, counted(number, file, rows, back, outcomes), outcomes)
    return len(asked)


def results(rows: pa.Table, back: dict[str, str], outcomes: Sequence[Outcome]) -> pa.Table:
    """The rows of a batch with what became of each, as OUTCOME."""
    following = iter(outcomes)
    told = [
        (HELD_AGAIN, back[address]) if address in back else _told(next(following))
        for address in rows["address"].to_pylist()
    ]
    columns = [rows[name] for name in ("address", "size_bytes", "modified_at")]
    columns += [pa.array([one[place] for one in told], pa.string()) for place in (0, 1)]
    return pa.table(columns, schema=OUTCOME)


def counted(number: int, file: str, rows: pa.Table, back: dict[str, str], outcomes: Sequence[Outcome]) -> BatchRow:
    """A batch in figures: asked = removed + gone + failed."""
    sizes = [
        size
        for address, size in zip(rows["address"].to_pylist(), rows["size_bytes"].to_pylist(), strict=True)
        if address not in back
    ]
    how_many = {result: sum(one.result is result for one in outcomes) for result in Result}
    return BatchRow(
        number,
        file,
        len(outcomes),
        how_many[Result.REMOVED],
        how_many[Result.GONE],
        how_many[Result.FAILED],
        len(rows) - len(outcomes),
        sum(size for size, one in zip(sizes, outcomes, strict=True) if one.result is Result.REMOVED),
    )


def _record(repository: Repository, lock: Lock, plan: Plan, done: BatchRow, outcomes: Sequence[Outcome]) -> None:
    """What became of a batch, in the ledger; whoever comes second to this changes nothing."""
    usual = State.TRASHED if plan.action is Action.TRASH else State.REMOVED
    with repository.database.write() as tx:
        locks.check(tx, lock)
        if not ledger.write_result(tx, repository.uid, plan.run, done, at=repository.clock()):
            return
        for result, state in ((Result.GONE, State.GONE), (Result.FAILED, State.FAILED)):
            some = [one.key.removeprefix(repository.prefix) for one in outcomes if one.result is result]
            tombstones.turn(tx, repository.uid, plan.run, some, state)
        tombstones.settle(tx, repository.uid, plan.run, done.number, usual)


def plan_rows(store: ObjectStore, plan: Plan, file: PlanFile) -> pa.Table:
    """The rows of a plan file as they were written, all of them objects of the repository; or none."""
    try:
        data = store.get(file.key)
    except NotFound:
        raise CorruptTable(file.key, "it is missing") from None
    if hashlib.sha256(data).hexdigest() != file.sha256:
        raise CorruptTable(file.key, "it is not what was planned")
    if file.tables and plan.job != COLLECT:
        raise OutsidePrefix(plan.run, file.key)
    rows = pq.read_table(io.BytesIO(data))
    if rows.num_rows != file.rows:
        raise CorruptTable(file.key, f"it has {rows.num_rows} rows, {file.rows} were planned")
    for address in rows["address"].to_pylist():
        if not (is_table(address) if file.tables else is_object(address)):
            raise OutsidePrefix(plan.run, address)
    return rows


def _told(outcome: Outcome) -> tuple[str, str]:
    return outcome.result.value, outcome.detail
