"""An inventory that is supplied instead of a listing, as Amazon S3 Inventory writes it.

It is read on the executors, a file to a task, into the same files that a listing
makes. Whatever does not add up stops the run. An inventory that misses objects
keeps them, and one that names what is gone asks for nothing that a sweep does
not look at again: so an old one is only worth less, up to ``max_age``.
"""

import hashlib
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from desilt.columns.buckets import HASH, Bucket, hashed
from desilt.columns.files import Files, HeldFile, put
from desilt.columns.kernel import DamagedFiles, Judge, judge_buckets
from desilt.domain.times import CLOCK_MARGIN
from desilt.errors import BadRequest, DamagedInventory, NotFound, StaleInventory
from desilt.executors.executor import Executor
from desilt.inventory.listing import Listed, addresses_below, inventory_rows
from desilt.inventory.s3 import DataFile, Given, find
from desilt.inventory.s3_rows import current_rows
from desilt.objects import LISTING, open_store
from desilt.objects.store import ObjectStore

PART_ROWS = 500_000
BYTES_TO_A_ROW = 30  # compressed, as S3 writes them


@dataclass(frozen=True, slots=True)
class Supplied:
    """What an inventory came to. ``outside`` and ``noncurrent`` rows were left out."""

    listed: list[Listed]
    taken_at: datetime
    outside: int  # not below the repository's data folder
    noncurrent: int  # delete markers, and versions that are not the latest


@dataclass(frozen=True, slots=True)
class SuppliedPiece:
    """A file to take in."""

    file: DataFile
    store: str
    bucket: str  # that its rows have to be of; "" is any
    base: str  # what keys have in front of an address
    data: str  # the folder that objects are in
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
class TwiceListed(Judge[tuple[str, ...]]):
    """Addresses that are. Hashes are compared first, and addresses only where those agree."""

    files: tuple[HeldFile, ...]

    def inputs(self) -> list[Sequence[HeldFile]]:
        return [self.files]

    def judge(self, files: Files, buckets: Sequence[Bucket]) -> tuple[str, ...]:
        for bucket in buckets:
            found = files.hashes(self.files, bucket)
            repeated = found[1:][found[1:] == found[:-1]]
            addresses: Counter[str] = Counter()
            for held in self.files if len(repeated) else ():
                rows = files.rows(held, bucket, [HASH, "folder", "name"])
                rows = rows.filter(pa.array(np.isin(rows[HASH].to_numpy(), repeated)))
                whole = pc.binary_join_element_wise(rows["folder"].cast(pa.string()), rows["name"], "")
                addresses.update(whole.to_pylist())
            for address, times in addresses.most_common(1):
                if times > 1:
                    return (address,)
        return ()


def found(uri: str, *, store: ObjectStore, now: datetime, max_age: timedelta) -> Given:
    """The inventory at ``uri``, if it is one of ``store`` and young enough; nothing of it is read yet."""
    given = find(uri)
    if given.taken_at > now + CLOCK_MARGIN:
        raise BadRequest(f"inventory {uri} is from {given.taken_at.isoformat()}, which is ahead; mend the clock")
    if given.taken_at < now - max_age:
        raise StaleInventory(uri, now - given.taken_at, max_age)
    bucket, _ = bucket_and_root(store.uri)
    if bucket and given.bucket is not None and given.bucket != bucket:
        raise BadRequest(f"{uri} is an inventory of bucket {given.bucket!r}, the lake is in {bucket!r}; take its own")
    return given


def read(
    executor: Executor, given: Given, *, uri: str, store: ObjectStore, prefix: str, data: str, folder: str
) -> Supplied:
    """An inventory, which was found at ``uri``, as files in ``folder`` of the repository at ``prefix``."""
    bucket, root = bucket_and_root(store.uri)
    pieces = [
        SuppliedPiece(file, store.uri, bucket, root + prefix, data, f"{prefix}{folder}part-{number:05d}")
        for number, file in enumerate(given.files)
    ]
    taken = sound(executor(take_in, pieces, rows=about(given.files), weigh=rows_of))
    listed = [part for one in taken for part in one.parts]
    check_once(executor, store, [part.file for part in listed], uri)
    outside, noncurrent = sum(one.outside for one in taken), sum(one.noncurrent for one in taken)
    return Supplied(listed, given.taken_at, outside, noncurrent)


def about(files: Sequence[DataFile]) -> int:
    """How many rows there may be."""
    return sum(file.stored_size() for file in files) // BYTES_TO_A_ROW


def rows_of(taken: Taken | Fault) -> int:
    return 0 if isinstance(taken, Fault) else sum(part.file.rows for part in taken.parts)


def bucket_and_root(uri: str) -> tuple[str, str]:
    """The S3 bucket of a store ("" if it is in none), and what its keys have in front of ours in an inventory."""
    scheme, _, rest = uri.partition("?")[0].partition("://")
    if scheme not in ("s3", "gs", "az"):
        return "", ""
    bucket, _, prefix = rest.partition("/")
    return bucket if scheme == "s3" else "", f"{prefix}/" if prefix else ""


def sound(results: Iterable[Taken | Fault]) -> list[Taken]:
    found = []
    for one in results:
        if isinstance(one, Fault):
            raise DamagedInventory(one.name, one.reason) if one.name else BadRequest(one.reason)
        found.append(one)
    return found


def take_in(piece: SuppliedPiece) -> Taken | Fault:
    """Take in one file, on an executor."""
    try:
        return _take_in(piece)
    except DamagedInventory as error:
        return Fault(error.name, error.reason)
    except BadRequest as error:
        return Fault("", str(error))


def _take_in(piece: SuppliedPiece) -> Taken:
    store, counts = open_store(piece.store), Counter[str]()

    def inside(path: Path) -> Iterator[pa.RecordBatch]:
        for rows, noncurrent in current_rows(path, piece.file, bucket=piece.bucket):
            mine = rows.filter(pc.starts_with(rows["key"], piece.base + piece.data))
            counts.update(outside=rows.num_rows - mine.num_rows, noncurrent=noncurrent)
            yield mine

    parts = []
    with tempfile.TemporaryDirectory(prefix="desilt-") as folder:
        path = fetched(piece.file, Path(folder))
        for number, rows in enumerate(at_most(PART_ROWS, inside(path))):
            addresses = addresses_below(rows["key"].combine_chunks(), piece.base)
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
        raise DamagedInventory(file.name, f"it has {path.stat().st_size} bytes, its manifest says {file.size}")
    if file.md5 is not None and md5.hexdigest() != file.md5.lower():
        raise DamagedInventory(file.name, f"its MD5 is {md5.hexdigest()}, its manifest says {file.md5}")
    return path


def located(file: DataFile) -> tuple[ObjectStore, str]:
    for place in file.places:
        store, key = place.opened()
        try:
            store.head(key)
        except NotFound:
            continue
        return store, key
    raise DamagedInventory(file.name, f"it is missing: not at {file.places[0]}, nor near its manifest")


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


def check_once(executor: Executor, store: ObjectStore, files: list[HeldFile], uri: str) -> None:
    """Refuse an inventory that lists an object twice, be it in different files: it would be counted twice."""
    found = judge_buckets(executor, store.uri, TwiceListed(tuple(files)))
    if isinstance(found, DamagedFiles):
        raise DamagedInventory(min(found.names), "it could not be read back")
    if found:
        raise DamagedInventory(uri, f"{found[0]} is listed twice")
