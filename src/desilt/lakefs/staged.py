"""What a server has listed as staged: the files of one run of prepare_uncommited, all of them.

Not everything that is staged: uploads equal to what is committed at their path are left out, and so are, on some
blockstores, addresses that were linked. Listings of branches have those.
"""

import io

import pyarrow as pa
import pyarrow.parquet as pq

from desilt.errors import Unreadable
from desilt.lakefs.server import Prepared
from desilt.objects.store import ObjectStore

FOLDER = "_lakefs/retention/gc/uncommitted/"
COLUMN = "physical_address"


def addresses(store: ObjectStore, prefix: str, listed: Prepared) -> pa.ChunkedArray:
    """The addresses that ``listed`` names, below ``prefix``; fewer files than the server wrote are refused."""
    folder = f"{prefix}{FOLDER}{listed.run_id}/uncommitted/"
    keys = [key for batch in store.list(folder) for key in batch["key"].to_pylist()]
    if len(keys) < listed.files:
        raise Unreadable(
            f"the server wrote {listed.files} files of uncommitted objects to {folder} and {len(keys)} are there; "
            "run again"
        )
    return pa.chunked_array([chunk for key in keys for chunk in _column(store.get(key), key).chunks], pa.string())


def _column(data: bytes, key: str) -> pa.ChunkedArray:
    try:
        found = pq.read_table(io.BytesIO(data), columns=[COLUMN])[COLUMN]
    except (pa.ArrowException, KeyError, OSError) as error:
        raise Unreadable(f"{key} is not what a server writes ({type(error).__name__}); run again") from None
    if found.type != pa.string() or found.null_count:
        raise Unreadable(f"{key} is not what a server writes (addresses are {found.type}); run again")
    return found
