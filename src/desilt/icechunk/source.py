"""An Icechunk repository as a source: what holds chunks, and what is stored.

Nobody can know of a session that is open: its chunks lie among the others, and age is what keeps them. So nothing here
is ever staged, or known to be on its way.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from desilt.cache import metaranges, ranges
from desilt.cache.metaranges import Lists
from desilt.cache.ranges import CACHED, Placed
from desilt.columns.buckets import hashed
from desilt.columns.files import HeldFile, put, put_addresses
from desilt.columns.pins import POINTERS
from desilt.domain.history import Commit
from desilt.domain.reason import Reason
from desilt.domain.run import Run
from desilt.errors import BadRequest, Conflict
from desilt.executors.executor import Executor
from desilt.icechunk import seen
from desilt.icechunk.core import PREFIX, IcechunkCore
from desilt.icechunk.format import nodes
from desilt.icechunk.format.manifest import fetch
from desilt.icechunk.history import IcechunkHistory
from desilt.icechunk.layout import CHUNKS
from desilt.icechunk.listed import chunks
from desilt.icechunk.tables import ManifestDecoder, SnapshotLists, as_listed, entries_of, listed_by, snapshots_in
from desilt.inventory.listing import Inventory
from desilt.repository.snapshot import Snapshot
from desilt.repository.source import KeptByRules, Pointers, Staged, StagedEntries, Uploads
from desilt.sstable.columns import ENTRIES
from desilt.sstable.values import RangeData

GROUP = CHUNKS.rstrip("/")


class IcechunkSource:
    """Read by ``executor``."""

    def __init__(self, core: IcechunkCore, executor: Executor) -> None:
        self._core, self._executor = core, executor
        self._referred_to = 0  # chunks, by all manifests whose entries were asked for
        self._listed: dict[str, Sequence[RangeData]] = {}  # by snapshots whose files were read for their parents

    # ---- what holds

    def snapshot(self, now: datetime, *, uses: bool = False) -> Snapshot:
        looked = seen.look(self._core, now)
        if looked.found.format != self._core.format:
            raise Conflict("this Icechunk repository was upgraded since it was opened; open it again, and plan again")
        self.know(looked.found)
        return seen.with_uses(looked.seen) if uses else looked.seen

    def know(self, found: IcechunkHistory) -> None:
        """What was read for a history need not be read again."""
        self._listed = {name: listed_by(one) for name, one in found.files.items()}

    def kept_by_rules(self, _seen: Snapshot, _now: datetime, *, tags: bool) -> KeptByRules:  # noqa: ARG002
        raise BadRequest("an Icechunk repository has no rules of its own; see `desilt expire` and `desilt collect`")

    def staged(self, run: Run) -> Staged:
        return Staged([self._nothing(run, "staged")], 0, self.group_names())

    def staged_pointers(self) -> Pointers:
        return Pointers((), POINTERS.empty_table())

    def staged_entries(self, run: Run) -> StagedEntries:
        key = f"{PREFIX}{run.folder}inputs/entries/part-00000.parquet"
        return StagedEntries([put(self._core.store, key, hashed(CACHED.empty_table()))], (), 0)

    def held_after_all(
        self, _run: Run, _going: Iterable[pa.Table], _released: Sequence[Commit]
    ) -> Mapping[Reason, HeldFile]:
        return {}

    def uploads(self, run: Run, _now: datetime) -> Uploads:
        return Uploads(self._nothing(run, "tickets"), {})

    def dropped(self, run: Run, _since: datetime | None) -> HeldFile:
        return self._nothing(run, "dropped")

    def _nothing(self, run: Run, name: str) -> HeldFile:
        return put_addresses(self._core.store, f"{PREFIX}{run.folder}inputs/{name}.parquet", [])

    # ---- tables

    def lists(self, commits: Iterable[Commit]) -> Lists:
        """Manifests by snapshot. A snapshot's file may get another parent, and never another list."""
        store, names = self._core.store, [commit.metarange for commit in commits]
        wanted = [name for name in names if name not in self._listed]
        found = metaranges.lists(self._executor, store, SnapshotLists(store), wanted, opens=snapshots_in)
        for name in names:
            if name in self._listed:
                found.add(name, self._listed[name])
        return found

    def entries(self, wanted: Sequence[RangeData]) -> list[Placed]:
        self._referred_to = max(self._referred_to, sum(one.count for one in wanted))
        return ranges.placed(self._executor, self._core.store, PREFIX, wanted, decoder=ManifestDecoder())

    def distrust(self, damaged: Iterable[str]) -> None:
        for key in damaged:
            ranges.distrust(self._core.store, key)

    def tables_of(self, commit: Commit) -> Sequence[RangeData]:
        return SnapshotLists(self._core.store).metarange(commit.metarange)

    def rows_of(self, table: RangeData) -> pa.RecordBatch:
        """Its references to what lies in the repository."""
        found = entries_of(self._core.store, fetch(self._core.store, as_listed(table)), 0)
        columns = {"path": found["path"], "address": found["address"], "size": found["size_bytes"]}
        rows = [
            columns[field.name].cast(field.type).combine_chunks()
            if field.name in columns
            else pa.nulls(found.num_rows, field.type)
            for field in ENTRIES
        ]
        order = pc.sort_indices(found["path"])
        return pa.RecordBatch.from_arrays([one.take(order) for one in rows], schema=ENTRIES)

    # ---- what is stored

    def inventory(
        self,
        run: Run,
        *,
        groups: Sequence[str] | None = None,
        newer_than: Mapping[str, str] | None = None,  # noqa: ARG002
    ) -> Inventory:
        """All chunks; ids tell nothing of when they were made, so none are known to have been there before."""
        wanted = groups is None or GROUP in groups
        folder, referred_to = f"{run.folder}inputs/inventory/", self._referred_to
        return chunks(self._executor, self._core.store, folder, referred_to=referred_to, wanted=wanted)

    def groups(self) -> list[str]:
        return [GROUP]

    def group_names(self) -> dict[str, str]:
        return {GROUP: "all branches"}

    def folders(self, groups: Iterable[str]) -> list[str]:
        return [f"{group}/" for group in groups]

    def since_copy(self) -> datetime | None:
        return None

    def check_inventory(self, folders: Iterable[str]) -> None:
        """Nothing says what was put where."""

    def released_since(self, _since: datetime) -> set[str]:
        """Nobody tells."""
        return set()

    # ---- what people ask for

    def called(self, folders: Iterable[str]) -> dict[str, str]:
        """Arrays, by their newest names; snapshots are read, the newest first, until all are known."""
        left, found = set(folders), dict[str, str]()
        for commit in reversed(self.snapshot(self._core.clock()).in_time):
            if not left:
                break
            arrays = nodes.fetch(self._core.store, commit.metarange)
            found |= {one: arrays.called(one) for one in left if one.partition("/")[0] in arrays.paths}
            left -= found.keys()
        return found

    def resolve(self, ref: str) -> str:
        """A branch, a tag or the whole id of a snapshot that is known."""
        return seen.resolved(self.snapshot(self._core.clock()), ref)

    def paths(self, prefix: str) -> Iterator[str]:
        """Of chunks, as zarr has them: ``group/array/c/0/1``."""
        commits = self.snapshot(self._core.clock()).in_time
        lists, read = self.lists(commits), set[tuple[str, frozenset[tuple[str, str]]]]()
        for commit in commits:
            arrays = nodes.fetch(self._core.store, commit.metarange)
            called = frozenset(arrays.paths.items())
            for name in lists.of[commit.metarange]:
                if (name, called) not in read:
                    read.add((name, called))
                    rows = self.rows_of(lists.ranges[name])["path"].to_pylist()
                    found = (arrays.called(one.decode()) for one in rows)
                    yield from (path for path in found if path.startswith(prefix))

    def staged_branches(self) -> list[str]:
        return []

    def changes_on(self, branch: str) -> Iterator[pa.RecordBatch]:
        self.resolve(branch)
        return iter(())
