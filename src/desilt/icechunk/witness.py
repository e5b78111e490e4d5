"""One chunk of an Icechunk repository, by its address or by a path: what has it.

A path is an array's (``group/array``) or one chunk's, as zarr has it (``group/array/c/0/1``).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache

from desilt.cache import metaranges
from desilt.cache.lookup import CommittedEntries
from desilt.cache.metaranges import Lists
from desilt.domain.history import Commit
from desilt.errors import BadRequest
from desilt.executors.executor import HERE
from desilt.icechunk import seen
from desilt.icechunk.core import PREFIX, IcechunkCore
from desilt.icechunk.format import manifest, nodes
from desilt.icechunk.format.ids import names_of
from desilt.icechunk.format.nodes import Arrays
from desilt.icechunk.layout import CHUNKS, LAYOUT, MANIFESTS, TRANSACTIONS
from desilt.icechunk.tables import ManifestDecoder, SnapshotLists, as_listed, column, paths, snapshots_in
from desilt.objects.store import flaw
from desilt.repository.snapshot import Snapshot
from desilt.repository.witness import Holders, Places, Uncommitted
from desilt.sstable.values import RangeData

MOST = 1_000  # chunks of an array that are explained one by one


class IcechunkWitness:
    """Of one repository."""

    def __init__(self, core: IcechunkCore) -> None:
        self._core = core
        self._arrays = lru_cache(maxsize=1_000)(self._read_arrays)  # neither these nor manifests ever change
        self._rows = lru_cache(maxsize=8)(self._read_rows)

    def address_in(self, wanted: str) -> str | None:
        place = self._core.store.uri.partition("?")[0].rstrip("/") + "/"
        below = wanted.removeprefix("icechunk+").removeprefix(place)
        return below if LAYOUT.is_object(below) or LAYOUT.is_table(below) else None

    def places(self, path: str, ref: str | None) -> Places:
        """The chunks of ``path``: on any branch or tag, or at ``ref``; of what is on none, those it ever had."""
        core = self._core
        whole = seen.read(core, core.clock())
        path = path.strip("/")
        if ref is not None:
            return self._found(path, {ref: seen.resolved(whole, ref)})
        today = {branch.name: branch.head for branch in whole.branches}
        today |= {f"tag {tag.name}": tag.target for tag in whole.tags}
        if found := self._found(path, today):
            return found
        past = [commit.id for commit in reversed(whole.in_time)]
        if found := {address: ["history"] for name in past for address in self._chunks(name, path)}:
            return found
        return {path: []} if path.startswith(LAYOUT.data) and not flaw(path) else {}

    def _found(self, path: str, names: Mapping[str, str]) -> dict[str, Sequence[str]]:
        """By address, at which of ``names`` (refs, with their snapshots) ``path`` has it."""
        at: dict[str, list[str]] = {}
        for name, snapshot in names.items():
            at.setdefault(snapshot, []).append(name)
        places: dict[str, Sequence[str]] = {}
        for snapshot, refs in at.items():
            for address in self._chunks(snapshot, path):
                places[address] = [*places.get(address, ()), *refs]
        return places

    def _chunks(self, snapshot: str, path: str) -> Iterator[str]:
        """The addresses that ``path`` has in a snapshot: of one chunk, or of all chunks of an array."""
        arrays = self._arrays(snapshot)
        node = arrays.nodes.get(path)
        array = path if node is not None else arrays.around(path)
        if array is None:
            return
        node = arrays.nodes[array]
        wanted = node + path.removeprefix(array) if array else f"{node}/{path}"
        listed = {one.id: one for one in SnapshotLists(self._core.store).metarange(snapshot)}
        found = [
            (key, place)
            for name in arrays.manifests[node]
            for key, place in self._rows(listed[name])
            if key == wanted or (array == path and key.startswith(f"{node}/"))
        ]
        if len(found) > MOST:
            raise BadRequest(f"{path!r} has {len(found):,} chunks; name one, as in {arrays.called(found[0][0])}")
        yield from (place for _, place in found)

    def _read_rows(self, listed: RangeData) -> list[tuple[str, str]]:
        """Every chunk of a manifest by the path that it has there, and where it is; an inline one in the manifest."""
        rows = manifest.references(manifest.fetch(self._core.store, as_listed(listed)), locations=True)
        names = iter(names_of(column(rows, "chunk").drop_null()).to_pylist())
        columns = (paths(rows).to_pylist(), rows["kind"].to_pylist(), rows["location"].to_pylist())
        return [
            (path, CHUNKS + next(names) if kind == "native" else location or MANIFESTS + listed.id)
            for path, kind, location in zip(*columns, strict=True)
        ]

    def seen(self, addresses: Collection[str], now: datetime) -> tuple[Snapshot, dict[str, Uncommitted]]:
        """Nobody can know what a session has that is not committed."""
        return seen.read(self._core, now), {one: Uncommitted() for one in addresses}

    def holders(self, commits: Collection[Commit], addresses: Collection[str]) -> Holders:
        store = self._core.store
        names = [commit.metarange for commit in commits]
        lists = metaranges.lists(HERE, store, SnapshotLists(store), names, opens=snapshots_in)
        found = CommittedEntries(
            store,
            PREFIX,
            lambda name: [lists.ranges[one] for one in lists.of[name]],
            commits,
            decoder=ManifestDecoder(),
        ).holders(addresses)
        return {
            address: {
                snapshot: {self._arrays(snapshot).called(path) for path in paths} for snapshot, paths in held.items()
            }
            for address, held in found.items()
        } | {address: self._having(commits, lists, address) for address in addresses if LAYOUT.is_table(address)}

    def _having(self, commits: Collection[Commit], lists: Lists, table: str) -> dict[str, set[str]]:
        """The snapshots that a manifest is of, a log or a file of a snapshot; or that took a log over."""
        folder, _, name = table.rpartition("/")
        also: Mapping[str, Sequence[str]] = lists.of
        if f"{folder}/" != MANIFESTS:
            also = seen.look(self._core, self._core.clock()).found.pruned if f"{folder}/" == TRANSACTIONS else {}
        having = {commit.metarange for commit in commits if name in also.get(commit.metarange, ())}
        if f"{folder}/" != MANIFESTS:
            having |= {name} & {commit.metarange for commit in commits}
        return {snapshot: set() for snapshot in having}

    def since_copy(self) -> datetime | None:
        return None

    def _read_arrays(self, snapshot: str) -> Arrays:
        return nodes.fetch(self._core.store, snapshot)
