"""What became of each object that a plan named."""

import io

import pyarrow as pa
import pyarrow.parquet as pq

from desilt.columns.schemas import MOMENT
from desilt.errors import DamagedRun, NotFound
from desilt.objects.store import ObjectStore

OUTCOME = pa.schema(
    [
        ("address", pa.string()),
        ("size_bytes", pa.int64()),
        ("modified_at", MOMENT),
        ("result", pa.string()),
        ("detail", pa.string()),
    ]
)
"""One row per object of a batch."""

HELD_AGAIN = "held again"
"""The result of an object that was not asked for: something holds it by now. The others are the store's results."""

MARKED = "marked"
"""The result of an object that was hidden, and is there still."""

REPEATED = ["result", "detail"]
WAY_OUT = "restore it from a copy, or plan again"


def write_outcome(store: ObjectStore, key: str, rows: pa.Table) -> None:
    sink = io.BytesIO()
    pq.write_table(
        rows, sink, compression="zstd", use_dictionary=REPEATED, write_statistics=False, write_page_checksum=True
    )
    store.put(key, [sink.getvalue()])


def read_outcome(store: ObjectStore, key: str) -> pa.Table:
    try:
        return pq.read_table(io.BytesIO(store.get(key)), page_checksum_verification=True)
    except NotFound:
        raise DamagedRun(key, "is missing", WAY_OUT) from None
    except (OSError, pa.ArrowException) as error:
        raise DamagedRun(key, f"cannot be read ({' '.join(str(error).split())})", WAY_OUT) from error
