"""What dead commits had against what is held, bucket by bucket, on the executors; and tables that no commit has."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from desilt.domain.address import TABLE
from desilt.domain.reason import Reason, Verdict
from desilt.errors import CorruptTable
from desilt.frames.buckets import BUCKETS, HASH, present
from desilt.frames.hashing import Hashes
from desilt.frames.mark import reasons
from desilt.frames.schemas import MOMENT, PLAN
from desilt.jobs.judging import GOES, INVENTORY_ROWS, Answer, count_gone, count_kept, going, write_plan
from desilt.lake.ranges import FOLDER
from desilt.objects import open_store
from desilt.objects.store import ObjectStore
from desilt.runs.report import Amount
from desilt.sources.held import HeldFile, among, hashes, opened, rows_of
from desilt.sources.inventory import inventory_rows

METADATA = "metadata"
SAID = {
    "verdict": Verdict.REMOVE.value,
    "reason": Reason.COLLECTED.value,
    "detail": "only commits that nothing reaches had it",
}
SAID_OF_TABLES = {**SAID, "detail": "no commit that anything reaches has it"}
COLUMNS = [HASH, "owner", "address", "size_bytes", "created_at"]
File = tuple[HeldFile, pq.ParquetFile]


@dataclass(frozen=True, slots=True)
class Question:
    """Some buckets to be judged."""

    store: str
    buckets: range
    dead: tuple[HeldFile, ...]  # what commits had that go
    held: Mapping[Reason, Sequence[HeldFile]]
    removed: tuple[HeldFile, ...]  # that earlier runs have removed
    restored: tuple[HeldFile, ...]  # and that are there after all
    before: datetime
    folder: str


def cut(question: Question, width: int) -> list[Question]:
    """The same over all buckets, in about ``width`` questions; none where no commit goes."""
    size = max(1, BUCKETS // width)
    starts = range(0, BUCKETS, size) if question.dead else ()
    return [replace(question, buckets=range(at, min(at + size, BUCKETS))) for at in starts]


def judge(question: Question) -> Answer:
    """Every object that a dead commit had gets a verdict; those that go are written down."""
    try:
        return _judge(question)
    except CorruptTable as error:
        return Answer(damaged=frozenset([error.name]))


def _judge(question: Question) -> Answer:
    store = open_store(question.store)

    def open_all(files: Sequence[HeldFile]) -> list[File]:
        return [(file, opened(store, file)) for file in files]

    dead, removed, restored = map(open_all, (question.dead, question.removed, question.restored))
    held = {reason: open_all(files) for reason, files in question.held.items()}
    answer, plan = Answer(), [INVENTORY_ROWS.empty_table()]
    for number in question.buckets:
        gone = np.setdiff1d(hashes(removed, number), hashes(restored, number))
        rows = objects(dead, number, gone)
        found = reasons(rows, {reason: hashes(files, number) for reason, files in held.items()}, before=question.before)
        count_kept(answer, rows, found, np.zeros(len(found), np.bool_))
        plan.append(rows.filter(pa.array(found == GOES)))
        answer += stored([*dead, *held[Reason.COMMITTED]], number, gone)
    rows = pa.concat_tables(plan).unify_dictionaries()
    count_gone(answer, rows, Reason.COLLECTED)
    target = f"{question.folder}plan/part-{question.buckets.start:05d}.parquet"
    return answer + Answer(files=(write_plan(store, target, going(rows, SAID)),))


def objects(files: Sequence[File], number: int, gone: Hashes) -> pa.Table:
    """The objects of a bucket that ``files`` point to and that are there, each once, by its youngest entry."""
    tables = [INVENTORY_ROWS.empty_table()]
    for held, file in files:
        rows = rows_of(held, file, number, COLUMNS)
        rows = rows.filter(pa.array(among(rows["owner"].to_numpy(), held.owners or frozenset())))
        listed = inventory_rows(*(rows[name].combine_chunks() for name in ("address", "size_bytes", "created_at")))
        tables.append(listed.add_column(0, HASH, rows[HASH]))
    every = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
    times = pc.fill_null(every["modified_at"].cast(pa.int64()), np.iinfo(np.int64).max).to_numpy()
    order = np.lexsort((-times, every[HASH].to_numpy()))
    sorted_hashes = every[HASH].to_numpy()[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = sorted_hashes[1:] != sorted_hashes[:-1]
    first &= ~present(sorted_hashes, gone)
    return every.take(pa.array(order[first]))


def stored(files: Sequence[File], number: int, gone: Hashes) -> Answer:
    """How much there is in a bucket, all commits together."""
    parts, sizes = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
    for held, file in files:
        rows = rows_of(held, file, number, [HASH, "owner", "size_bytes"])
        mine = among(rows["owner"].to_numpy(), held.owners or frozenset())
        parts.append(rows[HASH].to_numpy()[mine])
        sizes.append(rows["size_bytes"].to_numpy()[mine])
    known, first = np.unique(np.concatenate(parts), return_index=True)
    there = ~present(known, gone)
    return Answer(stored_objects=int(there.sum()), stored_bytes=int(np.concatenate(sizes)[first][there].sum()))


def tables(store: ObjectStore, prefix: str, live: Set[str], before: datetime) -> tuple[pa.Table, Amount]:
    """The ranges and metaranges from before ``before`` that no live commit has, as PLAN; and how many there are."""
    found, stored = [PLAN.empty_table()], Amount()
    for batch in store.list(prefix + FOLDER):
        names = [key.removeprefix(prefix) for key in batch["key"].to_pylist()]
        dead = [re.fullmatch(TABLE, name) is not None and name.removeprefix(FOLDER) not in live for name in names]
        times = batch["modified_at"].cast(MOMENT)
        old = pc.fill_null(pc.less(times, pa.scalar(before, MOMENT)), False)
        mine = pc.and_(pa.array(dead, pa.bool_()), old)
        columns = [pa.array(names, pa.string()), batch["size_bytes"], times]
        columns += [pa.repeat(text, len(names)) for text in SAID_OF_TABLES.values()]
        found.append(pa.table(columns, schema=PLAN).filter(mine))
        stored += Amount(len(names), pc.sum(batch["size_bytes"]).as_py() or 0)
    return pa.concat_tables(found).combine_chunks(), stored


def write_tables(store: ObjectStore, key: str, rows: pa.Table) -> Answer:
    """Tables that go, as a part of the plan."""
    if not rows.num_rows:
        return Answer()
    file = replace(write_plan(store, key, rows), tables=True)
    what = METADATA, Reason.COLLECTED.value
    return Answer(Counter({what: file.rows}), Counter({what: file.bytes}), files=(file,))
