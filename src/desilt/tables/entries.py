"""Entries as tables: of commits, table by table of the repository's; and of what is staged, branch by branch."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from desilt.columns.paths import shown
from desilt.columns.schemas import MOMENT
from desilt.domain.entry import after_prefix, encode_prefix
from desilt.errors import BadRequest
from desilt.executors.executor import HERE
from desilt.repository.protocol import Repository
from desilt.sstable.columns import whole
from desilt.sstable.values import RangeData
from desilt.tables import schemas
from desilt.tables.piece import grouped, repeated
from desilt.tables.request import ALL, Asked

ENTRIES_TO_A_PIECE = 500_000
STAGED_PIECES = 256  # at most
READERS = 8  # of lists of tables, on the driver: a store takes its time to answer


@dataclass(frozen=True, slots=True)
class Between:
    """Paths from ``start`` on, and before ``stop``; None is open."""

    start: bytes = b""
    stop: bytes | None = None

    def overlaps(self, table: RangeData) -> bool:
        return table.max_key >= self.start and (self.stop is None or table.min_key < self.stop)

    def of(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Those of some entries, in the order of their paths, that lie between."""
        paths = rows["path"]
        first = bisect_left(paths, self.start, key=lambda scalar: scalar.as_py())
        last = rows.num_rows
        if self.stop is not None:
            last = bisect_left(paths, self.stop, key=lambda scalar: scalar.as_py())
        return rows.slice(first, max(0, last - first))


@dataclass(frozen=True, slots=True)
class EntriesPiece:
    """Some tables, each with the refs (names and commits) that have it."""

    tables: tuple[tuple[RangeData, tuple[tuple[str, str], ...]], ...]
    bounds: Between

    def read(self, repository: Repository) -> Iterator[pa.Table]:
        source = repository.source(HERE)
        for table, refs in self.tables:
            rows = self.bounds.of(source.rows_of(table))  # read once, however many refs have it
            told = _told(rows, repository.prefix)
            for ref, commit in refs:
                own = [repeated(ref, rows.num_rows), repeated(commit, rows.num_rows)]
                yield pa.table([*own, *told.values()], schema=schemas.ENTRIES)


@dataclass(frozen=True, slots=True)
class StagedPiece:
    """What is staged on some branches, each as it is when it is read."""

    branches: tuple[str, ...]
    bounds: Between

    def read(self, repository: Repository) -> Iterator[pa.Table]:
        source = repository.source(HERE)
        for branch in self.branches:
            for changes in source.changes_on(branch):
                rows = self.bounds.of(changes)
                told = _told(rows, repository.prefix)
                own = repeated(branch, rows.num_rows)
                yield pa.table([own, *told.values(), pc.is_null(rows["address"])], schema=schemas.STAGED)


def entries(repository: Repository, asked: Asked) -> list[EntriesPiece]:
    """The entries of a ref, of the default branch where none is named, or of every branch."""
    source, bounds = repository.source(HERE), bounds_of(asked)
    seen = source.snapshot(repository.clock())
    if asked.ref == ALL:
        refs = {branch.name: seen.commits[branch.head] for branch in seen.branches}
    else:
        ref = asked.ref or repository.default_branch
        refs = {ref: seen.commits[source.resolve(ref)]}
    tables: dict[str, RangeData] = {}
    users: dict[str, list[tuple[str, str]]] = {}
    with ThreadPoolExecutor(READERS) as readers:
        distinct = list({commit.metarange: commit for commit in refs.values()}.values())
        lists = dict(zip((one.metarange for one in distinct), readers.map(source.tables_of, distinct), strict=True))
    for name, commit in refs.items():
        for table in lists[commit.metarange]:
            if bounds.overlaps(table):
                tables[table.id] = table
                users.setdefault(table.id, []).append((name, commit.id))
    found = [(table, tuple(users[table.id])) for table in sorted(tables.values(), key=lambda one: one.min_key)]
    groups = grouped(found, lambda one: one[0].count * len(one[1]), ENTRIES_TO_A_PIECE)
    return [EntriesPiece(tuple(group), bounds) for group in groups]


def staged(repository: Repository, asked: Asked) -> list[StagedPiece]:
    """What is staged on a branch, or on every branch."""
    source, bounds = repository.source(HERE), bounds_of(asked)
    names = source.staged_branches()
    if asked.ref not in (None, ALL):
        known = [branch.name for branch in source.snapshot(repository.clock()).branches]
        if asked.ref not in known:
            raise BadRequest(f"{asked.ref!r} is no branch, and only on branches something is staged; see table 'refs'")
        names = [name for name in names if name == asked.ref]
    groups = grouped(names, lambda _: 1, -(-len(names) // STAGED_PIECES))
    return [StagedPiece(tuple(group), bounds) for group in groups]


def bounds_of(asked: Asked) -> Between:
    """Where the paths lie that are asked for."""
    start = encode_prefix(asked.prefix)
    return Between(start, after_prefix(start))


def _told(rows: pa.RecordBatch, prefix: str) -> Mapping[str, pa.Array]:
    """The columns that both tables have, in their order."""
    address = rows["address"]
    # A whole address that leads into the repository after all is told as others that do: so it is found by that.
    inside = pc.and_(whole(rows), pc.match_substring(address, prefix))
    return {
        "path": shown(rows["path"]),
        "address": pc.if_else(inside, pc.replace_substring_regex(address, f"^.*{prefix}", ""), address),
        "size_bytes": rows["size"],
        "created_at": pc.cast(rows["modified_at"], MOMENT, safe=False),
        "checksum": rows["checksum"],
        "content_type": rows["content_type"],
        "metadata": rows["metadata"],
    }
