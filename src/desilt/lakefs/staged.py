"""What a server has listed as staged: the files of one run of prepare_uncommited, all of them.

Not everything that is staged: uploads equal to what is committed at their path are left out, and so are, on some
blockstores, addresses that were linked. Listings of branches have those.
"""

import io
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from desilt.domain.entry import AddressType, encode_path
from desilt.errors import StorageFailed, Unreadable
from desilt.lakefs import history
from desilt.lakefs.branches import Served
from desilt.lakefs.core import PREFIX, LakefsCore
from desilt.lakefs.namespace import Namespace
from desilt.lakefs.server import Prepared, Server
from desilt.objects.store import ObjectStore
from desilt.sstable.columns import ENTRIES

FOLDER = "_lakefs/retention/gc/uncommitted/"
COLUMN = "physical_address"
REMOVED = "removed"
AT_ONCE = 8  # requests
TOGETHER = 1000  # changes
KINDS = {kind: place for place, kind in enumerate(AddressType)}


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


def staged_now(core: LakefsCore) -> pa.Array:
    """The addresses inside that the server lists as uncommitted, in one reading.

    Where we may not read that list, all that any branch serves: it holds more, and takes longer.
    """
    listed = core.server.uncommitted()
    try:
        found = addresses(core.store, PREFIX, listed).combine_chunks()
    except StorageFailed:
        heads = history.read(core, core.clock()).names
        found = pa.array([one.address for name in heads for one in core.server.listing(name)], pa.string())
    full = pc.match_substring(found, "://")
    if not pc.any(full, min_count=0).as_py():
        return found
    return pa.concat_arrays([found.filter(pc.invert(full)), core.place.inside(found.filter(full)).drop_null()])


def _column(data: bytes, key: str) -> pa.ChunkedArray:
    try:
        found = pq.read_table(io.BytesIO(data), columns=[COLUMN])[COLUMN]
    except (pa.ArrowException, KeyError, OSError) as error:
        raise Unreadable(f"{key} is not what a server writes ({type(error).__name__}); run again") from None
    if found.type != pa.string() or found.null_count:
        raise Unreadable(f"{key} is not what a server writes (addresses are {found.type}); run again")
    return found


def changes(server: Server, place: Namespace, branch: str) -> Iterator[pa.RecordBatch]:
    """What a commit of ``branch`` would take, as ENTRIES; of a path that would go, the rest is null."""
    found = server.changes(branch)
    with ThreadPoolExecutor(AT_ONCE) as threads:
        while some := [(path, kind) for path, kind, _ in islice(found, TOGETHER)]:
            there = [path for path, kind in some if kind != REMOVED]
            served = dict(zip(there, threads.map(lambda path: server.served(branch, path), there), strict=True))
            yield _entries(place, [(path, served.get(path)) for path, _ in some])


def _entries(place: Namespace, rows: Sequence[tuple[str, Served | None]]) -> pa.RecordBatch:
    inside = place.inside(pa.array([one.address if one else "" for _, one in rows], pa.string())).to_pylist()
    told: list[dict[str, Any]] = []
    for (path, one), address in zip(rows, inside, strict=True):
        kind = AddressType.FULL if address is None else AddressType.RELATIVE
        told.append(
            {
                "path": encode_path(path),
                "address": one and (address or one.address),
                "address_type": one and KINDS[kind],
                "size": one and one.size,
                "modified_at": one and one.seconds * 1_000_000_000,
                "checksum": one and one.checksum,
                "metadata": one and {},
                "content_type": one and "",
                "identity": one and b"",
            }
        )
    return pa.RecordBatch.from_pylist(told, schema=ENTRIES)
