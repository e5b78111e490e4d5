"""What the refs of a repository elsewhere were seen at: each look that finds them moved, and each order, is a number.

Its server counts nothing, so it is counted here. A number and its mark are of this database alone: of a plan that
another one vouches for, nothing is known.
"""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from desilt.domain.times import microseconds
from desilt.records.database import Transaction

FIRST = 1


@dataclass(frozen=True, slots=True)
class SeenRefs:
    """Refs that somebody saw."""

    number: int
    mark: str
    refs: str  # what tells them from others
    commits: str  # where the commits are listed that there were


def newest(tx: Transaction, repository: str) -> SeenRefs | None:
    row = tx.one(
        "SELECT number, mark, refs, commits FROM revisions WHERE repository = ? ORDER BY number DESC LIMIT 1",
        repository,
    )
    return None if row is None else SeenRefs(int(row[0]), str(row[1]), str(row[2]), str(row[3]))


def at(tx: Transaction, repository: str, number: int) -> SeenRefs | None:
    row = tx.one(
        "SELECT number, mark, refs, commits FROM revisions WHERE repository = ? AND number = ?", repository, number
    )
    return None if row is None else SeenRefs(int(row[0]), str(row[1]), str(row[2]), str(row[3]))


def back(tx: Transaction, repository: str) -> Iterator[tuple[SeenRefs, int]]:
    """What was seen, the newest first, each with when that was, in microseconds."""
    rows = tx.rows(
        "SELECT number, mark, refs, commits, seen_at FROM revisions WHERE repository = ? ORDER BY number DESC",
        repository,
    )
    for number, mark, refs, commits, seen_at in rows:
        yield SeenRefs(int(number), str(mark), str(refs), str(commits)), int(seen_at)


def see(tx: Transaction, repository: str, refs: str, commits: str, *, now: datetime) -> SeenRefs:
    """Refs as they are; the number they had last, if they have not moved."""
    tx.lock(f"{repository}/revisions")
    last = newest(tx, repository)
    if last is not None and last.refs == refs:
        return last
    return _add(tx, repository, last, refs, commits, now)


def order(tx: Transaction, repository: str, *, now: datetime) -> int:
    """Somebody orders something: a number of its own, with the refs as they were seen last."""
    tx.lock(f"{repository}/revisions")
    last = newest(tx, repository)
    refs, commits = (last.refs, last.commits) if last else ("", "")
    return _add(tx, repository, last, refs, commits, now).number


def _add(tx: Transaction, repository: str, last: SeenRefs | None, refs: str, commits: str, now: datetime) -> SeenRefs:
    made = SeenRefs(last.number + 1 if last else FIRST, secrets.token_hex(8), refs, commits)
    tx.execute(
        "INSERT INTO revisions (repository, number, mark, refs, commits, seen_at) VALUES (?, ?, ?, ?, ?, ?)",
        *(repository, made.number, made.mark, refs, commits, microseconds(now)),
    )
    return made
