"""One address, or one path, of a server's repository: what serves it, and what holds it."""

from collections.abc import Collection
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from desilt.cache.lookup import CommittedEntries
from desilt.domain.entry import decode_path
from desilt.domain.history import Commit
from desilt.executors.executor import HERE
from desilt.inventory.listing import stored_at
from desilt.lakefs import history, sightings
from desilt.lakefs.core import PREFIX, LakefsCore
from desilt.lakefs.layout import LAYOUT
from desilt.lakefs.source import LakefsSource
from desilt.lakefs.staged import staged_now
from desilt.objects.store import check_key, flaw
from desilt.repository.snapshot import Snapshot
from desilt.repository.witness import Holders, HoldingArea, Places, Uncommitted

UNLISTED = HoldingArea("some branch", "a path that has the same bytes in its commit", hidden=False)


class LakefsWitness:
    """Of one repository of a server."""

    def __init__(self, core: LakefsCore) -> None:
        self._core = core

    def address_in(self, wanted: str) -> str | None:
        if LAYOUT.is_object(wanted):
            return wanted
        if "://" not in wanted:
            return None
        inside = self._core.place.inside(pa.array([wanted]))[0].as_py()
        return None if inside is None else check_key(inside)

    def places(self, path: str, ref: str | None) -> Places:
        """Every address of ``path``: anywhere today, or at ``ref``; of one that is nowhere, those it ever had."""
        core = self._core
        seen = history.read(core, core.clock())
        today = [*(branch.name for branch in seen.branches), *(tag.name for tag in seen.tags)]
        names = today if ref is None else [ref]
        places: dict[str, list[str]] = {}
        for name in names:
            if served := core.server.served(name, path):
                inside = core.place.inside(pa.array([served.address]))[0].as_py()
                places.setdefault(inside or served.address, []).append(name)
        if not places and ref is None:
            ever = self._committed(seen.commits.values()).addresses(path)
            places = {address: ["history"] for address in ever}
        if not places and path.startswith(LAYOUT.data) and not flaw(path):
            return {path: []}
        return places

    def seen(self, addresses: Collection[str], now: datetime) -> tuple[Snapshot, dict[str, Uncommitted]]:
        core, wanted = self._core, pa.array(list(addresses), pa.string())
        listed = staged_now(core)
        seen = history.read(core, now)
        staged = set(listed.filter(pc.is_in(listed, value_set=wanted)).to_pylist())
        areas = self._areas(staged)
        areas |= {one: [UNLISTED] for one in (staged | self._served(seen, wanted)) - areas.keys()}
        return seen, {
            one: Uncommitted(tuple(areas.get(one, ())), listed_since=self._listed_since(one)) for one in addresses
        }

    def _listed_since(self, address: str) -> datetime | None:
        return sightings.listed_since(self._core, address) if self._there(address) else None

    def _areas(self, staged: set[str]) -> dict[str, list[HoldingArea]]:
        """Where each is staged: branches are asked what differs from their commits."""
        source, found = LakefsSource(self._core, HERE), dict[str, list[HoldingArea]]()
        for branch in source.staged_branches() if staged else ():
            for rows in source.changes_on(branch):
                for path, address in zip(rows["path"].to_pylist(), rows["address"].to_pylist(), strict=True):
                    if address in staged:
                        found.setdefault(address, []).append(HoldingArea(branch, decode_path(path), hidden=False))
        return found

    def _served(self, seen: Snapshot, wanted: pa.Array) -> set[str]:
        """Which a branch serves, though nothing lists it."""
        core, source = self._core, LakefsSource(self._core, HERE)
        sizes = [core.store.head(PREFIX + one).size if self._there(one) else -1 for one in wanted.to_pylist()]
        rows = pa.table([wanted, pa.array(sizes, pa.int64())], names=["address", "size_bytes"])
        return set(source.served(seen, rows).to_pylist())

    def _there(self, address: str) -> bool:
        return "://" not in address and stored_at(self._core.store, PREFIX + address) is not None

    def holders(self, commits: Collection[Commit], addresses: Collection[str]) -> Holders:
        return self._committed(commits).holders(addresses)

    def _committed(self, commits: Collection[Commit]) -> CommittedEntries:
        core = self._core
        return CommittedEntries(core.store, PREFIX, core.ranges.metarange, commits, decoder=core.decoder)

    def since_copy(self) -> datetime | None:
        return None
