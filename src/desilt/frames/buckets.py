"""Tables sorted by the hash of an address, one row group to a bucket of hashes.

Inventories and held sets written this way are compared bucket by bucket, each by
one task that reads the same row group of every file: nothing is shuffled.
"""

import hashlib
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from desilt.errors import CorruptTable
from desilt.frames.hashing import Hashes, address_hash, bucket_of

BUCKETS = 32
HASH = "hash"
MODULUS = 2**64


def hashed(table: pa.Table, addresses: pa.Array | None = None) -> pa.Table:
    """``table`` with the hash of its addresses (a column, or given) as first column, in the order of hashes."""
    hashes = address_hash(table["address"].combine_chunks() if addresses is None else addresses)
    order = np.argsort(hashes, kind="stable")
    return table.take(pa.array(order)).add_column(0, HASH, pa.array(hashes[order]))


def written(table: pa.Table, *, buckets: int = BUCKETS) -> bytes:
    """A ``hashed`` table as Parquet, every page with a checksum, a row group (maybe empty) for each bucket."""
    sink = io.BytesIO()
    repeated = [field.name for field in table.schema if pa.types.is_dictionary(field.type)]
    with pq.ParquetWriter(
        sink, table.schema, compression="lz4", use_dictionary=repeated, write_page_checksum=True
    ) as writer:
        for start, end in places(table[HASH].to_numpy(), buckets):
            writer.write_table(table.slice(start, end - start), row_group_size=max(end - start, 1))
    return sink.getvalue()


def places(hashes: Hashes, buckets: int) -> list[tuple[int, int]]:
    """Where each bucket begins and ends among ``hashes`` (sorted)."""
    ends = np.searchsorted(bucket_of(hashes, buckets), np.arange(buckets), side="right").tolist()
    return list(zip([0, *ends[:-1]], ends, strict=True))


def sums(table: pa.Table, *, buckets: int = BUCKETS) -> dict[str, list[int]]:
    """For each column of numbers, what it adds up to in each bucket (modulo 2^64): what a reader checks."""
    cuts = places(table[HASH].to_numpy(), buckets)
    return {
        field.name: [_sum(numbers[start:end]) for start, end in cuts]
        for field in table.schema
        if (numbers := _numbers(table[field.name])) is not None
    }


def adds_up(rows: pa.Table, number: int, expected: Mapping[str, Sequence[int]]) -> bool:
    """Whether the columns of bucket ``number`` add up to what was written."""
    return all(
        _sum(numbers) == expected[field.name][number]
        for field in rows.schema
        if (numbers := _numbers(rows[field.name])) is not None
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


def bucket(file: pq.ParquetFile, number: int, columns: list[str], *, name: str, buckets: int = BUCKETS) -> pa.Table:
    """The rows of one bucket; a file of another shape, or damaged, is refused."""
    if file.num_row_groups != buckets:
        raise CorruptTable(name, f"it has {file.num_row_groups} row groups, not one for each of {buckets} buckets")
    try:
        rows = file.read_row_group(number, columns=columns, use_threads=False)  # there is a task for every core
    except (OSError, pa.ArrowException) as error:
        raise CorruptTable(name, " ".join(str(error).split())) from error
    if rows.num_rows != file.metadata.row_group(number).num_rows:
        raise CorruptTable(name, f"bucket {number} has lost rows")
    return rows


def present(hashes: Hashes, held: Hashes) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which of ``hashes`` are among ``held`` (sorted); it is fastest where ``hashes`` are sorted, or nearly so."""
    if not len(held):
        return np.zeros(len(hashes), np.bool_)
    at = np.searchsorted(held, hashes)
    at[at == len(held)] = 0
    found: np.ndarray[tuple[int], np.dtype[np.bool_]] = held[at] == hashes
    return found
