"""The trash, emptied: what lies in it is removed for good. Nothing outside of it is touched."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from desilt.objects.store import Result
from desilt.records import locks
from desilt.records import removals as tombstones
from desilt.records.locks import Lock
from desilt.repository.protocol import Repository
from desilt.runs.folder import trash_of


@dataclass(frozen=True, slots=True)
class Heap:
    """Some of what a run has in the trash."""

    open: Callable[[], Repository]
    lock: Lock
    run: str
    folder: str  # in the run's trash


@dataclass(frozen=True, slots=True)
class Purged:
    """What went for good."""

    objects: int = 0
    bytes: int = 0
    failed: int = 0

    def __add__(self, other: "Purged") -> "Purged":
        return Purged(self.objects + other.objects, self.bytes + other.bytes, self.failed + other.failed)


def purge(heap: Heap) -> Purged:
    """On an executor: empty one folder of the trash. The ledger knows before the objects go."""
    repository = heap.open()
    trash = trash_of(repository.prefix, heap.run)
    if not heap.folder.startswith(trash):
        raise AssertionError(f"{heap.folder} is not in the trash of run {heap.run}")
    total = Purged()
    found = (
        pair
        for batch in repository.store.list(heap.folder)
        for pair in zip(batch["key"].to_pylist(), batch["size_bytes"].to_pylist(), strict=True)
    )
    while some := dict(islice(found, repository.store.delete_batch)):
        repository.gate.check()
        with repository.records.write() as tx:
            locks.check(tx, heap.lock)
            tombstones.purged(tx, repository.uid, heap.run, (key.removeprefix(trash) for key in some))
        outcomes = repository.store.delete_many(list(some))
        gone = [one.key for one in outcomes if one.result is not Result.FAILED]
        total += Purged(len(gone), sum(some[key] for key in gone), len(some) - len(gone))
    return total
