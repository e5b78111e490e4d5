"""The rows of an inventory's file as a listing: keys, sizes, times.

A row that says something impossible stops everything. One without a time that
can be read has none, and that means young: it is kept.

In the CSV files that S3 writes, keys are encoded as in a form (a space is ``+``,
a plus ``%2B``). Everywhere else they are plain: S3 writes no header into a CSV
file, so one that has a header was written by somebody else.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote_plus

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from desilt.columns.schemas import MOMENT
from desilt.domain.times import EPOCH
from desilt.errors import BadRequest, DamagedInventory
from desilt.inventory.s3 import DataFile
from desilt.objects.store import LISTING

BLOCK_BYTES = 4 << 20
BATCH_ROWS = 65_536
ISO = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})$"  # without a zone it is no moment

SPELLINGS = {
    "bucket": ("bucket",),
    "key": ("key",),
    "size": ("size",),
    "last_modified_date": ("lastmodifieddate", "lastmodified", "modifiedat"),
    "is_latest": ("islatest",),
    "is_delete_marker": ("isdeletemarker",),
}
NEEDED = ("key", "size", "last_modified_date")


def current_rows(path: Path, file: DataFile, *, bucket: str) -> Iterator[tuple[pa.RecordBatch, int]]:
    """The current objects in the file at ``path`` as LISTING, and how many rows beside them were not current.

    Every row has to be of ``bucket``, unless that is empty or the file names none.
    """
    with readable(file.name):
        for batch in {".parquet": parquet, ".orc": orc}.get(file.kind, csv)(path, file):
            keys = text(batch["key"])
            if pc.any(pc.equal(pc.fill_null(keys, ""), "")).as_py():
                raise DamagedInventory(file.name, "it has a row without a key")
            if bucket and "bucket" in batch.schema.names:
                check_bucket(file.name, text(batch["bucket"]), bucket)
            rows = batch.filter(current(batch, file.name))
            keys = text(rows["key"])
            columns = [
                decoded(keys) if file.columns else keys,
                sizes(rows["size"], file.name),
                times(rows["last_modified_date"], file.name),
            ]
            yield pa.record_batch(columns, schema=LISTING), batch.num_rows - rows.num_rows


@contextmanager
def readable(name: str) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise DamagedInventory(name, " ".join(str(error).split())) from error


def parquet(path: Path, file: DataFile) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(path, buffer_size=BLOCK_BYTES, page_checksum_verification=True) as opened:
        found = columns_of(opened.schema_arrow.names, file.name)
        for batch in opened.iter_batches(batch_size=BATCH_ROWS, columns=list(found.values())):
            yield renamed(batch, found)


def orc(path: Path, file: DataFile) -> Iterator[pa.RecordBatch]:
    try:
        from pyarrow.orc import ORCFile
    except ImportError:  # not in every build of pyarrow
        raise BadRequest(f"{file.name}: this pyarrow reads no ORC; configure the inventory as Parquet or CSV") from None
    opened = ORCFile(path)
    found = columns_of(opened.schema.names, file.name)
    for stripe in range(opened.nstripes):
        yield renamed(opened.read_stripe(stripe, columns=list(found.values())), found)


def csv(path: Path, file: DataFile) -> Iterator[pa.RecordBatch]:
    reading = pcsv.ReadOptions(column_names=list(file.columns) or None, block_size=BLOCK_BYTES)
    parsing = pcsv.ParseOptions(newlines_in_values=True)
    names = file.columns or pcsv.open_csv(path, read_options=reading, parse_options=parsing).schema.names
    found = columns_of(names, file.name)
    texts = {column: pa.string() for column in found.values()}
    converting = pcsv.ConvertOptions(column_types=texts, include_columns=list(texts))
    for batch in pcsv.open_csv(path, read_options=reading, parse_options=parsing, convert_options=converting):
        yield renamed(batch, found)


def columns_of(names: Sequence[str], name: str) -> dict[str, str]:
    """Which column holds what, by our name for it."""
    found: dict[str, str] = {}
    for column in names:
        plain = column.replace("_", "").lower()
        for ours, spellings in SPELLINGS.items():
            if plain in spellings:
                if ours in found:
                    raise BadRequest(f"{name} has two columns for {ours}, {found[ours]} and {column}; leave one out")
                found[ours] = column
    if missing := [ours for ours in NEEDED if ours not in found]:
        raise BadRequest(
            f"{name} has no column {' and no '.join(missing)}; an inventory needs {', '.join(NEEDED)}, "
            "and a CSV file without a manifest a header"
        )
    return found


def renamed(batch: pa.RecordBatch, found: dict[str, str]) -> pa.RecordBatch:
    return pa.record_batch([batch[column] for column in found.values()], names=list(found))


def text(column: pa.Array) -> pa.Array:
    return column.cast(pa.string())


def check_bucket(name: str, found: pa.Array, bucket: str) -> None:
    others = found.filter(pc.not_equal(pc.fill_null(found, ""), bucket))
    if len(others):
        raise BadRequest(
            f"{name} lists objects of bucket {others[0].as_py()!r}, the lake is in {bucket!r}; take its own"
        )


def current(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Which rows are the latest version of an object that was not deleted; all, where no versions are told apart."""
    chosen = pa.repeat(pa.scalar(True), batch.num_rows)
    for column, wanted in (("is_latest", "true"), ("is_delete_marker", "false")):
        if column in batch.schema.names:
            said = pc.fill_null(pc.utf8_lower(text(batch[column])), "")
            if not pc.all(pc.is_in(said, pa.array(["true", "false", ""]))).as_py():
                raise DamagedInventory(name, f"its column {column} is neither true nor false")
            chosen = pc.and_(chosen, pc.equal(said, wanted))
    return chosen


def decoded(keys: pa.Array) -> pa.Array:
    """Keys as they are, from how S3 writes them in CSV; only the few that are encoded are looked at."""
    odd = pc.match_substring_regex(keys, "[%+]")
    plain = [unquote_plus(key, errors="strict") for key in keys.filter(odd).to_pylist()]
    return pc.replace_with_mask(keys, odd, pa.array(plain, pa.string()))


def sizes(column: pa.Array, name: str) -> pa.Array:
    if column.null_count or (pa.types.is_string(column.type) and pc.any(pc.equal(column, "")).as_py()):
        raise DamagedInventory(name, "it has an object without a size")
    found = column.cast(pa.int64())
    if pc.any(pc.less(found, 0)).as_py():
        raise DamagedInventory(name, "it has an object of negative size")
    return found


def times(column: pa.Array, name: str) -> pa.Array:
    """Moments, or null. A column of timestamps without a zone is in UTC.

    1970 and before is how some stores say that they know no time.
    """
    if pa.types.is_timestamp(column.type):
        whole = pc.ceil_temporal(column, unit="microsecond") if column.type.unit == "ns" else column
        found = whole.cast(MOMENT)
    elif pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        found = parsed(text(column))
    else:
        raise BadRequest(f"{name} has times of type {column.type}; write timestamps, or ISO 8601 with a zone")
    return pc.if_else(pc.greater(found, pa.scalar(EPOCH, MOMENT)), found, pa.scalar(None, MOMENT))


def parsed(texts: pa.Array) -> pa.Array:
    shaped = pc.if_else(pc.match_substring_regex(texts, ISO), texts, pa.scalar(None, pa.string()))
    try:
        return shaped.cast(MOMENT)
    except pa.ArrowInvalid:  # a thirteenth month somewhere: one by one
        return pa.array([moment_or_none(one) for one in shaped.to_pylist()], MOMENT)


def moment_or_none(said: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(said) if said else None
    except ValueError:
        return None
