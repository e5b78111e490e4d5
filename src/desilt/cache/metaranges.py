"""The ranges that metaranges list, many metaranges to a file: a run reads only the metaranges that are new.

A file is named by the hash of what is in it, so a damaged one is told from a
sound one, and what it held is read again.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from desilt import cycles
from desilt.errors import NotFound
from desilt.executors.executor import Executor
from desilt.objects import open_store
from desilt.objects.store import ObjectStore
from desilt.sstable.ranges import EMPTY, Ranges
from desilt.sstable.values import RangeData

FOLDER = "_desilt/metaranges/"
VERSION = 2
TO_A_FILE = 50  # metaranges; fewer than that are quickly read again
MOST_TO_A_FILE = 1_000
FILES_TO_A_WORKER = 4  # at most, where there is enough to read: each is a task
ROWS_TO_A_METARANGE = 1_000  # as long as it takes to decode so many, small as it is


@dataclass(slots=True)
class Lists:
    """Ranges, by id, and which of them each metarange lists."""

    ranges: dict[str, RangeData] = field(default_factory=dict)
    of: dict[str, list[str]] = field(default_factory=dict)

    def add(self, metarange: str, listed: Sequence[RangeData]) -> None:
        self.of[metarange] = [one.id for one in listed]
        self.ranges |= {one.id: one for one in listed}

    def join(self, other: "Lists") -> None:
        self.of |= other.of
        self.ranges |= other.ranges


class Listing(Protocol):
    """What lists ranges, or other tables, below a prefix of a store."""

    @property
    def prefix(self) -> str: ...

    @property
    def folder(self) -> str: ...

    def metaranges(self, metaranges: Sequence[str], /) -> Iterable[Sequence[RangeData]]:
        """What each of some lists."""


Opens = Callable[[ObjectStore, str, str], Listing]  # by prefix and folder; it is sent to executors


def metaranges_in(store: ObjectStore, prefix: str, folder: str) -> Listing:
    return Ranges(store, prefix, folder=folder)


@dataclass(frozen=True, slots=True)
class MetarangePiece:
    """Metaranges to be read into one file."""

    store: str
    prefix: str
    folder: str  # that they are in
    opens: Opens
    metaranges: tuple[str, ...]


@cycles.left_alone()
def lists(
    executor: Executor,
    store: ObjectStore,
    ranges: Listing,
    metaranges: Sequence[str],
    *,
    opens: Opens = metaranges_in,
) -> Lists:
    """What ``metaranges`` list; those that lie together there (in time, say) are kept together.

    ``opens`` is how another process gets at ``ranges``.
    """
    wanted = dict.fromkeys(one for one in metaranges if one != EMPTY)
    found = Lists()

    def take(group: Lists | None) -> None:
        if group is None:
            return
        if group.of.keys() <= wanted.keys():  # unless commits have gone
            found.join(group)
            return
        for metarange in group.of.keys() & wanted.keys():
            found.add(metarange, [group.ranges[name] for name in group.of[metarange]])

    folder = ranges.prefix + FOLDER
    for key in [key for batch in store.list(folder) for key in batch["key"].to_pylist()]:
        take(kept(store, folder, key))
    new = tuple(name for name in wanted if name not in found.of)
    groups = _grouped(new, executor.width)
    pieces = [MetarangePiece(store.uri, ranges.prefix, ranges.folder, opens, group) for group in groups]
    for key in executor(read_group, pieces, rows=len(new) * ROWS_TO_A_METARANGE):
        take(kept(store, folder, key))
    left = [metarange for metarange in new if metarange not in found.of]
    for metarange, listed in zip(left, ranges.metaranges(left), strict=True):
        found.add(metarange, listed)
    return found


def _grouped(metaranges: tuple[str, ...], width: int) -> Iterator[tuple[str, ...]]:
    """Neighbours that are worth a file, for so many workers."""
    size = min(max(TO_A_FILE, len(metaranges) // (FILES_TO_A_WORKER * width)), MOST_TO_A_FILE)
    for at in range(0, len(metaranges) - TO_A_FILE + 1, size):
        yield metaranges[at : at + size]


def read_group(piece: MetarangePiece) -> str:
    """On an executor: read some metaranges, and keep what they list; the key of that."""
    store = open_store(piece.store)
    ranges, group = piece.opens(store, piece.prefix, piece.folder), Lists()
    for metarange, listed in zip(piece.metaranges, ranges.metaranges(piece.metaranges), strict=True):
        group.add(metarange, listed)
    return _keep(store, piece.prefix + FOLDER, group)


def _keep(store: ObjectStore, folder: str, group: Lists) -> str:
    places = {name: place for place, name in enumerate(group.ranges)}
    rows = [
        [one.id, one.min_key.hex(), one.max_key.hex(), one.estimated_size, one.count] for one in group.ranges.values()
    ]
    of = {metarange: [places[name] for name in names] for metarange, names in group.of.items()}
    data = json.dumps({"version": VERSION, "of": of, "ranges": rows}).encode()
    key = f"{folder}{hashlib.sha256(data).hexdigest()}.json"
    store.put(key, [data])
    return key


def kept(store: ObjectStore, folder: str, key: str) -> Lists | None:
    """What a file says, if it is sound, and of this version."""
    try:
        data = store.get(key)
    except NotFound:
        return None  # a collection has just tidied up
    if key != f"{folder}{hashlib.sha256(data).hexdigest()}.json":
        return None  # damaged: what it said is read again
    said = json.loads(data)
    if said["version"] != VERSION:
        return None
    rows = [RangeData(name, bytes.fromhex(a), bytes.fromhex(z), *rest) for name, a, z, *rest in said["ranges"]]
    of = {metarange: [rows[place].id for place in places] for metarange, places in said["of"].items()}
    return Lists({one.id: one for one in rows}, of)
