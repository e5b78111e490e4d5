"""Tombstones of objects that are gone, once nothing points to them: out of the database, when an archive has them."""

from collections.abc import Iterable
from datetime import datetime

from desilt.domain.times import microseconds
from desilt.records.database import Transaction
from desilt.records.removals import Tombstone


def over(tx: Transaction, repository: str, *, before: datetime) -> list[str]:
    """The addresses that were condemned before then, and whose objects are gone."""
    rows = tx.each(
        "SELECT address FROM tombstones WHERE repository = ? AND state IN ('removed', 'already gone') "
        "AND condemned_at < ?",
        *(repository, microseconds(before)),
    )
    return [str(row[0]) for row in rows]


def forget(tx: Transaction, repository: str, stones: Iterable[Tombstone]) -> None:
    """Take tombstones out of the ledger that are kept elsewhere by now; one that has changed since stays."""
    tx.execute_many(
        "DELETE FROM tombstones WHERE repository = ? AND address = ? AND run = ? AND state = ?",
        ((repository, one.address, one.run, str(one.state)) for one in stones),
    )
