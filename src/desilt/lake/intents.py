"""Marks of moves that are about to be made: each is in the database before its record is in the journal.

A record that the database does not know belongs to a move that was cut off, if the
database knew that it was coming; else to one that it has lost.
"""

from datetime import timedelta

from desilt.domain.times import microseconds
from desilt.records.database import Transaction

KEPT = timedelta(hours=1)  # after which a mover that has neither ended nor left a record never will


def write(tx: Transaction, repository: str, mark: str) -> None:
    tx.execute(
        "INSERT INTO intents (repository, mark, made_at) VALUES (?, ?, ?)", repository, mark, microseconds(tx.now())
    )


def every(tx: Transaction, repository: str) -> frozenset[str]:
    return frozenset(str(mark) for (mark,) in tx.rows("SELECT mark FROM intents WHERE repository = ?", repository))


def forget(tx: Transaction, repository: str, mark: str) -> None:
    """The move of ``mark`` is made, and so none of long ago can be any more."""
    tx.execute(
        "DELETE FROM intents WHERE repository = ? AND (mark = ? OR made_at < ?)",
        *(repository, mark, microseconds(tx.now() - KEPT)),
    )
