"""Committed entries against rules, bucket by bucket, on the executors: which objects go, and which wait.

An object goes when every entry of every commit that points to it is past its
cutoff on every branch that reaches it. Those of which only some are wait: they
are *deferred*, and looked at again by every run.
"""

import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from desilt.domain.reason import Reason, Verdict
from desilt.errors import CorruptTable
from desilt.frames.buckets import BUCKETS, HASH, hashed, present
from desilt.frames.hashing import Hashes, address_hash
from desilt.frames.rules import ORDER, Terms, Verdicts, judged
from desilt.frames.schemas import HELD, MOMENT, PLAN
from desilt.jobs.judging import write_plan
from desilt.objects import open_store
from desilt.objects.store import ObjectStore
from desilt.runs.plan import PlanFile
from desilt.sources.held import HeldFile, hashes, opened, put, rows_of

NUMBERS = [HASH, "owner", "size_bytes"]
ENTRIES = ["address", "path", "created_at"]
EXPIRED = ORDER.index(Reason.EXPIRED)
NO_TIME = np.iinfo(np.int64).max  # an entry without a time is young

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
class Entries:
    """A file of the range cache, and for each of its owners the group that reaches it (-1: nobody asks) and whether
    a commit that is looked into has it."""

    file: HeldFile
    groups: tuple[int, ...]
    potential: tuple[bool, ...]


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
    restored: tuple[HeldFile, ...]  # and that came back
    folder: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of them."""

    objects: Counter[tuple[str, str]] = field(default_factory=Counter)  # by rule (of what goes) and reason
    bytes: Counter[tuple[str, str]] = field(default_factory=Counter)
    prefix_objects: Counter[str] = field(default_factory=Counter)  # of what goes
    prefix_bytes: Counter[str] = field(default_factory=Counter)
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
            self.stored_objects + other.stored_objects,
            self.stored_bytes + other.stored_bytes,
            self.files + other.files,
            self.tables + other.tables,
            self.deferred + other.deferred,
            self.damaged | other.damaged,
        )


def cut(question: Question, width: int) -> list[Question]:
    """The same over all buckets, in about ``width`` questions."""
    from dataclasses import replace

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
    again, removed, restored = (_open(store, some) for some in (question.again, question.removed, question.restored))
    answer, going, waiting = Answer(), [], []
    for number in question.buckets:
        gone = np.setdiff1d(hashes(removed, number), hashes(restored, number))
        bucket = Bucket(number, [_numbers(one, file, number) for one, file in files], files, question.terms)
        answer += bucket.stored(gone)
        wanted = np.union1d(bucket.candidates(), hashes(again, number))
        objects = bucket.objects(wanted[~present(wanted, gone)])
        for reason, held in sets.items():
            objects.hold(reason, hashes(held, number))
        answer += objects.counted()
        going.append(objects.going())
        waiting.append(objects.waiting())
    return answer + _written(store, question, going, waiting)


def _open(store: ObjectStore, files: Sequence[HeldFile]) -> list[tuple[HeldFile, pq.ParquetFile]]:
    return [(file, opened(store, file)) for file in files]


def _numbers(one: Entries, file: pq.ParquetFile, number: int) -> pa.Table:
    rows = rows_of(one.file, file, number, NUMBERS)
    counts = np.array(one.groups, np.int64)[rows["owner"].to_numpy()] >= 0
    return rows.append_column("row", pa.array(np.arange(rows.num_rows))).filter(pa.array(counts))


class Bucket:
    """The entries of one bucket, from all files; paths and times are read only where they are needed."""

    def __init__(
        self, number: int, rows: list[pa.Table], files: list[tuple[Entries, pq.ParquetFile]], terms: Terms
    ) -> None:
        self.number, self.rows, self.files, self.terms = number, rows, files, terms

    def stored(self, gone: Hashes) -> Answer:
        """What commits hold altogether and is still there."""
        every = np.concatenate([np.zeros(0, np.uint64), *(rows[HASH].to_numpy() for rows in self.rows)])
        sizes = np.concatenate([np.zeros(0, np.int64), *(rows["size_bytes"].to_numpy() for rows in self.rows)])
        known, first = np.unique(every, return_index=True)
        there = ~present(known, gone)
        return Answer(stored_objects=int(there.sum()), stored_bytes=int(sizes[first][there].sum()))

    def candidates(self) -> Hashes:
        """Objects with an entry, in a commit that is looked into, that some branch would let go by date."""
        found = [np.zeros(0, np.uint64)]
        for rows, (one, file) in zip(self.rows, self.files, strict=True):
            if any(one.potential):
                mine = np.array(one.potential, np.bool_)[rows["owner"].to_numpy()]
                entries = self._entries(rows.filter(pa.array(mine)), one, file)
                found.append(entries[HASH].to_numpy()[self._judged(entries).past])
        return np.unique(np.concatenate(found))

    def objects(self, wanted: Hashes) -> "Objects":
        """All that points to ``wanted``, from every commit."""
        found = []
        for rows, (one, file) in zip(self.rows, self.files, strict=True):
            mine = np.isin(rows[HASH].to_numpy(), wanted)
            if mine.any():
                found.append(self._entries(rows.filter(pa.array(mine)), one, file))
        entries = pa.concat_tables(found).combine_chunks() if found else None
        return Objects(entries, self._judged(entries) if entries is not None else None, self.terms)

    def _entries(self, rows: pa.Table, one: Entries, file: pq.ParquetFile) -> pa.Table:
        more = rows_of(one.file, file, self.number, ENTRIES).take(rows["row"])
        groups = np.array(one.groups, np.int64)[rows["owner"].to_numpy()]
        table = rows.select([HASH, "size_bytes"]).append_column("group", pa.array(groups))
        for name in ENTRIES:
            table = table.append_column(name, more[name])
        return table

    def _judged(self, entries: pa.Table) -> Verdicts:
        created = pc.fill_null(entries["created_at"].cast(pa.int64()), NO_TIME).to_numpy()
        return judged(entries["path"].combine_chunks(), created, entries["group"].to_numpy(), self.terms)


class Objects:
    """Objects and all that points to them: each goes if every entry lets it."""

    def __init__(self, entries: pa.Table | None, verdicts: Verdicts | None, terms: Terms) -> None:
        self.entries, self.verdicts, self.terms = entries, verdicts, terms
        every = entries[HASH].to_numpy() if entries is not None else np.zeros(0, np.uint64)
        self.known, self.first, self.place = np.unique(every, return_index=True, return_inverse=True)
        self.reasons: npt.NDArray[np.int8] = np.zeros(len(self.known), np.int8)
        self.past = np.zeros(len(self.known), np.bool_)
        self.other = np.full(len(self.known), "", object)  # a reason from outside of the rules
        if verdicts is not None:
            np.maximum.at(self.reasons, self.place, verdicts.reasons)
            np.logical_or.at(self.past, self.place, verdicts.past)

    def hold(self, reason: Reason, held: Hashes) -> None:
        """These stay for ``reason``."""
        self.other[present(self.known, held)] = reason.value

    @property
    def goes(self) -> npt.NDArray[np.bool_]:
        flags: npt.NDArray[np.bool_] = (self.reasons == EXPIRED) & (self.other == "") & self.past
        return flags

    def sizes(self) -> npt.NDArray[np.int64]:
        assert self.entries is not None
        found: npt.NDArray[np.int64] = self.entries["size_bytes"].to_numpy()[self.first]
        return found

    def counted(self) -> Answer:
        """How much stays for which reason, of what some branch would let go; and how much goes, by rule."""
        answer = Answer()
        if self.entries is None or self.verdicts is None:
            return answer
        sizes, goes = self.sizes(), self.goes
        for place in np.flatnonzero(self.past & ~goes).tolist():
            reason = self.other[place] or ORDER[self.reasons[place]].value
            answer.objects["", reason] += 1
            answer.bytes["", reason] += int(sizes[place])
        paths = self.entries["path"]
        for place in np.flatnonzero(goes).tolist():
            row = self.first[place]
            rule = self._rules(int(row))[0]
            folder = paths[int(row)].as_py().rpartition("/")[0]
            answer.objects[rule, Reason.EXPIRED.value] += 1
            answer.bytes[rule, Reason.EXPIRED.value] += int(sizes[place])
            answer.prefix_objects[folder] += 1
            answer.prefix_bytes[folder] += int(sizes[place])
        return answer

    def going(self) -> list[tuple[str, int, int | None, list[str], list[str]]]:
        """Address, size, youngest time, paths and rules of each object that goes."""
        if self.entries is None:
            return []
        rows: dict[int, list[int]] = {}
        goes = self.goes
        for row, place in enumerate(self.place.tolist()):
            if goes[place]:
                rows.setdefault(place, []).append(row)
        found = []
        for place, mine in rows.items():
            some = self.entries.take(pa.array(mine))
            if not np.array_equal(
                address_hash(some["address"].combine_chunks()), np.full(len(mine), self.known[place])
            ):
                raise CorruptTable("range cache", "an address is not the one that was decoded")
            rules = sorted({rule for row in mine for rule in self._rules(row)})
            youngest = pc.max(some["created_at"].cast(pa.int64())).as_py()
            size = int(some["size_bytes"][0].as_py())
            found.append((some["address"][0].as_py(), size, youngest, sorted(set(some["path"].to_pylist())), rules))
        return found

    def waiting(self) -> list[str]:
        """The addresses that some branch would let go by date, and that stay."""
        if self.entries is None:
            return []
        rows = self.first[self.past & ~self.goes]
        found: list[str] = self.entries["address"].take(pa.array(rows)).to_pylist()
        return found

    def _rules(self, row: int) -> list[str]:
        assert self.verdicts is not None
        mask = self.verdicts.masks[self.verdicts.mask_of[row]]
        return [rule for rule, byte in zip(self.terms.rule_ids, mask, strict=True) if byte]


def _written(
    store: ObjectStore,
    question: Question,
    going: Sequence[list[tuple[str, int, int | None, list[str], list[str]]]],
    waiting: Sequence[list[str]],
) -> Answer:
    rows = [row for some in going for row in some]
    name = f"part-{question.buckets.start:05d}.parquet"
    columns = [
        [row[0] for row in rows],
        [row[1] for row in rows],
        pa.array([row[2] for row in rows], pa.int64()).cast(MOMENT),
        [Verdict.REMOVE.value] * len(rows),
        [Reason.EXPIRED.value] * len(rows),
        [json.dumps({"rules": row[4], "paths": row[3]}, ensure_ascii=False) for row in rows],
    ]
    file = write_plan(store, f"{question.folder}plan/{name}", pa.table(columns, schema=PLAN))
    table = pa.table(
        [[question.run] * len(rows), columns[0], [row[3] for row in rows], [row[4] for row in rows]], schema=ADDRESSES
    )
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    store.put(f"{question.folder}addresses/{name}", [sink.getvalue()])
    left = [address for some in waiting for address in some]
    deferred = []
    if left:
        held = pa.table([pa.array(left, pa.string()), np.zeros(len(left), np.int32)], schema=HELD)
        deferred = [put(store, f"{question.folder}deferred/{name}", hashed(held))]
    return Answer(files=(file,), tables=(f"{question.folder}addresses/{name}",), deferred=tuple(deferred))
