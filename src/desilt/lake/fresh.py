"""Addresses that were uploaded, are staged, and were never in a commit: those that hard delete may condemn.

A row comes with the transaction that stages an upload, if hard delete is on; never with a
copy inside of a branch, which may point to what commits have. It goes with the one
that makes the address part of a commit, or that drops its last staged reference.
"""

from collections.abc import Iterable, Sequence

from desilt.domain.address import uid_time
from desilt.domain.times import CLOCK_MARGIN, microseconds
from desilt.records.database import Transaction, some_of

ADD = (
    "INSERT INTO fresh (repository, address, size_bytes) SELECT uid, ?, ? FROM repositories WHERE uid = ? "
    "AND discard_after IS NOT NULL AND (ask_again_from IS NULL OR ask_again_from < ?) ON CONFLICT DO NOTHING"
)


def add(tx: Transaction, repository: str, address: str, size: int) -> None:
    """An upload is staged in this transaction; it has a row from here on, unless hard delete is off."""
    add_many(tx, repository, [(address, size)])


def add_many(tx: Transaction, repository: str, uploads: Iterable[tuple[str, int]]) -> None:
    """The same for several. None where a database was recovered since: a ticket of before may have been used before."""
    tx.execute_many(
        ADD,
        (
            (address, size, repository, microseconds(uid_time(address.rpartition("/")[2]) - CLOCK_MARGIN))
            for address, size in uploads
        ),
    )


def take(tx: Transaction, repository: str, tokens: Sequence[str]) -> None:
    """What staging areas, newest first, make part of a commit is fresh no longer: all but what a newer one hides.

    Newer areas that are not among ``tokens`` hide nothing of the commit.
    """
    for age, token in enumerate(tokens):
        newer = tokens[:age]
        marks = ", ".join("?" * len(newer))
        hidden = f"SELECT 1 FROM staging AS newer WHERE newer.path = taken.path AND newer.token IN ({marks})"
        shown = f" AND NOT EXISTS ({hidden})" if newer else ""
        taken = tx.rows(
            f"SELECT address FROM staging AS taken WHERE token = ? AND address IS NOT NULL{shown}", token, *newer
        )
        forget(tx, repository, [str(row[0]) for row in taken])


def forget(tx: Transaction, repository: str, addresses: Sequence[str]) -> None:
    """These are fresh no longer."""
    for some in some_of(addresses):
        marks = ", ".join("?" * len(some))
        tx.execute(f"DELETE FROM fresh WHERE repository = ? AND address IN ({marks})", repository, *some)


def forget_all(tx: Transaction, repository: str) -> None:
    """Nothing is fresh any more: all that is staged is left to the collector."""
    tx.execute("DELETE FROM fresh WHERE repository = ?", repository)


def count(tx: Transaction, repository: str) -> int:
    row = tx.one("SELECT COUNT(*) FROM fresh WHERE repository = ?", repository)
    assert row is not None
    return int(row[0])
