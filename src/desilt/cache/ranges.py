"""Every range decoded once in its life: its entries kept as Parquet, many ranges to a file.

Ranges never change, so what is kept of them never does. A cache file is made
again when it is missing, short or of another version; it is never trusted blindly.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from desilt.columns.files import HeldFile, put_in_order
from desilt.columns.hashing import address_hash
from desilt.columns.schemas import MOMENT
from desilt.errors import NotFound, NotReadBack
from desilt.executors.executor import Executor
from desilt.logs import logger
from desilt.objects import open_store
from desilt.objects.store import ObjectStore
from desilt.sstable.columns import entry_columns, whole
from desilt.sstable.ranges import Ranges
from desilt.sstable.values import RangeData

FOLDER = "_desilt/ranges/"
VERSION = 3
ENTRIES_TO_A_FILE = 1_000_000
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


@dataclass(frozen=True, slots=True)
class RangePiece:
    """Ranges to be decoded into one cache file."""

    store: str
    prefix: str
    source: str  # the folder the ranges are in
    ranges: tuple[RangeData, ...]
    target: str  # the cache file's key without its ending


@dataclass(frozen=True, slots=True)
class Placed:
    """A cache file, and which of its owners is which range."""

    file: HeldFile
    owners: int  # that it has, those too that nobody asks for
    ranges: dict[int, str] = field(default_factory=dict)


def held(
    executor: Executor,
    store: ObjectStore,
    prefix: str,
    wanted: Sequence[RangeData],
    *,
    source: str,
    folder: str = FOLDER,
) -> list[HeldFile]:
    """The files in ``folder`` that hold the entries of ``wanted``, after decoding those that are new."""
    return [
        replace(one.file, owners=frozenset(one.ranges))
        for one in placed(executor, store, prefix, wanted, source=source, folder=folder)
    ]


def placed(
    executor: Executor,
    store: ObjectStore,
    prefix: str,
    wanted: Sequence[RangeData],
    *,
    source: str,
    folder: str = FOLDER,
) -> list[Placed]:
    """The same, with the place of each range in its file."""
    known = _known(store, prefix, folder)
    missing = [one for one in wanted if one.id not in known or known[one.id].entries != one.count]
    if missing:
        log.info("%s of %s ranges are decoded into the cache", len(missing), len(wanted))
    pieces = [_piece(store, prefix, source, folder, group) for group in _grouped(missing)]
    entries = sum(one.count for one in missing)
    executor.watch.expects(entries)
    executor(decode, pieces, rows=entries, weigh=int)
    known = _known(store, prefix, folder) if missing else known
    files: dict[str, Placed] = {}
    for listed in wanted:
        if listed.id not in known:
            raise NotReadBack(listed.id, "it was decoded and is not in the cache")
        file, owner, count, owners = known[listed.id]
        if count != listed.count:
            raise NotReadBack(file.key, f"it has {count} entries of {listed.id}, the metarange says {listed.count}")
        files.setdefault(file.key, Placed(file, owners)).ranges[owner] = listed.id
    return [files[key] for key in sorted(files)]


def distrust(store: ObjectStore, key: str) -> None:
    """Forget that the cache file ``key`` is there: its ranges are decoded again when they are next wanted."""
    log.warning("the cache file %s is damaged, and is made again", key)
    store.put(f"{key.removesuffix('.parquet')}.json", [b"{}"])


def decode(piece: RangePiece) -> int:
    """Decode a piece, on an executor: its file first, then the word that it is there; how many rows."""
    store = open_store(piece.store)
    ranges = Ranges(store, piece.prefix, folder=piece.source)
    tables, hashes = [], []
    for owner, listed in enumerate(piece.ranges):
        tables.append(entries_of(ranges, listed, owner))
        hashes.append(address_hash(tables[-1]["address"].combine_chunks()))
    table = pa.concat_tables(tables).combine_chunks()
    tables.clear()
    file = put_in_order(store, f"{piece.target}.parquet", table, np.concatenate(hashes))
    said = {
        "version": VERSION,
        "buckets": file.buckets,
        "rows": file.rows,
        "footer": file.footer,
        "sums": dict(file.sums),
        "bytes": store.head(file.key).size,
        "ranges": [[listed.id, listed.count] for listed in piece.ranges],
    }
    store.put(f"{piece.target}.json", [json.dumps(said).encode()])
    return int(table.num_rows)


def entries_of(ranges: Ranges, listed: RangeData, owner: int) -> pa.Table:
    """The entries of a range that point into the repository."""
    return pointing_in(entry_columns(ranges.read(listed), listed.id), ranges.prefix, owner)


def pointing_in(columns: pa.RecordBatch, prefix: str, owner: int) -> pa.Table:
    """Those of some entries, as columns, that point into the repository, as CACHED."""
    outside = whole(columns)
    if pc.any(outside, min_count=0).as_py():
        columns = _inside(columns, outside, prefix)
    return pa.table(
        [
            columns["address"],
            pa.array(np.full(columns.num_rows, owner, np.int32)),
            columns["path"],
            columns["size"],
            pc.cast(columns["modified_at"], MOMENT, safe=False),
        ],
        schema=CACHED,
    )


def _inside(columns: pa.RecordBatch, outside: pa.Array, prefix: str) -> pa.RecordBatch:
    """Entries without those of ``outside``; but a whole address that leads into the repository holds what it leads to."""
    addresses = columns["address"].filter(outside)
    leading_in = pc.match_substring(addresses, prefix)
    tails = pc.replace_substring_regex(addresses, f"(?s)^.*{re.escape(prefix)}", "")
    counts = pc.replace_with_mask(pc.invert(outside), outside, leading_in)
    address = pc.replace_with_mask(columns["address"], outside, tails)
    return columns.set_column(columns.schema.get_field_index("address"), "address", address).filter(counts)


class RangePlace(NamedTuple):
    """Where the entries of a range are."""

    file: HeldFile
    owner: int
    entries: int
    owners: int  # of the whole file


def _known(store: ObjectStore, prefix: str, folder: str) -> dict[str, RangePlace]:
    """Ranges that are in the cache."""
    listed = list(store.list(prefix + folder))
    sizes = {
        key: size
        for batch in listed
        for key, size in zip(batch["key"].to_pylist(), batch["size_bytes"].to_pylist(), strict=True)
    }
    known: dict[str, RangePlace] = {}
    for key in sizes:
        if not key.endswith(".json"):
            continue
        data = f"{key.removesuffix('.json')}.parquet"
        try:
            said = json.loads(store.get(key))
            file = HeldFile(data, int(said["rows"]), str(said["footer"]), dict(said["sums"]))
            sound = (said["version"], said["buckets"], said["bytes"]) == (VERSION, file.buckets, sizes.get(data))
            ranges = [(str(name), int(count)) for name, count in said["ranges"]]
        except (NotFound, ValueError, KeyError, TypeError):
            continue  # damaged, or just tidied up: what it said is decoded again
        if sound:
            known |= {name: RangePlace(file, owner, count, len(ranges)) for owner, (name, count) in enumerate(ranges)}
    return known


def _piece(store: ObjectStore, prefix: str, source: str, folder: str, group: Sequence[RangeData]) -> RangePiece:
    """Named by what is in it, so that doing it twice is doing it once."""
    name = hashlib.sha256("".join(listed.id for listed in group).encode()).hexdigest()[:32]
    return RangePiece(store.uri, prefix, source, tuple(group), f"{prefix}{folder}{name}")


def _grouped(ranges: Sequence[RangeData]) -> Iterator[list[RangeData]]:
    group: list[RangeData] = []
    entries = 0
    for listed in ranges:
        if group and entries + listed.count > ENTRIES_TO_A_FILE:
            yield group
            group, entries = [], 0
        group.append(listed)
        entries += listed.count
    if group:
        yield group
