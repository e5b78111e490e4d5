"""Sets of few addresses grow together, so that after a thousand runs a job reads about as many as after ten.

Sets of a class (:mod:`desilt.columns.classes`) become one of all their runs, on an executor.
It has every row of theirs: as many, with the same hashes, each of which is that of its
address. Nothing is removed here: what is replaced lies there until a collection tidies
up, and counts again when the one that replaced it does not.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from desilt.columns import classes
from desilt.columns.buckets import HASH, MODULUS, Bucket
from desilt.columns.files import Files, HeldFile, put_in_order
from desilt.columns.hashing import address_hash
from desilt.columns.schemas import HELD
from desilt.errors import Damaged, NotReadBack
from desilt.jobs.removed.sets import RemovedSet, Sets, new_name, say
from desilt.objects import open_store

WHOLE = Bucket(0, 1)


@dataclass(frozen=True, slots=True)
class Growth:
    """Sets that are to become one."""

    store: str
    folder: str
    sources: tuple[RemovedSet, ...]
    replaces: frozenset[str]


def due(store: str, folder: str, there: AbstractSet[str], sets: Sets) -> Iterator[Growth]:
    """What is to be merged of the ``sets`` that are used."""
    for group in classes.due(sets.used, rows=lambda one: one.rows, name=lambda one: one.word):
        runs = frozenset().union(*(one.runs for one in group))
        several = [one for one in (*group, *sets.idle) if len(one.runs) > 1 and one.runs <= runs]
        replaced = frozenset().union(*(one.keys | one.replaces for one in several))
        yield Growth(store, folder, tuple(group), replaced & there)


def merge(growth: Growth) -> str:
    """On an executor: the new file first, then the word that it is there; the key of a file that is damaged, or ""."""
    store = open_store(growth.store)
    files = Files(store)
    sources = [file for one in growth.sources for file in one.files]
    try:
        table = pa.concat_tables([_empty(), *(_rows(files, file) for file in sources)]).combine_chunks()
    except Damaged as error:
        return error.name
    runs = frozenset().union(*(one.runs for one in growth.sources))
    name = new_name(growth.folder, runs, 0)
    made = put_in_order(store, name, table.select(HELD.names), table[HASH].to_numpy())
    if (made.rows, _sum(made)) != (sum(file.rows for file in sources), sum(map(_sum, sources)) % MODULUS):
        raise NotReadBack(name, "addresses were lost on the way into it")
    say(store, growth.folder, runs, [made], growth.replaces)
    return ""


def _rows(files: Files, held: HeldFile) -> pa.Table:
    """All of a file, as it was written; every hash must be that of its address."""
    rows = files.rows(held, WHOLE, [HASH, *HELD.names])
    if rows.num_rows != held.rows or not np.array_equal(address_hash(rows["address"]), rows[HASH].to_numpy()):
        raise NotReadBack(held.key, "its addresses are not those that were written")
    return rows


def _empty() -> pa.Table:
    return HELD.insert(0, pa.field(HASH, pa.uint64())).empty_table()


def _sum(held: HeldFile) -> int:
    return sum(held.sums[HASH]) % MODULUS
