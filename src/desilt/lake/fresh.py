"""Addresses that were uploaded, are staged, and were never in a commit: those that hard delete may condemn.

A row comes with the transaction that stages an upload, if hard delete is on; never with a
copy inside of a branch, which may point to what commits have. It goes with the one
that makes the address part of a commit, or that drops its last staged reference.
"""

from collections.abc import Sequence

from desilt.records.database import Transaction


def add(tx: Transaction, repository: str, address: str, size: int) -> None:
    """An upload is staged in this transaction; it has a row from here on, unless hard delete is off."""
    tx.execute(
        "INSERT INTO fresh (repository, address, size_bytes) "
        "SELECT uid, ?, ? FROM repositories WHERE uid = ? AND discard_after IS NOT NULL ON CONFLICT DO NOTHING",
        *(address, size, repository),
    )


def take(tx: Transaction, repository: str, tokens: Sequence[str]) -> None:
    """What staging areas, newest first, make part of a commit is fresh no longer: all but what a newer one hides.

    Newer areas that are not among ``tokens`` hide nothing of the commit.
    """
    for age, token in enumerate(tokens):
        newer = tokens[:age]
        marks = ", ".join("?" * len(newer))
        shown = f" AND path NOT IN (SELECT path FROM staging WHERE token IN ({marks}))" if newer else ""
        tx.execute(
            "DELETE FROM fresh WHERE repository = ? AND address IN "
            f"(SELECT address FROM staging WHERE token = ? AND address IS NOT NULL{shown})",
            *(repository, token, *newer),
        )


def forget(tx: Transaction, repository: str) -> int:
    """Nothing is fresh any more: all that is staged is left to the collector; how many rows there were."""
    return tx.execute("DELETE FROM fresh WHERE repository = ?", repository)


def count(tx: Transaction, repository: str) -> int:
    row = tx.one("SELECT COUNT(*) FROM fresh WHERE repository = ?", repository)
    assert row is not None
    return int(row[0])
