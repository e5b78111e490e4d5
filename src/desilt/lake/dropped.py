"""What staging areas pointed to and do no longer: written down in the transaction that drops it.

Whoever reads an object now found its path a moment ago. So what has lost its last
reference is left alone for a while, however old it is.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

import pyarrow as pa

from desilt.domain.times import microseconds, moment
from desilt.records.database import Transaction, among

AT_ONCE = 50_000


def write(tx: Transaction, repository: str, branch: str, at: datetime, where: str, *values: object) -> None:
    """The rows of ``staging`` that a condition chooses, at most one of each path, are about to go."""
    tx.execute(
        "INSERT INTO dropped (repository, address, branch, path, dropped_at) "
        f"SELECT ?, address, ?, path, ? FROM staging WHERE address IS NOT NULL AND {where} "
        "ON CONFLICT (repository, address, branch, path) DO UPDATE SET dropped_at = excluded.dropped_at",
        *(repository, branch, microseconds(at), *values),
    )


def last(tx: Transaction, repository: str, address: str) -> tuple[str, bytes, datetime] | None:
    """Where ``address`` was staged last: the branch's uid, the path, and until when."""
    row = tx.one(
        "SELECT branch, path, dropped_at FROM dropped WHERE repository = ? AND address = ? ORDER BY dropped_at DESC",
        *(repository, address),
    )
    return (str(row[0]), bytes(row[1]), moment(row[2])) if row else None


def since(tx: Transaction, repository: str, at: datetime, *, at_once: int = AT_ONCE) -> Iterator[pa.Array]:
    """The addresses that were dropped at ``at`` or later, each once, by the column, some at a time."""
    of = "FROM dropped WHERE repository = ? AND address >= ?"
    start: str | None = ""
    while start is not None:
        row = tx.one(f"SELECT address {of} ORDER BY address LIMIT 1 OFFSET ?", repository, start, at_once)
        if row is not None:  # one that was dropped from many places is not divided
            row = tx.one("SELECT MIN(address) FROM dropped WHERE repository = ? AND address > ?", repository, row[0])
        end = None if row is None or row[0] is None else str(row[0])
        where, values = ("", []) if end is None else (" AND address < ?", [end])
        yield tx.texts(
            f"SELECT DISTINCT address AS text {of}{where} AND dropped_at >= ?",
            *(repository, start, *values, microseconds(at)),
        )
        start = end


def each_since(tx: Transaction, repository: str, at: datetime) -> Iterator[tuple[str, bytes, str, datetime]]:
    """Branch, path, address and time of what was dropped at ``at`` or later."""
    rows = tx.each(
        "SELECT branch, path, address, dropped_at FROM dropped WHERE repository = ? AND dropped_at >= ?",
        *(repository, microseconds(at)),
    )
    return ((str(branch), bytes(path), str(address), moment(when)) for branch, path, address, when in rows)


def lately(tx: Transaction, repository: str, addresses: Sequence[str], *, since: datetime) -> set[str]:
    """Those of ``addresses`` that were dropped at ``since`` or later."""
    any_since = "SELECT 1 FROM dropped WHERE repository = ? AND dropped_at >= ? LIMIT 1"
    if tx.one(any_since, repository, microseconds(since)) is None:
        return set()
    query = "SELECT address FROM dropped WHERE repository = ? AND dropped_at >= ? AND address IN ({})"
    return {str(row[0]) for row in among(tx, query, addresses, repository, microseconds(since))}


def forget(tx: Transaction, repository: str, *, before: datetime) -> None:
    """Drop what was written down before ``before``: nobody asks for it any more."""
    tx.execute("DELETE FROM dropped WHERE repository = ? AND dropped_at < ?", repository, microseconds(before))
