"""What runs marked, in pieces for tasks: found by the ledger, and looked at under the lock."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa

from desilt.clock import elapsed
from desilt.columns.buckets import around
from desilt.columns.files import Files, HeldFile
from desilt.columns.hashing import address_hash
from desilt.records import holds, locks, marks
from desilt.records import removals as tombstones
from desilt.records.database import Transaction
from desilt.records.locks import Lock
from desilt.records.removals import State, Tombstone
from desilt.repository.protocol import Repository
from desilt.repository.snapshot import Revision
from desilt.runs import plan_files
from desilt.sweep.delete import Sure

BATCHES_TO_A_PIECE = plan_files.BATCHES_TO_A_GROUP


@dataclass(frozen=True, slots=True)
class MarkedPiece:
    """Some batches of a run whose marks are followed up, for one task."""

    open: Callable[[], Repository]
    lock: Lock
    run: str
    numbers: tuple[int, ...]
    tags: tuple[str, ...]  # the first is the one to set; the others were set by earlier runs
    before: datetime  # what was marked by then has waited long enough; or was restored since then
    spared: tuple[HeldFile, ...]
    since: Revision  # when people's orders were read
    per_second: int | None = None  # how many objects may go, by all tasks together


def batches_of(repository: Repository, *states: State) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Runs that marked what is in one of ``states``, each with some of its batches."""
    with repository.records.read() as tx:
        runs = marks.marking_runs(tx, repository.uid, *states)
        for run in runs:
            numbers = tombstones.batches_in(tx, repository.uid, run, *states)
            for first in range(0, len(numbers), BATCHES_TO_A_PIECE):
                yield run, tuple(numbers[first : first + BATCHES_TO_A_PIECE])


def batch(repository: Repository, piece: MarkedPiece, number: int, *states: State) -> tuple[list[Tombstone], Sure]:
    """The tombstones of a batch in one of ``states``, and whether this task may go on with them."""
    repository.gate.check()
    began = elapsed()
    with repository.records.write() as tx:
        stones = looked_at(tx, repository, piece, number, *states)
    return stones, Sure(lambda: check_lock(repository, piece.lock), since=began)


def looked_at(
    tx: Transaction, repository: Repository, piece: MarkedPiece, number: int, *states: State
) -> list[Tombstone]:
    """The same, in a transaction that writes."""
    locks.check(tx, piece.lock)
    found = tombstones.of_run(tx, repository.uid, piece.run, batch=number)
    return [stone for stone in found if stone.state in states]


def to_follow(repository: Repository, piece: MarkedPiece, number: int, *states: State) -> tuple[list[Tombstone], Sure]:
    """The same as :func:`batch`, without what people ordered to be kept."""
    repository.gate.check()
    began = elapsed()
    with repository.records.write() as tx:
        stones = looked_at(tx, repository, piece, number, *states)
        if not as_ordered(tx, repository, piece):
            stones = []
    kept = spared(repository, piece, stones)
    return [one for one in stones if one.address not in kept], Sure(
        lambda: check_lock(repository, piece.lock), since=began
    )


def as_ordered(tx: Transaction, repository: Repository, piece: MarkedPiece) -> bool:
    """Whether nobody has ordered anything to be kept since orders were read; else all of it waits for the next run."""
    new = holds.since(tx, repository.uid, piece.since.number)
    return not any(one.counts(repository.clock()) for one in new)


def spared(repository: Repository, piece: MarkedPiece, stones: Sequence[Tombstone]) -> set[str]:
    """The addresses of those that people ordered to be kept."""
    return chosen(repository, piece.spared, stones) if piece.spared else set()


def chosen(repository: Repository, files: Sequence[HeldFile], stones: Sequence[Tombstone]) -> set[str]:
    """The addresses of those whose hashes are in ``files``."""
    if not stones:
        return set()
    hashes = address_hash(pa.array([one.address for one in stones], pa.string()))
    read, order = Files(repository.store), np.sort(hashes)
    found = [read.hashes([file], bucket) for file in files for bucket in around(order, file.buckets)]
    mine = np.isin(hashes, np.concatenate([np.zeros(0, np.uint64), *found]))
    return {one.address for one, wanted in zip(stones, mine.tolist(), strict=True) if wanted}


def check_lock(repository: Repository, lock: Lock) -> None:
    """Refuse to go on for an owner that has lost its lock."""
    with repository.records.write() as tx:
        locks.check(tx, lock)
