"""What dead commits had against what is held, bucket by bucket, on the executors; and tables that no commit has."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from desilt.columns.breakdown import breakdown
from desilt.columns.buckets import HASH, Bucket, present
from desilt.columns.files import Files, HeldFile, among
from desilt.columns.folders import Flags
from desilt.columns.hashing import Hashes
from desilt.columns.kernel import Judge
from desilt.columns.layout import Layout
from desilt.columns.mark import reasons
from desilt.columns.paths import shown
from desilt.columns.rules import starts
from desilt.columns.schemas import DIVIDER, MOMENT, PLAN
from desilt.domain.reason import Reason, Verdict
from desilt.inventory.listing import inventory_rows
from desilt.jobs.counts import Counts
from desilt.jobs.gc.kernel import GOES, INVENTORY_ROWS, count_gone, count_kept, going
from desilt.objects.store import ObjectStore
from desilt.runs import plan_files
from desilt.sstable.ranges import FOLDER

METADATA = "metadata"
SAID = {
    "verdict": Verdict.REMOVE.value,
    "reason": Reason.COLLECTED.value,
    "detail": "only commits that nothing reaches had it",
}
SAID_OF_TABLES = {**SAID, "detail": "no commit that anything reaches has it"}
NUMBERS = [HASH, "owner", "size_bytes"]
TEXTS = ["address", "created_at"]


@dataclass(frozen=True, slots=True)
class OwnedFile:
    """A file of the range cache: which of its owners live commits have, and which only dead ones."""

    file: HeldFile
    live: frozenset[int]
    dead: Mapping[int, str]  # the ranges' names


@dataclass(frozen=True, slots=True)
class CollectJudge(Judge[Counts]):
    """Every object that a dead commit had gets a verdict; those that go are written down."""

    layout: Layout
    held: Mapping[Reason, Sequence[HeldFile]]  # by something else than commits
    now: datetime  # that ages are counted to
    before: datetime
    folder: str
    restored: tuple[HeldFile, ...]  # that earlier runs have removed, and that are there after all
    removed: tuple[HeldFile, ...] = ()  # that earlier runs have removed
    entries: tuple[OwnedFile, ...] = ()

    def inputs(self) -> Iterator[Sequence[HeldFile]]:
        yield [one.file for one in self.entries]
        yield self.removed
        yield from self.held.values()

    def judge(self, files: Files, buckets: Sequence[Bucket]) -> Counts:
        counts, plan, paths = Counts(), [INVENTORY_ROWS.empty_table()], [pa.array([], pa.string())]
        for bucket in buckets:
            sides = self.sides(files, bucket)
            counts += sides.counted()
            rows, known = sides.lone(), {reason: files.hashes(some, bucket) for reason, some in self.held.items()}
            found = reasons(rows, known, layout=self.layout, before=self.before)
            count_kept(counts, rows, found, np.zeros(len(found), np.bool_), self.layout)
            plan.append(rows.filter(pa.array(found == GOES)))
            paths.append(sides.paths(plan[-1][HASH].to_numpy()))
        rows = pa.concat_tables(plan).unify_dictionaries()
        count_gone(counts, rows, self.layout, Reason.COLLECTED)
        target, plan_rows = f"{self.folder}plan/part-{buckets[0].number:05d}.parquet", going(rows, SAID)
        details = pc.binary_join_element_wise(plan_rows["reason"], pa.concat_arrays(paths), DIVIDER)
        plan_rows = plan_rows.set_column(plan_rows.schema.get_field_index("detail"), PLAN.field("detail"), details)
        written = plan_files.write(files.store, target, plan_rows)
        return counts + Counts(gone=breakdown(plan_rows, self.layout, self.now), files=written)

    def sides(self, files: Files, bucket: Bucket) -> "Sides":
        """What commits have in one bucket, and is there."""
        gone = np.setdiff1d(files.hashes(self.removed, bucket), files.hashes(self.restored, bucket))
        return Sides(files, self.entries, bucket, gone)


@dataclass(frozen=True, slots=True)
class OrderJudge(Judge[tuple[str, ...]]):
    """The ranges of dead commits with something below a held prefix that only dead commits have."""

    asked: CollectJudge
    prefixes: tuple[str, ...]  # of paths, that people ordered to be held

    def inputs(self) -> Iterator[Sequence[HeldFile]]:
        return self.asked.inputs()

    def judge(self, files: Files, buckets: Sequence[Bucket]) -> tuple[str, ...]:
        found = (self.asked.sides(files, bucket).ranges_below(self.prefixes) for bucket in buckets)
        return tuple(sorted(set().union(*found)))


class Sides:
    """The entries of one bucket, on the side of live commits or of dead ones, but for objects that are ``gone``.

    Texts are read where they are needed.
    """

    def __init__(self, files: Files, entries: Sequence[OwnedFile], bucket: Bucket, gone: Hashes) -> None:
        self._files, self._entries, self._bucket = files, entries, bucket
        self._rows = [files.rows(one.file, bucket, NUMBERS) for one in entries]
        self._live = self._flagged(lambda one: one.live, gone)
        self._dead = self._flagged(lambda one: one.dead.keys(), gone)

    def counted(self) -> Counts:
        """What there is, all commits together; and what of the dead ones' objects live ones keep."""
        every, first = np.unique(self._hashes([self._live, self._dead]), return_index=True)
        sizes = self._sizes([self._live, self._dead])[first]
        kept = present(every, np.unique(self._hashes([self._live]))) & present(
            every, np.unique(self._hashes([self._dead]))
        )
        what = "", Reason.COMMITTED.value
        counts = Counts(stored_objects=len(every), stored_bytes=int(sizes.sum()))
        if kept.any():
            counts.objects[what] += int(kept.sum())
            counts.bytes[what] += int(sizes[kept].sum())
        return counts

    def lone(self) -> pa.Table:
        """The objects that only dead commits have, each once, by its youngest entry."""
        wanted = np.setdiff1d(self._hashes([self._dead]), self._hashes([self._live]))
        tables = [INVENTORY_ROWS.empty_table()]
        for rows, dead, one in zip(self._rows, self._dead, self._entries, strict=True):
            places = np.flatnonzero(dead)
            places = places[present(rows[HASH].to_numpy()[places], wanted)]
            if len(places):
                texts = self._files.rows(one.file, self._bucket, TEXTS)
                tables.append(_youngest(rows.take(pa.array(places)), texts.take(pa.array(places))))
        every = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
        return every.take(pa.array(_first_youngest(every[HASH].to_numpy(), every["modified_at"])))

    def paths(self, wanted: Hashes) -> pa.Array:
        """Under which paths dead commits have each of some objects, divided by :data:`DIVIDER`, in their order."""
        known = [pa.table({HASH: pa.array([], pa.uint64()), "path": pa.array([], pa.binary())})]
        for rows, dead, one in zip(self._rows, self._dead, self._entries, strict=True):
            places = np.flatnonzero(dead)
            places = places[present(rows[HASH].to_numpy()[places], np.sort(wanted))]
            if len(places):
                texts = self._files.rows(one.file, self._bucket, ["path"]).take(pa.array(places))
                known.append(pa.table({HASH: rows[HASH].take(pa.array(places)), "path": texts["path"]}))
        every_path = pa.concat_tables(known).combine_chunks().sort_by("path")
        found = every_path.group_by(HASH, use_threads=False).aggregate([("path", "distinct")])
        every = found["path_distinct"].combine_chunks()
        joined = pc.binary_join(pa.ListArray.from_arrays(every.offsets, shown(every.values)), DIVIDER)
        order = np.argsort(found[HASH].to_numpy())
        at = np.searchsorted(found[HASH].to_numpy()[order], wanted)
        return joined.take(pa.array(order[at]))

    def ranges_below(self, prefixes: tuple[str, ...]) -> set[str]:
        """The ranges with entries below ``prefixes`` on objects that only dead commits have."""
        wanted, found = np.setdiff1d(self._hashes([self._dead]), self._hashes([self._live])), set[str]()
        for rows, dead, one in zip(self._rows, self._dead, self._entries, strict=True):
            lone = np.flatnonzero(dead & present(rows[HASH].to_numpy(), wanted))
            if len(lone):
                paths = self._files.rows(one.file, self._bucket, ["path"])["path"].take(pa.array(lone)).combine_chunks()
                held = lone[starts(paths, prefixes)]
                found |= {one.dead[owner] for owner in rows["owner"].to_numpy()[held].tolist()}
        return found

    def _flagged(self, owners: Callable[[OwnedFile], Set[int]], gone: Hashes) -> list[Flags]:
        return [
            among(rows["owner"].to_numpy(), owners(one)) & ~present(rows[HASH].to_numpy(), gone)
            for rows, one in zip(self._rows, self._entries, strict=True)
        ]

    def _hashes(self, sides: Sequence[list[Flags]]) -> Hashes:
        found = [rows[HASH].to_numpy()[mine] for side in sides for rows, mine in zip(self._rows, side, strict=True)]
        return np.concatenate([np.zeros(0, np.uint64), *found])

    def _sizes(self, sides: Sequence[list[Flags]]) -> npt.NDArray[np.int64]:
        found = [
            rows["size_bytes"].to_numpy()[mine] for side in sides for rows, mine in zip(self._rows, side, strict=True)
        ]
        return np.concatenate([np.zeros(0, np.int64), *found])


def _youngest(numbers: pa.Table, texts: pa.Table) -> pa.Table:
    """One row for each object, of the entry that calls it youngest, as INVENTORY with its hash."""
    first = pa.array(_first_youngest(numbers[HASH].to_numpy(), texts["created_at"]))
    numbers, texts = numbers.take(first), texts.take(first).combine_chunks()
    columns = [texts["address"].combine_chunks(), numbers["size_bytes"].combine_chunks(), texts["created_at"]]
    return inventory_rows(columns[0], columns[1], columns[2].combine_chunks()).add_column(0, HASH, numbers[HASH])


def _first_youngest(found: Hashes, times: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Of each hash the place of its youngest row; a row without a time is young for ever."""
    seconds = pc.fill_null(times.cast(pa.int64()), np.iinfo(np.int64).max).to_numpy()
    order = np.lexsort((-seconds, found))
    first = np.ones(len(order), np.bool_)
    first[1:] = found[order][1:] != found[order][:-1]
    places: npt.NDArray[np.int64] = order[first]
    return places


def list_tables(store: ObjectStore, prefix: str, layout: Layout) -> pa.Table:
    """All ranges and metaranges that are stored, as PLAN: each as if it went."""
    found = [PLAN.empty_table()]
    for batch in store.list(prefix + FOLDER):
        names = [key.removeprefix(prefix) for key in batch["key"].to_pylist()]
        columns = [pa.array(names, pa.string()), batch["size_bytes"], batch["modified_at"].cast(MOMENT)]
        columns += [pa.repeat(text, len(names)) for text in SAID_OF_TABLES.values()]
        ours = layout.tables_among(columns[0])
        found.append(pa.table(columns, schema=PLAN).filter(pa.array(ours)))
    return pa.concat_tables(found).combine_chunks()


def names_of(tables: pa.Table) -> list[str]:
    return [address.removeprefix(FOLDER) for address in tables["address"].to_pylist()]


def dead_tables(tables: pa.Table, live: Set[str], before: datetime) -> pa.Table:
    """Those of ``tables`` from before ``before`` that no live commit has."""
    dead = pa.array([name not in live for name in names_of(tables)], pa.bool_())
    old = pc.fill_null(pc.less(tables["modified_at"], pa.scalar(before, MOMENT)), False)
    return tables.filter(pc.and_(dead, old)).combine_chunks()


def write_tables(store: ObjectStore, key: str, rows: pa.Table) -> Counts:
    """Tables that go, as a part of the plan."""
    if not rows.num_rows:
        return Counts()
    files = plan_files.write(store, key, rows)
    what = METADATA, Reason.COLLECTED.value
    size = sum(file.bytes for file in files)
    return Counts(Counter({what: rows.num_rows}), Counter({what: size}), files=files)
