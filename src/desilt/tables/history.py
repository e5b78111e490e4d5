"""Commits and refs as tables: small enough for one task, which reads them as of one moment, whole or not at all."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from desilt.executors.executor import HERE
from desilt.repository.protocol import Repository
from desilt.repository.snapshot import Snapshot
from desilt.tables import schemas
from desilt.tables.request import Asked


@dataclass(frozen=True, slots=True)
class HistoryPiece:
    """All commits, or all refs."""

    table: str

    def read(self, repository: Repository) -> Iterator[pa.Table]:
        seen = repository.source(HERE).snapshot(repository.clock())
        yield commits(seen) if self.table == "commits" else refs(seen)


def history(_: Repository, asked: Asked) -> list[HistoryPiece]:
    return [HistoryPiece(asked.table)]


def commits(seen: Snapshot) -> pa.Table:
    """As COMMITS, oldest first."""
    found = seen.in_time
    columns: list[Sequence[object]] = [
        [one.id for one in found],
        [one.parents for one in found],
        [one.made_from for one in found],
        [one.created_at for one in found],
        [one.committer for one in found],
        [one.message for one in found],
        [list(one.metadata.items()) for one in found],
    ]
    return _table(columns, schemas.COMMITS)


def refs(seen: Snapshot) -> pa.Table:
    """As REFS: branches, then tags, by name."""
    usual = seen.default_branch
    found = [("branch", one.name, one.head, one.created_at, one.name == usual) for one in seen.branches]
    found += [("tag", one.name, one.target, one.created_at, False) for one in seen.tags]
    return _table(list(zip(*found, strict=True)), schemas.REFS)


def _table(columns: Sequence[Sequence[object]], schema: pa.Schema) -> pa.Table:
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)
