"""The entries of one bucket, and the objects they point to: which go, and which wait."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from desilt.columns.arrays import Flags, Numbers
from desilt.columns.buckets import HASH, Bucket, present
from desilt.columns.files import NOBODY, Files, HeldFile
from desilt.columns.hashing import Hashes, address_hash
from desilt.columns.layout import Layout
from desilt.columns.merged import Merged
from desilt.columns.paths import shown
from desilt.columns.rules import ORDER, Terms, Verdicts, distinct_flags, judged, past, releasing
from desilt.columns.runs import Runs, changed, changed_texts, distinct_texts, runs
from desilt.domain.reason import Reason
from desilt.errors import NotReadBack

POTENTIAL = 1  # in a label
DATED = ["path", "created_at"]
NO_TIME = np.iinfo(np.int64).max  # an entry without a time is young
EXPIRED = ORDER.index(Reason.EXPIRED)

ENTRIES = pa.schema(
    [
        (HASH, pa.uint64()),
        ("size_bytes", pa.int64()),
        ("group", pa.int64()),
        ("address", pa.string()),
        ("path", pa.binary()),
        ("created_at", pa.int64()),  # by whoever says it is younger: the entry, or the name of its object
        ("said_at", pa.int64()),  # by the entry
    ]
)
"""One row per entry that points to an object; ``group`` says who reaches it."""

GOING = pa.schema(
    [
        ("address", pa.string()),
        ("size_bytes", pa.int64()),
        ("created_at", pa.int64()),  # of the youngest entry
        ("folder", pa.string()),  # one of its paths
        ("paths", pa.list_(pa.string())),  # as they are shown
        ("rules", pa.list_(pa.string())),
    ]
)
"""One row per object that goes."""


@dataclass(frozen=True, slots=True)
class GroupedFile:
    """A file of the range cache; for each of its owners the group that reaches it (-1: nobody asks), and whether a
    commit that is looked into has it."""

    file: HeldFile
    groups: tuple[int, ...]
    potential: tuple[bool, ...]

    @property
    def labels(self) -> Numbers:
        """For each owner a number: its group, and whether it is looked into."""
        groups: Numbers = np.array(self.groups, np.int64)
        return np.where(groups < 0, NOBODY, groups << 1 | np.array(self.potential, np.int64))


class Contents:
    """The entries of one bucket, from all files; paths and times are read only where they are needed."""

    def __init__(
        self, files: Files, entries: Sequence[GroupedFile], bucket: Bucket, terms: Terms, layout: Layout
    ) -> None:
        self._terms, self._layout = terms, layout
        self._rows = Merged(files, [one.file for one in entries], [one.labels for one in entries], bucket)

    def stored(self, gone: Hashes) -> tuple[int, int]:
        """How many objects and bytes commits hold that are still there."""
        there = ~present(self._rows.known, gone)
        return int(np.count_nonzero(there)), int(self._rows.sizes[self._rows.runs.starts[there]].sum())

    def candidates(self) -> Hashes:
        """Objects with an entry, in a commit that is looked into, that some branch would release by date."""
        rows = np.flatnonzero(self._rows.labels & POTENTIAL)
        if not len(rows):
            return np.zeros(0, np.uint64)
        dated = self._rows.texts(rows, DATED)  # their addresses are not read
        flags = past(_column(dated, "path"), _created(dated), self._rows.labels[rows] >> 1, self._terms)
        found = self._rows.hashes[rows[flags]]
        return found[changed(found)]

    def objects(self, wanted: Hashes) -> "Objects":
        """``wanted``, with all that points to them, from every commit."""
        rows = np.flatnonzero(self._rows.runs.rows_of(present(self._rows.known, wanted)))
        entries = self._entries(rows) if len(rows) else ENTRIES.empty_table().combine_chunks()
        return Objects(entries, self._judged(entries), self._terms)

    def _entries(self, rows: Numbers) -> pa.Table:
        """Entries that are alike are one: ranges of many commits have the same ones, and rules judge them the same."""
        texts = self._rows.texts(rows, ["address", *DATED])
        addresses, paths, said = _column(texts, "address"), _column(texts, "path"), _created(texts)
        hashes, sizes, groups = self._rows.hashes[rows], self._rows.sizes[rows], self._rows.labels[rows] >> 1
        new = changed_texts(addresses) | changed_texts(paths)
        new |= changed(hashes) | changed(sizes) | changed(groups) | changed(said)
        one = pa.array(np.flatnonzero(new))
        addresses, paths, said = addresses.take(one), paths.take(one), said[new]
        named = self._layout.address_seconds(addresses) * 1_000_000
        numbers = [pa.array(column[new]) for column in (hashes, sizes, groups)]
        times = [pa.array(np.maximum(said, named)), pa.array(said)]
        return pa.table([*numbers, addresses, paths, *times], schema=ENTRIES)

    def _judged(self, entries: pa.Table) -> Verdicts:
        """By the later of the two times; but what is past by the one that a commit says waits, and is not forgotten."""
        paths = _column(entries, "path")
        hashes, created, said, groups = (entries[name].to_numpy() for name in (HASH, "created_at", "said_at", "group"))
        found = judged(paths, hashes, created, groups, self._terms)
        return replace(found, past=past(paths, said, groups, self._terms))


def _column(rows: pa.Table, name: str) -> pa.Array:
    return rows[name].combine_chunks()


def _created(rows: pa.Table) -> Numbers:
    found: Numbers = pc.fill_null(rows["created_at"].cast(pa.int64()), NO_TIME).to_numpy()
    return np.where(found > 0, found, NO_TIME)


class Objects:
    """Objects and all that points to them: each goes if every entry lets it."""

    def __init__(self, entries: pa.Table, verdicts: Verdicts, terms: Terms) -> None:
        """``entries`` in the order of their hashes."""
        self._entries, self._verdicts, self._terms = entries, verdicts, terms
        hashes: Hashes = entries[HASH].to_numpy()
        self._runs = runs(hashes)
        self._first = self._runs.starts
        self._known: Hashes = hashes[self._first]
        self._reasons = self._runs.most(verdicts.reasons)
        self._past = self._runs.any(verdicts.past)
        self._hold = self._runs.most(verdicts.hold_of)
        self._other = np.zeros(len(self._known), np.int8)  # reasons from outside of the rules, numbered from 1
        self._others: list[str] = [""]
        other = changed_texts(_column(entries, "address"))
        other[self._first] = False
        shared = self._runs.any(other)  # two addresses with one hash: neither goes
        self._reasons[shared] = np.maximum(self._reasons[shared], ORDER.index(Reason.HOLDER))

    def hold(self, reason: Reason, held: Hashes) -> None:
        """These stay for ``reason``."""
        self._other[present(self._known, held)] = len(self._others)
        self._others.append(reason.value)

    @property
    def _goes(self) -> Flags:
        flags: Flags = (self._reasons == EXPIRED) & (self._other == 0) & self._past
        return flags

    def kept(self) -> Iterator[tuple[str, int, int]]:
        """Of what some branch would release by date and what stays: reason, objects, bytes."""
        sizes = self._entries["size_bytes"].to_numpy()[self._first]
        stay = self._past & ~self._goes
        by_rules = stay & (self._other == 0)
        for place, rule_reason in enumerate(ORDER):
            mine = by_rules & (self._reasons == place)
            if mine.any():
                yield rule_reason.value, int(mine.sum()), int(sizes[mine].sum())
        for place, other in enumerate(self._others[1:], 1):
            mine = stay & (self._other == place)
            if mine.any():
                yield other, int(mine.sum()), int(sizes[mine].sum())

    def held(self) -> Iterator[tuple[str, int, int]]:
        """Of that, what people ordered to be kept: the order, objects, bytes."""
        sizes = self._entries["size_bytes"].to_numpy()[self._first]
        for place, name in enumerate(self._verdicts.holds[1:], 1):
            mine = self._past & (self._hold == place)
            if mine.any():
                yield name, int(mine.sum()), int(sizes[mine].sum())

    def ordered(self) -> Hashes:
        """Those that people ordered to be kept, whatever else is said of them."""
        found: Hashes = self._known[self._hold > 0]
        return found

    def waiting(self) -> pa.Array:
        """The addresses that some branch would release by date, and that stay."""
        return self._entries["address"].combine_chunks().take(pa.array(self._first[self._past & ~self._goes]))

    def going(self) -> pa.Table:
        """The objects that go, as GOING."""
        goes = self._goes
        if not goes.any():
            return GOING.empty_table()
        mine = self._runs.rows_of(goes)
        of = self._runs.within(mine)
        created, groups, sizes = (
            self._entries[name].to_numpy()[mine] for name in ("created_at", "group", "size_bytes")
        )
        addresses = _column(self._entries, "address").take(pa.array(self._first[goes]))
        if not np.array_equal(address_hash(addresses), self._known[goes]):
            raise NotReadBack("range cache", "an address is not the one that was decoded")
        every = distinct_texts(_column(self._entries, "path").filter(pa.array(mine)), of)
        paths = pa.ListArray.from_arrays(every.offsets, shown(every.values))
        first = paths.values.take(every.offsets[:-1])
        rules = self._rules(of, *releasing(self._verdicts.of(mine), created, groups, self._terms))
        numbers = [pa.array(of.most(sizes)), pa.array(of.most(created))]
        return pa.table([addresses, *numbers, first, paths, rules], schema=GOING)

    def _rules(self, of: Runs, masks: list[bytes], mask_of: Numbers) -> pa.Array:
        """For each run the ids of the rules behind the masks of its rows; few different ones, each worked out once."""
        if of.rows > len(of.starts):
            table = np.frombuffer(b"".join(masks), np.bool_).reshape(len(masks), -1)
            masks, mask_of = distinct_flags([of.any(rule[mask_of]) for rule in table.T])
        ids = self._terms.rule_ids
        told = [list(dict.fromkeys(name for name, byte in zip(ids, mask, strict=True) if byte)) for mask in masks]
        return pa.array(told, pa.list_(pa.string())).take(pa.array(mask_of))
