"""A repository of the embedded lake as a source: what holds addresses, and what is stored."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import pyarrow as pa

from desilt.cache import metaranges, ranges
from desilt.cache.metaranges import Lists
from desilt.cache.ranges import Placed
from desilt.columns.files import HeldFile, put_addresses
from desilt.domain.address import PARTITION_OBJECTS
from desilt.domain.entry import after_prefix, decode_path, encode_prefix
from desilt.domain.history import Commit
from desilt.domain.reason import Reason
from desilt.domain.run import Run
from desilt.errors import BadRequest
from desilt.executors.executor import Executor
from desilt.inventory import listing
from desilt.inventory.listing import Inventory
from desilt.lake import dropped, partitions, reader, refs, restored, staging, tickets, views
from desilt.lake.areas import areas, changes_on, inside, staged, staged_entries
from desilt.lake.core import Core
from desilt.lake.layout import DATA, folder_parts
from desilt.lake.vanished import telling_gone
from desilt.repository.snapshot import Snapshot
from desilt.repository.source import KeptByRules, Pointers, Staged, StagedEntries, Uploads
from desilt.sstable.columns import entry_columns
from desilt.sstable.values import RangeData


class LakeSource:
    """Read by ``executor``."""

    def __init__(self, core: Core, executor: Executor) -> None:
        self._core, self._executor = core, executor

    def snapshot(self, now: datetime, *, uses: bool = False) -> Snapshot:
        with self._core.database.read() as tx:
            return reader.read(tx, self._core, now, uses=uses)

    def kept_by_rules(self, _seen: Snapshot, _now: datetime, *, tags: bool) -> KeptByRules:  # noqa: ARG002
        raise BadRequest("only a lakeFS server has rules of its own; see `desilt lifecycle`, `expire` and `collect`")

    def staged(self, run: Run) -> Staged:
        """Everything staged on every branch, from one snapshot, written into the run's folder."""
        return staged(self._core, f"{self._core.prefix}{run.folder}inputs/staged/")

    def staged_pointers(self) -> Pointers:
        return areas(self._core)

    def staged_entries(self, run: Run) -> StagedEntries:
        return staged_entries(self._core, f"{self._core.prefix}{run.folder}inputs/entries/")

    def held_after_all(
        self, _run: Run, _going: Iterable[pa.Table], _released: Sequence[Commit]
    ) -> Mapping[Reason, HeldFile]:
        """Everything that is staged was read, and uploads hold tickets."""
        return {}

    def uploads(self, run: Run, now: datetime) -> Uploads:
        """The addresses of uploads under way."""
        with self._core.database.read() as tx:
            addresses = [ticket.address for ticket in tickets.open_at(tx, self._core.uid, now)]
        oldest: dict[str, str] = {}
        for address in addresses:
            branch, partition = folder_parts(address)
            oldest[branch] = max(oldest.get(branch, ""), partition)  # names count time downwards
        return Uploads(self._put(run, "tickets", addresses), oldest)

    def dropped(self, run: Run, since: datetime | None) -> HeldFile:
        """The addresses that a staging area released since then, if ever."""
        found = [pa.array([], pa.string())]
        if since is not None:
            with self._core.database.read() as tx:
                found += dropped.since(tx, self._core.uid, since)
        return self._put(run, "dropped", pa.chunked_array([inside(some, self._core.prefix) for some in found]))

    def _put(self, run: Run, name: str, addresses: Sequence[str] | pa.ChunkedArray) -> HeldFile:
        return put_addresses(self._core.store, f"{self._core.prefix}{run.folder}inputs/{name}.parquet", addresses)

    def lists(self, commits: Iterable[Commit]) -> Lists:
        wanted = [commit.metarange for commit in commits]
        return metaranges.lists(self._executor, self._core.store, self._core.ranges, wanted)

    def entries(self, tables: Sequence[RangeData]) -> list[Placed]:
        core = self._core
        return ranges.placed(self._executor, core.store, core.prefix, tables, decoder=core.decoder)

    def distrust(self, damaged: Iterable[str]) -> None:
        for key in damaged:
            ranges.distrust(self._core.store, key)

    def inventory(
        self, run: Run, *, groups: Sequence[str] | None = None, newer_than: Mapping[str, str] | None = None
    ) -> Inventory:
        return listing.take(
            self._executor,
            self._core.store,
            self._core.prefix,
            f"{run.folder}inputs/inventory/",
            data=DATA,
            branches=groups,
            newer_than=newer_than,
            about=self._handed_out,
        )

    def _handed_out(self, folders: Sequence[str]) -> int:
        """How many addresses in these partitions were, at most; of a partition that is not known, as many as can be."""
        with self._core.database.read() as tx:
            known = partitions.handed_out(tx, [folder.rstrip("/").rpartition("/")[2] for folder in folders])
        return sum(known) + PARTITION_OBJECTS * (len(folders) - len(known))

    def groups(self) -> list[str]:
        return listing.branch_uids(self._core.store, self._core.prefix + DATA)

    def group_names(self) -> dict[str, str]:
        with self._core.database.read() as tx:
            former = {uid: f"{name}, deleted: {uid}" for uid, name in refs.former_branches(tx, self._core.uid).items()}
            return former | {branch.uid: branch.name for branch in refs.branches(tx, self._core.uid)}

    def folders(self, groups: Iterable[str]) -> list[str]:
        core = self._core
        return [part for group in groups for part in listing.partitions(core.store, core.prefix + DATA, group)]

    def check_inventory(self, folders: Iterable[str]) -> None:
        restored.check_partitions(self._core, folders)

    def since_copy(self) -> datetime | None:
        return restored.kept_since(self._core)

    def released_since(self, since: datetime) -> set[str]:
        with self._core.database.read() as tx:
            return reader.released_since(tx, self._core, since)

    def paths(self, prefix: str) -> Iterator[str]:
        """A rule counts for old commits too, so a path that no branch shows is still a path."""
        core, start = self._core, encode_prefix(prefix)
        with core.database.read() as tx:
            names = [branch.name for branch in refs.branches(tx, core.uid)]
        for name in names:
            for entry in views.entries(core, name, prefix, delimiter="", after="", gone=True):
                yield entry.path
        stop = after_prefix(start)
        for listed in self.lists(self.snapshot(core.clock()).in_time).ranges.values():
            if listed.max_key >= start and (stop is None or listed.min_key < stop):
                for batch in core.ranges.table(listed.id).scan(start, stop):
                    yield from (decode_path(key) for key in batch["key"].to_pylist())

    def called(self, folders: Iterable[str]) -> dict[str, str]:  # noqa: ARG002
        return {}

    def resolve(self, ref: str) -> str:
        with self._core.database.read() as tx:
            return refs.resolve(tx, self._core.uid, ref).commit.id

    def tables_of(self, commit: Commit) -> Sequence[RangeData]:
        with telling_gone(self._core, commit.id):
            return self._core.ranges.metarange(commit.metarange)

    def rows_of(self, table: RangeData) -> pa.RecordBatch:
        return entry_columns(self._core.ranges.read(table), table.id)

    def staged_branches(self) -> list[str]:
        with self._core.database.read() as tx:
            found = refs.branches(tx, self._core.uid)
            return [branch.name for branch in found if not staging.is_empty(tx, branch.tokens)]

    def changes_on(self, branch: str) -> Iterator[pa.RecordBatch]:
        return changes_on(self._core, branch)
