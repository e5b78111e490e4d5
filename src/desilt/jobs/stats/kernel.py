"""Everything that commits have, bucket by bucket, on the executors: sums by age, month and folder come back."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from desilt.columns.breakdown import AGES, ages
from desilt.columns.buckets import HASH, Bucket, present, within
from desilt.columns.files import Files, HeldFile, among
from desilt.columns.folders import summed
from desilt.columns.hashing import Hashes
from desilt.columns.kernel import Judge
from desilt.columns.schemas import MOMENT
from desilt.domain.entry import decode_path
from desilt.domain.times import microseconds

COLUMNS = [HASH, "owner", "size_bytes", "created_at", "path"]
ROWS = pa.schema([(HASH, pa.uint64()), ("size_bytes", pa.int64()), ("created_at", MOMENT), ("path", pa.binary())])
"""One row per entry."""
TOP = "(no folder)"


@dataclass(frozen=True, slots=True)
class StatsCounts:
    """Objects and bytes side by side."""

    age_objects: Counter[str] = field(default_factory=Counter)
    age_bytes: Counter[str] = field(default_factory=Counter)
    month_objects: Counter[str] = field(default_factory=Counter)
    month_bytes: Counter[str] = field(default_factory=Counter)
    folder_objects: Counter[str] = field(default_factory=Counter)
    folder_bytes: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: "StatsCounts") -> "StatsCounts":
        return StatsCounts(
            self.age_objects + other.age_objects,
            self.age_bytes + other.age_bytes,
            self.month_objects + other.month_objects,
            self.month_bytes + other.month_bytes,
            self.folder_objects + other.folder_objects,
            self.folder_bytes + other.folder_bytes,
        )


@dataclass(frozen=True, slots=True)
class StatsJudge(Judge[StatsCounts]):
    """Every object of any commit, once: by its first entry, and as large as any says."""

    entries: tuple[tuple[HeldFile, frozenset[int]], ...]  # and which owners count
    removed: tuple[HeldFile, ...]  # by runs
    restored: Hashes  # and what of that may be there after all
    now: datetime
    depth: int  # of folders

    def inputs(self) -> Iterator[Sequence[HeldFile]]:
        yield [held for held, _ in self.entries]
        yield self.removed

    def within(self, buckets: Sequence[Bucket]) -> "StatsJudge":
        return replace(self, restored=self.restored[within(self.restored, buckets)])

    def judge(self, files: Files, buckets: Sequence[Bucket]) -> StatsCounts:
        counts = StatsCounts()
        for bucket in buckets:
            gone = np.setdiff1d(files.hashes(self.removed, bucket), self.restored)
            rows = [
                table.filter(pa.array(among(table["owner"].to_numpy(), owners))).select(ROWS.names)
                for held, owners in self.entries
                for table in [files.rows(held, bucket, COLUMNS)]
            ]
            self._count(counts, pa.concat_tables([ROWS.empty_table(), *rows]).combine_chunks(), gone)
        return counts

    def _count(self, counts: StatsCounts, rows: pa.Table, gone: Hashes) -> None:
        if not rows.num_rows:
            return
        objects = rows.group_by(HASH, use_threads=False).aggregate(  # one that has two paths is below the first
            [("size_bytes", "max"), ("created_at", "min"), ("path", "min")]
        )
        objects = objects.filter(pa.array(~present(objects[HASH].to_numpy(), gone)))
        sizes = objects["size_bytes_max"].to_numpy()
        first = objects["created_at_min"].cast(pa.int64()).fill_null(microseconds(self.now)).to_numpy()
        paths = objects["path_min"].combine_chunks()
        made = pa.chunked_array([pa.array(first, pa.int64()).cast(MOMENT)])
        self._add(counts.age_objects, counts.age_bytes, list(AGES), ages(made, self.now), sizes)
        months = first.astype("datetime64[us]").astype("datetime64[M]")
        named, places = np.unique(months, return_inverse=True)
        self._add(counts.month_objects, counts.month_bytes, [str(one) for one in named], places, sizes)
        folders = folders_of(paths, self.depth).dictionary_encode()
        named_folders = [decode_path(one) if one else TOP for one in folders.dictionary.to_pylist()]
        codes = folders.indices.to_numpy()
        self._add(counts.folder_objects, counts.folder_bytes, named_folders, codes, sizes)

    def _add(
        self,
        objects: Counter[str],
        volume: Counter[str],
        names: Sequence[str],
        places: npt.NDArray[np.integer],
        sizes: npt.NDArray[np.int64],
    ) -> None:
        for place, count, size in zip(*(column.tolist() for column in summed(places, sizes)), strict=True):
            objects[names[place]] += count
            volume[names[place]] += size


def folders_of(paths: pa.Array, depth: int) -> pa.Array:
    """The first ``depth`` folders of each path, or as many as it has."""
    found = pc.extract_regex(paths, f"^(?P<folder>(?:[^/]*/){{1,{depth}}})")
    return pc.fill_null(pc.struct_field(found, "folder"), b"")
