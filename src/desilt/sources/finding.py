"""One address, or one path, looked for among everything that commits and staging areas hold.

The range cache is sorted by the hash of addresses, so one address is found by reading one bucket of each cache
file: seconds, however many entries there are. Ranges that were never decoded are, now, as in a run.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from desilt.domain.entry import AddressType, Entry, decode_path, encode_path
from desilt.domain.history import Commit, walk
from desilt.errors import CorruptTable, NotFound, Unreadable
from desilt.frames.buckets import BUCKETS, HASH
from desilt.frames.hashing import address_hash, bucket_of
from desilt.lake import commits, refs, staging
from desilt.lake.core import Core
from desilt.lake.database import Transaction
from desilt.lake.listing import lookup
from desilt.lake.ranges import FOLDER as RANGES
from desilt.lake.reading import view
from desilt.lake.refs import Branch, Tag
from desilt.sources import range_cache
from desilt.sources.held import HeldFile, opened, rows_of
from desilt.sources.spread import in_process
from desilt.sstable.values import RangeData, decode_entry

Found = TypeVar("Found")
Look = Callable[[HeldFile, pq.ParquetFile, Sequence[str]], Iterator[Found]]  # the names are the owners' ranges


@dataclass(frozen=True, slots=True)
class History:
    """All commits and refs, as one snapshot shows them."""

    commits: Mapping[str, Commit]
    branches: Sequence[Branch]
    tags: Sequence[Tag]


def read_history(tx: Transaction, core: Core) -> History:
    """All of it, or :class:`Unreadable`: as for a run, a missing commit or branch is not an empty one."""
    found = {commit.id: commit for commit in commits.every(tx, core.uid)}
    seen = History(found, refs.branches(tx, core.uid), list(refs.tags(tx, core.uid)))
    named = {branch.head for branch in seen.branches} | {tag.target for tag in seen.tags}
    named |= {parent for commit in found.values() for parent in commit.parents}
    if missing := sorted(named - found.keys()) or ([] if found else ["of the root"]):
        raise Unreadable(f"commit {missing[0]} is missing from the database; see `desilt fsck`")
    if stray := staging.strays(tx):
        raise Unreadable(f"staging area {stray[0]} belongs to no branch: rows are missing; see `desilt fsck`")
    return seen


class Reach:
    """Which commits have which in their history."""

    def __init__(self, history: History) -> None:
        self._tips = [("branch", branch.name, branch.head) for branch in history.branches]
        self._tips += [("tag", tag.name, tag.target) for tag in history.tags]
        self._children: dict[str, list[str]] = {}
        for commit in history.commits.values():
            for parent in commit.parents:
                self._children.setdefault(parent, []).append(commit.id)
        tips = (tip for _, _, tip in self._tips)
        self.reached = {commit.id for commit in walk(history.commits.__getitem__, *tips)}  # by any ref

    def refs(self, ids: set[str]) -> Iterator[tuple[str, str, bool]]:
        """Kind and name of every ref that reaches one of the commits ``ids``; and whether it points to one."""
        descend, waiting = set(ids), list(ids)
        while waiting:
            new = [child for child in self._children.get(waiting.pop(), ()) if child not in descend]
            descend.update(new)
            waiting += new
        return ((kind, name, tip in ids) for kind, name, tip in self._tips if tip in descend)


def held_by(core: Core, entry: Entry) -> str:
    """The address in the repository that ``entry`` holds, as runs see it; a whole URI if it lies elsewhere."""
    by_prefix = entry.address_type is AddressType.BY_PREFIX and "://" not in entry.address
    if entry.address_type is AddressType.RELATIVE or by_prefix:
        return entry.address
    return entry.address.rpartition(core.prefix)[2]  # one that leads into the repository after all holds it


def places_at(core: Core, path: str, ref: str) -> dict[str, list[str]]:
    """What ``path`` points to at ``ref``, with what is staged there on top: none, or one."""
    key = encode_path(path)
    with view(core, ref) as (tx, seen):
        value = lookup(tx, core.ranges, seen, key)
    return {} if value is None else {held_by(core, decode_entry(key, value)): [ref]}


def places_today(tx: Transaction, core: Core, history: History, path: str) -> dict[str, list[str]]:
    """Every address that ``path`` has on a branch, staged or committed, or at a tag; and where it has it."""
    key = encode_path(path)
    seen: list[tuple[bytes | None, str]] = []
    for branch in history.branches:
        hidden = ""
        for token in branch.tokens:
            known, value = staging.find(tx, [token], key)
            seen.append((value, f"{branch.name} (staged{hidden})"))
            hidden = ", hidden" if known else hidden
    heads = [(branch.head, branch.name) for branch in history.branches]
    heads += [(tag.target, f"tag {tag.name}") for tag in history.tags]
    values: dict[str, bytes | None] = {}
    for head, name in heads:
        metarange = history.commits[head].metarange
        if metarange not in values:
            values[metarange] = core.ranges.get(metarange, key)
        seen.append((values[metarange], name))
    places: dict[str, list[str]] = {}
    for value, place in seen:
        if value is not None:
            places.setdefault(held_by(core, decode_entry(key, value)), []).append(place)
    return places


def staged_holders(
    tx: Transaction, core: Core, branches: Iterable[Branch], address: str
) -> Iterator[tuple[Branch, str, bool]]:
    """Branch and path of everything staged that holds ``address``; and whether something newer hides it."""
    areas = {token: (branch, age) for branch in branches for age, token in enumerate(branch.tokens)}
    rows = tx.rows(
        "SELECT token, path, value FROM staging WHERE address = ? OR address LIKE ?",
        *(address, f"%{core.prefix}{address}"),  # finds more than is meant: what is found is read
    )
    for token, path, value in list(rows):
        key = bytes(path)
        if token in areas and held_by(core, decode_entry(key, bytes(value))) == address:
            branch, age = areas[token]
            yield branch, decode_path(key), staging.find(tx, branch.tokens[:age], key)[0]


class Committed:
    """Every entry of every commit, to be looked through by address or by path."""

    def __init__(self, core: Core, metaranges: Iterable[str]) -> None:
        self._core = core
        self._ranges: dict[str, RangeData] = {}
        self._listing: dict[str, list[str]] = {}
        for metarange in sorted(set(metaranges)):
            for listed in core.ranges.metarange(metarange):
                self._ranges[listed.id] = listed
                self._listing.setdefault(listed.id, []).append(metarange)

    def holders(self, addresses: Iterable[str]) -> dict[str, dict[str, set[str]]]:
        """By address: the metaranges that hold it, each with the paths it has there."""
        found: dict[str, dict[str, set[str]]] = {address: {} for address in addresses}
        if not found:
            return found
        wanted = pa.array(found, pa.string())
        hashes = address_hash(wanted)
        buckets = bucket_of(hashes, BUCKETS)

        def look(held: HeldFile, file: pq.ParquetFile, names: Sequence[str]) -> Iterator[tuple[str, str, str]]:
            for number in np.unique(buckets).tolist():
                if np.isin(rows_of(held, file, number, [HASH])[HASH].to_numpy(), hashes).any():  # few files go on
                    rows = rows_of(held, file, number, [HASH, "owner", "address", "path"])
                    yield from _named(held, names, rows.filter(pc.is_in(rows["address"], value_set=wanted)))

        for address, name, path in self._each(look):
            for metarange in self._listing[name]:
                found[address].setdefault(metarange, set()).add(path)
        return found

    def addresses(self, path: str) -> list[str]:
        """Where ``path`` has ever pointed to inside the repository, in any commit."""
        key = encode_path(path)
        near = {name for name, listed in self._ranges.items() if listed.min_key <= key <= listed.max_key}

        def look(held: HeldFile, file: pq.ParquetFile, names: Sequence[str]) -> Iterator[str]:
            if near.isdisjoint(names):
                return
            for number in range(BUCKETS):
                rows = rows_of(held, file, number, [HASH, "owner", "address", "path"])
                yield from (row[0] for row in _named(held, names, rows.filter(pc.equal(rows["path"], key))))

        return sorted(set(self._each(look)))

    def _each(self, look: Look[Found]) -> list[Found]:
        """What ``look`` finds in every cache file; a damaged one is made again, once."""
        store, found, damaged = self._core.store, [], []
        for held in self._files():
            try:
                found += list(look(held, opened(store, held), self._names(held)))
            except CorruptTable:
                damaged.append(held)
        if damaged:
            for held in damaged:
                range_cache.distrust(store, held.key)
            found = [one for held in self._files() for one in look(held, opened(store, held), self._names(held))]
        return found

    def _files(self) -> list[HeldFile]:
        wanted = [self._ranges[name] for name in sorted(self._ranges)]
        return range_cache.held(in_process, self._core.store, self._core.prefix, wanted, source=RANGES)

    def _names(self, held: HeldFile) -> list[str]:
        """The ranges of a cache file, by the number of the owner that each is in it."""
        try:
            said = json.loads(self._core.store.get(f"{held.key.removesuffix('.parquet')}.json"))
            named = [(str(name), int(count)) for name, count in said["ranges"]]
        except (NotFound, ValueError, KeyError, TypeError):
            raise CorruptTable(held.key, "what it holds is not said") from None
        for owner in held.owners or ():
            if owner >= len(named) or named[owner][0] not in self._ranges:
                raise CorruptTable(held.key, f"it has no range {owner}")
        return [name for name, _ in named]


def _named(held: HeldFile, names: Sequence[str], rows: pa.Table) -> Iterator[tuple[str, str, str]]:
    """Address, range and path of cached entries, of those ranges that count."""
    columns = (rows[name].to_pylist() for name in ("address", "owner", "path"))
    for address, owner, path in zip(*columns, strict=True):
        if held.owners is None or owner in held.owners:
            yield address, names[owner], decode_path(path)
