"""Commits as rows: kept until a job removes them, read by id.

Nothing of a commit ever changes but its parents, when history is edited; those it
was made with stay on record. A commit that was collected leaves a trace.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from desilt.domain.history import Commit, Fetch
from desilt.domain.times import microseconds, moment
from desilt.errors import CommitGone, NotFound, Unreadable
from desilt.lake import repositories
from desilt.records.database import Row, Transaction, among

COLUMNS = "id, parents, metarange, created_at, committer, message, metadata, generation"
ROW = f"{COLUMNS}, was"
NO_METADATA = "{}"


@dataclass(frozen=True, slots=True)
class Trace:
    """What is left of a commit that a run collected: enough to say so, and to find where histories met."""

    id: str
    parents: tuple[str, ...]  # as it was made
    created_at: datetime
    generation: int
    run: str
    collected_at: datetime


def insert(tx: Transaction, repository: str, commit: Commit) -> None:
    """Write ``commit``; the same content at the same instant is the same commit, written once."""
    made = tx.execute(
        f"INSERT INTO commits (repository, {COLUMNS}, added) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, "
        "(SELECT generation FROM repositories WHERE uid = ?)) ON CONFLICT DO NOTHING",
        *(repository, commit.id, json.dumps(commit.parents), commit.metarange, microseconds(commit.created_at)),
        *(commit.committer, commit.message, json.dumps(commit.metadata), commit.generation, repository),
    )
    repositories.count(tx, repository, "commit", made)


def fetching(tx: Transaction, repository: str) -> Fetch:
    """Commits by their whole id, each read once."""
    known: dict[str, Commit] = {}

    def fetch(commit_id: str) -> Commit:
        if commit_id not in known:
            row = tx.one(f"SELECT {ROW} FROM commits WHERE repository = ? AND id = ?", repository, commit_id)
            if row is None:
                refuse_collected(tx, repository, commit_id)
                raise NotFound("commit", commit_id)
            known[commit_id] = _commit(row)
        return known[commit_id]

    return fetch


def as_made(tx: Transaction, repository: str, fetch: Fetch) -> Callable[[str], Commit | Trace]:
    """History as it was made, on top of ``fetch``: whatever was edited since, and through what was collected."""

    def made(commit_id: str) -> Commit | Trace:
        try:
            commit = fetch(commit_id)
        except CommitGone:
            left = trace(tx, repository, commit_id)
            assert left is not None
            return left
        return commit if commit.was is None else replace(commit, parents=commit.was, was=None)

    return made


def every(tx: Transaction, repository: str) -> Iterator[Commit]:
    """All commits there are, reachable or not."""
    return map(_commit, tx.each(f"SELECT {ROW} FROM commits WHERE repository = ?", repository))


def edit(tx: Transaction, repository: str, commit_id: str, *, seen: Sequence[str], parents: Sequence[str]) -> bool:
    """Give a commit other parents, if it has those that were ``seen``; what it was made with is remembered."""
    return bool(
        tx.execute(
            "UPDATE commits SET parents = ?, was = COALESCE(was, parents) "
            "WHERE repository = ? AND id = ? AND parents = ?",
            *(json.dumps(list(parents)), repository, commit_id, json.dumps(list(seen))),
        )
    )


def release(tx: Transaction, repository: str, ids: Sequence[str], *, at: datetime) -> None:
    """Remember that something which kept these commits, and all they descend from, does so no longer."""
    tx.execute_many(
        "UPDATE commits SET released_at = ? WHERE repository = ? AND id = ?",
        ((microseconds(at), repository, name) for name in ids),
    )


def released_since(tx: Transaction, repository: str, since: datetime) -> set[str]:
    """The commits that were released at ``since`` or later."""
    rows = tx.rows("SELECT id FROM commits WHERE repository = ? AND released_at >= ?", repository, microseconds(since))
    return {str(row[0]) for row in rows}


def collect(tx: Transaction, repository: str, ids: Sequence[str], *, run: str, at: datetime) -> None:
    """Take commits away; from this transaction on, whoever asks for one is told that it is gone."""
    tx.execute_many(
        "INSERT INTO collected (repository, id, parents, created_at, generation, run, collected_at) "
        "SELECT repository, id, COALESCE(was, parents), created_at, generation, ?, ? FROM commits "
        "WHERE repository = ? AND id = ?",
        ((run, microseconds(at), repository, name) for name in ids),
    )
    before = len(there(tx, repository, ids))
    tx.execute_many("DELETE FROM commits WHERE repository = ? AND id = ?", ((repository, name) for name in ids))
    repositories.count(tx, repository, "commit", -before)


def trace(tx: Transaction, repository: str, commit_id: str) -> Trace | None:
    """What is left of a commit that was collected."""
    row = tx.one(
        "SELECT id, parents, created_at, generation, run, collected_at FROM collected WHERE repository = ? AND id = ?",
        *(repository, commit_id),
    )
    if row is None:
        return None
    name, parents, created_at, generation, run, at = row
    try:
        parsed = tuple(json.loads(parents))
    except ValueError:
        raise _unreadable(name) from None
    return Trace(name, parsed, moment(created_at), generation, run, moment(at))


def refuse_collected(tx: Transaction, repository: str, commit_id: str) -> None:
    """Raise :class:`CommitGone` if a run has collected the commit."""
    left = trace(tx, repository, commit_id)
    if left is not None:
        raise CommitGone(left.id, left.run, left.collected_at)


def there(tx: Transaction, repository: str, ids: Sequence[str]) -> set[str]:
    """Which of ``ids`` are commits."""
    rows = among(tx, "SELECT id FROM commits WHERE repository = ? AND id IN ({})", ids, repository)
    return {str(row[0]) for row in rows}


def require(tx: Transaction, repository: str, ids: Sequence[str]) -> None:
    """Raise :class:`CommitGone`, or :class:`NotFound`, unless all of ``ids`` are commits."""
    for missing in sorted(set(ids) - there(tx, repository, ids)):
        refuse_collected(tx, repository, missing)
        raise NotFound("commit", missing)


def collected(tx: Transaction, repository: str) -> dict[str, str]:
    """Every commit that was collected, and by which run."""
    return {
        str(name): str(run) for name, run in tx.each("SELECT id, run FROM collected WHERE repository = ?", repository)
    }


def metaranges_since(tx: Transaction, repository: str, generation: int) -> set[str]:
    """The metaranges of the commits that were made after refs were at ``generation``."""
    rows = tx.rows("SELECT metarange FROM commits WHERE repository = ? AND added > ?", repository, generation)
    return {str(row[0]) for row in rows}


def ids_since(tx: Transaction, repository: str, generation: int) -> set[str]:
    """The commits that were made after refs were at ``generation``."""
    rows = tx.rows("SELECT id FROM commits WHERE repository = ? AND added > ?", repository, generation)
    return {str(row[0]) for row in rows}


def by_prefix(tx: Transaction, repository: str, prefix: str) -> list[str]:
    """Up to two ids that begin with ``prefix``: one is an answer, two are a question.

    Those that were collected are told only where no commit begins so.
    """
    for table in ("commits", "collected"):
        rows = tx.rows(
            f"SELECT id FROM {table} WHERE repository = ? AND id >= ? AND id < ? ORDER BY id LIMIT 2",
            *(repository, prefix, prefix + "g"),  # after every hex digit
        )
        if found := [str(row[0]) for row in rows]:
            return found
    return []


def _commit(row: Row) -> Commit:
    commit_id, parents, metarange, created_at, committer, message, metadata, generation, was = row
    try:
        said = {} if metadata == NO_METADATA else json.loads(metadata)
        parsed = _ids(parents), said, None if was is None else _ids(was)
    except ValueError:
        raise _unreadable(commit_id) from None
    at = moment(created_at)
    return Commit(commit_id, parsed[0], metarange, at, committer, message, parsed[1], generation, parsed[2])


def _ids(written: str) -> tuple[str, ...]:
    """A list of ids as JSON; that of one alone, as most are, is read without a parser."""
    if written.count('"') == 2 and written[:2] == '["' and written[-2:] == '"]' and "\\" not in written:
        return (written[2:-2],)
    return tuple(json.loads(written))


def _unreadable(commit_id: str) -> Unreadable:
    return Unreadable(f"commit {commit_id} has an unreadable row; restore the database from a copy")
