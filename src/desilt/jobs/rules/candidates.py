"""The entries of one bucket, and the objects they point to: which go, and which wait."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from desilt.columns.buckets import HASH, Bucket, present
from desilt.columns.files import Files, HeldFile
from desilt.columns.hashing import Hashes, address_hash
from desilt.columns.layout import Layout
from desilt.columns.paths import shown
from desilt.columns.rules import ORDER, Numbers, Terms, Verdicts, judged, past, releasing
from desilt.domain.reason import Reason
from desilt.errors import NotReadBack

NUMBERS = [HASH, "owner", "size_bytes"]
DATED = ["path", "created_at"]
NO_TIME = np.iinfo(np.int64).max  # an entry without a time is young
EXPIRED = ORDER.index(Reason.EXPIRED)
Flags = npt.NDArray[np.bool_]

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


class Contents:
    """The entries of one bucket, from all files; paths and times are read only where they are needed."""

    def __init__(
        self, files: Files, entries: Sequence[GroupedFile], bucket: Bucket, terms: Terms, layout: Layout
    ) -> None:
        self._files, self._from, self._bucket, self._terms, self._layout = files, entries, bucket, terms, layout
        self._rows = [self._counting(one) for one in entries]

    def stored(self, gone: Hashes) -> tuple[int, int]:
        """How many objects and bytes commits hold that are still there."""
        every = np.concatenate([np.zeros(0, np.uint64), *(rows[HASH].to_numpy() for rows in self._rows)])
        sizes = np.concatenate([np.zeros(0, np.int64), *(rows["size_bytes"].to_numpy() for rows in self._rows)])
        known, first = np.unique(every, return_index=True)
        there = ~present(known, gone)
        return int(there.sum()), int(sizes[first][there].sum())

    def candidates(self) -> Hashes:
        """Objects with an entry, in a commit that is looked into, that some branch would release by date."""
        found = [np.zeros(0, np.uint64)]
        for rows, one in zip(self._rows, self._from, strict=True):
            if any(one.potential):
                mine = np.array(one.potential, np.bool_)[rows["owner"].to_numpy()]
                found.append(self._past(rows.filter(pa.array(mine)), one))
        return np.unique(np.concatenate(found))

    def objects(self, wanted: Hashes) -> "Objects":
        """``wanted``, with all that points to them, from every commit."""
        found = [ENTRIES.empty_table()]
        for rows, one in zip(self._rows, self._from, strict=True):
            mine = present(rows[HASH].to_numpy(), wanted)
            if mine.any():
                found.append(self._entries(rows.filter(pa.array(mine)), one))
        entries = pa.concat_tables(found).combine_chunks()
        return Objects(entries, self._judged(entries), self._terms)

    def _counting(self, one: GroupedFile) -> pa.Table:
        rows = self._files.rows(one.file, self._bucket, NUMBERS)
        rows = rows.append_column("row", pa.array(np.arange(rows.num_rows)))
        counts = np.array(one.groups, np.int64) >= 0
        return rows if counts.all() else rows.filter(pa.array(counts[rows["owner"].to_numpy()]))

    def _past(self, rows: pa.Table, one: GroupedFile) -> Hashes:
        """The objects of ``rows`` that some branch would release by date; their addresses are not read."""
        if not rows.num_rows:
            return np.zeros(0, np.uint64)
        dated = self._files.rows(one.file, self._bucket, DATED).take(rows["row"])
        flags = past(dated["path"].combine_chunks(), _created(dated), _groups(rows, one), self._terms)
        found: Hashes = rows[HASH].to_numpy()[flags]
        return found

    def _entries(self, rows: pa.Table, one: GroupedFile) -> pa.Table:
        texts = self._files.rows(one.file, self._bucket, ["address", *DATED]).take(rows["row"])
        numbers = [rows[HASH], rows["size_bytes"], pa.array(_groups(rows, one))]
        said = _created(texts)
        named = self._layout.address_seconds(texts["address"].combine_chunks()) * 1_000_000
        times = [pa.array(np.maximum(said, named)), pa.array(said)]
        return pa.table([*numbers, texts["address"], texts["path"], *times], schema=ENTRIES)

    def _judged(self, entries: pa.Table) -> Verdicts:
        """By the later of the two times; but what is past by the one that a commit says waits, and is not forgotten."""
        paths = entries["path"].combine_chunks()
        hashes, created, said, groups = (entries[name].to_numpy() for name in (HASH, "created_at", "said_at", "group"))
        found = judged(paths, hashes, created, groups, self._terms)
        return replace(found, past=past(paths, said, groups, self._terms))


def _groups(rows: pa.Table, one: GroupedFile) -> Numbers:
    found: Numbers = np.array(one.groups, np.int64)[rows["owner"].to_numpy()]
    return found


def _created(rows: pa.Table) -> Numbers:
    found: Numbers = pc.fill_null(rows["created_at"].cast(pa.int64()), NO_TIME).to_numpy()
    return np.where(found > 0, found, NO_TIME)


class Objects:
    """Objects and all that points to them: each goes if every entry lets it."""

    def __init__(self, entries: pa.Table, verdicts: Verdicts, terms: Terms) -> None:
        self._entries, self._verdicts, self._terms = entries, verdicts, terms
        self._known, self._first, self._place = np.unique(
            entries[HASH].to_numpy(), return_index=True, return_inverse=True
        )
        self._reasons = np.zeros(len(self._known), np.int8)
        self._past = np.zeros(len(self._known), np.bool_)
        self._other = np.zeros(len(self._known), np.int8)  # reasons from outside of the rules, numbered from 1
        self._others: list[str] = [""]
        np.maximum.at(self._reasons, self._place, verdicts.reasons)
        np.logical_or.at(self._past, self._place, verdicts.past)
        self._hold = np.zeros(len(self._known), np.int32)
        np.maximum.at(self._hold, self._place, verdicts.hold_of)
        addresses = entries["address"].combine_chunks()
        other = pc.not_equal(addresses, addresses.take(pa.array(self._first[self._place])))
        shared = other.to_numpy(zero_copy_only=False)  # two addresses with one hash: neither goes
        np.maximum.at(self._reasons, self._place[shared], np.int8(ORDER.index(Reason.HOLDER)))

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
        mine = self._goes[self._place]
        created, groups = (self._entries[name].to_numpy()[mine] for name in ("created_at", "group"))
        masks, mask_of = releasing(self._verdicts.of(mine), created, groups, self._terms)
        rows = self._entries.filter(pa.array(mine)).append_column("mask", pa.array(mask_of))
        if not rows.num_rows:
            return GOING.empty_table()
        found = rows.group_by(HASH).aggregate(
            [
                ("address", "min"),
                ("size_bytes", "max"),
                ("created_at", "max"),
                ("path", "min"),
                ("path", "distinct"),
                ("mask", "distinct"),
            ]
        )
        addresses = found["address_min"].combine_chunks()
        if not np.array_equal(address_hash(addresses), found[HASH].to_numpy()):
            raise NotReadBack("range cache", "an address is not the one that was decoded")
        rules = pa.array(self._rules(masks, found["mask_distinct"]), pa.list_(pa.string()))
        numbers = [found[name] for name in ("size_bytes_max", "created_at_max")]
        first, every = (found[name].combine_chunks() for name in ("path_min", "path_distinct"))
        paths = pa.ListArray.from_arrays(every.offsets, shown(every.values))
        return pa.table([addresses, *numbers, shown(first), paths, rules], schema=GOING)

    def _rules(self, masks: list[bytes], of_objects: pa.ChunkedArray) -> list[list[str]]:
        """The ids of the rules behind some masks; few different ones, each worked out once."""
        known: dict[tuple[int, ...], list[str]] = {}

        def told(some: list[int]) -> list[str]:
            key = tuple(sorted(some))
            if key not in known:
                bytes_of = [masks[mask] for mask in key]
                ids = self._terms.rule_ids
                told_by = [name for place, name in enumerate(ids) if any(mask[place] for mask in bytes_of)]
                known[key] = list(dict.fromkeys(told_by))
            return known[key]

        return [told(some) for some in of_objects.to_pylist()]
