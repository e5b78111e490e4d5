"""An inventory that is handed in instead of a listing, as Amazon S3 Inventory writes it.

It is read on the executors, a file to a task, into the same files that a listing
makes. Whatever does not add up stops the run. An inventory that misses objects
keeps them, and one that names what is gone asks for nothing that a sweep does
not look at again: so an old one is only worth less, up to ``max_age``.
"""

import hashlib
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from desilt.errors import BadRequest, CorruptTable, NotFound, StaleInventory
from desilt.frames.buckets import BUCKETS, HASH, hashed
from desilt.objects import LISTING, open_store
from desilt.objects.store import ObjectStore
from desilt.sources.held import HeldFile, hashes, opened, put, rows_of
from desilt.sources.inventory import DATA, Listed, inventory_rows
from desilt.sources.s3_inventory import DataFile, find
from desilt.sources.s3_rows import current_rows
from desilt.sources.spread import Spread

PART_ROWS = 500_000
AHEAD = timedelta(minutes=10)  # how far another clock may be ahead of ours


@dataclass(frozen=True, slots=True)
class HandedIn:
    """What an inventory came to. ``outside`` and ``noncurrent`` rows were left out."""

    listed: list[Listed]
    taken_at: datetime
    outside: int  # not below the repository's data folder
    noncurrent: int  # delete markers, and versions that are not the latest


@dataclass(frozen=True, slots=True)
class Piece:
    """A file to take in."""

    file: DataFile
    store: str
    bucket: str  # that its rows have to be of; "" is any
    base: str  # what keys have in front of an address
    target: str  # the keys of its parts, without number and ending


@dataclass(frozen=True, slots=True)
class Taken:
    """What a file came to; its parts have :data:`PART_ROWS` rows at most."""

    parts: tuple[Listed, ...]
    outside: int
    noncurrent: int


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a file: an executor's own errors arrive as Spark's. Without a name it is a bad request."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Suspects:
    """Buckets in which no address may be listed twice."""

    store: str
    buckets: range
    files: tuple[HeldFile, ...]


def read(
    spread: Spread, uri: str, *, store: ObjectStore, prefix: str, folder: str, now: datetime, max_age: timedelta
) -> HandedIn:
    """The inventory at ``uri`` as files in ``folder`` of the repository at ``prefix``."""
    given = find(uri)
    if given.taken_at > now + AHEAD:
        raise BadRequest(f"inventory {uri} is from {given.taken_at.isoformat()}, which is ahead; mend the clock")
    if given.taken_at < now - max_age:
        raise StaleInventory(uri, now - given.taken_at, max_age)
    bucket, root = bucket_and_root(store.uri)
    if bucket and given.bucket is not None and given.bucket != bucket:
        raise BadRequest(f"{uri} is an inventory of bucket {given.bucket!r}, the lake is in {bucket!r}; take its own")
    taken = sound(
        spread(
            take_in,
            [
                Piece(file, store.uri, bucket, root + prefix, f"{prefix}{folder}part-{number:05d}")
                for number, file in enumerate(given.files)
            ],
        )
    )
    listed = [part for one in taken for part in one.parts]
    check_once(spread, store, [part.file for part in listed], uri)
    outside, noncurrent = sum(one.outside for one in taken), sum(one.noncurrent for one in taken)
    return HandedIn(listed, given.taken_at, outside, noncurrent)


def bucket_and_root(uri: str) -> tuple[str, str]:
    """The S3 bucket of a store ("" if it is in none), and what its keys have in front of ours in an inventory."""
    scheme, _, rest = uri.partition("://")
    if scheme not in ("s3", "gs", "az"):
        return "", ""
    bucket, _, prefix = rest.partition("/")
    return bucket if scheme == "s3" else "", f"{prefix}/" if prefix else ""


def sound(results: Iterable[Taken | Fault]) -> list[Taken]:
    found = []
    for one in results:
        if isinstance(one, Fault):
            raise CorruptTable(one.name, one.reason) if one.name else BadRequest(one.reason)
        found.append(one)
    return found


def take_in(piece: Piece) -> Taken | Fault:
    """Take in one file, on an executor."""
    try:
        return _take_in(piece)
    except CorruptTable as error:
        return Fault(error.name, error.reason)
    except BadRequest as error:
        return Fault("", str(error))


def _take_in(piece: Piece) -> Taken:
    store, counts = open_store(piece.store), Counter[str]()

    def inside(path: Path) -> Iterator[pa.RecordBatch]:
        for rows, noncurrent in current_rows(path, piece.file, bucket=piece.bucket):
            below = rows.filter(pc.starts_with(rows["key"], piece.base + DATA))
            counts.update(outside=rows.num_rows - below.num_rows, noncurrent=noncurrent)
            yield below

    parts = []
    with tempfile.TemporaryDirectory(prefix="desilt-") as folder:
        path = fetched(piece.file, Path(folder))
        for number, rows in enumerate(at_most(PART_ROWS, inside(path))):
            addresses = pc.utf8_slice_codeunits(rows["key"].combine_chunks(), len(piece.base))
            times = rows["modified_at"].combine_chunks()
            table = hashed(inventory_rows(addresses, rows["size_bytes"].combine_chunks(), times), addresses)
            file = put(store, f"{piece.target}-{number:03d}.parquet", table)
            parts.append(Listed(file, pc.sum(table["size_bytes"]).as_py()))
    return Taken(tuple(parts), counts["outside"], counts["noncurrent"])


def fetched(file: DataFile, folder: Path) -> Path:
    """A copy of ``file`` in ``folder``: what was verified is what is read."""
    store, key = located(file)
    path, md5 = folder / f"rows{file.kind}", hashlib.md5(usedforsecurity=False)
    with path.open("wb") as copy:
        for chunk in store.stream(key):
            md5.update(chunk)
            copy.write(chunk)
    if file.size is not None and path.stat().st_size != file.size:
        raise CorruptTable(file.name, f"it has {path.stat().st_size} bytes, its manifest says {file.size}")
    if file.md5 is not None and md5.hexdigest() != file.md5.lower():
        raise CorruptTable(file.name, f"its MD5 is {md5.hexdigest()}, its manifest says {file.md5}")
    return path


def located(file: DataFile) -> tuple[ObjectStore, str]:
    for place in file.places:
        store, key = place.opened()
        try:
            store.head(key)
        except NotFound:
            continue
        return store, key
    raise CorruptTable(file.name, f"it is missing: not at {file.places[0]}, nor near its manifest")


def at_most(limit: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The same rows in tables of ``limit`` rows, the last one maybe shorter; none is empty."""
    waiting: list[pa.RecordBatch] = []
    room = limit
    for batch in batches:
        while batch.num_rows >= room:
            yield pa.Table.from_batches([*waiting, batch.slice(0, room)])
            waiting, batch, room = [], batch.slice(room), limit
        waiting.append(batch)
        room -= batch.num_rows
    if room < limit:
        yield pa.Table.from_batches(waiting, LISTING)


def check_once(spread: Spread, store: ObjectStore, files: list[HeldFile], uri: str) -> None:
    """Refuse an inventory that lists an object twice, be it in different files: it would be counted twice."""
    size = max(1, BUCKETS // spread.width)
    suspects = [
        Suspects(store.uri, range(first, min(first + size, BUCKETS)), tuple(files)) for first in range(0, BUCKETS, size)
    ]
    if address := next(filter(None, spread(listed_twice, suspects)), None):
        raise CorruptTable(uri, f"{address} is listed twice")


def listed_twice(suspects: Suspects) -> str | None:
    """An address that is, on an executor. Hashes are compared first, and addresses only where those agree."""
    store = open_store(suspects.store)
    files = [(file, opened(store, file)) for file in suspects.files]
    for number in suspects.buckets:
        found = hashes(files, number)
        repeated = found[1:][found[1:] == found[:-1]]
        addresses: Counter[str] = Counter()
        for held, file in files if len(repeated) else ():
            rows = rows_of(held, file, number, [HASH, "folder", "name"])
            rows = rows.filter(pa.array(np.isin(rows[HASH].to_numpy(), repeated)))
            whole = pc.binary_join_element_wise(rows["folder"].cast(pa.string()), rows["name"], "")
            addresses.update(whole.to_pylist())
        for address, times in addresses.most_common(1):
            if times > 1:
                return address
    return None
