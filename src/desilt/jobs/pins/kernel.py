"""Every object and what points to it, bucket by bucket, on the executors: only sets of pins come back."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from desilt.columns.buckets import HASH, Bucket, within
from desilt.columns.files import NOBODY, Files, HeldFile
from desilt.columns.hashing import Hashes
from desilt.columns.kernel import Judge
from desilt.columns.pins import POINTERS, Words, counted

COLUMNS = [HASH, "owner", "size_bytes"]


@dataclass(frozen=True, slots=True)
class PinCounts:
    """How much each set of pins keeps, as bits."""

    objects: Counter[int] = field(default_factory=Counter)
    bytes: Counter[int] = field(default_factory=Counter)

    def __add__(self, other: "PinCounts") -> "PinCounts":
        return PinCounts(self.objects + other.objects, self.bytes + other.bytes)


@dataclass(frozen=True, slots=True)
class PinJudge(Judge[PinCounts]):
    """Every object, once, under the set of all its pins. Places are of ``sets``."""

    entries: tuple[tuple[HeldFile, tuple[int, ...]], ...]  # of commits; for each owner its place, -1: nobody asks
    prefixes: tuple[tuple[str, int], ...]  # of paths, each with the place of the hold that names it
    others: pa.Table  # POINTERS that no file has: what is staged, and objects that holds name
    sets: Words
    removed: tuple[HeldFile, ...]  # by runs
    restored: Hashes  # and what of that may be there after all

    def inputs(self) -> Iterator[Sequence[HeldFile]]:
        yield [held for held, _ in self.entries]
        yield self.removed

    def within(self, buckets: Sequence[Bucket]) -> "PinJudge":
        others = self.others.filter(pa.array(within(self.others[HASH].to_numpy(), buckets)))
        return replace(self, others=others, restored=self.restored[within(self.restored, buckets)])

    def judge(self, files: Files, buckets: Sequence[Bucket]) -> PinCounts:
        counts = PinCounts()
        for bucket in buckets:
            gone = np.setdiff1d(files.hashes(self.removed, bucket), self.restored)
            mine = pa.array(within(self.others[HASH].to_numpy(), [bucket]))
            found = [POINTERS.empty_table(), self.others.filter(mine)]
            columns = [*COLUMNS, "path"] if self.prefixes else COLUMNS  # paths are most of the bytes
            for held, places in self.entries:
                found += pointers(files.rows(held, bucket, columns), places, self.prefixes)
            for bits, objects, size in counted(pa.concat_tables(found), gone, self.sets):
                counts.objects[bits] += objects
                counts.bytes[bits] += size
        return counts


def pointers(rows: pa.Table, places: tuple[int, ...], prefixes: Sequence[tuple[str, int]]) -> list[pa.Table]:
    """The entries of one file in a bucket, by who reaches them; and once more for each hold that names their path."""
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
