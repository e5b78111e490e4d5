"""Addresses that a run has condemned: gone for every reader, from that transaction on.

A tombstone is written before the object is touched. Entries that point to it
stay in their commits, and later commits carry them on; they just cannot be read.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from desilt.domain.times import microseconds, moment
from desilt.errors import Gone
from desilt.lake.database import Transaction

AT_ONCE = 500  # parameters to a statement


@dataclass(frozen=True, slots=True)
class Tombstone:
    """By which run an address went, by which of its rules, and when."""

    address: str
    run: str
    rule: str
    condemned_at: datetime


def condemn(tx: Transaction, repository: str, stones: Iterable[Tombstone]) -> None:
    """Write tombstones; an address that has one keeps it."""
    tx.execute_many(
        "INSERT INTO tombstones (repository, address, run, rule, condemned_at) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING",
        ((repository, one.address, one.run, one.rule, microseconds(one.condemned_at)) for one in stones),
    )


def find(tx: Transaction, repository: str, address: str) -> Tombstone | None:
    return found_in(tx, repository, [address]).get(address)


def found_in(tx: Transaction, repository: str, addresses: Sequence[str]) -> dict[str, Tombstone]:
    """The tombstones that some of ``addresses`` have."""
    found: dict[str, Tombstone] = {}
    for at in range(0, len(addresses), AT_ONCE):
        some = addresses[at : at + AT_ONCE]
        marks = ", ".join("?" * len(some))
        rows = tx.rows(
            f"SELECT address, run, rule, condemned_at FROM tombstones WHERE repository = ? AND address IN ({marks})",
            *(repository, *some),
        )
        found |= {row[0]: Tombstone(row[0], row[1], row[2], moment(row[3])) for row in rows}
    return found


def every(tx: Transaction, repository: str) -> pa.Array:
    """All condemned addresses."""
    rows = tx.rows("SELECT address FROM tombstones WHERE repository = ?", repository)
    return pa.array([row[0] for row in rows], pa.string())


def refuse_gone(tx: Transaction, repository: str, address: str, path: str) -> None:
    """Raise :class:`Gone` if ``address``, which ``path`` points to, has a tombstone."""
    stone = find(tx, repository, address)
    if stone is not None:
        raise Gone(path, stone.run, stone.rule, stone.condemned_at)
