"""Committed entries against rules, bucket by bucket, on the executors: which objects go, and which wait.

An object goes when every entry of every commit that points to it is past its
cutoff on every branch that reaches it. Those of which only some are wait: they
are *deferred*, and looked at again by every run.
"""

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from desilt.domain.reason import Reason, Verdict
from desilt.errors import CorruptTable
from desilt.frames.buckets import BUCKETS, hashed, present
from desilt.frames.rules import Terms
from desilt.frames.schemas import HELD, MOMENT, PLAN
from desilt.jobs.candidates import GOING, Bucket, Entries, Objects
from desilt.jobs.judging import write_plan
from desilt.objects import open_store
from desilt.objects.store import ObjectStore
from desilt.runs.plan import PlanFile
from desilt.sources.held import HeldFile, hashes, opened, put

NUL = "\0"

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
class Question:
    """Some buckets to be judged."""

    store: str
    run: str
    buckets: range
    entries: tuple[Entries, ...]
    terms: Terms
    held: Mapping[Reason, Sequence[HeldFile]]  # whose objects stay, whatever the rules say
    again: tuple[HeldFile, ...]  # looked at again, whether a commit that is looked into has them or not
    removed: tuple[HeldFile, ...]  # that earlier runs have removed
    restored: tuple[HeldFile, ...]  # and that are there after all
    folder: str
    taken: tuple[HeldFile, ...] = ()  # besides, as if a run had removed them


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of them."""

    objects: Counter[tuple[str, str]] = field(default_factory=Counter)  # by rule (of what goes) and reason
    bytes: Counter[tuple[str, str]] = field(default_factory=Counter)
    prefix_objects: Counter[str] = field(default_factory=Counter)  # of what goes
    prefix_bytes: Counter[str] = field(default_factory=Counter)
    hold_objects: Counter[str] = field(default_factory=Counter)  # by the order of a person
    hold_bytes: Counter[str] = field(default_factory=Counter)
    stored_objects: int = 0
    stored_bytes: int = 0
    files: tuple[PlanFile, ...] = ()
    tables: tuple[str, ...] = ()  # files of ADDRESSES
    deferred: tuple[HeldFile, ...] = ()
    damaged: frozenset[str] = frozenset()

    def __add__(self, other: "Answer") -> "Answer":
        return Answer(
            self.objects + other.objects,
            self.bytes + other.bytes,
            self.prefix_objects + other.prefix_objects,
            self.prefix_bytes + other.prefix_bytes,
            self.hold_objects + other.hold_objects,
            self.hold_bytes + other.hold_bytes,
            self.stored_objects + other.stored_objects,
            self.stored_bytes + other.stored_bytes,
            self.files + other.files,
            self.tables + other.tables,
            self.deferred + other.deferred,
            self.damaged | other.damaged,
        )


def cut(question: Question, width: int) -> list[Question]:
    """The same over all buckets, in about ``width`` questions."""
    size = max(1, BUCKETS // width)
    return [replace(question, buckets=range(at, min(at + size, BUCKETS))) for at in range(0, BUCKETS, size)]


def judge(question: Question) -> Answer:
    """Every candidate of these buckets gets a verdict; those that go, and those that wait, are written down."""
    try:
        return _judge(question)
    except CorruptTable as error:
        return Answer(damaged=frozenset([error.name]))


def _judge(question: Question) -> Answer:
    store = open_store(question.store)
    files = [(one, opened(store, one.file)) for one in question.entries]
    sets = {reason: _open(store, some) for reason, some in question.held.items()}
    again, removed, restored, taken = (
        _open(store, some) for some in (question.again, question.removed, question.restored, question.taken)
    )
    answer, going, waiting = Answer(), [GOING.empty_table()], [pa.array([], pa.string())]
    for number in question.buckets:
        gone = np.setdiff1d(hashes(removed, number), hashes(restored, number))
        gone = np.union1d(gone, hashes(taken, number))
        bucket = Bucket(files, number, question.terms)
        there = bucket.stored(gone)
        answer += Answer(stored_objects=there[0], stored_bytes=there[1])
        wanted = np.union1d(bucket.candidates(), hashes(again, number))
        objects = bucket.objects(wanted[~present(wanted, gone)])
        for reason, held in sets.items():
            objects.hold(reason, hashes(held, number))
        going.append(objects.going())
        waiting.append(objects.waiting())
        count_kept(answer, objects)
    gone_rows = pa.concat_tables(going)
    count_gone(answer, gone_rows)
    return answer + _written(store, question, gone_rows, pa.concat_arrays(waiting))


def _open(store: ObjectStore, files: Sequence[HeldFile]) -> list[tuple[HeldFile, pq.ParquetFile]]:
    return [(file, opened(store, file)) for file in files]


def count_kept(answer: Answer, objects: Objects) -> None:
    """Add what some branch would let go by date, and what stays for which reason."""
    for reason, count, size in objects.kept():
        answer.objects["", reason] += count
        answer.bytes["", reason] += size
    for name, count, size in objects.held():
        answer.hold_objects[name] += count
        answer.hold_bytes[name] += size


def count_gone(answer: Answer, gone: pa.Table) -> None:
    """Add what goes, by the first of its rules, and by the folder of its path."""
    first = pc.list_element(gone["rules"], 0) if gone.num_rows else gone["address"]
    folders = pc.replace_substring_regex(gone["folder"], "/?[^/]*$", "")
    sized = pa.table({"rule": first, "folder": folders, "size": gone["size_bytes"]})
    sums = [("size", "count"), ("size", "sum")]
    for row in sized.group_by("rule").aggregate(sums).to_pylist():
        answer.objects[row["rule"], Reason.EXPIRED.value] += row["size_count"]
        answer.bytes[row["rule"], Reason.EXPIRED.value] += row["size_sum"]
    for row in sized.group_by("folder").aggregate(sums).to_pylist():
        answer.prefix_objects[row["folder"]] += row["size_count"]
        answer.prefix_bytes[row["folder"]] += row["size_sum"]


def _written(store: ObjectStore, question: Question, gone: pa.Table, waiting: pa.Array) -> Answer:
    name = f"part-{question.buckets.start:05d}.parquet"
    # rules, then paths; divided by what none of them holds as it is shown
    told = pc.binary_join_element_wise(pc.binary_join(gone["rules"], ", "), pc.binary_join(gone["paths"], NUL), NUL)
    said = [pa.repeat(text, gone.num_rows) for text in (Verdict.REMOVE.value, Reason.EXPIRED.value)]
    plan = pa.table([gone["address"], gone["size_bytes"], gone["created_at"].cast(MOMENT), *said, told], schema=PLAN)
    file = write_plan(store, f"{question.folder}plan/{name}", plan)
    runs = pa.repeat(question.run, gone.num_rows)
    table = pa.table([runs, gone["address"], gone["paths"], gone["rules"]], schema=ADDRESSES)
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    store.put(f"{question.folder}addresses/{name}", [sink.getvalue()])
    deferred = []
    if len(waiting):
        held = pa.table([waiting, np.zeros(len(waiting), np.int32)], schema=HELD)
        deferred = [put(store, f"{question.folder}deferred/{name}", hashed(held))]
    return Answer(files=(file,), tables=(f"{question.folder}addresses/{name}",), deferred=tuple(deferred))
