"""Every range decoded once in its life: its entries kept as Parquet, many ranges to a file.

Ranges never change, so what is kept of them never does. A cache file is made
again when it is missing, short or of another version; it is never trusted blindly.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from desilt import cycles
from desilt.cache import growth
from desilt.cache.known import VERSION, CacheFile, Owner, places, say, sound, word_of
from desilt.columns.files import HeldFile, put_in_order
from desilt.columns.hashing import address_hash
from desilt.columns.schemas import MOMENT
from desilt.errors import CorruptTable, NotReadBack
from desilt.executors.executor import Executor
from desilt.logs import logger
from desilt.objects import open_store
from desilt.objects.store import ObjectStore
from desilt.sstable.columns import entry_columns, whole
from desilt.sstable.ranges import Ranges
from desilt.sstable.values import RangeData

FOLDER = "_desilt/ranges/"
ENTRIES_TO_A_FILE = 1_000_000
ENTRIES_TO_A_TABLE = 100  # as long as it takes to open one
ENTRIES_TOGETHER = 50_000  # of small ranges, that are made columns of in one go
log = logger(__name__)

CACHED = pa.schema(
    [
        ("address", pa.string()),
        ("owner", pa.int32()),  # the range's place in the file's list
        ("path", pa.binary()),
        ("size_bytes", pa.int64()),
        ("created_at", MOMENT),
    ]
)
"""One row per entry whose object lies inside the repository."""


class Territory(Protocol):
    """Where a repository is: what tells which whole URIs lead into it. It is sent to executors."""

    def inside(self, uris: pa.Array) -> pa.Array:
        """Each as an address of the repository; null where it leads elsewhere."""


@dataclass(frozen=True, slots=True)
class Below:
    """The place of a repository whose prefix has a name that no other place has."""

    prefix: str

    def inside(self, uris: pa.Array) -> pa.Array:
        tails = pc.replace_substring_regex(uris, f"(?s)^.*{re.escape(self.prefix)}", "")
        return pc.if_else(pc.match_substring(uris, self.prefix), tails, pa.scalar(None, pa.string()))


class Decoder(Protocol):
    """How a kind of repository has its tables, that their entries are read from. It is sent to executors."""

    @property
    def folder(self) -> str:
        """The folder they are in, each by its id."""

    def entries(self, store: ObjectStore, prefix: str, some: Sequence[RangeData], first: int) -> pa.Table:
        """The entries of some that point into the repository, as CACHED, with owners counted from ``first``."""


@dataclass(frozen=True, slots=True)
class RangeDecoder:
    """Of ranges in a folder."""

    folder: str
    territory: Territory

    def entries(self, store: ObjectStore, prefix: str, some: Sequence[RangeData], first: int) -> pa.Table:
        return entries_together(Ranges(store, prefix, folder=self.folder), some, first, self.territory)


@dataclass(frozen=True, slots=True)
class RangePiece:
    """Tables to be decoded into one cache file."""

    store: str
    prefix: str
    decoder: Decoder
    ranges: tuple[RangeData, ...]
    target: str  # the cache file's key without its ending


@dataclass(frozen=True, slots=True)
class Placed:
    """A cache file, and which of its owners is which range."""

    file: HeldFile
    owners: int  # that it has, those too that nobody asks for
    ranges: dict[int, str] = field(default_factory=dict)
    elsewhere: set[str] = field(default_factory=set)  # ranges that have entries over objects outside of the repository

    @property
    def held(self) -> HeldFile:
        """The file, with the owners that somebody asks for; if that is all of them, nobody need look whose a row is."""
        return replace(self.file, owners=None if len(self.ranges) == self.owners else frozenset(self.ranges))


def held(
    executor: Executor,
    store: ObjectStore,
    prefix: str,
    wanted: Sequence[RangeData],
    *,
    decoder: Decoder,
    folder: str = FOLDER,
) -> list[HeldFile]:
    """The files in ``folder`` that hold the entries of ``wanted``, after decoding those that are new."""
    found = placed(executor, store, prefix, wanted, decoder=decoder, folder=folder, grows=False)
    return [one.held for one in found]


@cycles.left_alone()
def placed(
    executor: Executor,
    store: ObjectStore,
    prefix: str,
    wanted: Sequence[RangeData],
    *,
    decoder: Decoder,
    folder: str = FOLDER,
    grows: bool = True,
) -> list[Placed]:
    """The same, with the place of each range in its file; where small files are many, they grow together first."""
    counts = {one.id: one.count for one in wanted}
    files = sound(store, prefix + folder, counts)
    if grows and _grow(executor, store, prefix, files, counts, source=decoder.folder, folder=folder):
        files = sound(store, prefix + folder, counts)
    known = places(files)
    missing = [one for one in wanted if one.id not in known]
    if missing:
        log.info("%s of %s ranges are decoded into the cache", len(missing), len(wanted))
        groups = _grouped(missing, ENTRIES_TO_A_FILE, ENTRIES_TO_A_TABLE)
        pieces = [_piece(store, prefix, decoder, folder, group) for group in groups]
        entries = sum(one.count for one in missing)
        executor.watch.expects(entries)
        executor(decode, pieces, rows=entries + len(missing) * ENTRIES_TO_A_TABLE, weigh=int)
        made = {f"{piece.target}.parquet" for piece in pieces}
        known = places(sound(store, prefix + folder, counts, made=made))
    found: dict[str, Placed] = {}
    for listed in wanted:
        if listed.id not in known:
            raise NotReadBack(listed.id, "it was decoded and is not in the cache")
        cached, owner = known[listed.id]
        placed = found.setdefault(cached.file.key, Placed(cached.file, len(cached.owners)))
        placed.ranges[owner] = listed.id
        if cached.owners[owner].rows < listed.count:
            placed.elsewhere.add(listed.id)
    return [found[key] for key in sorted(found)]


def _grow(
    executor: Executor,
    store: ObjectStore,
    prefix: str,
    files: Sequence[CacheFile],
    wanted: Mapping[str, int],
    *,
    source: str,
    folder: str,
) -> bool:
    """Merge files that are due; whether there is anything new to know."""
    read = {place.cached.file.key for place in places(files).values()}
    idle = [one for one in files if one.file.key not in read]
    files = [one for one in files if one.file.key in read]
    if not growth.due(files):
        return False
    below = prefix + source
    there = {key.removeprefix(below) for batch in store.list(below) for key in batch["key"].to_pylist()}
    pieces = list(growth.pieces(store.uri, prefix + folder, files, idle, there | wanted.keys()))
    rows = sum(source.file.rows for piece in pieces for source in piece.sources)
    log.info("%s cache files grow together into %s", sum(len(piece.sources) for piece in pieces), len(pieces))
    for damaged in filter(None, executor(growth.merge, pieces, rows=rows)):
        distrust(store, damaged)
    return True


def distrust(store: ObjectStore, key: str) -> None:
    """Forget that the cache file ``key`` is there: its ranges are decoded again when they are next wanted."""
    log.warning("the cache file %s is damaged, and is made again", key)
    store.put(word_of(key), [b"{}"])


def decode(piece: RangePiece) -> int:
    """Decode a piece, on an executor: its file first, then the word that it is there; how many rows."""
    store = open_store(piece.store)
    tables, hashes, first = [], [], 0
    for some in _grouped(piece.ranges, ENTRIES_TOGETHER):
        tables.append(piece.decoder.entries(store, piece.prefix, some, first))
        hashes.append(address_hash(tables[-1]["address"].combine_chunks()))
        first += len(some)
    table = pa.concat_tables(tables).combine_chunks()
    sizes = np.bincount(table["owner"].to_numpy(), minlength=len(piece.ranges)).tolist()
    tables.clear()
    file = put_in_order(store, f"{piece.target}.parquet", table, np.concatenate(hashes))
    owners = [Owner(listed.id, listed.count, rows) for listed, rows in zip(piece.ranges, sizes, strict=True)]
    say(store, CacheFile(file, tuple(owners)), store.head(file.key).size)
    return int(table.num_rows)


def entries_of(ranges: Ranges, listed: RangeData, owner: int) -> pa.Table:
    """The entries of a range that point into the repository."""
    return pointing_in(entry_columns(ranges.read(listed), listed.id), Below(ranges.prefix), owner)


def entries_together(ranges: Ranges, some: Sequence[RangeData], first: int, territory: Territory) -> pa.Table:
    """The same of several, whose owners are counted from ``first``: what a call costs besides, small ones pay once."""
    read = ranges.read_together(some)
    owners = np.repeat(np.arange(first, first + len(some), dtype=np.int32), [one.num_rows for one in read])
    try:
        columns = entry_columns(pa.concat_batches(read))
    except CorruptTable:  # by which of them
        for listed, records in zip(some, read, strict=True):
            entry_columns(records, listed.id)
        raise
    return pointing_in(columns, territory, owners)


def pointing_in(columns: pa.RecordBatch, territory: Territory, owner: int | npt.NDArray[np.int32]) -> pa.Table:
    """Those of some entries, as columns, that point into the repository, as CACHED; owners are one, or one each."""
    owners = np.full(columns.num_rows, owner, np.int32) if isinstance(owner, int) else owner
    columns = columns.append_column("owner", pa.array(owners))
    outside = whole(columns)
    if pc.any(outside, min_count=0).as_py():
        columns = _inside(columns, outside, territory)
    return pa.table(
        [
            columns["address"],
            columns["owner"],
            columns["path"],
            columns["size"],
            pc.cast(columns["modified_at"], MOMENT, safe=False),
        ],
        schema=CACHED,
    )


def _inside(columns: pa.RecordBatch, outside: pa.Array, territory: Territory) -> pa.RecordBatch:
    """Entries without those ``outside``; but a whole address that leads into the repository holds what it leads to."""
    tails = territory.inside(columns["address"].filter(outside))
    counts = pc.replace_with_mask(pc.invert(outside), outside, pc.is_valid(tails))
    address = pc.replace_with_mask(columns["address"], outside, pc.fill_null(tails, ""))
    return columns.set_column(columns.schema.get_field_index("address"), "address", address).filter(counts)


def _piece(store: ObjectStore, prefix: str, decoder: Decoder, folder: str, group: Sequence[RangeData]) -> RangePiece:
    """Named by what is in it, so that doing it twice is doing it once, and by its version: old ones may be going."""
    name = hashlib.sha256("".join([f"{VERSION} ", *(one.id for one in group)]).encode()).hexdigest()[:32]
    return RangePiece(store.uri, prefix, decoder, tuple(group), f"{prefix}{folder}{name}")


def _grouped(ranges: Sequence[RangeData], most: int, each: int = 0) -> Iterator[list[RangeData]]:
    """Neighbours, with at most so many entries together (and ``each`` more for a range); one that has more is alone."""
    group: list[RangeData] = []
    entries = 0
    for listed in ranges:
        if group and entries + listed.count + each > most:
            yield group
            group, entries = [], 0
        group.append(listed)
        entries += listed.count + each
    if group:
        yield group
