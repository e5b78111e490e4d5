"""Sets of addresses that somebody holds, as files sorted by hash.

A set is written once and read bucket by bucket. Several owners (ranges, say) may
share a file; a reader says which of them count today.
"""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from desilt.columns.buckets import (
    HASH,
    Bucket,
    adds_up,
    deserved,
    footer_hash,
    groups,
    hashed,
    ordered,
    part,
    places,
    rising,
    row_group,
    sums,
    written,
)
from desilt.columns.hashing import Hashes
from desilt.columns.schemas import HELD
from desilt.errors import NotFound, NotReadBack
from desilt.objects.file import ObjectFile
from desilt.objects.store import ObjectStore

NOBODY = -1  # in the place of an owner that nothing reaches
TEXTS_TO_A_COLUMN = 1 << 20
TAIL = 256 * 1024  # holds the footer of all but the strangest files


@dataclass(frozen=True, slots=True)
class HeldFile:
    """A file of held addresses, and which of its owners count; None: all of them."""

    key: str
    rows: int
    footer: str  # the hash of the file's footer
    sums: Mapping[str, Sequence[int]]  # what its columns of numbers add up to, by bucket
    owners: frozenset[int] | None = None

    @property
    def buckets(self) -> int:
        """Into how many it is cut: a row group for each."""
        return len(self.sums[HASH])


def as_json(held: HeldFile) -> dict[str, Any]:
    """A whole file, to be found again by a later run."""
    return {"key": held.key, "rows": held.rows, "footer": held.footer, "sums": dict(held.sums)}


def from_json(facts: Mapping[str, Any]) -> HeldFile:
    return HeldFile(facts["key"], facts["rows"], facts["footer"], facts["sums"])


def put(store: ObjectStore, key: str, table: pa.Table, *, buckets: int | None = None) -> HeldFile:
    """Write a ``hashed`` table, in as many buckets as its rows deserve, or as are asked for."""
    return _put(store, key, table.schema, groups(table, buckets=buckets or deserved(table.num_rows)))


def put_in_order(store: ObjectStore, key: str, table: pa.Table, hashes: Hashes) -> HeldFile:
    """Write a table in the order of ``hashes``, those of its addresses: as :func:`put` would, were it ``hashed``.

    Rows are put in order bucket by bucket: memory for all of them again costs more than the order itself.
    """
    order = rising(hashes)
    hashes = hashes[order]

    def buckets() -> Iterator[pa.Table]:
        for start, end in places(hashes, deserved(table.num_rows)):
            yield table.take(pa.array(order[start:end])).add_column(0, HASH, pa.array(hashes[start:end]))

    return _put(store, key, table.schema.insert(0, pa.field(HASH, pa.uint64())), buckets())


def _put(store: ObjectStore, key: str, schema: pa.Schema, groups: Iterable[pa.Table]) -> HeldFile:
    rows = 0
    added: dict[str, list[int]] = {}

    def counted() -> Iterator[pa.Table]:
        nonlocal rows
        for group in groups:
            rows += group.num_rows
            for name, value in sums(group).items():
                added.setdefault(name, []).append(value)
            yield group

    data = written(schema, counted())
    store.put(key, [data])
    return HeldFile(key, rows, footer_hash(data), added)


def put_addresses(store: ObjectStore, key: str, addresses: Sequence[str] | pa.Array | pa.ChunkedArray) -> HeldFile:
    """Write a set of addresses, as HELD with one owner."""
    ready = isinstance(addresses, pa.Array | pa.ChunkedArray)
    column = addresses if ready else pa.chunked_array(_columns(addresses), pa.string())
    rows = pa.table([column, np.zeros(len(column), np.int32)], schema=HELD)
    return put(store, key, hashed(rows))


def _columns(texts: Sequence[str]) -> Iterator[pa.Array]:
    """The same, some at a time: one array may not hold them all."""
    for at in range(0, len(texts), TEXTS_TO_A_COLUMN):
        yield pa.array(texts[at : at + TEXTS_TO_A_COLUMN], pa.string())


def opened(store: ObjectStore, held: HeldFile) -> pq.ParquetFile:
    """The file as it was written, or :class:`NotReadBack`; its pages are verified as they are read."""
    try:
        raw = ObjectFile(store, held.key)
        raw.seek(max(0, raw.seek(0, io.SEEK_END) - TAIL))
        tail = raw.read()
        if footer_hash(tail) != held.footer:
            raw.seek(0)
            if footer_hash(raw.read()) != held.footer:
                raise NotReadBack(held.key, "its footer is not what was written")
        file = pq.ParquetFile(pa.PythonFile(raw, mode="r"), page_checksum_verification=True)
    except NotFound:
        raise NotReadBack(held.key, "it is missing") from None
    except (OSError, pa.ArrowException) as error:
        raise NotReadBack(held.key, " ".join(str(error).split())) from error
    if file.metadata.num_rows != held.rows:
        raise NotReadBack(held.key, f"it has {file.metadata.num_rows} rows, {held.rows} were written")
    if file.num_row_groups != held.buckets or held.buckets.bit_count() != 1:
        raise NotReadBack(held.key, f"it has {file.num_row_groups} row groups, {held.buckets} were written")
    return file


class Files:
    """The files that a task reads, each opened once; what is damaged raises :class:`NotReadBack`."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store
        self._open: dict[tuple[str, str], pq.ParquetFile] = {}
        self._last: dict[tuple[str, str, tuple[str, ...]], tuple[int, pa.Table]] = {}

    def rows(self, held: HeldFile, bucket: Bucket, columns: list[str]) -> pa.Table:
        """The rows of one bucket, as they were written or not at all; whatever buckets the file was cut into."""
        groups = bucket.groups(held.buckets)
        if held.buckets < bucket.of:
            return part(self._to_be_cut(held, groups[0], columns), bucket).select(columns)
        found = [self._group(held, number, columns) for number in groups]
        return found[0] if len(found) == 1 else pa.concat_tables(found)

    def _to_be_cut(self, held: HeldFile, number: int, columns: list[str]) -> pa.Table:
        """A row group with its hashes. Of each file the last one is kept: neighbouring buckets are parts of it."""
        columns = [HASH, *(name for name in columns if name != HASH)]
        name = held.key, held.footer, tuple(columns)
        kept = self._last.get(name)
        if kept is None or kept[0] != number:
            rows = self._group(held, number, columns)
            if not ordered(rows, Bucket(number, held.buckets)):
                raise NotReadBack(held.key, f"bucket {number} is not in the order of its hashes")
            kept = self._last[name] = number, rows
        return kept[1]

    def _group(self, held: HeldFile, number: int, columns: list[str]) -> pa.Table:
        """A whole row group. Checksums of pages do not cover their headers: so what is read must add up as well."""
        rows = row_group(self._opened(held), number, columns, name=held.key)
        if not adds_up(rows, number, held.sums):
            raise NotReadBack(held.key, f"bucket {number} does not add up to what was written")
        return rows

    def hashes(self, files: Iterable[HeldFile], bucket: Bucket) -> Hashes:
        """The sorted hashes that the counting owners of ``files`` hold in one bucket."""
        found = []
        for held in files:
            rows = self.rows(held, bucket, [HASH] if held.owners is None else [HASH, "owner"])
            mine = rows[HASH].to_numpy()
            if held.owners is not None:
                mine = mine[among(rows["owner"].to_numpy(), held.owners)]
            found.append(mine)
        return np.sort(np.concatenate(found)) if found else np.zeros(0, np.uint64)

    def _opened(self, held: HeldFile) -> pq.ParquetFile:
        name = held.key, held.footer
        if name not in self._open:
            self._open[name] = opened(self.store, held)
        return self._open[name]


def among(owners: npt.NDArray[np.int32], counting: Set[int]) -> npt.NDArray[np.bool_]:
    """Which of ``owners`` count: looked up in a table, which takes a fraction of a search among them."""
    counts = np.zeros(max(owners.max(initial=0), *counting, 0) + 1, np.bool_)
    counts[list(counting)] = True
    found: npt.NDArray[np.bool_] = counts[owners]
    return found
