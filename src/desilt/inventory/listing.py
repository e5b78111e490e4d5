"""What the object store lists below a repository, in parallel, as files sorted by hash.

A clean listing cuts all keys into stretches at partition boundaries: together
they cover every key, whatever lies between. A later one lists, branch by branch,
only what is newer than a boundary.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from desilt.columns.buckets import hashed
from desilt.columns.files import HeldFile, put
from desilt.columns.folders import divided
from desilt.columns.schemas import INVENTORY
from desilt.executors.executor import Executor
from desilt.objects import open_store
from desilt.objects.store import ObjectStore, flaw

STRETCHES = 32  # at least so many, where there are as many partitions
PARTITIONS_TO_A_STRETCH = 10  # at most: half a million objects
ROWS_TO_A_FILE = 500_000


@dataclass(frozen=True, slots=True)
class Span:
    """Keys below ``prefix``, after ``after`` and before ``until`` ("" is open)."""

    prefix: str
    after: str
    until: str


@dataclass(frozen=True, slots=True)
class ListingPiece:
    """Spans to be listed into files called ``target``…, by one task."""

    store: str
    prefix: str  # of the repository
    spans: tuple[Span, ...]
    target: str


@dataclass(frozen=True, slots=True)
class Listed:
    """Some objects that are there."""

    file: HeldFile
    bytes: int


@dataclass(frozen=True, slots=True)
class Inventory:
    """What was listed, and the folders of the partitions that it is in."""

    listed: list[Listed]
    partitions: list[str]


def take(
    executor: Executor,
    store: ObjectStore,
    prefix: str,
    folder: str,
    *,
    data: str,
    about: Callable[[Sequence[str]], int],
    branches: Sequence[str] | None = None,
    newer_than: Mapping[str, str] | None = None,
) -> Inventory:
    """List the repository's objects, which are in its folder ``data``, into files in ``folder``.

    With ``branches`` (uids) only those; with ``newer_than``, of a branch named there
    only the partitions before that boundary. ``about`` says how many objects there may be in partitions.
    """
    found = branch_uids(store, prefix + data) if branches is None else branches
    parts = {uid: partitions(store, prefix + data, uid, (newer_than or {}).get(uid, "")) for uid in found}
    every = [part for some in parts.values() for part in some]
    if branches is None and not newer_than:
        groups: list[tuple[Span, ...]] = [(span,) for span in cut(prefix + data, every, until="")]
    else:
        spans = [
            span for uid in found for span in below(prefix + data, uid, parts[uid], (newer_than or {}).get(uid, ""))
        ]
        size = min(max(1, -(-len(spans) // STRETCHES)), PARTITIONS_TO_A_STRETCH)
        groups = [tuple(spans[at : at + size]) for at in range(0, len(spans), size)]
    pieces = [
        ListingPiece(store.uri, prefix, spans, f"{prefix}{folder}part-{number:05d}")
        for number, spans in enumerate(groups)
    ]
    listed = executor(list_stretch, pieces, rows=about(every), weigh=objects_in)
    return Inventory([one for several in listed for one in several], every)


def objects_in(listed: Sequence[Listed]) -> int:
    return total(listed)[0]


def branch_uids(store: ObjectStore, root: str) -> list[str]:
    """The branches that have objects, whether they still exist or not."""
    return [folder.rstrip("/").rpartition("/")[2] for folder in store.folders(root)]


def every_partition(store: ObjectStore, root: str) -> list[str]:
    """The partitions of all branches, deleted ones too."""
    return [folder for uid in branch_uids(store, root) for folder in partitions(store, root, uid)]


def partitions(store: ObjectStore, root: str, branch: str, boundary: str = "") -> list[str]:
    """The folders of a branch's partitions before ``boundary``; "": of all."""
    mine = f"{root}{branch}/"
    return [part for part in store.folders(mine) if not boundary or part < mine + boundary]


def below(root: str, branch: str, partitions: Sequence[str], boundary: str) -> list[Span]:
    """The keys of a branch in ``partitions``, which are before ``boundary``; "": all."""
    mine = f"{root}{branch}/"
    until = mine + boundary if boundary else ""
    return cut(mine, partitions, until=until) if partitions or not until else []


def cut(root: str, partitions: Sequence[str], *, until: str) -> list[Span]:
    """All keys below ``root``, cut at the beginnings of some partitions."""
    step = min(max(1, -(-len(partitions) // STRETCHES)), PARTITIONS_TO_A_STRETCH)
    cuts = ["", *partitions[step::step], until]
    return [Span(root, after, before) for after, before in pairwise(cuts)]


def list_stretch(stretch: ListingPiece) -> list[Listed]:
    """List one stretch, on an executor; a huge one becomes several files."""
    store = open_store(stretch.store)
    found: list[Listed] = []
    rows: list[pa.RecordBatch] = []
    count = 0

    def write() -> None:
        table = inventory_of(stretch.prefix, rows)
        file = put(store, f"{stretch.target}-{len(found):03d}.parquet", table)
        found.append(Listed(file, pc.sum(table["size_bytes"]).as_py() or 0))

    for span in stretch.spans:
        for batch in store.list(span.prefix, after=span.after, until=span.until):
            rows.append(batch)
            count += batch.num_rows
            if count >= ROWS_TO_A_FILE:
                write()
                rows, count = [], 0
    if rows or not found:
        write()
    return found


def stored_at(store: ObjectStore, key: str) -> pa.RecordBatch | None:
    """One object as a listing has it: one row; None if it is not there."""
    if flaw(key):
        return None  # no store keeps such a key
    batch = next(store.list(key), None)  # no key sorts before what it begins with
    return batch.slice(0, 1) if batch is not None and batch["key"][0].as_py() == key else None


def inventory_of(prefix: str, rows: Sequence[pa.RecordBatch]) -> pa.Table:
    """Listed objects as INVENTORY, in the order of hashes."""
    tables = [INVENTORY.empty_table()]
    addresses: list[pa.Array] = []
    for batch in rows:
        addresses.append(addresses_below(batch["key"], prefix))
        tables.append(inventory_rows(addresses[-1], batch["size_bytes"], batch["modified_at"]))
    every = pa.chunked_array(addresses, pa.string())
    return hashed(pa.concat_tables(tables).unify_dictionaries().combine_chunks(), every)


def addresses_below(keys: pa.Array, prefix: str) -> pa.Array:
    """Keys, all of which begin with ``prefix``, without it: cut as bytes, which takes a tenth of what characters do."""
    return pc.binary_replace_slice(keys, 0, len(prefix.encode()), "")


def inventory_rows(addresses: pa.Array, sizes: pa.Array, times: pa.Array) -> pa.Table:
    """Objects as INVENTORY."""
    return pa.table([*divided(addresses), sizes, times], schema=INVENTORY)


def total(listed: Sequence[Listed]) -> tuple[int, int]:
    """How many objects and bytes there are."""
    return sum(one.file.rows for one in listed), sum(one.bytes for one in listed)
