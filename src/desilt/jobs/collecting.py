"""What dead commits had against what is held, bucket by bucket, on the executors; and tables that no commit has."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from desilt.domain.address import is_table
from desilt.domain.reason import Reason, Verdict
from desilt.errors import CorruptTable
from desilt.frames.buckets import BUCKETS, HASH, present
from desilt.frames.folders import Flags
from desilt.frames.hashing import Hashes
from desilt.frames.mark import reasons
from desilt.frames.rules import starts
from desilt.frames.schemas import MOMENT, PLAN
from desilt.jobs.judging import GOES, INVENTORY_ROWS, Answer, count_gone, count_kept, going, write_plan
from desilt.lake.ranges import FOLDER
from desilt.objects import open_store
from desilt.objects.store import ObjectStore
from desilt.sources.held import HeldFile, among, hashes, opened, rows_of
from desilt.sources.inventory import inventory_rows

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
class Entries:
    """A file of the range cache: which of its owners live commits have, and which only dead ones."""

    file: HeldFile
    live: frozenset[int]
    dead: Mapping[int, str]  # the ranges' names


@dataclass(frozen=True, slots=True)
class Question:
    """Some buckets to be judged."""

    store: str
    held: Mapping[Reason, Sequence[HeldFile]]  # by something else than commits
    before: datetime
    folder: str
    restored: tuple[HeldFile, ...]  # that earlier runs have removed, and that are there after all
    removed: tuple[HeldFile, ...] = ()  # that earlier runs have removed
    entries: tuple[Entries, ...] = ()
    buckets: range = range(0)
    prefixes: tuple[str, ...] = ()  # of paths, that people ordered to be held


def cut(question: Question, width: int) -> list[Question]:
    """The same over all buckets, in about ``width`` questions; none where no commit goes."""
    size = max(1, BUCKETS // width)
    starts = range(0, BUCKETS, size) if question.entries else ()
    return [replace(question, buckets=range(at, min(at + size, BUCKETS))) for at in starts]


def judge(question: Question) -> Answer:
    """Every object that a dead commit had gets a verdict; those that go are written down."""
    return _sound(_judge, question)


def ordered(question: Question) -> Answer:
    """The ranges of dead commits with something below a held prefix that only dead commits have."""
    return _sound(_ordered, question)


def _sound(work: Callable[[Question], Answer], question: Question) -> Answer:
    try:
        return work(question)
    except CorruptTable as error:
        return Answer(damaged=frozenset([error.name]))


def _ordered(question: Question) -> Answer:
    return Answer(ranges=frozenset(name for one in _buckets(question) for name in one.ranges_below(question.prefixes)))


def _judge(question: Question) -> Answer:
    store = open_store(question.store)
    held = {reason: [(file, opened(store, file)) for file in files] for reason, files in question.held.items()}
    answer, plan = Answer(), [INVENTORY_ROWS.empty_table()]
    for bucket in _buckets(question):
        answer += bucket.counted()
        rows, known = bucket.lone(), {reason: hashes(files, bucket.number) for reason, files in held.items()}
        found = reasons(rows, known, before=question.before)
        count_kept(answer, rows, found, np.zeros(len(found), np.bool_))
        plan.append(rows.filter(pa.array(found == GOES)))
    rows = pa.concat_tables(plan).unify_dictionaries()
    count_gone(answer, rows, Reason.COLLECTED)
    target = f"{question.folder}plan/part-{question.buckets.start:05d}.parquet"
    return answer + Answer(files=(write_plan(store, target, going(rows, SAID)),))


def _buckets(question: Question) -> Iterator["Bucket"]:
    store = open_store(question.store)
    entries = [(one, opened(store, one.file)) for one in question.entries]
    removed = [(file, opened(store, file)) for file in question.removed]
    restored = [(file, opened(store, file)) for file in question.restored]
    for number in question.buckets:
        yield Bucket(entries, number, np.setdiff1d(hashes(removed, number), hashes(restored, number)))


class Bucket:
    """The entries of one bucket, from all files, but for objects that are ``gone``; texts are read where needed."""

    def __init__(self, files: Sequence[tuple[Entries, pq.ParquetFile]], number: int, gone: Hashes) -> None:
        self._files, self.number = files, number
        self._rows = [rows_of(one.file, file, number, NUMBERS) for one, file in files]
        self._live = self._flagged(lambda one: one.live, gone)
        self._dead = self._flagged(lambda one: one.dead.keys(), gone)

    def counted(self) -> Answer:
        """What there is, all commits together; and what of the dead ones' objects live ones keep."""
        every, first = np.unique(self._hashes([self._live, self._dead]), return_index=True)
        sizes = self._sizes([self._live, self._dead])[first]
        kept = present(every, np.unique(self._hashes([self._live]))) & present(
            every, np.unique(self._hashes([self._dead]))
        )
        what = "", Reason.COMMITTED.value
        answer = Answer(stored_objects=len(every), stored_bytes=int(sizes.sum()))
        if kept.any():
            answer.objects[what] += int(kept.sum())
            answer.bytes[what] += int(sizes[kept].sum())
        return answer

    def lone(self) -> pa.Table:
        """The objects that only dead commits have, each once, by its youngest entry."""
        wanted = np.setdiff1d(self._hashes([self._dead]), self._hashes([self._live]))
        tables = [INVENTORY_ROWS.empty_table()]
        for rows, dead, (one, file) in zip(self._rows, self._dead, self._files, strict=True):
            places = np.flatnonzero(dead)
            places = places[present(rows[HASH].to_numpy()[places], wanted)]
            if len(places):
                texts = rows_of(one.file, file, self.number, TEXTS)
                tables.append(_youngest(rows.take(pa.array(places)), texts.take(pa.array(places))))
        every = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
        return every.take(pa.array(_first_youngest(every[HASH].to_numpy(), every["modified_at"])))

    def ranges_below(self, prefixes: tuple[str, ...]) -> set[str]:
        """The ranges with entries below ``prefixes`` on objects that only dead commits have."""
        wanted, found = np.setdiff1d(self._hashes([self._dead]), self._hashes([self._live])), set[str]()
        for rows, dead, (one, file) in zip(self._rows, self._dead, self._files, strict=True):
            lone = np.flatnonzero(dead & present(rows[HASH].to_numpy(), wanted))
            if len(lone):
                paths = rows_of(one.file, file, self.number, ["path"])["path"].take(pa.array(lone)).combine_chunks()
                held = lone[starts(paths, prefixes)]
                found |= {one.dead[owner] for owner in rows["owner"].to_numpy()[held].tolist()}
        return found

    def _flagged(self, owners: Callable[[Entries], Set[int]], gone: Hashes) -> list[Flags]:
        return [
            among(rows["owner"].to_numpy(), owners(one)) & ~present(rows[HASH].to_numpy(), gone)
            for rows, (one, _) in zip(self._rows, self._files, strict=True)
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


def list_tables(store: ObjectStore, prefix: str) -> pa.Table:
    """All ranges and metaranges that are stored, as PLAN: each as if it went."""
    found = [PLAN.empty_table()]
    for batch in store.list(prefix + FOLDER):
        names = [key.removeprefix(prefix) for key in batch["key"].to_pylist()]
        columns = [pa.array(names, pa.string()), batch["size_bytes"], batch["modified_at"].cast(MOMENT)]
        columns += [pa.repeat(text, len(names)) for text in SAID_OF_TABLES.values()]
        ours = pa.array([is_table(name) for name in names], pa.bool_())
        found.append(pa.table(columns, schema=PLAN).filter(ours))
    return pa.concat_tables(found).combine_chunks()


def names_of(tables: pa.Table) -> list[str]:
    return [address.removeprefix(FOLDER) for address in tables["address"].to_pylist()]


def dead_tables(tables: pa.Table, live: Set[str], before: datetime) -> pa.Table:
    """Those of ``tables`` from before ``before`` that no live commit has."""
    dead = pa.array([name not in live for name in names_of(tables)], pa.bool_())
    old = pc.fill_null(pc.less(tables["modified_at"], pa.scalar(before, MOMENT)), False)
    return tables.filter(pc.and_(dead, old)).combine_chunks()


def write_tables(store: ObjectStore, key: str, rows: pa.Table) -> Answer:
    """Tables that go, as a part of the plan."""
    if not rows.num_rows:
        return Answer()
    file = replace(write_plan(store, key, rows), tables=True)
    what = METADATA, Reason.COLLECTED.value
    return Answer(Counter({what: file.rows}), Counter({what: file.bytes}), files=(file,))
