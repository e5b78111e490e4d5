"""Addresses that hard delete has condemned: where they were staged last, until somebody removes or restores them.

A row is noted while its reference is being dropped, and goes again before the
transaction ends, unless its address has got a tombstone by then.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from desilt.domain.entry import decode_path
from desilt.domain.times import microseconds, moment
from desilt.lake import fresh
from desilt.records import holds, removals
from desilt.records.database import Row, Transaction, among, some_of
from desilt.records.holds import Hold, HoldKind
from desilt.records.removals import COLUMNS, HARD_DELETE, State

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


def note(
    tx: Transaction, repository: str, branch: str, head: str, by: str, at: datetime, where: str, *values: object
) -> list[str]:
    """Fresh addresses that lose a reference, by a condition on ``staging``; one that has lost it before stays so."""
    rows = tx.rows(
        "INSERT INTO discarded (repository, address, path, branch, value, head, dropped_by, wait_until) "
        "SELECT ?, address, path, ?, value, ?, ?, "
        "? + (SELECT COALESCE(discard_after, 0) FROM repositories WHERE uid = ?) "
        f"FROM staging WHERE {where} AND EXISTS "
        "(SELECT 1 FROM fresh WHERE fresh.repository = ? AND fresh.address = staging.address) "
        "ON CONFLICT (repository, address, path) DO UPDATE SET value = excluded.value RETURNING address",
        *(repository, branch, head, by, microseconds(at), repository, *values, repository),
    )
    return [str(row[0]) for row in rows]


def condemn(tx: Transaction, repository: str, addresses: Iterable[str], *, at: datetime) -> None:
    """The rule: of what was noted in this transaction, the addresses that nothing points to any more are condemned.

    They are named one by one, some hundred at a time: no plan of a database that has not counted its rows lately
    compares each with each.
    """
    orders = [hold for hold in holds.every(tx, repository) if hold.counts(at)]
    for some in some_of(sorted(addresses)):
        marks = ", ".join("?" * len(some))
        tx.lock_rows(
            f"SELECT 1 FROM fresh WHERE repository = ? AND address IN ({marks}) ORDER BY address", repository, *some
        )
        staged = {str(row[0]) for row in tx.rows(f"SELECT address FROM staging WHERE address IN ({marks})", *some)}
        free = [address for address in some if address not in staged]
        held = held_among(tx, repository, free, orders) if orders else set()
        had_one = _write_tombstones(tx, repository, [one for one in free if one not in held], at)
        fresh.forget(tx, repository, free)  # what is held is left to the collector
        forget(tx, repository, [*staged, *held, *had_one])


def _write_tombstones(tx: Transaction, repository: str, addresses: Sequence[str], at: datetime) -> set[str]:
    """Condemn ``addresses``; those of them that have a tombstone already, which they keep."""
    if not addresses:
        return set()
    marks = ", ".join("?" * len(addresses))
    condemned = tx.execute(
        f"INSERT INTO tombstones (repository, {COLUMNS}) "
        "SELECT repository, address, ?, (SELECT MIN(dropped_by) FROM discarded WHERE "
        "discarded.repository = fresh.repository AND discarded.address = fresh.address), ?, size_bytes, -1, ? "
        f"FROM fresh WHERE repository = ? AND address IN ({marks}) "
        "ON CONFLICT (repository, address) DO UPDATE SET run = excluded.run, rule = excluded.rule, "
        "condemned_at = excluded.condemned_at, size_bytes = excluded.size_bytes, batch = excluded.batch, "
        "state = excluded.state, restored_at = NULL WHERE tombstones.state = ?",
        *(HARD_DELETE, microseconds(at), State.DISCARDED, repository, *addresses, State.RESTORED),
    )
    if condemned == len(addresses):
        return set()
    ours = removals.found_in(tx, repository, addresses)
    return {one for one in addresses if one not in ours or ours[one].state is not State.DISCARDED}


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
    """These are removed, restored, or referred to after all."""
    for some in some_of(list(addresses)):
        marks = ", ".join("?" * len(some))
        tx.execute(f"DELETE FROM discarded WHERE repository = ? AND address IN ({marks})", repository, *some)


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
