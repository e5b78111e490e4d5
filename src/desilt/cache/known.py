"""What the range cache has: files of decoded entries, each with a word beside it that says what is in it.

A word is written after its file, and is believed when it is whole and fits: of this version, about a
file of this size, and with as many entries of a range as the metarange says. A file
that replaces others (:mod:`desilt.cache.growth`) names them, and then these are not
even asked for what they say.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

from desilt.columns.files import HeldFile
from desilt.errors import NotFound
from desilt.objects.store import ObjectStore

VERSION = 5  # files of others are not read, and go with the next collection


class Owner(NamedTuple):
    """A range in a cache file: how many entries it has, and how many of them are rows there, pointing inside."""

    id: str
    entries: int
    rows: int


@dataclass(frozen=True, slots=True)
class CacheFile:
    """A file, and what its word says of it; an owner is numbered by its place."""

    file: HeldFile
    owners: tuple[Owner, ...]
    replaces: frozenset[str] = frozenset()  # keys of files whose ranges are here
    dropped: frozenset[str] = frozenset()  # ranges that those had and this one has not: there were no such tables
    generation: int = 0  # how often its rows were merged

    @property
    def rank(self) -> tuple[int, int, str]:
        """Of files that have the same range the highest is read."""
        return self.generation, len(self.owners), self.file.key


class RangePlace(NamedTuple):
    """Where the entries of a range are."""

    cached: CacheFile
    owner: int


def say(store: ObjectStore, cached: CacheFile, size: int) -> None:
    """Write the word that a file, so many bytes long, is there."""
    said = {
        "version": VERSION,
        "buckets": cached.file.buckets,
        "rows": cached.file.rows,
        "footer": cached.file.footer,
        "sums": dict(cached.file.sums),
        "bytes": size,
        "ranges": [[owner.id, owner.entries] for owner in cached.owners],
        "owned": [owner.rows for owner in cached.owners],
        "replaces": sorted(cached.replaces),
        "dropped": sorted(cached.dropped),
        "generation": cached.generation,
    }
    store.put(word_of(cached.file.key), [sealed(said)])


def word_of(key: str) -> str:
    return f"{key.removesuffix('.parquet')}.json"


def sound(
    store: ObjectStore, folder: str, wanted: Mapping[str, int], *, made: AbstractSet[str] = frozenset()
) -> list[CacheFile]:
    """The files below ``folder`` that count: those that others replace do not, unless they were ``made`` just now.

    ``wanted`` are ranges, with entries.
    """
    sizes = {
        key: size
        for batch in store.list(folder)
        for key, size in zip(batch["key"].to_pylist(), batch["size_bytes"].to_pylist(), strict=True)
    }
    found: list[CacheFile] = []
    replaced: set[str] = set()
    # A file that replaces others has more to say than each of them: so theirs need not be read.
    for word in sorted((key for key in sizes if key.endswith(".json")), key=lambda key: (-sizes[key], key)):
        key = f"{word.removesuffix('.json')}.parquet"
        if key in replaced or key not in sizes:
            continue
        said = read(store, word, sizes[key])
        if said is None or any(wanted.get(owner.id, owner.entries) != owner.entries for owner in said.owners):
            continue
        found.append(said)
        if said.dropped.isdisjoint(wanted):
            replaced |= said.replaces - made
    return [one for one in found if one.file.key not in replaced]


def places(files: Iterable[CacheFile]) -> dict[str, RangePlace]:
    """Where each range is."""
    found: dict[str, RangePlace] = {}
    for cached in sorted(files, key=lambda one: one.rank):
        found |= {owner.id: RangePlace(cached, number) for number, owner in enumerate(cached.owners)}
    return found


def read(store: ObjectStore, word: str, size: int) -> CacheFile | None:
    """What a word says of a file of so many bytes; None if it does not fit, or is damaged, or was just tidied up."""
    key = f"{word.removesuffix('.json')}.parquet"
    try:
        text = store.get(word)
        said = json.loads(text)
        if text != sealed(said):
            return None
        file = HeldFile(key, int(said["rows"]), str(said["footer"]), dict(said["sums"]))
        if (said["version"], said["buckets"], said["bytes"]) != (VERSION, file.buckets, size):
            return None
        owners = tuple(
            Owner(str(name), int(entries), int(rows))
            for (name, entries), rows in zip(said["ranges"], said["owned"], strict=True)
        )
        replaces, dropped = _names(said["replaces"]), _names(said["dropped"])
        if sum(owner.rows for owner in owners) != file.rows or any(owner.rows > owner.entries for owner in owners):
            return None
        return CacheFile(file, owners, replaces - {key}, dropped, int(said["generation"]))
    except (NotFound, ValueError, KeyError, TypeError, AttributeError):
        return None


def sealed(said: Mapping[str, object]) -> bytes:
    """A word as it is written: with a digest of all else that it says."""
    rest = {name: value for name, value in said.items() if name != "digest"}
    return json.dumps({**rest, "digest": hashlib.sha256(json.dumps(rest).encode()).hexdigest()}).encode()


def _names(said: Sequence[object]) -> frozenset[str]:
    return frozenset(str(name) for name in said)
