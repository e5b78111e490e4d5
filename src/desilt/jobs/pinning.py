"""Every object and what points to it, bucket by bucket, on the executors: only sets of pins come back."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from desilt.errors import CorruptTable
from desilt.frames.buckets import BUCKETS, HASH
from desilt.frames.hashing import Hashes, bucket_of
from desilt.frames.pins import POINTERS, Words, counted
from desilt.objects import open_store
from desilt.sources.held import HeldFile, hashes, opened, rows_of

COLUMNS = [HASH, "owner", "size_bytes"]
NOBODY = -1


@dataclass(frozen=True, slots=True)
class Question:
    """Some buckets, and all that points into them. Places are of ``sets``."""

    store: str
    buckets: range
    entries: tuple[tuple[HeldFile, tuple[int, ...]], ...]  # of commits; for each owner its place, -1: nobody asks
    prefixes: tuple[tuple[str, int], ...]  # of paths, each with the place of the hold that names it
    others: pa.Table  # POINTERS that no file has: what is staged, and objects that holds name
    sets: Words
    removed: tuple[HeldFile, ...]  # by runs
    restored: Hashes  # and what of that may be there after all


@dataclass(frozen=True, slots=True)
class Answer:
    """How much each set of pins keeps, as bits."""

    objects: Counter[int] = field(default_factory=Counter)
    bytes: Counter[int] = field(default_factory=Counter)
    damaged: frozenset[str] = frozenset()  # files that could not be read: then nothing else here counts

    def __add__(self, other: "Answer") -> "Answer":
        return Answer(self.objects + other.objects, self.bytes + other.bytes, self.damaged | other.damaged)


def cut(question: Question, width: int) -> list[Question]:
    """The same over all buckets, in about ``width`` questions; each takes what it needs with it."""
    size = max(1, BUCKETS // width)
    return [_part(question, range(at, min(at + size, BUCKETS))) for at in range(0, BUCKETS, size)]


def _part(whole: Question, buckets: range) -> Question:
    rows, restored = whole.others, whole.restored
    mine = pa.array(_within(rows[HASH].to_numpy(), buckets))
    return replace(whole, buckets=buckets, others=rows.filter(mine), restored=restored[_within(restored, buckets)])


def _within(some: Hashes, buckets: range) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    number = bucket_of(some, BUCKETS)
    return (number >= buckets.start) & (number < buckets.stop)


def count(question: Question) -> Answer:
    """On an executor: every object of these buckets, once, under the set of all its pins."""
    try:
        return _count(question)
    except CorruptTable as error:
        return Answer(damaged=frozenset([error.name]))


def _count(question: Question) -> Answer:
    store, answer = open_store(question.store), Answer()
    files = [(held, places, opened(store, held)) for held, places in question.entries]
    removed = [(held, opened(store, held)) for held in question.removed]
    for number in question.buckets:
        gone = np.setdiff1d(hashes(removed, number), question.restored)
        mine = pa.array(_within(question.others[HASH].to_numpy(), range(number, number + 1)))
        found = [POINTERS.empty_table(), question.others.filter(mine)]
        for held, places, file in files:
            found += _pointers(held, file, number, places, question.prefixes)
        for bits, objects, size in counted(pa.concat_tables(found), gone, question.sets):
            answer.objects[bits] += objects
            answer.bytes[bits] += size
    return answer


def _pointers(
    held: HeldFile,
    file: pq.ParquetFile,
    number: int,
    places: tuple[int, ...],
    prefixes: Sequence[tuple[str, int]],
) -> list[pa.Table]:
    """The entries of one file in a bucket, by who reaches them; and once more for each hold that names their path."""
    rows = rows_of(held, file, number, [*COLUMNS, "path"] if prefixes else COLUMNS)  # paths are most of the bytes
    of = np.array(places, np.int64)[rows["owner"].to_numpy()]
    rows = rows.append_column("place", pa.array(of))
    if NOBODY in places:
        rows = rows.filter(pa.array(of > NOBODY))
    found = [rows.select(POINTERS.names)]
    for prefix, place in prefixes:
        named = rows.filter(pc.starts_with(rows["path"], prefix))
        fixed = pa.array(np.full(named.num_rows, place, np.int64))
        found.append(pa.table([named[HASH], fixed, named["size_bytes"]], schema=POINTERS))
    return found
