"""What became of each object that a plan named."""

import io

import pyarrow as pa
import pyarrow.parquet as pq

from desilt.errors import CorruptTable, NotFound
from desilt.frames.schemas import MOMENT
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


def write_outcome(store: ObjectStore, key: str, rows: pa.Table) -> None:
    sink = io.BytesIO()
    pq.write_table(rows, sink, compression="zstd", write_page_checksum=True)
    store.put(key, [sink.getvalue()])


def read_outcome(store: ObjectStore, key: str) -> pa.Table:
    try:
        return pq.read_table(io.BytesIO(store.get(key)), page_checksum_verification=True)
    except NotFound:
        raise CorruptTable(key, "it is missing") from None
    except (OSError, pa.ArrowException) as error:
        raise CorruptTable(key, " ".join(str(error).split())) from error
