"""Entries against rules, bucket by bucket, on the executors: which objects go, and which wait.

An object goes when every entry of every commit that points to it is past its
cutoff on every branch that reaches it. Those of which only some are wait: they
are *deferred*, and looked at again by every run.
"""

import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from desilt.columns.breakdown import Breakdown, breakdown
from desilt.columns.buckets import HASH, Bucket, hashed, merged, without
from desilt.columns.files import Files, HeldFile, put
from desilt.columns.kernel import Judge
from desilt.columns.layout import Layout
from desilt.columns.rules import Terms
from desilt.columns.schemas import DIVIDER, HELD, MOMENT, PLAN
from desilt.columns.together import together
from desilt.domain.reason import Reason, Verdict
from desilt.jobs.rules.candidates import GOING, Contents, GroupedFile, Objects
from desilt.objects.store import ObjectStore
from desilt.runs import plan_files
from desilt.runs.steps import PlanFile

ADDRESSES = pa.schema(
    [
        ("run_id", pa.string()),
        ("address", pa.string()),
        ("paths", pa.list_(pa.string())),
        ("matched_rules", pa.list_(pa.string())),
    ]
)
"""One row per address that goes: under which paths it was known, and by which rules it goes."""


@dataclass(frozen=True, slots=True)
class RuleCounts:
    """So much stays and goes by the rules, and the files that say it row by row."""

    objects: Counter[tuple[str, str]] = field(default_factory=Counter)  # by rule (of what goes) and reason
    bytes: Counter[tuple[str, str]] = field(default_factory=Counter)
    prefix_objects: Counter[str] = field(default_factory=Counter)  # of what goes
    prefix_bytes: Counter[str] = field(default_factory=Counter)
    gone: Breakdown = field(default_factory=Breakdown)
    hold_objects: Counter[str] = field(default_factory=Counter)  # by the order of a person
    hold_bytes: Counter[str] = field(default_factory=Counter)
    stored_objects: int = 0
    stored_bytes: int = 0
    files: tuple[PlanFile, ...] = ()
    tables: tuple[str, ...] = ()  # files of ADDRESSES
    deferred: tuple[HeldFile, ...] = ()
    spared: tuple[HeldFile, ...] = ()

    def __add__(self, other: "RuleCounts") -> "RuleCounts":
        return RuleCounts(
            together(self.objects, other.objects),
            together(self.bytes, other.bytes),
            together(self.prefix_objects, other.prefix_objects),
            together(self.prefix_bytes, other.prefix_bytes),
            self.gone + other.gone,
            together(self.hold_objects, other.hold_objects),
            together(self.hold_bytes, other.hold_bytes),
            self.stored_objects + other.stored_objects,
            self.stored_bytes + other.stored_bytes,
            self.files + other.files,
            self.tables + other.tables,
            self.deferred + other.deferred,
            self.spared + other.spared,
        )


@dataclass(frozen=True, slots=True)
class RuleJudge(Judge[RuleCounts]):
    """Every candidate gets a verdict; those that go, and those that wait, are written down."""

    layout: Layout
    run: str
    now: datetime  # that ages are counted to
    entries: tuple[GroupedFile, ...]
    terms: Terms
    held: Mapping[Reason, Sequence[HeldFile]]  # whose objects stay, whatever the rules say
    again: tuple[HeldFile, ...]  # looked at again, whether a commit that is looked into has them or not
    removed: tuple[HeldFile, ...]  # that earlier runs have removed
    restored: tuple[HeldFile, ...]  # and that are there after all
    folder: str
    taken: tuple[HeldFile, ...] = ()  # besides, as if a run had removed them
    told: bool = True  # whether what goes is written down for others to read, and what waits for the next run
    marked: tuple[HeldFile, ...] = ()  # by earlier runs, and about to be removed: unless somebody ordered it to be kept

    def inputs(self) -> Iterator[Sequence[HeldFile]]:
        yield [one.file for one in self.entries]
        yield from (self.again, self.removed, self.taken, self.marked)
        yield from self.held.values()

    def judge(self, files: Files, buckets: Sequence[Bucket]) -> RuleCounts:
        counts, going, waiting = RuleCounts(), [GOING.empty_table()], [pa.array([], pa.string())]
        spared = [np.zeros(0, np.uint64)]
        for bucket in buckets:
            gone = without(files.hashes(self.removed, bucket), files.hashes(self.restored, bucket))
            gone = merged(gone, files.hashes(self.taken, bucket))
            contents = Contents(files, self.entries, bucket, self.terms, self.layout)
            there = contents.stored(gone)
            counts += RuleCounts(stored_objects=there[0], stored_bytes=there[1])
            wanted = merged(contents.candidates(), files.hashes(self.again, bucket))
            objects = contents.objects(without(wanted, gone))
            for reason, held in self.held.items():
                objects.hold(reason, files.hashes(held, bucket))
            going.append(objects.going())
            waiting.append(objects.waiting())
            count_kept(counts, objects)
            if self.marked:
                spared.append(contents.objects(files.hashes(self.marked, bucket)).ordered())
        gone_rows = pa.concat_tables(going)
        count_gone(counts, gone_rows)
        name = f"part-{buckets[0].number:05d}.parquet"
        kept = np.concatenate(spared)
        if len(kept):
            file = put(files.store, f"{self.folder}spared/{name}", pa.table({HASH: kept}))
            counts += RuleCounts(spared=(file,))
        return counts + self._written(files.store, name, gone_rows, pa.concat_arrays(waiting))

    def _written(self, store: ObjectStore, name: str, gone: pa.Table, waiting: pa.Array) -> RuleCounts:
        told = pc.binary_join_element_wise(
            pc.binary_join(gone["rules"], ", "), pc.binary_join(gone["paths"], DIVIDER), DIVIDER
        )
        said = [pa.repeat(text, gone.num_rows) for text in (Verdict.REMOVE.value, Reason.EXPIRED.value)]
        times = gone["created_at"].cast(MOMENT)
        plan = pa.table([gone["address"], gone["size_bytes"], times, *said, told], schema=PLAN)
        files = plan_files.write(store, f"{self.folder}plan/{name}", plan)
        gone_by = breakdown(plan, self.layout, self.now)
        if not self.told:
            return RuleCounts(gone=gone_by, files=files)
        runs = pa.repeat(self.run, gone.num_rows)
        table = pa.table([runs, gone["address"], gone["paths"], gone["rules"]], schema=ADDRESSES)
        sink = io.BytesIO()
        pq.write_table(table, sink, compression="zstd")
        store.put(f"{self.folder}addresses/{name}", [sink.getvalue()])
        deferred = []
        if len(waiting):
            held = pa.table([waiting, np.zeros(len(waiting), np.int32)], schema=HELD)
            deferred = [put(store, f"{self.folder}deferred/{name}", hashed(held))]
        return RuleCounts(
            gone=gone_by, files=files, tables=(f"{self.folder}addresses/{name}",), deferred=tuple(deferred)
        )


def count_kept(counts: RuleCounts, objects: Objects) -> None:
    """Add what some branch would release by date, and what stays for which reason."""
    for reason, count, size in objects.kept():
        counts.objects["", reason] += count
        counts.bytes["", reason] += size
    for name, count, size in objects.held():
        counts.hold_objects[name] += count
        counts.hold_bytes[name] += size


def count_gone(counts: RuleCounts, gone: pa.Table) -> None:
    """Add what goes, by the first of its rules, and by the folder of its path."""
    first = pc.list_element(gone["rules"], 0) if gone.num_rows else gone["address"]
    folders = pc.replace_substring_regex(gone["folder"], "/?[^/]*$", "")
    sized = pa.table({"rule": first, "folder": folders, "size": gone["size_bytes"]})
    sums = [("size", "count"), ("size", "sum")]
    for row in sized.group_by("rule").aggregate(sums).to_pylist():
        counts.objects[row["rule"], Reason.EXPIRED.value] += row["size_count"]
        counts.bytes[row["rule"], Reason.EXPIRED.value] += row["size_sum"]
    for row in sized.group_by("folder").aggregate(sums).to_pylist():
        counts.prefix_objects[row["folder"]] += row["size_count"]
        counts.prefix_bytes[row["folder"]] += row["size_sum"]
