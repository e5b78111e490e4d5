"""Addresses that hard delete has condemned: where they were staged last, until somebody removes or restores them.

A row is noted while its reference is being dropped, and decided upon before the
transaction ends: it goes again, or its address has a tombstone. So whoever reads the
table sees decided rows alone.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from desilt.domain.entry import decode_path
from desilt.domain.times import microseconds, moment
from desilt.records import holds, removals
from desilt.records.database import Row, Transaction, among
from desilt.records.holds import Hold, HoldKind
from desilt.records.removals import COLUMNS, HARD_DELETE, State

UNDECIDED = "repository = ? AND wait_until IS NULL"
ROW = "address, path, branch, value, head, dropped_by, wait_until"


@dataclass(frozen=True, slots=True)
class DiscardRow:
    """One of the paths that a condemned address had when its last reference was dropped."""

    address: str
    path: bytes
    branch: str  # its uid
    value: bytes
    head: str  # of the branch then
    by: str
    wait_until: datetime


def note(tx: Transaction, repository: str, branch: str, head: str, by: str, where: str, *values: object) -> int:
    """Fresh addresses that lose a reference, by a condition on ``staging``; how many references."""
    return tx.execute(
        "INSERT INTO discarded (repository, address, path, branch, value, head, dropped_by) "
        f"SELECT ?, address, path, ?, value, ?, ? FROM staging WHERE {where} AND EXISTS "
        "(SELECT 1 FROM fresh WHERE fresh.repository = ? AND fresh.address = staging.address) "
        "ON CONFLICT (repository, address, path) DO UPDATE SET value = excluded.value",
        *(repository, branch, head, by, *values, repository),
    )


def condemn(tx: Transaction, repository: str, *, at: datetime) -> None:
    """The rule: of what was noted in this transaction, the addresses that nothing points to any more are condemned."""
    noted = f"SELECT address FROM discarded WHERE {UNDECIDED}"
    tx.lock_rows(
        f"SELECT address FROM fresh WHERE repository = ? AND address IN ({noted}) ORDER BY address",
        *(repository, repository),
    )
    tx.execute(
        f"DELETE FROM discarded WHERE {UNDECIDED} AND EXISTS "
        "(SELECT 1 FROM staging WHERE staging.address = discarded.address)",
        repository,
    )
    _spare_held(tx, repository, at)
    condemned = tx.execute(
        f"INSERT INTO tombstones (repository, {COLUMNS}) "
        "SELECT repository, address, ?, MIN(dropped_by), ?, (SELECT size_bytes FROM fresh "
        "WHERE fresh.repository = discarded.repository AND fresh.address = discarded.address), -1, ? "
        f"FROM discarded WHERE repository = ? AND address IN ({noted}) GROUP BY repository, address "
        "ON CONFLICT (repository, address) DO UPDATE SET run = excluded.run, rule = excluded.rule, "
        "condemned_at = excluded.condemned_at, size_bytes = excluded.size_bytes, batch = excluded.batch, "
        "state = excluded.state, restored_at = NULL WHERE tombstones.state = ?",  # one that has a tombstone keeps it
        *(HARD_DELETE, microseconds(at), State.DISCARDED, repository, repository, State.RESTORED),
    )
    free = tx.execute(f"DELETE FROM fresh WHERE repository = ? AND address IN ({noted})", repository, repository)
    if condemned < free:  # the others keep the tombstone that they have
        tx.execute(
            f"DELETE FROM discarded WHERE {UNDECIDED} AND NOT EXISTS (SELECT 1 FROM tombstones WHERE "
            "tombstones.repository = discarded.repository AND tombstones.address = discarded.address AND state = ?)",
            *(repository, State.DISCARDED),
        )
    tx.execute(
        "UPDATE discarded SET wait_until = ? + (SELECT COALESCE(discard_after, 0) FROM repositories WHERE uid = ?) "
        f"WHERE {UNDECIDED}",
        *(microseconds(at), repository, repository),
    )


def _spare_held(tx: Transaction, repository: str, at: datetime) -> None:
    """What people ordered to be kept is fresh no longer, and left to the collector."""
    orders = [hold for hold in holds.every(tx, repository) if hold.counts(at)]
    if not orders:
        return
    found = tx.rows(f"SELECT DISTINCT address FROM discarded WHERE {UNDECIDED}", repository)
    for address in held_among(tx, repository, [str(row[0]) for row in found], orders):
        tx.execute("DELETE FROM discarded WHERE repository = ? AND address = ?", repository, address)
        tx.execute("DELETE FROM fresh WHERE repository = ? AND address = ?", repository, address)


def held_among(tx: Transaction, repository: str, addresses: Sequence[str], orders: Iterable[Hold]) -> set[str]:
    """Those of ``addresses`` that an order names, or one of the paths that they were dropped from."""
    named = {kind: tuple(hold.value for hold in orders if hold.kind is kind) for kind in HoldKind}
    held = set(addresses) & set(named[HoldKind.ADDRESS])
    if named[HoldKind.PREFIX]:
        for table in ("discarded", "dropped"):
            paths = among(
                tx,
                f"SELECT address, path FROM {table} WHERE repository = ? AND address IN ({{}})",
                addresses,
                repository,
            )
            held |= {str(one) for one, path in paths if decode_path(bytes(path)).startswith(named[HoldKind.PREFIX])}
    return held


def due(tx: Transaction, repository: str, now: datetime) -> Iterator[str]:
    """The addresses that nobody waits for any more, those that have waited longest first."""
    rows = tx.each(
        "SELECT address FROM discarded WHERE repository = ? AND wait_until <= ? ORDER BY wait_until, address",
        *(repository, microseconds(now)),
    )
    return (str(row[0]) for row in rows)


def count_due(tx: Transaction, repository: str, now: datetime) -> int:
    row = tx.one(
        "SELECT COUNT(DISTINCT address) FROM discarded WHERE repository = ? AND wait_until <= ?",
        *(repository, microseconds(now)),
    )
    assert row is not None
    return int(row[0])


def count_leased(tx: Transaction, repository: str, now: datetime) -> int:
    """How many objects workers are at."""
    row = tx.one(
        "SELECT COUNT(DISTINCT discarded.address) FROM discarded JOIN tombstones "
        "ON tombstones.repository = discarded.repository AND tombstones.address = discarded.address "
        "WHERE discarded.repository = ? AND wait_until > ? AND state = ?",
        *(repository, microseconds(now), State.CLAIMED),
    )
    assert row is not None
    return int(row[0])


def wait(tx: Transaction, repository: str, addresses: Iterable[str], until: datetime) -> None:
    """Nobody takes these up before ``until``."""
    tx.execute_many(
        "UPDATE discarded SET wait_until = ? WHERE repository = ? AND address = ?",
        ((microseconds(until), repository, address) for address in addresses),
    )


def forget(tx: Transaction, repository: str, addresses: Iterable[str]) -> None:
    """These are removed, or restored."""
    tx.execute_many(
        "DELETE FROM discarded WHERE repository = ? AND address = ?", ((repository, one) for one in addresses)
    )


def claim_due(tx: Transaction, repository: str, run: str, number: int, *, at: datetime) -> None:
    """What was due at a moment may be gone: it is claimed, by a worker that may be at it, and others take it up."""
    found = list(dict.fromkeys(due(tx, repository, at)))
    removals.claim(tx, repository, found, run=run, batch=number)


def forget_all(tx: Transaction, repository: str, *, at: datetime) -> None:
    """Whatever waits is left to the collector: nobody knows any more that nothing points to it."""
    addresses = removals.left_to_hard_delete(tx, repository)
    removals.release(tx, repository, addresses, at=at)
    tx.execute("DELETE FROM discarded WHERE repository = ?", repository)


def every(tx: Transaction, repository: str) -> Iterator[DiscardRow]:
    """All of them, by address."""
    return map(_row, tx.each(f"SELECT {ROW} FROM discarded WHERE repository = ? ORDER BY address, path", repository))


def of(tx: Transaction, repository: str, addresses: Sequence[str]) -> list[DiscardRow]:
    """Where some addresses were staged last."""
    return list(
        map(
            _row,
            among(tx, f"SELECT {ROW} FROM discarded WHERE repository = ? AND address IN ({{}})", addresses, repository),
        )
    )


def _row(row: Row) -> DiscardRow:
    address, path, branch, value, head, by, until = row
    return DiscardRow(str(address), bytes(path), str(branch), bytes(value), str(head), str(by), moment(until))
