"""Orders to keep, by people: below a prefix, at a ref, or one object; with a reason, and until a day or for good.

Whoever marks reads them; whoever sweeps looks again for those made since. A new
hold is a move like one of refs, so that no batch can pass it by.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from desilt.domain.times import microseconds, moment
from desilt.errors import NotFound
from desilt.records.database import Row, Transaction

COLUMNS = "id, kind, value, reason, made_at, until, inserted"


class HoldKind(StrEnum):
    """What a hold names."""

    PREFIX = "prefix"  # of paths, on every branch and in every commit
    REF = "ref"  # a commit, by its whole id: everything in it
    ADDRESS = "address"  # one object


@dataclass(frozen=True, slots=True)
class Hold:
    """What somebody ordered to be kept."""

    id: str
    kind: HoldKind
    value: str
    reason: str
    made_at: datetime
    until: datetime | None  # None: for good
    inserted: int = 0  # the repository's generation then

    def counts(self, now: datetime) -> bool:
        return self.until is None or self.until > now


def add(tx: Transaction, repository: str, hold: Hold) -> None:
    """From this transaction on, nothing that ``hold`` names goes."""
    until = None if hold.until is None else microseconds(hold.until)
    tx.execute(
        f"INSERT INTO holds (repository, {COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        *(repository, hold.id, hold.kind, hold.value, hold.reason, microseconds(hold.made_at), until, hold.inserted),
    )


def remove(tx: Transaction, repository: str, hold_id: str) -> Hold:
    """Lift a hold; what it was."""
    row = tx.one(f"SELECT {COLUMNS} FROM holds WHERE repository = ? AND id = ?", repository, hold_id)
    if row is None:
        raise NotFound("hold", hold_id, "see `desilt hold ls`")
    tx.execute("DELETE FROM holds WHERE repository = ? AND id = ?", repository, hold_id)
    return _hold(row)


def every(tx: Transaction, repository: str) -> list[Hold]:
    """All holds, oldest first, those too whose day has passed."""
    rows = tx.rows(f"SELECT {COLUMNS} FROM holds WHERE repository = ? ORDER BY made_at, id", repository)
    return list(map(_hold, rows))


def since(tx: Transaction, repository: str, generation: int) -> Iterator[Hold]:
    """Those that were made after refs were at ``generation``."""
    rows = tx.rows(f"SELECT {COLUMNS} FROM holds WHERE repository = ? AND inserted > ?", repository, generation)
    return map(_hold, rows)


def _hold(row: Row) -> Hold:
    hold_id, kind, value, reason, made_at, until, inserted = row
    end = None if until is None else moment(until)
    return Hold(hold_id, HoldKind(kind), value, reason, moment(made_at), end, inserted)
