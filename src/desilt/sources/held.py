"""Sets of addresses that somebody holds, as files sorted by hash.

A set is written once and read bucket by bucket. Several owners (ranges, say) may
share a file; a reader says which of them count today.
"""

import io
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from desilt.errors import CorruptTable, NotFound
from desilt.frames.buckets import BUCKETS, HASH, adds_up, bucket, footer_hash, sums, written
from desilt.frames.hashing import Hashes
from desilt.objects.file import ObjectFile
from desilt.objects.store import ObjectStore

TAIL = 256 * 1024  # holds the footer of all but the strangest files


@dataclass(frozen=True, slots=True)
class HeldFile:
    """A file of held addresses, and which of its owners count; None: all of them."""

    key: str
    rows: int
    footer: str  # the hash of the file's footer
    sums: Mapping[str, Sequence[int]]  # what its columns of numbers add up to, by bucket
    owners: frozenset[int] | None = None


def as_json(held: HeldFile) -> dict[str, Any]:
    """A whole file, to be found again by a later run."""
    return {"key": held.key, "rows": held.rows, "footer": held.footer, "sums": dict(held.sums)}


def from_json(facts: Mapping[str, Any]) -> HeldFile:
    return HeldFile(facts["key"], facts["rows"], facts["footer"], facts["sums"])


def put(store: ObjectStore, key: str, table: pa.Table) -> HeldFile:
    """Write a ``hashed`` table."""
    data = written(table)
    store.put(key, [data])
    return HeldFile(key, table.num_rows, footer_hash(data), sums(table))


def opened(store: ObjectStore, held: HeldFile) -> pq.ParquetFile:
    """The file as it was written, or :class:`CorruptTable`; its pages are verified as they are read."""
    try:
        raw = ObjectFile(store, held.key)
        raw.seek(max(0, raw.seek(0, io.SEEK_END) - TAIL))
        tail = raw.read()
        if footer_hash(tail) != held.footer:
            raw.seek(0)
            if footer_hash(raw.read()) != held.footer:
                raise CorruptTable(held.key, "its footer is not what was written")
        file = pq.ParquetFile(pa.PythonFile(raw, mode="r"), page_checksum_verification=True)
    except NotFound:
        raise CorruptTable(held.key, "it is missing") from None
    except (OSError, pa.ArrowException) as error:
        raise CorruptTable(held.key, " ".join(str(error).split())) from error
    if file.metadata.num_rows != held.rows:
        raise CorruptTable(held.key, f"it has {file.metadata.num_rows} rows, {held.rows} were written")
    return file


def rows_of(held: HeldFile, file: pq.ParquetFile, number: int, columns: list[str]) -> pa.Table:
    """The rows of one bucket, as they were written or not at all.

    Checksums of pages do not cover the pages' own headers: so what is read must add up as well.
    """
    rows = bucket(file, number, columns, name=held.key, buckets=BUCKETS)
    if not adds_up(rows, number, held.sums):
        raise CorruptTable(held.key, f"bucket {number} does not add up to what was written")
    return rows


def hashes(files: Iterable[tuple[HeldFile, pq.ParquetFile]], number: int) -> Hashes:
    """The sorted hashes that the counting owners of ``files`` hold in one bucket."""
    found = []
    for held, file in files:
        columns = [HASH] if held.owners is None else [HASH, "owner"]
        rows = rows_of(held, file, number, columns)
        some = rows[HASH].to_numpy()
        if held.owners is not None:
            some = some[among(rows["owner"].to_numpy(), held.owners)]
        found.append(some)
    return np.sort(np.concatenate(found)) if found else np.zeros(0, np.uint64)


def among(owners: npt.NDArray[np.int32], counting: Set[int]) -> npt.NDArray[np.bool_]:
    """Which of ``owners`` count: looked up in a table, which takes a fraction of a search among them."""
    counts = np.zeros(max(owners.max(initial=0), *counting, 0) + 1, np.bool_)
    counts[list(counting)] = True
    found: npt.NDArray[np.bool_] = counts[owners]
    return found
