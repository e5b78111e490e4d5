"""Objects brought back from the trash: each is moved to where it was, and then its tombstone is lifted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from desilt.errors import NotFound
from desilt.frames.buckets import hashed
from desilt.frames.schemas import MOMENT
from desilt.frames.settled import settled
from desilt.lake import locks, tombstones
from desilt.lake.locks import Lock
from desilt.lake.repository import Repository
from desilt.lake.tombstones import State, Tombstone
from desilt.objects.store import ObjectInfo, Result
from desilt.runs.folder import trash_of
from desilt.sources.held import HeldFile, put
from desilt.sources.inventory import inventory_rows

MOVED = (State.TRASHED, State.CONDEMNED)  # the latter: by a run that was cut off, and given up, before it said so


@dataclass(frozen=True, slots=True)
class Wanted:
    """Batches of a run whose objects are to come back."""

    open: Callable[[], Repository]
    lock: Lock
    run: str
    numbers: tuple[int, ...]
    prefix: str  # of addresses
    settled: Mapping[str, str]  # where no listing would find them again
    target: str  # the file that tells the next run of those


@dataclass(frozen=True, slots=True)
class Back:
    """What came back."""

    restored: int = 0
    bytes: int = 0
    missing: int = 0  # no longer in the trash, nor in its place
    failed: int = 0
    files: tuple[HeldFile, ...] = ()

    def __add__(self, other: "Back") -> "Back":
        return Back(
            self.restored + other.restored,
            self.bytes + other.bytes,
            self.missing + other.missing,
            self.failed + other.failed,
            self.files + other.files,
        )


def restore(wanted: Wanted) -> Back:
    """On an executor: bring these batches back. Cut off and done again, it ends the same."""
    repository = wanted.open()
    back, there = Back(), []
    for number in wanted.numbers:
        with repository.database.read() as tx:
            stones = [
                stone
                for stone in tombstones.of_run(tx, repository.uid, wanted.run, batch=number)
                if stone.state in MOVED and stone.address.startswith(wanted.prefix)
            ]
        found, some = _restore(repository, wanted, stones)
        back += some
        there += found
    return back + Back(files=_noted(repository, wanted, there))


def _restore(repository: Repository, wanted: Wanted, stones: list[Tombstone]) -> tuple[list[ObjectInfo], Back]:
    with repository.database.write() as tx:
        locks.check(tx, wanted.lock)
    trash = trash_of(repository.prefix, wanted.run)
    pairs = [(trash + stone.address, repository.prefix + stone.address) for stone in stones]
    outcomes = repository.store.move_many(pairs)
    failed = sum(one.result is Result.FAILED for one in outcomes)
    found = {
        stone.address: info
        for stone, one in zip(stones, outcomes, strict=True)
        if one.result is not Result.FAILED and (info := _in_place(repository, stone.address))
    }
    with repository.database.write() as tx:
        locks.check(tx, wanted.lock)
        tombstones.turn(tx, repository.uid, found, State.RESTORED, at=repository.clock())
    size = sum(info.size for info in found.values())
    return list(found.values()), Back(len(found), size, len(stones) - len(found) - failed, failed)


def _in_place(repository: Repository, address: str) -> ObjectInfo | None:
    try:
        return repository.store.head(repository.prefix + address)
    except NotFound:
        return None


def _noted(repository: Repository, wanted: Wanted, there: list[ObjectInfo]) -> tuple[HeldFile, ...]:
    """What came back to where the next run would not list it, as INVENTORY."""
    addresses = pa.array([info.key.removeprefix(repository.prefix) for info in there], pa.string())
    sizes = pa.array([info.size for info in there], pa.int64())
    table = inventory_rows(addresses, sizes, pa.array([info.modified_at for info in there], MOMENT))
    over = pa.array(settled(table, wanted.settled))
    if not over.true_count:
        return ()
    return (put(repository.store, wanted.target, hashed(table.filter(over), addresses.filter(over))),)
