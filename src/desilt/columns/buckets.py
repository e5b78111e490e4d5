"""Tables sorted by the hash of an address, one row group to a bucket of hashes.

Inventories and held sets written this way are compared bucket by bucket, each by
one task that reads the same hashes of every file: nothing is shuffled. A file has
as many buckets as its rows deserve. All numbers of buckets are powers of two, so
a bucket of one size is some of a smaller size, or a part of one of a larger.
"""

import hashlib
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from desilt.columns.arrays import Flags
from desilt.columns.hashing import Hashes, address_hash, bucket_of
from desilt.errors import NotReadBack

ROWS_TO_A_BUCKET = 1 << 14  # of a file: so much of every file a task holds at once, and there may be hundreds
MOST = 4096
HASH = "hash"
MODULUS = 2**64
TEXT_BYTES = 1 << 30  # of a column of texts; offsets of 32 bits end at twice as many
SLOTS_TO_A_HASH = 4  # at least; of fewer, more find theirs taken
WORTH_SLOTS = 64  # hashes; fewer are searched in no time
WIDE = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}


@dataclass(frozen=True, slots=True)
class Bucket:
    """One of so many equal parts of all hashes: those that begin with the bits of its number."""

    number: int
    of: int  # a power of two

    def groups(self, count: int) -> range:
        """Those of a file's ``count`` row groups that its rows are in."""
        first = self.number * count // self.of
        return range(first, first + max(1, count // self.of))


def deserved(rows: int, *, each: int = ROWS_TO_A_BUCKET) -> int:
    """Into how many buckets so many rows are cut, for at most about ``each`` in one."""
    return min(1 << (max(1, -(-rows // each)) - 1).bit_length(), MOST)


def every(buckets: int) -> list[Bucket]:
    """All of so many, in order."""
    return [Bucket(number, buckets) for number in range(buckets)]


def around(hashes: Hashes, buckets: int) -> list[Bucket]:
    """Those of so many buckets that ``hashes`` fall into."""
    return [Bucket(number, buckets) for number in np.unique(bucket_of(hashes, buckets)).tolist()]


def within(hashes: Hashes, buckets: Sequence[Bucket]) -> npt.NDArray[np.bool_]:
    """Which of ``hashes`` fall into ``buckets``, neighbours in order."""
    number = bucket_of(hashes, buckets[0].of)
    return (number >= buckets[0].number) & (number <= buckets[-1].number)


def hashed(table: pa.Table, addresses: pa.Array | pa.ChunkedArray | None = None) -> pa.Table:
    """``table`` with the hash of its addresses (a column, or given) as first column, in the order of hashes."""
    hashes = address_hash(table["address"] if addresses is None else addresses)
    order = rising(hashes)
    return wide(table).take(pa.array(order)).add_column(0, HASH, pa.array(hashes[order]))


def wide(table: pa.Table) -> pa.Table:
    """The same, where texts of a column are too many bytes to be counted in 32 bits, with those counted in 64."""
    for place, field in enumerate(table.schema):
        if field.type in WIDE and table[field.name].nbytes > TEXT_BYTES:
            kind = WIDE[field.type]
            table = table.set_column(place, field.with_type(kind), table[field.name].cast(kind))
    return table


def narrow(schema: pa.Schema) -> pa.Schema:
    """The schema of a table before it was made ``wide``: what is written, in buckets, is small again."""
    kinds = {kind: plain for plain, kind in WIDE.items()}
    return pa.schema([field.with_type(kinds.get(field.type, field.type)) for field in schema])


def rising(hashes: Hashes) -> npt.NDArray[np.int64]:
    """The places of ``hashes`` in their order, those of equal ones as they lie.

    A hash whose last bits give way to its place is sorted with it, and numbers are
    sorted in a fraction of the time that places are. Where the bits that are left
    do not tell two hashes apart, these are put right afterwards, being neighbours.
    """
    low = np.uint64((1 << max(len(hashes) - 1, 0).bit_length()) - 1)
    packed = (hashes & ~low) | np.arange(len(hashes), dtype=np.uint64)
    packed.sort()
    order: npt.NDArray[np.int64] = (packed & low).astype(np.int64)
    found = hashes[order]
    if (found[1:] < found[:-1]).any():
        order = order[np.argsort(found, kind="stable")]
    return order


def groups(table: pa.Table, *, buckets: int) -> Iterator[pa.Table]:
    """A ``hashed`` table cut into its buckets, some maybe empty."""
    for start, end in places(table[HASH].to_numpy(), buckets):
        yield table.slice(start, end - start)


def written(schema: pa.Schema, groups: Iterable[pa.Table]) -> bytes:
    """``groups`` of rows as Parquet, every page with a checksum, a row group for each."""
    sink = io.BytesIO()
    plain = narrow(schema)
    repeated = [field.name for field in plain if pa.types.is_dictionary(field.type)]
    with pq.ParquetWriter(
        sink,
        plain,
        compression="lz4",
        use_dictionary=repeated,
        write_page_checksum=True,
        write_statistics=False,  # which nobody reads, and which make half of a footer
    ) as writer:
        for rows in groups:
            writer.write_table(rows if plain == schema else rows.cast(plain), row_group_size=max(rows.num_rows, 1))
    return sink.getvalue()


def places(hashes: Hashes, buckets: int) -> list[tuple[int, int]]:
    """Where each bucket begins and ends among ``hashes`` (sorted)."""
    ends = np.searchsorted(bucket_of(hashes, buckets), np.arange(buckets), side="right").tolist()
    return list(zip([0, *ends[:-1]], ends, strict=True))


def sums(rows: pa.Table) -> dict[str, int]:
    """What each column of numbers adds up to (modulo 2^64): what a reader of a row group checks."""
    return {field.name: _sum(numbers) for field in rows.schema if (numbers := _numbers(rows[field.name])) is not None}


def adds_up(rows: pa.Table, number: int, expected: Mapping[str, Sequence[int]]) -> bool:
    """Whether the columns of row group ``number`` add up to what was written."""
    return all(
        [found] == list(expected.get(name, ())[number : number + 1])  # which may be damaged itself
        for name, found in sums(rows).items()
    )


def _numbers(column: pa.ChunkedArray) -> npt.NDArray[np.integer[Any]] | None:
    """A column of whole numbers or moments; None for other columns. A missing value counts as 0."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        column, kind = column.cast(pa.int64()), pa.int64()
    if not pa.types.is_integer(kind):
        return None
    numbers: npt.NDArray[np.integer[Any]] = (column.fill_null(0) if column.null_count else column).to_numpy()
    return numbers


def _sum(numbers: npt.NDArray[np.integer[Any]]) -> int:
    signed = np.issubdtype(numbers.dtype, np.signedinteger)
    return int(np.add.reduce(numbers, dtype=np.int64 if signed else np.uint64)) % MODULUS


def footer_hash(tail: bytes) -> str:
    """Of the part of a Parquet file that its pages' checksums do not cover; ``tail`` ends the file, and holds it."""
    length = int.from_bytes(tail[-8:-4], "little") + 8
    return hashlib.sha256(tail[-length:]).hexdigest() if 8 < length <= len(tail) else ""


def row_group(file: pq.ParquetFile, number: int, columns: list[str], *, name: str) -> pa.Table:
    """The rows of one row group; a damaged one is refused."""
    try:
        rows = file.read_row_group(number, columns=columns, use_threads=False)  # there is a task for every core
    except (OSError, pa.ArrowException) as error:
        raise NotReadBack(name, " ".join(str(error).split())) from error
    if rows.num_rows != file.metadata.row_group(number).num_rows:
        raise NotReadBack(name, f"bucket {number} has lost rows")
    return rows


def ordered(rows: pa.Table, group: Bucket) -> bool:
    """Whether ``rows`` are in the order of their hashes, all of which fall into ``group``."""
    hashes: Hashes = rows[HASH].to_numpy()
    return bool((hashes[1:] >= hashes[:-1]).all() and within(hashes[[0, -1]] if len(hashes) else hashes, [group]).all())


def part(rows: pa.Table, bucket: Bucket) -> pa.Table:
    """Those of ``rows``, in the order of their hashes, that fall into ``bucket``."""
    hashes, width = rows[HASH].to_numpy(), MODULUS // bucket.of
    start = np.searchsorted(hashes, np.uint64(bucket.number * width))
    last = np.uint64((bucket.number + 1) * width - 1)  # the next one may be too large to be a hash
    return rows.slice(start, np.searchsorted(hashes, last, side="right") - start)


def present(hashes: Hashes, held: Hashes) -> Flags:
    """Which of ``hashes`` are among ``held`` (sorted).

    Held hashes are put into slots by their last bits, and one look tells most of those that are there; only
    what is not found so is searched for, among the few that found their slot taken. Where few are asked for, all are.
    """
    if len(hashes) < len(held) // 4 or len(held) < WORTH_SLOTS:
        return _searched(hashes, held)
    last = np.uint64((1 << (SLOTS_TO_A_HASH * len(held)).bit_length()) - 1)
    slots = np.full(int(last) + 1, held[0])  # no slot is empty: a hash that is there is one that is held
    mine = held & last
    slots[mine] = held
    crowded = held[slots[mine] != held]
    found: Flags = slots[hashes & last] == hashes
    rest = np.flatnonzero(~found)
    few = len(crowded) < len(held) // 2  # else they are alike in their last bits, and would be again
    found[rest] = present(hashes[rest], crowded) if few else _searched(hashes[rest], crowded)
    return found


def _searched(hashes: Hashes, held: Hashes) -> Flags:
    if not len(held):
        return np.zeros(len(hashes), np.bool_)
    at = np.searchsorted(held, hashes)
    at[at == len(held)] = 0
    found: Flags = held[at] == hashes
    return found


def without(hashes: Hashes, others: Hashes) -> Hashes:
    """Those of ``hashes`` that are not among ``others``; both are sorted."""
    return hashes[~present(hashes, others)] if len(others) else hashes


def merged(some: Hashes, others: Hashes) -> Hashes:
    """All of both, which are sorted."""
    return np.sort(np.concatenate([some, others]), kind="stable") if len(others) else some
