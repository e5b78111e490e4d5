"""The embedded lake as a source: what holds addresses, and what is stored."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa

from desilt.domain.run import Run
from desilt.errors import Unreadable
from desilt.frames.buckets import hashed
from desilt.frames.schemas import HELD
from desilt.lake import commits, dropped, holds, manifest, refs, repositories, tickets, tombstones
from desilt.lake.holds import Hold, Kind
from desilt.lake.ranges import FOLDER as RANGES
from desilt.lake.repository import Repository
from desilt.sources import inventory, metarange_cache, range_cache
from desilt.sources.held import HeldFile, put
from desilt.sources.inventory import Inventory
from desilt.sources.spread import Spread

ADDRESSES_TO_A_FILE = 200_000


def inside(address: str, prefix: str) -> str:
    """An address as the repository spells it, though a whole one may lead into it after all."""
    return address.rpartition(prefix)[2] if prefix in address else address


@dataclass(frozen=True, slots=True)
class Committed:
    """What commits hold."""

    files: list[HeldFile]
    commits: int
    ranges: int
    entries: int
    generation: int  # of refs, when commits were read
    mark: str  # of that move of refs
    holds: list[Hold]  # all of that same moment: a sweep looks for those made later


@dataclass(frozen=True, slots=True)
class Staged:
    """What staging areas hold."""

    files: list[HeldFile]
    entries: int
    generation: int
    branches: dict[str, str]  # names by uid


@dataclass(frozen=True, slots=True)
class Ticketed:
    """What uploads under way hold."""

    file: HeldFile
    oldest: dict[str, str]  # by branch, the oldest partition that one of them writes to


class LakeSource:
    """A repository of an embedded lake, read by ``spread``."""

    def __init__(self, repository: Repository, spread: Spread) -> None:
        self.repository = repository
        self._core, self._spread = repository.core, spread

    def staged(self, run: Run) -> Staged:
        """Everything staged on every branch, from one snapshot, written into the run's folder."""
        files: list[HeldFile] = []
        waiting: list[str] = []

        def write() -> None:
            files.append(self._addresses(run, f"staged/part-{len(files):05d}", waiting))
            waiting.clear()

        def seen(addresses: list[str]) -> None:
            waiting.extend(inside(address, self._core.prefix) for address in addresses)
            if len(waiting) >= ADDRESSES_TO_A_FILE:
                write()

        taken = manifest.prepare(self._core, folder=f"{run.folder}inputs/manifest/", seen=seen)
        write()
        if sum(file.rows for file in files) != taken.entries:
            raise AssertionError("staged addresses were lost on the way")
        return Staged(files, taken.entries, taken.generation, {one.uid: one.name for one in taken.branches})

    def open_tickets(self, run: Run, now: datetime) -> Ticketed:
        """The addresses of uploads under way."""
        with self._core.database.read() as tx:
            addresses = [ticket.address for ticket in tickets.open_at(tx, self._core.uid, now)]
        oldest: dict[str, str] = {}
        for address in addresses:
            _, branch, partition, _ = address.split("/")
            oldest[branch] = max(oldest.get(branch, ""), partition)  # names count time downwards
        return Ticketed(self._addresses(run, "tickets", addresses), oldest)

    def restored(self, run: Run, since: datetime) -> HeldFile:
        """The addresses that were brought back from the trash since then."""
        with self._core.database.read() as tx:
            return self._addresses(run, "restored", tombstones.restored_since(tx, self._core.uid, since))

    def dropped(self, run: Run, since: datetime | None) -> HeldFile:
        """The addresses that a staging area let go of since then, if ever. To be read after what is staged."""
        with self._core.database.read() as tx:
            lately = dropped.since(tx, self._core.uid, since) if since else ()
            found = [inside(one, self._core.prefix) for one in lately]
        return self._addresses(run, "dropped", found)

    def unsettled(self, run: Run) -> HeldFile:
        """The addresses on record whose objects may be there, or there again."""
        with self._core.database.read() as tx:
            return self._addresses(run, "unsettled", tombstones.unsettled(tx, self._core.uid))

    def held(self, run: Run, orders: Iterable[Hold]) -> HeldFile:
        """The addresses that people ordered to be kept, one by one."""
        return self._addresses(run, "holds", [hold.value for hold in orders if hold.kind is Kind.ADDRESS])

    def _addresses(self, run: Run, name: str, addresses: Sequence[str]) -> HeldFile:
        rows = pa.table([pa.array(addresses, pa.string()), np.zeros(len(addresses), np.int32)], schema=HELD)
        return put(self._core.store, f"{self._core.prefix}{run.folder}inputs/{name}.parquet", hashed(rows))

    def committed(self, run: Run) -> Committed:
        """What every commit holds, reachable or not; ranges that were never decoded are, now."""
        with self._core.database.read() as tx:
            generation = repositories.generation(tx, self._core.uid)
            mark = repositories.mark_at(tx, self._core.uid, generation)
            orders = holds.every(tx, self._core.uid)
            found = list(commits.every(tx, self._core.uid))
            named = {branch.head for branch in refs.branches(tx, self._core.uid)}
            named |= {tag.target for tag in refs.tags(tx, self._core.uid)}
        named |= {parent for commit in found for parent in commit.parents}
        missing = sorted(named - {commit.id for commit in found})
        if missing or not found:
            raise Unreadable(
                f"commit {(missing or ['of the root'])[0]} is missing from the database; see `desilt fsck`"
            )
        metaranges = [commit.metarange for commit in sorted(found, key=lambda commit: (commit.created_at, commit.id))]
        ranges = metarange_cache.lists(self._core.store, self._core.ranges, metaranges).ranges
        wanted = [ranges[name] for name in sorted(ranges)]
        files = range_cache.held(self._spread, self._core.store, self._core.prefix, wanted, source=RANGES)
        names = "".join(f"{listed.id}\n" for listed in wanted)
        self._core.store.put(f"{self._core.prefix}{run.folder}inputs/ranges.txt", [names.encode()])
        entries = sum(listed.count for listed in wanted)
        return Committed(files, len(metaranges), len(wanted), entries, generation, mark, orders)

    def distrust(self, damaged: Iterable[str]) -> None:
        """Cache files that turned out damaged are not used again; what they held is decoded anew."""
        for key in damaged:
            range_cache.distrust(self._core.store, key)

    def inventory(
        self, run: Run, *, branches: Sequence[str] | None = None, newer_than: Mapping[str, str] | None = None
    ) -> Inventory:
        """What the store lists, in the run's folder: all, or some branches, or what is newer than boundaries."""
        return inventory.take(
            self._spread,
            self._core.store,
            self._core.prefix,
            f"{run.folder}inputs/inventory/",
            branches=branches,
            newer_than=newer_than,
        )
