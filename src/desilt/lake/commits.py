"""Commits as rows: kept for ever until a job removes them, read by id."""

import json
from collections.abc import Iterator

from desilt.domain.history import Commit, Fetch
from desilt.domain.times import microseconds, moment
from desilt.errors import NotFound, Unreadable
from desilt.lake.database import Row, Transaction

COLUMNS = "id, parents, metarange, created_at, committer, message, metadata, generation"


def insert(tx: Transaction, repository: str, commit: Commit) -> None:
    """Write ``commit``; the same content at the same instant is the same commit, written once."""
    tx.execute(
        f"INSERT INTO commits (repository, {COLUMNS}, inserted) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, "
        "(SELECT generation FROM repositories WHERE uid = ?)) ON CONFLICT DO NOTHING",
        *(repository, commit.id, json.dumps(commit.parents), commit.metarange, microseconds(commit.created_at)),
        *(commit.committer, commit.message, json.dumps(commit.metadata), commit.generation, repository),
    )


def fetching(tx: Transaction, repository: str) -> Fetch:
    """Commits by their whole id, each read once."""
    known: dict[str, Commit] = {}

    def fetch(commit_id: str) -> Commit:
        if commit_id not in known:
            row = tx.one(f"SELECT {COLUMNS} FROM commits WHERE repository = ? AND id = ?", repository, commit_id)
            if row is None:
                raise NotFound("commit", commit_id)
            known[commit_id] = _commit(row)
        return known[commit_id]

    return fetch


def every(tx: Transaction, repository: str) -> Iterator[Commit]:
    """All commits there are, reachable or not."""
    return map(_commit, tx.rows(f"SELECT {COLUMNS} FROM commits WHERE repository = ?", repository))


def metaranges_since(tx: Transaction, repository: str, generation: int) -> set[str]:
    """The metaranges of the commits that were made after refs were at ``generation``."""
    rows = tx.rows("SELECT metarange FROM commits WHERE repository = ? AND inserted > ?", repository, generation)
    return {str(row[0]) for row in rows}


def ids_since(tx: Transaction, repository: str, generation: int) -> set[str]:
    """The commits that were made after refs were at ``generation``."""
    rows = tx.rows("SELECT id FROM commits WHERE repository = ? AND inserted > ?", repository, generation)
    return {str(row[0]) for row in rows}


def by_prefix(tx: Transaction, repository: str, prefix: str) -> list[str]:
    """Up to two ids that begin with ``prefix``: one is an answer, two are a question."""
    found = tx.rows(
        "SELECT id FROM commits WHERE repository = ? AND id >= ? AND id < ? ORDER BY id LIMIT 2",
        *(repository, prefix, prefix + "g"),  # after every hex digit
    )
    return [str(row[0]) for row in found]


def _commit(row: Row) -> Commit:
    commit_id, parents, metarange, created_at, committer, message, metadata, generation = row
    try:
        parsed = tuple(json.loads(parents)), json.loads(metadata)
    except ValueError:
        raise Unreadable(f"commit {commit_id} has an unreadable row; restore the database from a copy") from None
    return Commit(commit_id, parsed[0], metarange, moment(created_at), committer, message, parsed[1], generation)
