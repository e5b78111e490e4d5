"""Inventory against what is held, bucket by bucket, on the executors: the plan, and what it comes to."""

import hashlib
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from desilt.domain.reason import Reason, Verdict
from desilt.errors import CorruptTable
from desilt.frames.buckets import BUCKETS, HASH
from desilt.frames.hashing import address_hash
from desilt.frames.mark import ORDER, reasons
from desilt.frames.schemas import PLAN
from desilt.frames.settled import Flags, below, branches_of, settled
from desilt.objects import open_store
from desilt.objects.store import ObjectStore
from desilt.runs.plan import PlanFile
from desilt.sources.held import HeldFile, hashes, opened, put, rows_of

GOES = ORDER.index(Reason.UNREFERENCED)
FOR_GOOD = [ORDER.index(Reason.COMMITTED), ORDER.index(Reason.FOREIGN)]  # verdicts that no later run changes


@dataclass(frozen=True, slots=True)
class Question:
    """Some buckets to be judged."""

    store: str
    buckets: range
    inventory: tuple[HeldFile, ...]
    held: Mapping[Reason, Sequence[HeldFile]]
    before: datetime
    scope: str  # addresses that do not begin so are not judged, and pass on to the next run
    settled: Mapping[str, str]  # by branch: from which partition on nothing new appears
    target: str  # a part of the plan
    pending: str  # and of what the next run looks at again, where nothing new appears


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of them; objects and bytes are counted side by side."""

    objects: Counter[tuple[str, str]] = field(default_factory=Counter)  # by branch uid (of what goes) and reason
    bytes: Counter[tuple[str, str]] = field(default_factory=Counter)
    prefix_objects: Counter[str] = field(default_factory=Counter)  # of what goes
    prefix_bytes: Counter[str] = field(default_factory=Counter)
    done_objects: Counter[str] = field(default_factory=Counter)  # by branch: settled, and kept for good
    done_bytes: Counter[str] = field(default_factory=Counter)
    passed: int = 0  # out of scope
    files: tuple[PlanFile, ...] = ()
    pending: tuple[HeldFile, ...] = ()
    damaged: frozenset[str] = frozenset()  # files that could not be read: then nothing else here counts

    def __add__(self, other: "Answer") -> "Answer":
        return Answer(
            self.objects + other.objects,
            self.bytes + other.bytes,
            self.prefix_objects + other.prefix_objects,
            self.prefix_bytes + other.prefix_bytes,
            self.done_objects + other.done_objects,
            self.done_bytes + other.done_bytes,
            self.passed + other.passed,
            self.files + other.files,
            self.pending + other.pending,
            self.damaged | other.damaged,
        )


def questions(
    store: str,
    inventory: Sequence[HeldFile],
    held: Mapping[Reason, Sequence[HeldFile]],
    *,
    before: datetime,
    folder: str,
    width: int,
    scope: str = "",
    settled: Mapping[str, str] | None = None,
) -> list[Question]:
    """All buckets, in about ``width`` questions: each opens every file once."""
    size = max(1, BUCKETS // width)
    return [
        Question(
            store,
            range(first, min(first + size, BUCKETS)),
            tuple(inventory),
            held,
            before,
            scope,
            settled or {},
            f"{folder}plan/part-{first:05d}.parquet",
            f"{folder}pending/part-{first:05d}.parquet",
        )
        for first in range(0, BUCKETS, size)
    ]


def judge(question: Question) -> Answer:
    """Every object of these buckets gets a verdict; those that go are written down."""
    try:
        return _judge(question)
    except CorruptTable as error:
        return Answer(damaged=frozenset([error.name]))


def _judge(question: Question) -> Answer:
    store = open_store(question.store)
    listed = [(file, opened(store, file)) for file in question.inventory]
    held = {reason: [(file, opened(store, file)) for file in files] for reason, files in question.held.items()}
    answer, plan, pending = Answer(), [PLAN.empty_table()], []
    for number in question.buckets:
        known = {reason: hashes(files, number) for reason, files in held.items()}
        for file, open_file in listed:
            rows = rows_of(file, open_file, number, open_file.schema_arrow.names)
            mine = below(rows, question.scope)
            if not mine.all():
                pending.append(rows.filter(pa.array(~mine)))
                answer += Answer(passed=pending[-1].num_rows)
                rows = rows.filter(pa.array(mine))
            found = reasons(rows, known, before=question.before)
            over = settled(rows, question.settled)
            for_good = np.isin(found, FOR_GOOD)
            answer += counted(rows, found) + done(rows, over & for_good)
            plan.append(going(rows, found))
            pending.append(rows.filter(pa.array(over & ~for_good & (found != GOES))))
    files = [write_plan(store, question.target, pa.concat_tables(plan))]
    left = pa.concat_tables(pending).unify_dictionaries().combine_chunks()
    again = [put(store, question.pending, left.sort_by(HASH))] if left.num_rows else []
    return answer + Answer(files=tuple(files), pending=tuple(again))


def write_plan(store: ObjectStore, key: str, rows: pa.Table) -> PlanFile:
    """Rows of a plan as a file that can be told from any other."""
    sink = io.BytesIO()
    pq.write_table(rows, sink, compression="zstd", write_page_checksum=True)
    data = sink.getvalue()
    store.put(key, [data])
    return PlanFile(key, rows.num_rows, pc.sum(rows["size_bytes"]).as_py() or 0, hashlib.sha256(data).hexdigest())


def going(rows: pa.Table, found: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Table:
    """The rows that go, as PLAN."""
    gone = rows.filter(pa.array(found == GOES))
    addresses = addresses_of(gone)
    if not np.array_equal(address_hash(addresses.combine_chunks()), gone[HASH].to_numpy()):
        raise CorruptTable("inventory", "an address is not the one that was listed")
    said = [Verdict.REMOVE.value, Reason.UNREFERENCED.value, "no commit, staging area or ticket holds it"]
    columns = [addresses, gone["size_bytes"], gone["modified_at"]]
    columns += [pa.array([text], pa.string()).take(pa.array(np.zeros(gone.num_rows, np.int64))) for text in said]
    return pa.table(columns, schema=PLAN)


def addresses_of(rows: pa.Table) -> pa.ChunkedArray:
    """The whole addresses of INVENTORY rows."""
    return pc.binary_join_element_wise(rows["folder"].cast(pa.string()), rows["name"], "")


def counted(rows: pa.Table, found: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Answer:
    """How much of what stays and goes: by reason, and what goes by branch and partition too."""
    sizes = rows["size_bytes"].to_numpy()
    answer = Answer()
    for place, reason in enumerate(ORDER):
        mine = found == place
        if reason.verdict is Verdict.KEEP and mine.any():
            answer.objects["", reason.value] += int(mine.sum())
            answer.bytes["", reason.value] += int(sizes[mine].sum())
    gone = rows.filter(pa.array(found == GOES))
    table = gone.select(["folder", "size_bytes"]).group_by("folder")
    for row in table.aggregate([("size_bytes", "sum"), ("size_bytes", "count")]).to_pylist():
        parts = row["folder"].split("/")
        branch = parts[1] if len(parts) > 2 else ""
        answer.objects[branch, Reason.UNREFERENCED.value] += row["size_bytes_count"]
        answer.bytes[branch, Reason.UNREFERENCED.value] += row["size_bytes_sum"]
        answer.prefix_objects[row["folder"]] += row["size_bytes_count"]
        answer.prefix_bytes[row["folder"]] += row["size_bytes_sum"]
    return answer


def done(rows: pa.Table, over: Flags) -> Answer:
    """What no later run need look at, by branch."""
    answer = Answer()
    sizes = rows["size_bytes"].to_numpy()
    for branch, mine in branches_of(rows, over):
        answer.done_objects[branch] += len(mine)
        answer.done_bytes[branch] += int(sizes[mine].sum())
    return answer
