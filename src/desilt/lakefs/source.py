"""A server's repository as a source: what holds addresses, and what is stored."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from desilt.cache import metaranges, ranges
from desilt.cache.metaranges import Lists
from desilt.cache.ranges import CACHED, Placed
from desilt.columns.buckets import every, hashed
from desilt.columns.files import Files, HeldFile, put, put_addresses
from desilt.columns.hashing import address_hash
from desilt.columns.pins import POINTERS
from desilt.domain.entry import after_prefix, decode_path, encode_prefix
from desilt.domain.history import Commit
from desilt.domain.reason import Reason
from desilt.domain.run import Run
from desilt.executors.executor import Executor
from desilt.inventory import listing
from desilt.inventory.listing import Inventory, Span
from desilt.lakefs import history, server_rules, sightings, staged, tables, unlisted
from desilt.lakefs.core import PREFIX, LakefsCore
from desilt.lakefs.inquiry import Inquiry
from desilt.lakefs.layout import DATA, GROUP
from desilt.lakefs.unlisted import Head, Sizes
from desilt.records.holds import HoldKind
from desilt.repository.snapshot import Snapshot
from desilt.repository.source import KeptByRules, Pointers, Staged, StagedEntries, Uploads
from desilt.sstable.columns import ENTRIES, entry_columns, whole
from desilt.sstable.values import RangeData

READINGS = 2  # of what is staged: it is no snapshot, and what moves behind one reading is seen by the other
OBJECTS_TO_A_PARTITION = 2_000  # about: at most 50,000, within an hour
ROOT = (  # where very old objects lie: all that is neither the server's nor ours, nor in the folder of objects
    Span("", "", "_desilt/"),
    Span("", "_desilt0", "_lakefs/"),
    Span("", "_lakefs0", DATA),
    Span("", "data0", "g"),
)


class LakefsSource:
    """Read by ``executor``."""

    def __init__(self, core: LakefsCore, executor: Executor) -> None:
        self._core, self._executor = core, executor
        self._inquired: tuple[Snapshot, Inquiry] | None = None
        self._sizes_outside: dict[str, Sizes] = {}  # by range

    # ---- what holds

    def snapshot(self, now: datetime, *, uses: bool = False) -> Snapshot:
        return history.read(self._core, now, uses=uses)

    def kept_by_rules(self, seen: Snapshot, now: datetime, *, tags: bool) -> KeptByRules:
        kept = server_rules.kept(self._core.server, seen, now, tags=tags)
        return replace(kept, commits=kept.commits | self.ordered(seen))

    def ordered(self, seen: Snapshot) -> set[str]:
        """The commits that have anything below a prefix that people ordered to be kept, whatever rules say."""
        prefixes = [encode_prefix(hold.value) for hold in seen.held(HoldKind.PREFIX)]
        if not prefixes:
            return set()
        lists = self.lists(seen.commits.values())
        having = {name for name, one in lists.ranges.items() if any(self._has(one, prefix) for prefix in prefixes)}
        return {name for name, commit in seen.commits.items() if having & set(lists.of.get(commit.metarange, ()))}

    def _has(self, listed: RangeData, prefix: bytes) -> bool:
        stop = after_prefix(prefix)
        if listed.max_key < prefix or (stop is not None and listed.min_key >= stop):
            return False
        return any(batch.num_rows for batch in self._core.ranges.table(listed.id).scan(prefix, stop))

    def staged(self, run: Run) -> Staged:
        """What the server lists as uncommitted, in any of two readings."""
        found = [staged.staged_now(self._core) for _ in range(READINGS)]
        addresses = pa.chunked_array([pc.unique(pa.concat_arrays(found))], pa.string())
        file = self._put(run, "staged", addresses)
        return Staged([file], file.rows, {GROUP: "all branches"})

    def held_after_all(
        self, run: Run, going: Iterable[pa.Table], released: Sequence[Commit]
    ) -> Mapping[Reason, HeldFile]:
        some = [one.select(["address", "size_bytes"]) for one in going]
        if not some:
            return {}
        rows = pa.concat_tables(some).combine_chunks()
        listed = pa.concat_arrays([pa.array([], pa.string()), *rows["address"].chunks])
        found = {
            Reason.STAGED: self.served(self.snapshot(run.now), rows),
            Reason.YOUNG: sightings.young(self._core, listed, run.now, lambda some: self._among(released, some)),
        }
        return {
            reason: self._put(run, f"{reason} after all", pa.chunked_array([addresses]))
            for reason, addresses in found.items()
            if len(addresses)
        }

    def _among(self, commits: Sequence[Commit], wanted: pa.Array) -> pa.Array:
        """Which of ``wanted`` any of ``commits`` has."""
        lists, opened, found = self.lists(commits).ranges, Files(self._core.store), [pa.array([], pa.string())]
        for placed in self.entries([lists[name] for name in sorted(lists)]):
            for bucket in every(placed.file.buckets):
                addresses = opened.rows(placed.file, bucket, ["address"])["address"].combine_chunks()
                found.append(addresses.filter(pc.is_in(addresses, value_set=wanted)))
        return pc.unique(pa.concat_arrays(found))

    def served(self, seen: Snapshot, rows: pa.Table) -> pa.Array:
        """Of addresses with sizes, those that a branch serves though neither a list nor its commit has them."""
        lists = self.lists([seen.commits[branch.head] for branch in seen.branches])
        placed = self.entries([lists.ranges[name] for name in sorted(lists.ranges)])
        return unlisted.served(
            self._core,
            self._heads(seen, lists),
            placed,
            rows,
            outside=lambda name, sizes: self._outside(lists.ranges[name], sizes),
            inquiry=self._inquiry(seen),
        )

    @property
    def seconds_looked(self) -> float:
        """How long it took to ask branches, the last time that they were."""
        return self._inquired[1].seconds if self._inquired else 0.0

    def _inquiry(self, seen: Snapshot) -> Inquiry:
        """What branches were asked for since ``seen`` was: each once."""
        if self._inquired is None or self._inquired[0] is not seen:
            heads = {branch.name: branch.head for branch in seen.branches}
            self._inquired = seen, Inquiry(self._core, heads)
        return self._inquired[1]

    def _outside(self, listed: RangeData, sizes: Sizes) -> list[str]:
        """The paths of a range's entries over objects elsewhere that have one of ``sizes``; most have none."""
        known = self._sizes_outside.get(listed.id)
        if known is not None and not np.isin(sizes, known).any():
            return []
        rows = self.rows_of(listed)
        full = whole(rows)
        away = pc.is_null(self._core.place.inside(rows["address"].filter(full)))
        rows = rows.filter(full).filter(away)
        self._sizes_outside[listed.id] = np.unique(rows["size"].to_numpy())
        some = rows["path"].filter(pa.array(np.isin(rows["size"].to_numpy(), sizes)))
        return [decode_path(path) for path in some.to_pylist()]

    def _heads(self, seen: Snapshot, lists: Lists) -> list[Head]:
        """Every branch with the ranges of its commit."""
        found = []
        for branch in seen.branches:
            names = lists.of.get(seen.commits[branch.head].metarange, [])
            found.append(Head(branch.name, frozenset(names), sum(lists.ranges[name].count for name in names)))
        return found

    def uploads(self, run: Run, _now: datetime) -> Uploads:
        """Nobody can know of them: age is what keeps them."""
        return Uploads(self._put(run, "tickets", []), {})

    def dropped(self, run: Run, _since: datetime | None) -> HeldFile:
        """A server does not tell."""
        return self._put(run, "dropped", [])

    def _put(self, run: Run, name: str, addresses: Sequence[str] | pa.ChunkedArray) -> HeldFile:
        return put_addresses(self._core.store, f"{PREFIX}{run.folder}inputs/{name}.parquet", addresses)

    # ---- tables

    def lists(self, commits: Iterable[Commit]) -> Lists:
        wanted = [commit.metarange for commit in commits]
        tables.bring(self._core.ranges, wanted)
        return metaranges.lists(self._executor, self._core.store, self._core.ranges, wanted)

    def entries(self, wanted: Sequence[RangeData]) -> list[Placed]:
        core = self._core
        tables.bring(core.ranges, [one.id for one in wanted])
        return ranges.placed(self._executor, core.store, PREFIX, wanted, decoder=core.decoder)

    def distrust(self, damaged: Iterable[str]) -> None:
        for key in damaged:
            ranges.distrust(self._core.store, key)

    def tables_of(self, commit: Commit) -> Sequence[RangeData]:
        return self._core.ranges.metarange(commit.metarange)

    def rows_of(self, table: RangeData) -> pa.RecordBatch:
        return entry_columns(self._core.ranges.read(table), table.id)

    # ---- what is stored

    def inventory(
        self, run: Run, *, groups: Sequence[str] | None = None, newer_than: Mapping[str, str] | None = None
    ) -> Inventory:
        core, folder = self._core, f"{run.folder}inputs/inventory/"
        found = listing.take(
            self._executor,
            core.store,
            PREFIX,
            folder,
            data="",
            branches=[GROUP] if groups is None else groups,
            newer_than=newer_than,
            about=lambda folders: OBJECTS_TO_A_PARTITION * len(folders),
        )
        if groups is None and not newer_than:  # nothing new comes to lie in the root
            found = Inventory(found.listed + self._in_root(folder), found.partitions)
        return found

    def _in_root(self, folder: str) -> list[listing.Listed]:
        piece = listing.ListingPiece(self._core.store.uri, PREFIX, ROOT, f"{PREFIX}{folder}root")
        return listing.list_stretch(piece)

    def groups(self) -> list[str]:
        return [GROUP]

    def group_names(self) -> dict[str, str]:
        return {GROUP: "all branches"}

    def folders(self, groups: Iterable[str]) -> list[str]:
        return [part for group in groups for part in listing.partitions(self._core.store, PREFIX, group)]

    def since_copy(self) -> datetime | None:
        return None

    def check_inventory(self, folders: Iterable[str]) -> None:
        """A server says nothing of what it has put where."""

    def released_since(self, _since: datetime) -> set[str]:
        """A server does not tell; nothing is collected there that this would spare."""
        return set()

    # ---- what people ask for

    def called(self, folders: Iterable[str]) -> dict[str, str]:  # noqa: ARG002
        return {}

    def resolve(self, ref: str) -> str:
        return history.resolve(self._core, self._core.clock, ref)

    def paths(self, prefix: str) -> Iterator[str]:
        core, start = self._core, encode_prefix(prefix)
        stop = after_prefix(start)
        for branch in self.staged_branches():
            yield from (path for path, kind, _ in core.server.changes(branch) if path.startswith(prefix))
        for listed in self.lists(self.snapshot(core.clock()).in_time).ranges.values():
            if listed.max_key >= start and (stop is None or listed.min_key < stop):
                for batch in core.ranges.table(listed.id).scan(start, stop):
                    yield from (decode_path(key) for key in batch["key"].to_pylist())

    def staged_branches(self) -> list[str]:
        seen = self.snapshot(self._core.clock())
        return [branch.name for branch in seen.branches if self._core.server.is_dirty(branch.name)]

    def changes_on(self, branch: str) -> Iterator[pa.RecordBatch]:
        return staged.changes(self._core.server, self._core.place, branch)

    def staged_pointers(self) -> Pointers:
        names, found = list[str](), [POINTERS.empty_table()]
        for branch, rows in self._staged():
            place = np.full(rows.num_rows, len(names), np.int64)
            found.append(pa.table([address_hash(rows["address"]), place, rows["size_bytes"]], schema=POINTERS))
            names.append(branch)
        return Pointers(tuple(names), pa.concat_tables(found).combine_chunks())

    def staged_entries(self, run: Run) -> StagedEntries:
        names, found = list[str](), [CACHED.empty_table()]
        for branch, rows in self._staged():
            owners = pa.array(np.full(rows.num_rows, len(names), np.int32))
            found.append(rows.set_column(rows.schema.get_field_index("owner"), "owner", owners))
            names.append(branch)
        key = f"{PREFIX}{run.folder}inputs/entries/part-00000.parquet"
        file = put(self._core.store, key, hashed(pa.concat_tables(found).combine_chunks()))
        return StagedEntries([file], tuple(names), file.rows)

    def _staged(self) -> Iterator[tuple[str, pa.Table]]:
        """Branch by branch, what is staged there and lies inside, as CACHED."""
        for branch in self.staged_branches():
            some = pa.Table.from_batches(self.changes_on(branch), ENTRIES)
            put_there = some.filter(pc.is_valid(some["address"])).combine_chunks()
            rows = [ranges.pointing_in(batch, self._core.place, 0) for batch in put_there.to_batches()]
            if table := pa.concat_tables([CACHED.empty_table(), *rows]):
                yield branch, table
