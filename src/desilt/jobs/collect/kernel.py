"""What dead commits had against what is held, bucket by bucket, on the executors; and tables that no commit has."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from desilt.columns.breakdown import breakdown
from desilt.columns.buckets import HASH, Bucket, present, without
from desilt.columns.files import NOBODY, Files, HeldFile
from desilt.columns.hashing import Hashes
from desilt.columns.kernel import Judge
from desilt.columns.layout import Layout
from desilt.columns.mark import reasons
from desilt.columns.merged import Merged
from desilt.columns.paths import shown
from desilt.columns.rules import starts
from desilt.columns.runs import Runs, distinct_texts
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
DEAD, LIVE = 0, 1  # sides


@dataclass(frozen=True, slots=True)
class OwnedFile:
    """A file of the range cache: which of its owners live commits have, and which only dead ones."""

    file: HeldFile
    owners: int  # that it has, those too that no commit has any more
    live: frozenset[int]
    dead: Mapping[int, str]  # the ranges' names

    @property
    def sides(self) -> npt.NDArray[np.int8]:
        """For each owner whose it is."""
        found = np.full(self.owners, NOBODY, np.int8)
        found[list(self.dead)] = DEAD
        found[list(self.live)] = LIVE
        return found


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
        counts, plan = Counts(), [INVENTORY_ROWS.empty_table()]
        addresses, paths = [pa.array([], pa.string())], [pa.array([], pa.string())]
        for bucket in buckets:
            sides = self.sides(files, bucket)
            counts += sides.counted()
            known = {reason: files.hashes(some, bucket) for reason, some in self.held.items()}
            rows, called = sides.lone()
            found = reasons(rows, known, layout=self.layout, before=self.before)
            count_kept(counts, rows, found, np.zeros(len(found), np.bool_), self.layout)
            goes = pa.array(found == GOES)
            plan.append(rows.filter(goes))
            addresses.append(called.filter(goes))
            paths.append(sides.paths(plan[-1][HASH].to_numpy()))
        rows = pa.concat_tables(plan).unify_dictionaries().combine_chunks()
        uploaded = count_gone(counts, rows, self.layout, Reason.COLLECTED)
        plan_rows = going(rows, SAID, pa.concat_arrays(addresses))
        details = pc.binary_join_element_wise(plan_rows["reason"], pa.concat_arrays(paths), DIVIDER)
        plan_rows = plan_rows.set_column(plan_rows.schema.get_field_index("detail"), PLAN.field("detail"), details)
        written = plan_files.write(files.store, f"{self.folder}plan/part-{buckets[0].number:05d}.parquet", plan_rows)
        return counts + Counts(gone=breakdown(plan_rows, self.layout, self.now, uploaded), files=written)

    def sides(self, files: Files, bucket: Bucket) -> "Sides":
        """What commits have in one bucket, and is there."""
        gone = without(files.hashes(self.removed, bucket), files.hashes(self.restored, bucket))
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
        self._entries = entries
        self._rows = Merged(files, [one.file for one in entries], [one.sides for one in entries], bucket)
        self._there = ~present(self._rows.known, gone)
        live = self._rows.labels == LIVE
        self._live, self._dead = self._rows.runs.any(live), self._rows.runs.any(~live)
        self._sized = self._rows.runs.first(live)  # where it is told how large each object is: by live ones, if any
        self._lone = self._there & ~self._live

    def counted(self) -> Counts:
        """What there is, all commits together; and what of the dead ones' objects live ones keep."""
        sizes = self._rows.sizes[self._sized]
        kept = self._there & self._live & self._dead
        what = "", Reason.COMMITTED.value
        there = int(np.count_nonzero(self._there))
        counts = Counts(stored_objects=there, stored_bytes=int(sizes[self._there].sum()))
        if kept.any():
            counts.objects[what] += int(np.count_nonzero(kept))
            counts.bytes[what] += int(sizes[kept].sum())
        return counts

    def lone(self) -> tuple[pa.Table, pa.Array]:
        """The objects that only dead commits have, each once, by its youngest entry; and their addresses."""
        rows = np.flatnonzero(self._rows.runs.rows_of(self._lone))
        if not len(rows):
            return INVENTORY_ROWS.empty_table(), pa.array([], pa.string())
        self._rows.read(rows, ["address", "created_at"])
        times = self._rows.texts(rows, ["created_at"])["created_at"].combine_chunks()
        first = _youngest(times, self._rows.runs.within(self._rows.runs.rows_of(self._lone)))
        rows, times = rows[first], times.take(pa.array(first))
        addresses = self._rows.texts(rows, ["address"])["address"].combine_chunks()
        known = inventory_rows(addresses, pa.array(self._rows.sizes[rows]), times)
        return known.add_column(0, HASH, pa.array(self._rows.hashes[rows])), addresses

    def paths(self, wanted: Hashes) -> pa.Array:
        """Under which paths dead commits have each of some lone objects (sorted), divided by :data:`DIVIDER`."""
        mine = self._rows.runs.rows_of(self._lone & present(self._rows.known, wanted))
        rows = np.flatnonzero(mine)
        if not len(rows):
            return pa.array([], pa.string())
        texts = self._rows.texts(rows, ["path"])["path"].combine_chunks()
        every = distinct_texts(texts, self._rows.runs.within(mine))
        return pc.binary_join(pa.ListArray.from_arrays(every.offsets, shown(every.values)), DIVIDER)

    def ranges_below(self, prefixes: tuple[str, ...]) -> set[str]:
        """The ranges with entries below ``prefixes`` on objects that only dead commits have."""
        rows = np.flatnonzero(self._rows.runs.rows_of(self._lone))
        if not len(rows):
            return set()
        held = rows[starts(self._rows.texts(rows, ["path"])["path"].combine_chunks(), prefixes)]
        return {self._entries[file].dead[owner] for file, owner in self._rows.owners(held)}


def _youngest(times: pa.Array, of: Runs) -> npt.NDArray[np.int64]:
    """Of each run the place of its youngest row; a row without a time is young for ever."""
    seconds = pc.fill_null(times.cast(pa.int64()), np.iinfo(np.int64).max).to_numpy()
    return of.first(seconds == np.repeat(of.most(seconds), of.lengths))


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
