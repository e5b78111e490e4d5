"""The trash, emptied: what lies in it is removed for good. Nothing outside of it is touched.

An object goes if its tombstone says that this run moved it there, and nothing since. One
that is on its way back stays; so does one that came back, unless it is in its place.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from itertools import islice

import pyarrow as pa

from desilt.clock import elapsed
from desilt.columns.schemas import MOMENT, PLAN
from desilt.domain.times import EPOCH
from desilt.errors import Conflict, NotFound
from desilt.objects.store import Result
from desilt.records import holds, locks
from desilt.records import removals as tombstones
from desilt.records.database import Transaction
from desilt.records.locks import Lock
from desilt.records.removals import IN_TRASH, State, Tombstone
from desilt.repository.gate import Safety
from desilt.repository.protocol import Repository
from desilt.repository.snapshot import Revision
from desilt.runs import folder as folders
from desilt.runs import plan as plans
from desilt.runs.folder import Folder, trash_of
from desilt.sweep.budget import Budget
from desilt.sweep.delete import Sure, delete

Wanted = Callable[[Mapping[str, int]], set[str]]  # of addresses with sizes, those that are held
GONE = (State.REMOVED, State.GONE)  # by a purge that was cut off


@dataclass(frozen=True, slots=True)
class Heap:
    """Some of what a run has in the trash."""

    open: Callable[[], Repository]
    lock: Lock
    run: str
    folder: str  # in the run's trash
    since: Revision  # when people's orders were read
    per_second: int | None = None  # how many objects may go, by all tasks together


@dataclass(frozen=True, slots=True)
class Purged:
    """What went for good."""

    objects: int = 0
    bytes: int = 0
    failed: int = 0
    left: int = 0  # on their way back, or not known to have been moved there
    held: int = 0  # that people ordered to be kept: nothing of their runs went

    def __add__(self, other: "Purged") -> "Purged":
        return Purged(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))


def purge(heap: Heap) -> Purged:
    """On an executor: empty one folder of the trash. The ledger knows before the objects go."""
    repository = heap.open()
    trash = trash_of(repository.prefix, heap.run)
    if not heap.folder.startswith(trash):
        raise AssertionError(f"{heap.folder} is not in the trash of run {heap.run}")
    total, budget, wanted = Purged(), Budget(repository, heap.per_second), _wanted(repository, heap.run)
    found = _found(repository, heap)
    while some := dict(islice(found, repository.store.delete_batch)):
        repository.gate.check()
        began = elapsed()
        needed = wanted({key.removeprefix(trash): size for key, size in some.items()})
        with repository.records.write() as tx:
            _check(tx, repository, heap)
            stones = tombstones.recorded(tx, repository.uid, [key.removeprefix(trash) for key in some])
            going = [
                key
                for key in some
                if key.removeprefix(trash) not in needed
                and _goes(repository, heap, stones.get(key.removeprefix(trash)))
            ]
            tombstones.purged(tx, repository.uid, heap.run, _last(repository, trash, going, stones))
        left = {key.removeprefix(trash): some[key] for key in going}
        sure = Sure(partial(_look, repository, heap, wanted, left), since=began)
        outcomes = delete(repository.store, going, trash=None, sure=sure, budget=budget) if going else []
        gone = [one.key for one in outcomes if one.result is not Result.FAILED]
        amount = sum(some[key] for key in gone)
        total += Purged(len(gone), amount, len(going) - len(gone), len(some) - len(going))
    return total


def _wanted(repository: Repository, run: str) -> Wanted:
    """Which addresses are held by now; where a batch is condemned in one transaction, none can be."""
    if repository.gate.safety is Safety.ATOMIC:
        return lambda _: set()
    found = folders.find(repository.store, repository.prefix, run)
    made = plans.read(Folder(repository.store, repository.prefix, found), repository.secret)
    held = repository.gate.held(run, made.evidence.revision, made.relies_on, swept=True)

    def needed(addresses: Mapping[str, int]) -> set[str]:
        held.catch_up()
        long_ago = pa.array([EPOCH] * len(addresses), MOMENT)  # its age was judged when it was moved
        texts = [pa.repeat("", len(addresses)) for _ in range(3)]
        columns = [pa.array(addresses.keys(), pa.string()), pa.array(addresses.values(), pa.int64()), long_ago]
        flags = held.holds(pa.table([*columns, *texts], schema=PLAN))
        return {address for address, is_held in zip(addresses, flags.tolist(), strict=True) if is_held}

    return needed


def _found(repository: Repository, heap: Heap) -> Iterator[tuple[str, int]]:
    for batch in repository.store.list(heap.folder):
        yield from zip(batch["key"].to_pylist(), batch["size_bytes"].to_pylist(), strict=True)


def _goes(repository: Repository, heap: Heap, stone: Tombstone | None) -> bool:
    """Whether what lies in the trash may go: by what the ledger says of it."""
    if stone is None or stone.run != heap.run:
        return False
    if stone.state is State.RESTORED:
        return _in_its_place(repository, stone.address)
    return stone.state in IN_TRASH or stone.state in GONE


def _last(repository: Repository, trash: str, going: Sequence[str], stones: Mapping[str, Tombstone]) -> list[str]:
    """The addresses whose last bytes go with ``going``; what could not be moved may be where it was."""
    found = [stones[key.removeprefix(trash)] for key in going]
    return [
        one.address
        for one in found
        if one.state in IN_TRASH and not (one.state is State.FAILED and _in_its_place(repository, one.address))
    ]


def _in_its_place(repository: Repository, address: str) -> bool:
    return _is_at(repository, repository.prefix + address)


def _is_at(repository: Repository, key: str) -> bool:
    try:
        repository.store.head(key)
    except NotFound:
        return False
    return True


def _look(repository: Repository, heap: Heap, wanted: Wanted, going: Mapping[str, int]) -> None:
    with repository.records.write() as tx:
        _check(tx, repository, heap)
    for address in wanted(going):
        if _is_at(repository, trash_of(repository.prefix, heap.run) + address):
            raise Conflict(f"{address} came to be held while the trash was emptied; give the same command again")


def _check(tx: Transaction, repository: Repository, heap: Heap) -> None:
    """Whether this is still ours to do, and nobody ordered anything to be kept since."""
    locks.check(tx, heap.lock)
    new = [one for one in holds.since(tx, repository.uid, heap.since.number) if one.counts(repository.clock())]
    if new:
        raise Conflict(f"hold {new[0].id} was made while the trash was emptied; give the same command again")
