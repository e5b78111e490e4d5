"""The part of the ledger that nothing in the repository points to any more: kept for ever, beside the objects.

Each file has some tombstones, in order of addresses; of one that is there twice, either says the same.
"""

import io
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from desilt.columns.schemas import MOMENT
from desilt.errors import DamagedRun
from desilt.objects.file import ObjectFile
from desilt.objects.store import ObjectStore
from desilt.records.removals import KNOWN, Tombstone

FOLDER = "_desilt/ledger/"
ROWS_TO_A_GROUP = 10_000

ARCHIVED = pa.schema(
    [
        ("address", pa.string()),
        ("run", pa.string()),
        ("rule", pa.string()),
        ("condemned_at", MOMENT),
        ("size_bytes", pa.int64()),
        ("batch", pa.int64()),
        ("state", pa.string()),
        ("restored_at", MOMENT),
    ]
)
"""One row per tombstone."""


def write(store: ObjectStore, prefix: str, stones: Sequence[Tombstone]) -> str:
    """A new file with ``stones``; its key, once it can be read."""
    rows = sorted(stones, key=lambda one: one.address)
    values = zip(*((*_row(one),) for one in rows), strict=True)
    table = pa.table([pa.array(column, field.type) for column, field in zip(values, ARCHIVED, strict=True)], ARCHIVED)
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", row_group_size=ROWS_TO_A_GROUP, write_page_checksum=True)
    first = rows[0].condemned_at
    key = f"{prefix}{FOLDER}{first:%Y%m%d}-{secrets.token_hex(8)}.parquet"
    store.put(key, [sink.getvalue()])
    if pq.read_table(io.BytesIO(store.get(key)), page_checksum_verification=True).num_rows != len(rows):
        raise DamagedRun(key, "does not have all rows that were written")
    return key


def keys(store: ObjectStore, prefix: str) -> list[str]:
    """The files of the archive."""
    return [key for batch in store.list(prefix + FOLDER) for key in batch["key"].to_pylist()]


def find(store: ObjectStore, prefix: str, address: str) -> Tombstone | None:
    """What the archive says of an address."""
    for key in keys(store, prefix):
        with readable(key):
            file = pa.PythonFile(ObjectFile(store, key), mode="r")
            rows = pq.read_table(file, filters=pc.field("address") == address, page_checksum_verification=True)
        for row in rows.slice(0, 1).to_pylist():
            return _stone(row)
    return None


def count(store: ObjectStore, key: str) -> int:
    """How many tombstones a file has."""
    with readable(key):
        return int(pq.read_metadata(pa.PythonFile(ObjectFile(store, key), mode="r")).num_rows)


def read(store: ObjectStore, key: str) -> pa.Table:
    """A file, as ARCHIVED."""
    with readable(key):
        return pq.read_table(io.BytesIO(store.get(key)), page_checksum_verification=True).select(ARCHIVED.names)


@contextmanager
def readable(key: str) -> Iterator[None]:
    """What cannot be read in the block is told as damage of ``key``."""
    try:
        yield
    except (OSError, KeyError, pa.ArrowException) as error:
        raise DamagedRun(key, f"cannot be read ({' '.join(str(error).split())})", "restore it from a copy") from error


def _row(one: Tombstone) -> tuple[object, ...]:
    about = one.address, one.run, one.rule, one.condemned_at, one.size, one.batch
    return *about, str(one.state), one.restored_at


def _stone(row: dict[str, object]) -> Tombstone:
    state = str(row.pop("state"))
    size = row.pop("size_bytes")
    return Tombstone(**row, size=size, state=KNOWN.get(state) or state)  # type: ignore[arg-type]
