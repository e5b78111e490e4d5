"""What runs marked, in pieces for tasks: found by the ledger, and looked at under the lock."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from desilt.columns.files import HeldFile
from desilt.records import locks, marks
from desilt.records import removals as tombstones
from desilt.records.database import Transaction
from desilt.records.locks import Lock
from desilt.records.removals import State, Tombstone
from desilt.repository.protocol import Repository
from desilt.repository.snapshot import Revision
from desilt.runs import plan_files
from desilt.sweep.delete import Sure, now

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
    began = now()
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


def check_lock(repository: Repository, lock: Lock) -> None:
    """Refuse to go on for an owner that has lost its lock."""
    with repository.records.write() as tx:
        locks.check(tx, lock)
