"""Every entry of some commits, looked through for one address or one path.

The range cache is sorted by the hash of addresses, so one address is found by reading one bucket of each cache
file: seconds, however many entries there are. Ranges that were never decoded are, now, as in a run.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from desilt.cache import ranges as range_cache
from desilt.cache.ranges import Decoder
from desilt.columns.buckets import HASH, around, every
from desilt.columns.files import Files, HeldFile
from desilt.columns.hashing import address_hash
from desilt.domain.entry import decode_path, encode_path
from desilt.domain.history import Commit
from desilt.errors import Damaged, NotFound, NotReadBack
from desilt.executors.executor import HERE
from desilt.objects.store import ObjectStore
from desilt.sstable.values import RangeData

Found = TypeVar("Found")
Look = Callable[[HeldFile, Files, Sequence[str]], Iterator[Found]]  # the names are the owners' ranges


class CommittedEntries:
    """Every entry of every commit, to be looked through by address or by path."""

    def __init__(
        self,
        store: ObjectStore,
        prefix: str,
        listed_by: Callable[[str], Sequence[RangeData]],  # a metarange
        commits: Iterable[Commit],
        *,
        decoder: Decoder,
    ) -> None:
        self._store, self._prefix, self._decoder = store, prefix, decoder
        self._ranges: dict[str, RangeData] = {}
        self._listing: dict[str, list[str]] = {}
        for metarange in sorted({commit.metarange for commit in commits}):
            for listed in listed_by(metarange):
                self._ranges[listed.id] = listed
                self._listing.setdefault(listed.id, []).append(metarange)

    def holders(self, addresses: Iterable[str]) -> dict[str, dict[str, set[str]]]:
        """By address: the metaranges that hold it, each with the paths it has there."""
        found: dict[str, dict[str, set[str]]] = {address: {} for address in addresses}
        if not found:
            return found
        wanted = pa.array(found, pa.string())
        hashes = address_hash(wanted)

        def look(held: HeldFile, files: Files, names: Sequence[str]) -> Iterator[tuple[str, str, str]]:
            for bucket in around(hashes, held.buckets):
                if np.isin(files.rows(held, bucket, [HASH])[HASH].to_numpy(), hashes).any():  # few files go on
                    rows = files.rows(held, bucket, [HASH, "owner", "address", "path"])
                    yield from _named(held, names, rows.filter(pc.is_in(rows["address"], value_set=wanted)))

        for address, name, path in self._each(look):
            for metarange in self._listing[name]:
                found[address].setdefault(metarange, set()).add(path)
        return found

    def addresses(self, path: str) -> list[str]:
        """Where ``path`` has ever pointed to inside the repository, in any commit."""
        key = encode_path(path)
        near = {name for name, listed in self._ranges.items() if listed.min_key <= key <= listed.max_key}

        def look(held: HeldFile, files: Files, names: Sequence[str]) -> Iterator[str]:
            if near.isdisjoint(names):
                return
            for bucket in every(held.buckets):
                rows = files.rows(held, bucket, [HASH, "owner", "address", "path"])
                yield from (row[0] for row in _named(held, names, rows.filter(pc.equal(rows["path"], key))))

        return sorted(set(self._each(look)))

    def _each(self, look: Look[Found]) -> list[Found]:
        """What ``look`` finds in every cache file; a damaged one is made again, once."""
        store, found, damaged = self._store, [], []
        for held in self._files():
            try:
                found += list(look(held, Files(store), self._names(held)))
            except Damaged:
                damaged.append(held)
        if damaged:
            for held in damaged:
                range_cache.distrust(store, held.key)
            found = [one for held in self._files() for one in look(held, Files(store), self._names(held))]
        return found

    def _files(self) -> list[HeldFile]:
        wanted = [self._ranges[name] for name in sorted(self._ranges)]
        return range_cache.held(HERE, self._store, self._prefix, wanted, decoder=self._decoder)

    def _names(self, held: HeldFile) -> list[str]:
        """The ranges of a cache file, by the number of the owner that each is in it."""
        try:
            said = json.loads(self._store.get(f"{held.key.removesuffix('.parquet')}.json"))
            named = [(str(name), int(count)) for name, count in said["ranges"]]
        except (NotFound, ValueError, KeyError, TypeError):
            raise NotReadBack(held.key, "what it holds is not said") from None
        for owner in range(len(named)) if held.owners is None else held.owners:
            if owner >= len(named) or named[owner][0] not in self._ranges:
                raise NotReadBack(held.key, f"it has no range {owner}")
        return [name for name, _ in named]


def _named(held: HeldFile, names: Sequence[str], rows: pa.Table) -> Iterator[tuple[str, str, str]]:
    """Address, range and path of cached entries, of those ranges that count."""
    columns = (rows[name].to_pylist() for name in ("address", "owner", "path"))
    for address, owner, path in zip(*columns, strict=True):
        if held.owners is None or owner in held.owners:
            yield address, names[owner], decode_path(path)
