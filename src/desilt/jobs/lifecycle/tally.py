"""Who would have lost what: the objects that a day removes, counted by rule and by the branches that reach them.

On the executors, after the verdicts: each task reads what it wrote down as going,
and looks its entries up once more, by hash and owner only.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from desilt.columns.buckets import HASH, around, deserved, every, present
from desilt.columns.files import NOBODY, Files, HeldFile, put
from desilt.columns.hashing import Hashes, address_hash
from desilt.jobs.lifecycle.replay import Reaching
from desilt.objects import open_store
from desilt.objects.file import ObjectFile

COLUMNS = [HASH, "owner", "size_bytes"]


@dataclass(frozen=True, slots=True)
class Part:
    """A file of addresses that go, and all the entries that may point to them."""

    store: str
    addresses: str  # its key
    reaching: Reaching
    target: str  # where the hashes of what goes are kept


@dataclass(frozen=True, slots=True)
class Tally:
    """So much goes, by rule and by the branches that reach it, as bits."""

    objects: Counter[tuple[str, int]] = field(default_factory=Counter)
    bytes: Counter[tuple[str, int]] = field(default_factory=Counter)
    files: tuple[HeldFile, ...] = ()

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.objects + other.objects, self.bytes + other.bytes, self.files + other.files)


def tally(part: Part) -> Tally:
    """On an executor: every object of a part, counted once."""
    store = open_store(part.store)
    rows = pq.read_table(
        pa.PythonFile(ObjectFile(store, part.addresses), mode="r"), columns=["address", "matched_rules"]
    )
    if not rows.num_rows:
        return Tally()
    known = address_hash(rows["address"].combine_chunks())
    order = np.argsort(known)
    wanted = known[order]
    rules = pc.list_element(rows["matched_rules"], 0).take(pa.array(order)).to_pylist()  # as a plan tells it
    found = _reached(part, wanted).group_by(HASH).aggregate([("set", "distinct"), ("size_bytes", "max")])
    found = found.sort_by(HASH)
    if not np.array_equal(found[HASH].to_numpy(), wanted):
        raise AssertionError(f"{part.addresses}: an address that goes has no entry")
    told = Tally(files=(put(store, part.target, pa.table({HASH: wanted})),))
    branches: dict[tuple[int, ...], int] = {}
    for rule, sets, size in zip(
        rules, found["set_distinct"].to_pylist(), found["size_bytes_max"].to_pylist(), strict=True
    ):
        key = tuple(sorted(sets))
        if key not in branches:
            branches[key] = reduce(or_, (part.reaching.sets[place] for place in key))
        told.objects[rule, branches[key]] += 1
        told.bytes[rule, branches[key]] += size
    return told


def _reached(part: Part, wanted: Hashes) -> pa.Table:
    """The entries that point to ``wanted``: hash, size, and the set of branches that reach it."""
    files = Files(open_store(part.store))
    found = []
    for held, places in part.reaching.files:
        sets = np.array(places, np.int64)
        for bucket in around(wanted, held.buckets):
            rows = files.rows(held, bucket, COLUMNS)
            of = sets[rows["owner"].to_numpy()]
            mine = present(rows[HASH].to_numpy(), wanted) & (of > NOBODY)
            if mine.any():
                rows = rows.select([HASH, "size_bytes"]).append_column("set", pa.array(of))
                found.append(rows.filter(pa.array(mine)))
    return pa.concat_tables(found)


@dataclass(frozen=True, slots=True)
class Many:
    """Files of hashes that are to be one."""

    store: str
    files: Sequence[HeldFile]
    target: str


def folded(many: Many) -> HeldFile:
    """On an executor: all of them as one file, so that a day in a year opens few."""
    store = open_store(many.store)
    files = Files(store)
    buckets = every(deserved(sum(file.rows for file in many.files)))
    found = [files.hashes(many.files, bucket) for bucket in buckets]
    return put(store, many.target, pa.table({HASH: np.concatenate(found)}))
