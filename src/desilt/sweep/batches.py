"""A plan carried out, batch by batch, on the executors: condemned, removed, and written down.

A batch is known by its number. Its tombstones and its write-ahead record come in
one transaction, its results in another: killed at any point and done again, it
goes on from the last of the two, and sweeping twice is sweeping once.

A store behind a network is waited for, mostly: there the next batch is condemned while the last one is removed.
"""

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa

from desilt.clock import elapsed
from desilt.domain.times import CLOCK_MARGIN
from desilt.errors import BatchOver, OutsidePrefix, WrongTime
from desilt.logs import logger, under_way
from desilt.objects.store import Outcome, Result
from desilt.records import ledger
from desilt.records.ledger import BatchRow
from desilt.records.locks import Lock
from desilt.records.removals import State
from desilt.repository.gate import Batch, Held, Safety
from desilt.repository.handle import Access
from desilt.repository.protocol import Repository
from desilt.runs import plan_files
from desilt.runs.folder import Folder
from desilt.runs.plan import Plan, run_of
from desilt.runs.steps import Action, PlanFile, RemoveObjects, TakeCommits
from desilt.sweep.budget import Budget
from desilt.sweep.delete import Sure, delete
from desilt.sweep.outcome import HELD_AGAIN, MARKED, OUTCOME, write_outcome
from desilt.sweep.sweep import Sweep
from desilt.sweep.versions import noted, purging_of

BATCHES_TO_A_PIECE = plan_files.BATCHES_TO_A_GROUP
USUAL = {
    Action.DELETE: State.REMOVED,
    Action.TRASH: State.TRASHED,
    Action.PURGE_VERSIONS: State.REMOVED,
    Action.MARK: State.MARKED,
}
ROWS_TO_A_REMOVAL = 20  # as long as it takes to judge so many, where a delete takes no time at all
log = logger(__name__)

Told = TypeVar("Told")


@dataclass(frozen=True, slots=True)
class Condemned:
    """A batch that was condemned, and of which nothing was removed since."""

    back: Mapping[str, str]  # what is held again: by address, by what
    at: float  # before the transaction that condemned it
    again: bool  # an earlier try had begun with it


@dataclass(frozen=True, slots=True)
class SweepPiece:
    """Some batches of one plan file, for one task."""

    open: Callable[[], Repository]
    lock: Lock
    plan: Plan
    file: PlanFile
    tables: bool  # of ranges and metaranges
    first: int  # the number of the file's first batch
    numbers: range  # of the batches to sweep
    sent_at: datetime  # by the driver's clock
    per_second: int | None = None  # how many may go, by all tasks together


def remove(sweep: Sweep, step: RemoveObjects) -> None:
    """All batches of ``step`` that are not done."""
    repository, plan, executor = sweep.repository, sweep.plan, sweep.executor
    if step.tables and step.files and not sweep.tables:
        raise OutsidePrefix(plan.run, step.files[0].key)
    with repository.records.read() as tx:
        done = {row.number for row in ledger.batches(tx, repository.uid, plan.run) if row.file}
    executor.watch.begins("sweep")
    left = pieces(sweep, step, done)
    log.debug("%s batches are done; the others go out in %s pieces", len(done), len(left))
    going = sum(len(piece.numbers) for piece in left) * plan.batch
    executor.watch.expects(going)
    asked = sum(executor(sweep_piece, left, rows=going * ROWS_TO_A_REMOVAL, weigh=int))
    log.info("%s asked for, in %s pieces", asked, len(left))


def pieces(sweep: Sweep, step: RemoveObjects, done: set[int]) -> list[SweepPiece]:
    """All batches of ``step`` that are not ``done``; batches are numbered through the whole plan."""
    plan, repository = sweep.plan, sweep.repository
    light = replace(plan, steps=tuple(plan.steps_of(TakeCommits)), next=None)  # what each task must know of it
    opened, sent_at = Access(repository), repository.clock()
    found: list[SweepPiece] = []
    first = 0
    for file in plan.files:
        last = first + -(-file.rows // plan.batch)
        for at in range(first, last if file in step.files else first, BATCHES_TO_A_PIECE):
            numbers = range(at, min(at + BATCHES_TO_A_PIECE, last))
            if not done.issuperset(numbers):
                found.append(
                    SweepPiece(opened, sweep.lock, light, file, step.tables, first, numbers, sent_at, sweep.per_second)
                )
        first = last
    return found


def sweep_piece(piece: SweepPiece) -> int:
    """On an executor: sweep these batches; how many objects they asked for."""
    repository = piece.open()
    if repository.clock() < piece.sent_at - CLOCK_MARGIN:
        raise WrongTime(repository.clock(), piece.sent_at, "the driver's")
    plan = piece.plan
    with under_way(plan.run):  # an executor has not heard of it
        rows = plan_rows(repository, piece)
        held = repository.gate.held(plan.run, plan.evidence.revision, plan.relies_on)
        since = plan.evidence.revision
        every = (Batch(plan.run, number, some, since) for number, some in batches(rows, piece))
        if may_go_ahead(repository, piece):
            return one_ahead(repository, piece, held, every)
        return sum(
            unless_over(repository, batch, sweep_batch, repository, piece.lock, plan, batch, held, piece.per_second)
            for batch in every
        )


def may_go_ahead(repository: Repository, piece: SweepPiece) -> bool:
    """Whether batches may be condemned while the one before is removed.

    Only where that holds however long the objects stay: a look that grows old would not. Nor does anything wait
    condemned for copies into the trash, or for a budget.
    """
    atomic, far = repository.gate.safety is Safety.ATOMIC, not repository.store.moves_cheaply
    return atomic and far and piece.plan.action is Action.DELETE and piece.per_second is None


def one_ahead(repository: Repository, piece: SweepPiece, held: Held, every: Iterable[Batch]) -> int:
    """Sweep all batches, each condemned while the one before it is removed; how many objects were asked for."""
    asked, lock, plan = 0, piece.lock, piece.plan
    last: Future[int] | None = None
    with ThreadPoolExecutor(1) as beside:  # whatever ends this waits for the batch that is being removed
        for batch in every:
            begun = unless_over(repository, batch, condemn_batch, repository, lock, plan, batch, held)
            asked += last.result() if last is not None else 0
            rest = partial(unless_over, repository, batch, remove_batch, repository, lock, plan, batch, begun)
            last = beside.submit(copy_context().run, rest)  # logged as what it belongs to
        return asked + (last.result() if last is not None else 0)


def unless_over(repository: Repository, batch: Batch, work: Callable[..., Told], *given: object) -> Told | int:
    """What ``work`` tells; if another try has ended the batch meanwhile, how many objects that one asked for."""
    try:
        return work(*given)
    except BatchOver:  # by another try of this very piece: Spark gives one out again that is slow, or lost
        return asked_by_another(repository, batch)


def asked_by_another(repository: Repository, batch: Batch) -> int:
    """How many objects another try asked for that has ended the batch; if none has, it is over for all of them."""
    with repository.records.read() as tx:
        known = ledger.batch(tx, repository.uid, batch.run, batch.number)
    if known is None or not known.file:
        raise BatchOver(batch.run, batch.number)
    return known.asked


def batches(rows: pa.Table, piece: SweepPiece) -> Iterator[tuple[int, pa.Table]]:
    """The batches of a piece, by number, from its rows."""
    for place, number in enumerate(piece.numbers):
        yield number, rows.slice(place * piece.plan.batch, piece.plan.batch).combine_chunks()


def sweep_batch(
    repository: Repository, lock: Lock, plan: Plan, batch: Batch, held: Held, per_second: int | None = None
) -> int:
    """One batch, from where it was left; how many objects were asked for."""
    begun = condemn_batch(repository, lock, plan, batch, held)
    return remove_batch(repository, lock, plan, batch, begun, per_second)


def condemn_batch(repository: Repository, lock: Lock, plan: Plan, batch: Batch, held: Held) -> Condemned | int:
    """The first half: nothing is removed yet. If all of it is done, how many objects were asked for."""
    gate = repository.gate
    with repository.records.read() as tx:
        known = ledger.batch(tx, repository.uid, batch.run, batch.number)
    if known is not None and known.file:
        return known.asked
    gate.check()
    began = elapsed()
    back = gate.condemn(batch, held, plan.relies_on, lock)
    log.debug("batch %s: %s condemned, %s held again", batch.number, len(batch.rows) - len(back), len(back))
    return Condemned(back, began, again=known is not None)


def remove_batch(
    repository: Repository, lock: Lock, plan: Plan, batch: Batch, begun: Condemned | int, per_second: int | None = None
) -> int:
    """The second half, of what is condemned by now; how many objects were asked for."""
    if isinstance(begun, int):
        return begun
    gate, back = repository.gate, begun.back
    sure = Sure(lambda: gate.sure(batch, lock), since=begun.at)
    folder = Folder(repository.store, repository.prefix, run_of(plan))
    asked = [address for address in batch.rows["address"].to_pylist() if address not in back]
    trash = [folder.trash + address for address in asked] if plan.action is Action.TRASH else None
    keys = [repository.prefix + address for address in asked]
    purging, budget = purging_of(repository, plan, batch), Budget(repository, per_second, time.sleep)
    if plan.action is Action.MARK:  # it is hidden by now, and nothing happens to the object yet
        outcomes = [Outcome(key, Result.REMOVED) for key in keys]
    elif purging is not None:
        outcomes = purging.remove(keys, sure=sure, budget=budget) if keys else []
    else:
        outcomes = delete(repository.store, keys, trash=trash, sure=sure, budget=budget) if keys else []
    if begun.again:  # cut off once: what it condemned then and is gone by now, it removed
        outcomes = [Outcome(one.key, Result.REMOVED) if one.result is Result.GONE else one for one in outcomes]
    file = f"{batch.number:08d}-{secrets.token_hex(4)}.parquet"
    usual = USUAL[plan.action]
    done_to = MARKED if usual is State.MARKED else Result.REMOVED.value
    became = results(batch.rows, back, outcomes, done_to)
    write_outcome(repository.store, folder.outcome + file, noted(became, purging))
    done = counted(batch.number, file, batch.rows, back, outcomes)
    gate.settle(batch, lock, done, outcomes, usual)
    log.debug("batch %s: %s removed, %s gone, %s failed", batch.number, done.removed, done.gone, done.failed)
    return len(asked)


def results(
    rows: pa.Table, back: Mapping[str, str], outcomes: Sequence[Outcome], removed: str = Result.REMOVED
) -> pa.Table:
    """The rows of a batch with what became of each, as OUTCOME; of what went as asked, it says ``removed``."""
    told = [removed if one.result is Result.REMOVED else one.result.value for one in outcomes]
    details = [one.detail for one in outcomes]
    if back:
        following = iter(zip(told, details, strict=True))
        every = [
            (HELD_AGAIN, back[address]) if address in back else next(following)
            for address in rows["address"].to_pylist()
        ]
        told, details = [one[0] for one in every], [one[1] for one in every]
    columns = [rows[name] for name in ("address", "size_bytes", "modified_at")]
    return pa.table([*columns, pa.array(told, pa.string()), pa.array(details, pa.string())], schema=OUTCOME)


def counted(number: int, file: str, rows: pa.Table, back: Mapping[str, str], outcomes: Sequence[Outcome]) -> BatchRow:
    """A batch in figures: asked = removed + gone + failed."""
    asked = rows["size_bytes"].to_numpy()
    if back:
        asked = asked[[address not in back for address in rows["address"].to_pylist()]]
    became = [one.result for one in outcomes]  # one for each that was asked for
    removed = np.array([result is Result.REMOVED for result in became], np.bool_)
    how_many = {result: became.count(result) for result in Result}
    return BatchRow(
        number,
        file,
        len(outcomes),
        how_many[Result.REMOVED],
        how_many[Result.GONE],
        how_many[Result.FAILED],
        len(rows) - len(outcomes),
        int(asked[removed].sum()),
    )


def plan_rows(repository: Repository, piece: SweepPiece) -> pa.Table:
    """The rows of a piece as they were planned, all of them objects of the repository; or none. Others are not read."""
    first, last = ((number - piece.first) * piece.plan.batch for number in (piece.numbers.start, piece.numbers.stop))
    rows = plan_files.read(repository.store, piece.file, first, min(last, piece.file.rows))
    addresses, layout = rows["address"].combine_chunks(), repository.layout
    ours = layout.tables_among(addresses) if piece.tables else layout.objects(addresses)
    if not ours.all():
        raise OutsidePrefix(piece.plan.run, addresses[int(np.argmin(ours))].as_py())
    return rows
