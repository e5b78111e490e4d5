"""Inventory against what is held, bucket by bucket, on the executors: the plan, and what it comes to."""

import hashlib
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from desilt.domain.reason import Reason, Verdict
from desilt.errors import CorruptTable
from desilt.frames.buckets import BUCKETS, HASH
from desilt.frames.folders import Flags, totals
from desilt.frames.hashing import address_hash
from desilt.frames.mark import ORDER, reasons
from desilt.frames.schemas import INVENTORY, PLAN
from desilt.frames.settled import below, settled
from desilt.objects import open_store
from desilt.objects.store import ObjectStore
from desilt.runs.plan import PlanFile
from desilt.sources.held import HeldFile, hashes, opened, put, rows_of

GOES = ORDER.index(Reason.UNREFERENCED)
FOR_GOOD = np.isin(ORDER, [Reason.COMMITTED, Reason.FOREIGN])  # by verdict: whether no later run changes it
SAID = {
    "verdict": Verdict.REMOVE.value,
    "reason": Reason.UNREFERENCED.value,
    "detail": "no commit, staging area or ticket holds it",
}
INVENTORY_ROWS = INVENTORY.insert(0, pa.field(HASH, pa.uint64()))


@dataclass(frozen=True, slots=True)
class Question:
    """Some buckets to be judged."""

    store: str
    buckets: range
    inventory: tuple[HeldFile, ...]
    held: Mapping[Reason, Sequence[HeldFile]]
    before: datetime
    copied_at: datetime | None  # what is younger stays, where a database was restored from a copy of then
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
    stored_objects: int = 0  # where a job counts them as it goes
    stored_bytes: int = 0
    files: tuple[PlanFile, ...] = ()
    pending: tuple[HeldFile, ...] = ()
    ranges: frozenset[str] = frozenset()  # that somebody ordered to be kept
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
            self.stored_objects + other.stored_objects,
            self.stored_bytes + other.stored_bytes,
            self.files + other.files,
            self.pending + other.pending,
            self.ranges | other.ranges,
            self.damaged | other.damaged,
        )


def questions(
    store: str,
    inventory: Sequence[HeldFile],
    held: Mapping[Reason, Sequence[HeldFile]],
    *,
    before: datetime,
    copied_at: datetime | None,
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
            copied_at,
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
    answer, plan, pending, passed = Answer(), [INVENTORY_ROWS.empty_table()], [], 0
    for number in question.buckets:
        known = {reason: hashes(files, number) for reason, files in held.items()}
        rows = stored(listed, number)
        if question.scope:
            mine = below(rows, question.scope)
            pending.append(rows.filter(pa.array(~mine)))
            passed += pending[-1].num_rows
            rows = rows.filter(pa.array(mine))
        found = reasons(rows, known, before=question.before, copied_at=question.copied_at)
        over = settled(rows, question.settled)
        count_kept(answer, rows, found, over)
        plan.append(rows.filter(pa.array(found == GOES)))
        pending.append(rows.filter(pa.array(over & ~FOR_GOOD[found] & (found != GOES))))
    gone = pa.concat_tables(plan).unify_dictionaries()
    count_gone(answer, gone)
    files = [write_plan(store, question.target, going(gone))]
    left = pa.concat_tables(pending).unify_dictionaries().combine_chunks()
    order = np.argsort(left[HASH].to_numpy(), kind="stable")
    again = [put(store, question.pending, left.take(pa.array(order)))] if left.num_rows else []
    return answer + Answer(passed=passed, files=tuple(files), pending=tuple(again))


def stored(listed: Sequence[tuple[HeldFile, pq.ParquetFile]], number: int) -> pa.Table:
    """All listed objects of a bucket: what is done once for all of them costs no more with many files than with one."""
    columns = INVENTORY_ROWS.names
    return pa.concat_tables(
        [INVENTORY_ROWS.empty_table(), *(rows_of(file, opened, number, columns) for file, opened in listed)]
    ).unify_dictionaries()


def write_plan(store: ObjectStore, key: str, rows: pa.Table) -> PlanFile:
    """Rows of a plan as a file that can be told from any other."""
    sink = io.BytesIO()
    pq.write_table(rows, sink, compression="zstd", use_dictionary=list(SAID), write_page_checksum=True)
    data = sink.getvalue()
    store.put(key, [data])
    return PlanFile(key, rows.num_rows, pc.sum(rows["size_bytes"]).as_py() or 0, hashlib.sha256(data).hexdigest())


def going(gone: pa.Table, said: Mapping[str, str] = SAID) -> pa.Table:
    """INVENTORY rows that go, as PLAN."""
    addresses = addresses_of(gone)
    if not np.array_equal(address_hash(addresses.combine_chunks()), gone[HASH].to_numpy()):
        raise CorruptTable("inventory", "an address is not the one that was listed")
    columns = [addresses, gone["size_bytes"], gone["modified_at"]]
    columns += [pa.repeat(text, gone.num_rows) for text in said.values()]
    return pa.table(columns, schema=PLAN)


def addresses_of(rows: pa.Table) -> pa.ChunkedArray:
    """The whole addresses of INVENTORY rows."""
    return pc.binary_join_element_wise(rows["folder"].cast(pa.string()), rows["name"], "")


def count_kept(answer: Answer, rows: pa.Table, found: npt.NDArray[np.int8], over: Flags) -> None:
    """Add to ``answer`` what stays, by reason, and what of it no later run need look at."""
    sizes = rows["size_bytes"].to_numpy()
    for place in np.flatnonzero(np.bincount(found)).tolist():
        if ORDER[place].verdict is Verdict.KEEP:
            mine = found == place
            answer.objects["", ORDER[place].value] += int(np.count_nonzero(mine))
            answer.bytes["", ORDER[place].value] += int((sizes * mine).sum())
    for total in totals(rows.select(["folder", "size_bytes"]).filter(pa.array(over & FOR_GOOD[found]))):
        answer.done_objects[total.branch] += total.objects
        answer.done_bytes[total.branch] += total.bytes


def count_gone(answer: Answer, gone: pa.Table, reason: Reason = Reason.UNREFERENCED) -> None:
    """Add what goes, by branch and partition."""
    for total in totals(gone):
        answer.objects[total.branch, reason.value] += total.objects
        answer.bytes[total.branch, reason.value] += total.bytes
        answer.prefix_objects[total.folder] += total.objects
        answer.prefix_bytes[total.folder] += total.bytes
