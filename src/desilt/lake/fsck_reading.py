"""Everything a repository claims, as a check needs it: rows in one snapshot, tables read once, entries as columns.

Tables are read past every cache, all of each, and their ids computed again from
what they hold. One that is not sound is noted, and the rest is read.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from itertools import batched
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from desilt.domain.history import Commit
from desilt.domain.ticket import Ticket
from desilt.errors import BadRequest, CorruptTable, NotFound, StorageFailed, Unreadable
from desilt.lake import commits, refs, staging, tickets
from desilt.lake.core import Core
from desilt.lake.database import Transaction
from desilt.lake.ranges import EMPTY, FOLDER
from desilt.lake.records import key_at
from desilt.lake.refs import Branch, Tag
from desilt.sstable.builder import Kind
from desilt.sstable.columns import entry_columns
from desilt.sstable.hashing import TableHash
from desilt.sstable.table import RAW, Table
from desilt.sstable.values import RangeData, decode_range

T, R = TypeVar("T"), TypeVar("R")
About = Mapping[str, str]
ROWS = 1_000_000  # entries compared at once
TABLES_AT_ONCE, RANGES_AT_ONCE = 16, 4

STONES = pa.schema(
    [("address", pa.large_string()), ("run", pa.string()), ("rule", pa.string()), ("condemned_at", pa.int64())]
)
ENTRIES = pa.schema(
    [
        ("path", pa.string()),
        ("address", pa.large_string()),
        ("outside", pa.bool_()),
        ("size", pa.int64()),
        ("checksum", pa.string()),
        ("source", pa.int64()),
    ]
)
"""One row per entry; ``source`` says where it was seen, as a place in :attr:`Claims.sources`."""


@dataclass(frozen=True, slots=True)
class Flaw:
    """A table that is not sound; ``missing`` if it is not there at all."""

    table: str
    where: About
    fact: str
    missing: bool = False


@dataclass(slots=True)
class Snapshot:
    """The rows of a repository at one moment."""

    taken_at: datetime
    branches: list[Branch]
    tags: list[Tag]
    commits: dict[str, Commit]
    corrupt_commits: list[str]
    tickets: list[Ticket]
    stones: pa.Table
    staged: list[tuple[About, pa.RecordBatch]] = field(default_factory=list)
    flaws: list[Flaw] = field(default_factory=list)
    strays: list[tuple[str, str]] = field(default_factory=list)  # staging token, what is wrong with it
    stray_addresses: list[str] = field(default_factory=list)


def take(core: Core) -> Snapshot:
    """All rows that matter, in one snapshot. The clock is read first: what is younger may be missing here."""
    now = core.clock()
    with core.database.read() as tx:
        found, corrupt = _commits(tx, core.uid)
        stones = tx.rows("SELECT address, run, rule, condemned_at FROM tombstones WHERE repository = ?", core.uid)
        seen = Snapshot(
            now,
            refs.branches(tx, core.uid),
            list(refs.tags(tx, core.uid)),
            found,
            corrupt,
            list(tickets.open_at(tx, core.uid, now)),
            pa.Table.from_arrays(
                [pa.array(column, kind) for column, kind in zip(_columns(stones, 4), STONES.types, strict=True)],
                schema=STONES,
            ),
        )
        for branch in seen.branches:
            for token in branch.tokens:
                _stage(seen, tx, token, {"ref": branch.name, "staging": token})
        _strays(seen, tx)
    return seen


def _commits(tx: Transaction, repository: str) -> tuple[dict[str, Commit], list[str]]:
    try:
        return {commit.id: commit for commit in commits.every(tx, repository)}, []
    except Unreadable:
        pass  # one by one, to leave out only what is not readable
    found, corrupt, fetch = {}, [], commits.fetching(tx, repository)
    for (commit_id,) in list(tx.rows("SELECT id FROM commits WHERE repository = ?", repository)):
        try:
            found[commit_id] = fetch(commit_id)
        except Unreadable:
            corrupt.append(commit_id)
    return found, corrupt


def _stage(seen: Snapshot, tx: Transaction, token: str, where: About) -> None:
    for changes in staging.changes(tx, [token]):
        records = changes.filter(pc.is_valid(changes["value"])).cast(RAW)
        try:
            seen.staged.append((where, entry_columns(records, token)))
        except CorruptTable as error:
            seen.flaws.append(Flaw(token, where, f"up to {len(records):,} staged changes: {error.reason}"))


def _strays(seen: Snapshot, tx: Transaction) -> None:
    """Staging areas of no branch, in the whole lake: their rows do not say whose they were."""
    known = "SELECT token FROM branches UNION SELECT token FROM sealed WHERE branch IN (SELECT uid FROM branches)"
    lost = list(tx.rows(f"SELECT token, COUNT(*) FROM staging WHERE token NOT IN ({known}) GROUP BY token"))
    for token, count in lost:
        seen.strays.append((token, f"{count:,} staged changes belong to no branch of any repository"))
        for changes in staging.changes(tx, [token]):
            try:
                records = changes.filter(pc.is_valid(changes["value"])).cast(RAW)
                seen.stray_addresses += entry_columns(records, token)["address"].to_pylist()
            except CorruptTable as error:
                seen.flaws.append(Flaw(token, {"staging": token}, error.reason))
    for token, branch in tx.rows("SELECT token, branch FROM sealed WHERE branch NOT IN (SELECT uid FROM branches)"):
        seen.strays.append((token, f"it is sealed for branch {branch}, which is not there"))


class Claims:
    """What the commits of a snapshot need, and the entries they and staging areas have."""

    def __init__(self, core: Core, seen: Snapshot, order: Iterable[tuple[Commit, About]]) -> None:
        """``order``: every commit, the ones to be named as witnesses first, and how each is named."""
        self._core, self._seen = core, seen
        self.flaws = list(seen.flaws)
        self.sources: list[About] = []
        self.metaranges: dict[str, About] = {}
        self.ranges: dict[str, About] = {}
        self._listed: dict[str, dict[RangeData, str]] = {}  # what metaranges say of a range, and one that says so
        for commit, where in order:
            if commit.metarange != EMPTY:
                self.metaranges.setdefault(commit.metarange, where)
        for name, records in at_once(self._metarange, self.metaranges, TABLES_AT_ONCE):
            self._list(name, records)

    @property
    def tables(self) -> int:
        return len(self.metaranges.keys() | self.ranges.keys())

    def entries(self) -> Iterator[pa.Table]:
        """Every entry of every range and staging area as :data:`ENTRIES`, about a million rows at a time."""
        held: list[pa.RecordBatch] = []
        for batch in self._batches():
            held.append(batch)
            if sum(map(len, held)) >= ROWS:
                yield pa.Table.from_batches(held).combine_chunks()
                held = []
        if held:
            yield pa.Table.from_batches(held).combine_chunks()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for where, entries in self._seen.staged:
            yield self._sourced(entries, where)
        for name, entries in at_once(self._range, self.ranges, RANGES_AT_ONCE):
            if entries is not None:
                yield self._sourced(entries, self.ranges[name])

    def _sourced(self, entries: pa.RecordBatch, where: About) -> pa.RecordBatch:
        self.sources.append(where)
        full = pc.equal(entries["address_type"], 2)
        by_prefix = pc.and_(pc.equal(entries["address_type"], 0), pc.match_substring(entries["address"], "://"))
        columns = [
            entries["path"],
            entries["address"].cast(pa.large_string()),
            pc.or_(full, by_prefix),
            entries["size"],
            entries["checksum"],
            pa.repeat(len(self.sources) - 1, len(entries)),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=ENTRIES)

    def _metarange(self, name: str) -> pa.RecordBatch | None:
        return self._sound(name, "metaranges", self.metaranges[name])

    def _list(self, name: str, records: pa.RecordBatch | None) -> None:
        above = None
        for key, value in zip(records["key"].to_pylist(), records["value"].to_pylist(), strict=True) if records else ():
            try:
                listed = decode_range(value, name)
            except CorruptTable as error:
                self._flaw(name, self.metaranges[name], error.reason)
                return
            if key != listed.max_key or (above is not None and listed.min_key <= above):
                self._flaw(name, self.metaranges[name], f"it lists range {listed.id} out of place")
            above = listed.max_key
            self.ranges.setdefault(listed.id, self.metaranges[name])
            self._listed.setdefault(listed.id, {}).setdefault(listed, name)

    def _range(self, name: str) -> pa.RecordBatch | None:
        where = self.ranges[name]
        records = self._sound(name, "ranges", where)
        if records is None:
            return None
        ends = (key_at(records, 0), key_at(records, -1)) if len(records) else (b"", b"")
        for listed, metarange in self._listed[name].items():
            if (listed.min_key, listed.max_key, listed.count) != (*ends, len(records)):
                fact = f"it lists range {name} with other bounds or another count than that range has"
                self._flaw(metarange, self.metaranges[metarange], fact)
        try:
            return entry_columns(records, name)
        except CorruptTable as error:
            return self._flaw(name, where, error.reason)

    def _sound(self, name: str, kind: Kind, where: About) -> pa.RecordBatch | None:
        """All records of a table that is what its name says; None, and a flaw noted, for any other."""
        try:
            table = Table.from_bytes(self._core.store.get(f"{self._core.prefix}{FOLDER}{name}"), name)
            table.expect(kind)
            records = table.read()
        except NotFound:
            self.flaws.append(Flaw(name, where, "its file is missing", missing=True))
            return None
        except CorruptTable as error:
            return self._flaw(name, where, error.reason)
        except (StorageFailed, BadRequest) as error:
            return self._flaw(name, where, f"it cannot be read: {error}")
        content = TableHash()
        content.add(records["key"], records["value"])
        if content.finish(kind) != name:
            return self._flaw(name, where, f"its content is that of table {content.finish(kind)}")
        return records

    def _flaw(self, name: str, where: About, fact: str) -> None:
        self.flaws.append(Flaw(name, where, fact))


def at_once(function: Callable[[T], R], items: Iterable[T], size: int) -> Iterator[tuple[T, R]]:
    """Each item and what ``function`` makes of it, in order, some at a time: a distant store need not be waited for."""
    with ThreadPoolExecutor(min(size, 16)) as pool:
        for some in batched(items, size):
            yield from zip(some, pool.map(function, some), strict=True)


def _columns(rows: Iterable[tuple[object, ...]], width: int) -> list[list[object]]:
    columns = [list(column) for column in zip(*rows, strict=True)]
    return columns or [[] for _ in range(width)]
