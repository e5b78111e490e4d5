"""Objects brought back from the trash: each is moved to where it was, and then its tombstone is lifted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from desilt.clock import elapsed
from desilt.columns.buckets import hashed
from desilt.columns.files import HeldFile, put
from desilt.columns.schemas import MOMENT
from desilt.columns.settled import settled
from desilt.errors import NotFound
from desilt.inventory.listing import inventory_rows
from desilt.objects.store import ObjectInfo, Result
from desilt.records import locks
from desilt.records import removals as tombstones
from desilt.records.locks import Lock
from desilt.records.removals import State, Tombstone
from desilt.repository.gate import Safety
from desilt.repository.protocol import Repository
from desilt.runs.folder import trash_of
from desilt.sweep.delete import Sure

# What comes back: what lies in the trash, what a run failed to move or was cut off at, and what lies there unknown.
MOVING = (State.TRASHED, State.RESTORING, State.CONDEMNED, State.FAILED)
MISSED = (State.TRASHED, State.RESTORING, State.REMOVED)  # the last: purged


@dataclass(frozen=True, slots=True)
class Wanted:
    """Batches of a run whose objects are to come back."""

    open: Callable[[], Repository]
    lock: Lock
    run: str
    numbers: tuple[int, ...]
    prefix: str  # of addresses
    at: datetime  # of this restore, and of no other of this run
    settled: Mapping[str, str]  # where no listing would find them again
    target: str  # the file that tells the next run of those
    failed_too: bool  # whether objects that could not be moved are surely left alone by now


@dataclass(frozen=True, slots=True)
class Restored:
    """What came back."""

    restored: int = 0
    bytes: int = 0
    missing: int = 0  # no longer in the trash, nor in its place
    failed: int = 0
    files: tuple[HeldFile, ...] = ()

    def __add__(self, other: "Restored") -> "Restored":
        return Restored(
            self.restored + other.restored,
            self.bytes + other.bytes,
            self.missing + other.missing,
            self.failed + other.failed,
            self.files + other.files,
        )


def restore(wanted: Wanted) -> Restored:
    """On an executor: bring these batches back. Cut off and done again, it ends the same."""
    repository = wanted.open()
    back, there = Restored(), []
    for number in wanted.numbers:
        with repository.records.read() as tx:
            stones = [
                stone
                for stone in tombstones.of_run(tx, repository.uid, wanted.run, batch=number)
                if stone.address.startswith(wanted.prefix) and _may_come_back(stone, wanted)
            ]
        found, some = _restore(repository, wanted, stones)
        back += some
        there += found
    return back + Restored(files=_noted(repository, wanted, there))


def _may_come_back(stone: Tombstone, wanted: Wanted) -> bool:
    if stone.state is State.RESTORED:  # by an earlier try of this task
        return stone.restored_at == wanted.at
    return stone.state is not State.FAILED or wanted.failed_too


def _restore(repository: Repository, wanted: Wanted, stones: list[Tombstone]) -> tuple[list[ObjectInfo], Restored]:
    """Announce what is in the trash, move it, then lift its tombstones."""
    trash, began = trash_of(repository.prefix, wanted.run), elapsed()
    moving = [
        stone
        for stone in stones
        if stone.state in MOVING or (_may_be_left(repository, stone) and _at(repository, trash + stone.address))
    ]
    with repository.records.write() as tx:
        locks.check(tx, wanted.lock)
        names = [stone.address for stone in moving if stone.state is not State.RESTORED]
        tombstones.lift(tx, repository.uid, wanted.run, names, State.RESTORING, at=wanted.at)
    places = {trash + stone.address: repository.prefix + stone.address for stone in moving}
    pairs = [(source, place) for source, place in places.items() if not _taken(repository, place)]
    outcomes = repository.store.move_many(pairs, between=Sure(lambda: _look(repository, wanted), since=began).check)
    not_moved = {one.key for one in outcomes if one.result is Result.FAILED}
    failed = len(not_moved)
    found = {
        stone.address: info
        for stone in moving
        if trash + stone.address not in not_moved and (info := _at(repository, repository.prefix + stone.address))
    }
    with repository.records.write() as tx:
        locks.check(tx, wanted.lock)
        tombstones.lift(tx, repository.uid, wanted.run, found, State.RESTORED, at=wanted.at)
    found |= {
        stone.address: info
        for stone in stones
        if stone.state is State.RESTORED and (info := _at(repository, repository.prefix + stone.address))
    }
    missing = sum(stone.state in MISSED and stone.address not in found for stone in stones) - failed
    size = sum(info.size for info in found.values())
    return list(found.values()), Restored(len(found), size, max(missing, 0), failed)


def _may_be_left(repository: Repository, stone: Tombstone) -> bool:
    """Whether it may be in the trash all the same: a move was cut off, or a purge that found it held after all."""
    return stone.state is State.GONE or (stone.state is State.REMOVED and repository.gate.safety is not Safety.ATOMIC)


def _taken(repository: Repository, place: str) -> bool:
    """Whether an object is there that others may have put there: it is not written over. Elsewhere nobody else can."""
    return repository.gate.safety is not Safety.ATOMIC and _at(repository, place) is not None


def _look(repository: Repository, wanted: Wanted) -> None:
    with repository.records.write() as tx:
        locks.check(tx, wanted.lock)


def _at(repository: Repository, key: str) -> ObjectInfo | None:
    try:
        return repository.store.head(key)
    except NotFound:
        return None


def _noted(repository: Repository, wanted: Wanted, there: list[ObjectInfo]) -> tuple[HeldFile, ...]:
    """What came back to where the next run would not list it, as INVENTORY."""
    addresses = pa.array([info.key.removeprefix(repository.prefix) for info in there], pa.string())
    sizes = pa.array([info.size for info in there], pa.int64())
    table = inventory_rows(addresses, sizes, pa.array([info.modified_at for info in there], MOMENT))
    over = pa.array(settled(table, wanted.settled, repository.layout))
    if not over.true_count:
        return ()
    return (put(repository.store, wanted.target, hashed(table.filter(over), addresses.filter(over))),)
