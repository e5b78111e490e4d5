"""The tables that commits need, each read once, and the entries in them as columns.

Tables are read past every cache, all of each, and their ids computed again from
what they hold. One that is not sound is noted, and the rest is read.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from desilt.domain.history import Commit
from desilt.errors import BadRequest, CorruptTable, NotFound, StorageFailed
from desilt.lake.core import Core
from desilt.lake.fsck.rows import About, Flaw, SeenRows
from desilt.sstable.builder import Kind
from desilt.sstable.columns import entry_columns, whole
from desilt.sstable.hashing import TableHash
from desilt.sstable.ranges import EMPTY, FOLDER
from desilt.sstable.records import key_at
from desilt.sstable.table import Table
from desilt.sstable.values import RangeData, decode_range

T = TypeVar("T")
R = TypeVar("R")
ROWS = 1_000_000  # entries compared at once
MOST_AT_ONCE = 16
RANGES_AT_ONCE = 4  # each may be some hundred MB once it is decoded

ENTRIES = pa.schema(
    [
        ("path", pa.binary()),
        ("address", pa.large_string()),
        ("outside", pa.bool_()),
        ("size", pa.int64()),
        ("checksum", pa.string()),
        ("source", pa.int64()),
    ]
)
"""One row per entry; ``source`` says where it was seen, as a place in :attr:`Claims.sources`."""


class Claims:
    """What the commits of a snapshot need, and the entries they and staging areas have."""

    def __init__(self, core: Core, seen: SeenRows, order: Iterable[tuple[Commit, About]]) -> None:
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
        for name, records in at_once(self._metarange, self.metaranges, MOST_AT_ONCE):
            self._list(name, records)

    @property
    def tables(self) -> int:
        return len(self.metaranges.keys() | self.ranges.keys())

    def condemned(self) -> Iterator[tuple[str, About, dict[str, object]]]:
        """The tables that have a tombstone all the same, who needs each, and the stone."""
        stones = self._seen.stones
        for stone in stones.filter(pc.starts_with(stones["address"], FOLDER)).to_pylist():
            name = stone["address"].removeprefix(FOLDER)
            where = self.metaranges.get(name) or self.ranges.get(name)
            if where is not None:
                yield name, where, stone

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
        columns = [
            entries["path"],
            entries["address"].cast(pa.large_string()),
            whole(entries),
            entries["size"],
            entries["checksum"],
            np.full(len(entries), len(self.sources) - 1),
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
            self._flaw(name, where, error.reason)
            return None

    def _sound(self, name: str, kind: Kind, where: About) -> pa.RecordBatch | None:
        """All records of a table that is what its name says; None, and a flaw noted, for any other."""
        try:
            return sound_records(self._core, name, kind)
        except NotFound:
            self.flaws.append(Flaw(name, where, "its file is missing", missing=True))
        except CorruptTable as error:
            self._flaw(name, where, error.reason)
        except (StorageFailed, BadRequest) as error:
            self._flaw(name, where, f"it cannot be read: {error}")
        return None

    def _flaw(self, name: str, where: About, fact: str) -> None:
        self.flaws.append(Flaw(name, where, fact))


def sound_records(core: Core, name: str, kind: Kind) -> pa.RecordBatch:
    """All records of a table, if every byte of it adds up and its id is the hash of them."""
    table = Table.from_bytes(core.store.get(f"{core.prefix}{FOLDER}{name}"), name)
    table.expect(kind)
    records = table.read()
    content = TableHash()
    content.add(records["key"], records["value"])
    if content.finish(kind) != name:
        raise CorruptTable(name, f"its content is that of table {content.finish(kind)}")
    return records


def at_once(function: Callable[[T], R], items: Iterable[T], size: int) -> Iterator[tuple[T, R]]:
    """Each item and what ``function`` makes of it, in order, some at a time: a distant store need not be waited for."""
    with ThreadPoolExecutor(min(size, MOST_AT_ONCE)) as pool:
        rest = iter(items)
        while some := list(islice(rest, size)):
            yield from zip(some, pool.map(function, some), strict=True)
