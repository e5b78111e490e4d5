"""The ledger: addresses that a run has condemned, and what became of their objects.

A tombstone is written before the object is touched; from that transaction on it
is gone for every reader. Entries that point to it stay in their commits, and
later commits carry them on; they just cannot be read. A row outlives its run's
folder. One that was restored stays on record, and is no tombstone any more.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import pyarrow as pa

from desilt.domain.times import microseconds, moment
from desilt.errors import Gone
from desilt.records.database import Row, Transaction, among

PASSING = (  # to the run that condemns it now
    "ON CONFLICT (repository, address) DO UPDATE SET run = excluded.run, rule = excluded.rule, "
    "condemned_at = excluded.condemned_at, size_bytes = excluded.size_bytes, batch = excluded.batch, "
    "state = excluded.state, restored_at = NULL"
)
HARD_DELETE = "harddelete"  # whose tombstones have no run until a worker claims them
SORTED = "address || ''"  # not by the column: SQLite would go through all tombstones, which are in that order
COLUMNS = "address, run, rule, condemned_at, size_bytes, batch, state"
RECORD = f"{COLUMNS}, restored_at"
UNSETTLED = "state NOT IN ('removed', 'already gone', 'trashed')"  # few, and with an index of their own
MARKED = "state IN ('marked', 'tagged', 'tagging failed', 'removing')"  # hidden, and left to the store to remove
LEFT_TO_HARD_DELETE = "state IN ('discarded', 'claimed')"  # nothing points to them, and its workers remove them
MAY_BE_THERE = f"{UNSETTLED} AND NOT ({MARKED}) AND NOT ({LEFT_TO_HARD_DELETE})"


class State(StrEnum):
    """What became of the object at a condemned address."""

    CONDEMNED = "condemned"  # to be removed next; a run that was cut off leaves it so
    REMOVED = "removed"
    GONE = "already gone"
    TRASHED = "trashed"  # moved aside, and can be brought back
    FAILED = "failed"  # the store said no: it may be there still
    MARKED = "marked"  # hidden from readers; the object is as it was
    TAGGED = "tagged"  # hidden, and tagged: the store's own rule removes it
    REMOVING = "removing"  # it was marked, and a later run is about to remove it
    TAG_FAILED = "tagging failed"  # hidden; the store refused the tag, and the next run tries again
    DISCARDED = "discarded"  # its last staged reference is gone: hard delete removes it after a while
    CLAIMED = "claimed"  # a worker of hard delete is about to remove it, and nobody brings it back
    RESTORING = "restoring"  # on its way back from the trash
    RESTORED = "restored"  # brought back: whoever pointed to it can read it again


MARKS = (State.MARKED, State.TAGGED, State.TAG_FAILED, State.REMOVING)
"""Hidden from readers, and removed by the store or a later run."""
DISCARDS = (State.DISCARDED, State.CLAIMED)
"""Left to the workers of hard delete."""
SETTLED = (State.REMOVED, State.GONE, State.TRASHED, State.FAILED, State.RESTORED)
"""Whoever condemned the object is done with it; in any other state, one of a later desilt too, it is nobody else's."""
KNOWN = {one.value: one for one in State}
IN_TRASH = (State.TRASHED, State.CONDEMNED, State.FAILED)
"""What lies in the trash may be in one of these, once the run that moved it there is over."""


@dataclass(frozen=True, slots=True)
class Tombstone:
    """By which run an address went, by which of its rules, and when."""

    address: str
    run: str
    rule: str
    condemned_at: datetime
    size: int = 0
    batch: int = -1
    state: str = State.CONDEMNED  # a State, or what a later desilt calls it
    restored_at: datetime | None = None


def condemn(tx: Transaction, repository: str, stones: Iterable[Tombstone]) -> None:
    """Write tombstones; an address that has one passes to the run that condemns it now."""
    tx.execute_many(
        f"INSERT INTO tombstones (repository, {COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) {PASSING}",
        (
            (repository, one.address, one.run, one.rule, microseconds(one.condemned_at), one.size, one.batch, one.state)
            for one in stones
        ),
    )


def settle(tx: Transaction, repository: str, run: str, batch: int, state: str) -> None:
    """What became of the objects that ``run`` condemned in a batch; exceptions are told by :func:`turn` before."""
    tx.execute(
        "UPDATE tombstones SET state = ? WHERE repository = ? AND run = ? AND batch = ? AND state = ?",
        *(state, repository, run, batch, State.CONDEMNED),
    )


def turn(tx: Transaction, repository: str, run: str, addresses: Iterable[str], state: str) -> None:
    """What became of some that ``run`` condemned; what is no longer its own, or no longer condemned, stays as it is."""
    tx.execute_many(
        "UPDATE tombstones SET state = ? WHERE repository = ? AND address = ? AND run = ? AND state = ?",
        ((state, repository, address, run, State.CONDEMNED) for address in addresses),
    )


def claim(tx: Transaction, repository: str, addresses: Iterable[str], *, run: str, batch: int) -> None:
    """Some that hard delete condemned are about to be removed by ``run``; from here on nobody brings them back."""
    tx.execute_many(
        "UPDATE tombstones SET state = ?, run = ?, batch = ? WHERE repository = ? AND address = ? AND state IN (?, ?)",
        ((State.CLAIMED, run, batch, repository, address, *DISCARDS) for address in addresses),
    )


def end_claim(tx: Transaction, repository: str, run: str, addresses: Iterable[str], state: str) -> None:
    """What became of some that ``run`` has claimed."""
    tx.execute_many(
        "UPDATE tombstones SET state = ? WHERE repository = ? AND address = ? AND run = ? AND state = ?",
        ((state, repository, address, run, State.CLAIMED) for address in addresses),
    )


def release(tx: Transaction, repository: str, addresses: Iterable[str], *, at: datetime) -> None:
    """Some that hard delete condemned are tombstones no longer."""
    tx.execute_many(
        "UPDATE tombstones SET state = ?, restored_at = ? WHERE repository = ? AND address = ? AND state IN (?, ?)",
        ((State.RESTORED, microseconds(at), repository, address, *DISCARDS) for address in addresses),
    )


def lift(tx: Transaction, repository: str, run: str, addresses: Iterable[str], state: str, *, at: datetime) -> None:
    """Some that ``run`` removed are brought back: :attr:`State.RESTORING`, then :attr:`State.RESTORED`."""
    tx.execute_many(
        "UPDATE tombstones SET state = ?, restored_at = ? WHERE repository = ? AND address = ? AND run = ?",
        ((state, microseconds(at), repository, address, run) for address in addresses),
    )


def purged(tx: Transaction, repository: str, run: str, addresses: Iterable[str]) -> None:
    """What ``run``, which is over, had in the trash is removed for good."""
    marks = ", ".join("?" * len(IN_TRASH))
    tx.execute_many(
        f"UPDATE tombstones SET state = ? WHERE repository = ? AND address = ? AND run = ? AND state IN ({marks})",
        ((State.REMOVED, repository, address, run, *IN_TRASH) for address in addresses),
    )


def batches_in(tx: Transaction, repository: str, run: str, *states: str) -> list[int]:
    """The batches of ``run`` that have objects in one of ``states``."""
    marks = ", ".join("?" * len(states))
    rows = tx.rows(
        f"SELECT DISTINCT batch FROM tombstones WHERE repository = ? AND run = ? AND state IN ({marks}) ORDER BY batch",
        *(repository, run, *states),
    )
    return [int(row[0]) for row in rows]


def survives(tx: Transaction, repository: str, run: str, folder: str, *, but: int) -> bool:
    """Whether anything in ``folder`` may be there still that ``run`` was to remove, ``but`` for one batch."""
    mine = "run || '' = ? AND batch <> ?"  # not by the index of runs, which would go through all that this one removed
    query = f"SELECT 1 FROM tombstones WHERE repository = ? AND {MAY_BE_THERE} AND {mine}"
    return tx.one(f"{query} AND address LIKE ? LIMIT 1", repository, run, but, f"{folder}%") is not None


def runs_in(tx: Transaction, repository: str, *states: str, of: Sequence[str] | None = None) -> set[str]:
    """The runs that have objects in one of ``states``: all of them, or those ``of`` some, and nothing else is read."""
    marks = ", ".join("?" * len(states))
    query = f"SELECT DISTINCT run FROM tombstones WHERE repository = ? AND state IN ({marks})"
    if of is None:
        return {str(row[0]) for row in tx.rows(query, repository, *states)}
    return {str(row[0]) for row in among(tx, f"{query} AND run IN ({{}})", of, repository, *states)}


def total_in(tx: Transaction, repository: str, *states: str, run: str | None = None) -> tuple[int, int]:
    """How many objects are in one of ``states``, by any run or one, and how large they are."""
    marks, where, values = (
        ", ".join("?" * len(states)),
        "" if run is None else " AND run = ?",
        () if run is None else (run,),
    )
    row = tx.one(
        "SELECT COUNT(*), COALESCE(SUM(size_bytes), 0) FROM tombstones "
        f"WHERE repository = ? AND state IN ({marks}){where}",
        *(repository, *states, *values),
    )
    assert row is not None
    return int(row[0]), int(row[1])


def unsettled_in(tx: Transaction, repository: str, state: State) -> tuple[int, int, datetime | None]:
    """How many objects are in a ``state`` that is not settled, their bytes, and when the first was condemned."""
    row = tx.one(
        "SELECT COUNT(*), COALESCE(SUM(size_bytes), 0), MIN(condemned_at) FROM tombstones "
        f"WHERE repository = ? AND {UNSETTLED} AND state = ?",
        *(repository, state),
    )
    assert row is not None
    return int(row[0]), int(row[1]), None if row[2] is None else moment(row[2])


def left_to_hard_delete(tx: Transaction, repository: str) -> list[str]:
    """The addresses that its workers remove, and nobody else."""
    rows = tx.rows(
        f"SELECT address FROM tombstones WHERE repository = ? AND {UNSETTLED} AND {LEFT_TO_HARD_DELETE}", repository
    )
    return [str(row[0]) for row in rows]


def find(tx: Transaction, repository: str, address: str) -> Tombstone | None:
    """The tombstone of ``address``, unless it was lifted."""
    return found_in(tx, repository, [address]).get(address)


def none_at_all(tx: Transaction, repository: str) -> bool:
    """Whether nothing was ever condemned."""
    return tx.one("SELECT 1 FROM tombstones WHERE repository = ? LIMIT 1", repository) is None


def found_in(tx: Transaction, repository: str, addresses: Sequence[str]) -> dict[str, Tombstone]:
    """The tombstones that some of ``addresses`` have."""
    return {
        address: stone
        for address, stone in recorded(tx, repository, addresses).items()
        if stone.state is not State.RESTORED
    }


def recorded(tx: Transaction, repository: str, addresses: Sequence[str]) -> dict[str, Tombstone]:
    """What the ledger says of ``addresses``, lifted tombstones too."""
    query = f"SELECT {RECORD} FROM tombstones WHERE repository = ? AND address IN ({{}})"
    return {row[0]: _tombstone(row) for row in among(tx, query, addresses, repository)}


def of_run(tx: Transaction, repository: str, run: str, *, batch: int | None = None) -> Iterator[Tombstone]:
    """What ``run`` condemned, batch by batch, each in order of addresses; or only one ``batch``."""
    where, values = ("", ()) if batch is None else (" AND batch = ?", (batch,))
    rows = tx.each(
        f"SELECT {RECORD} FROM tombstones WHERE repository = ? AND run = ?{where} ORDER BY batch, {SORTED}",
        *(repository, run, *values),
    )
    return map(_tombstone, rows)


def gone_by(tx: Transaction, repository: str, run: str) -> Iterator[str]:
    """The addresses that ``run`` condemned, batch by batch: gone, but for those of :func:`unsettled`."""
    found = "SELECT address FROM tombstones WHERE repository = ? AND run = ? ORDER BY batch"
    return (str(row[0]) for row in tx.each(found, repository, run))


def hidden_among(tx: Transaction, repository: str, addresses: Sequence[str]) -> set[str]:
    """Those of ``addresses`` that a run has marked: readers are not even shown their entries."""
    query = (
        "SELECT tombstones.address FROM tombstones JOIN runs ON runs.repository = tombstones.repository "
        "AND runs.id = tombstones.run WHERE tombstones.repository = ? AND runs.action = 'mark' "
        "AND tombstones.state <> 'restored' AND tombstones.address IN ({})"
    )
    return {str(row[0]) for row in among(tx, query, addresses, repository)}


def hides_any(tx: Transaction, repository: str) -> bool:
    """Whether a run has ever marked anything."""
    return tx.one("SELECT 1 FROM runs WHERE repository = ? AND action = 'mark' LIMIT 1", repository) is not None


def unsettled(tx: Transaction, repository: str) -> list[str]:
    """The addresses on record whose objects may be there: restored, failed, or condemned and no more."""
    rows = tx.rows(f"SELECT address FROM tombstones WHERE repository = ? AND {MAY_BE_THERE}", repository)
    return [str(row[0]) for row in rows]


def restored_since(tx: Transaction, repository: str, since: datetime) -> list[str]:
    """Addresses that were brought back at ``since`` or later, or are on their way."""
    rows = tx.rows(
        f"SELECT address FROM tombstones WHERE repository = ? AND {MAY_BE_THERE} AND (restored_at >= ? OR state = ?)",
        *(repository, microseconds(since), State.RESTORING),
    )
    return [str(row[0]) for row in rows]


def last_restored(tx: Transaction, repository: str, run: str) -> datetime:
    """When something of ``run`` was last brought back; 1970 if never."""
    row = tx.one("SELECT MAX(restored_at) FROM tombstones WHERE repository = ? AND run = ?", repository, run)
    return moment(row[0] if row and row[0] is not None else 0)


def every(tx: Transaction, repository: str) -> pa.Array:
    """All condemned addresses."""
    rows = tx.each("SELECT address FROM tombstones WHERE repository = ? AND state <> ?", repository, State.RESTORED)
    return pa.array([row[0] for row in rows], pa.string())


def refuse_gone(tx: Transaction, repository: str, address: str, path: str) -> None:
    """Raise :class:`Gone` if ``address``, which ``path`` points to, has a tombstone."""
    stone = find(tx, repository, address)
    if stone is not None:
        raise Gone(path, stone.run, stone.rule, stone.condemned_at, marked=stone.state in MARKS)


def _tombstone(row: Row) -> Tombstone:
    address, run, rule, at, size, batch, state, restored_at = row
    back = None if restored_at is None else moment(restored_at)
    return Tombstone(address, run, rule, moment(at), size, batch, KNOWN.get(state) or str(state), back)
