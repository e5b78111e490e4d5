"""What the object store lists below a repository, in parallel, as files sorted by hash.

The keys are cut into stretches at partition boundaries, and each stretch is
listed by one task. Together they cover every key, whatever lies between.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from desilt.frames.buckets import hashed
from desilt.frames.schemas import INVENTORY
from desilt.objects import open_store
from desilt.objects.store import ObjectStore
from desilt.sources.held import HeldFile, put
from desilt.sources.spread import Spread

DATA = "branches/"
STRETCHES = 32  # at most so many, or one to a partition


@dataclass(frozen=True, slots=True)
class Stretch:
    """Keys after ``after`` and before ``until`` ("" is open), listed into ``target``."""

    store: str
    prefix: str
    after: str
    until: str
    target: str


@dataclass(frozen=True, slots=True)
class Listed:
    """What a stretch came to."""

    file: HeldFile
    bytes: int


def take(spread: Spread, store: ObjectStore, prefix: str, folder: str) -> list[Listed]:
    """List everything below the repository's data folder into files in ``folder``."""
    return spread(list_stretch, stretches(store, prefix, folder))


def stretches(store: ObjectStore, prefix: str, folder: str) -> list[Stretch]:
    """The keys of a repository, cut at the beginnings of partitions."""
    partitions = [part for branch in store.folders(prefix + DATA) for part in store.folders(branch)]
    step = max(1, -(-len(partitions) // STRETCHES))
    cuts = ["", *partitions[step::step], ""]
    return [
        Stretch(store.uri, prefix, after, until, f"{prefix}{folder}part-{number:05d}.parquet")
        for number, (after, until) in enumerate(pairwise(cuts))
    ]


def list_stretch(stretch: Stretch) -> Listed:
    """List one stretch, on an executor."""
    store = open_store(stretch.store)
    tables = [INVENTORY.empty_table()]
    addresses = [pa.array([], pa.string())]
    for batch in store.list(stretch.prefix + DATA, after=stretch.after):
        rows = batch
        if stretch.until:
            rows = batch.filter(pc.less(batch["key"], stretch.until))
        addresses.append(pc.utf8_slice_codeunits(rows["key"], len(stretch.prefix)))
        tables.append(inventory_rows(addresses[-1], rows["size_bytes"], rows["modified_at"]))
        if rows.num_rows < batch.num_rows:
            break
    whole = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
    table = hashed(whole, pa.concat_arrays(addresses))
    return Listed(put(store, stretch.target, table), pc.sum(table["size_bytes"]).as_py() or 0)


def inventory_rows(addresses: pa.Array, sizes: pa.Array, times: pa.Array) -> pa.Table:
    """Objects as INVENTORY."""
    folders = pc.replace_substring_regex(addresses, "[^/]*$", "").dictionary_encode()
    names = pc.replace_substring_regex(addresses, "^.*/", "")
    return pa.table([folders, names, sizes, times], schema=INVENTORY)


def total(listed: Sequence[Listed]) -> tuple[int, int]:
    """How many objects and bytes there are."""
    return sum(one.file.rows for one in listed), sum(one.bytes for one in listed)
