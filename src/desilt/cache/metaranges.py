"""The ranges that metaranges list, many metaranges to a file: a run reads only the metaranges that are new.

A file is named by the hash of what is in it, so a damaged one is told from a
sound one, and what it held is read again.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from desilt.errors import NotFound
from desilt.objects.store import ObjectStore
from desilt.sstable.ranges import EMPTY, Ranges
from desilt.sstable.values import RangeData

FOLDER = "_desilt/metaranges/"
VERSION = 2
TO_A_FILE = 50  # metaranges; fewer than that are quickly read again


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


def lists(store: ObjectStore, ranges: Ranges, metaranges: Sequence[str]) -> Lists:
    """What ``metaranges`` list; those that lie together there (in time, say) are kept together."""
    wanted = dict.fromkeys(one for one in metaranges if one != EMPTY)
    found = Lists()
    for kept in _kept(store, ranges.prefix + FOLDER):
        if kept.of.keys() <= wanted.keys():  # unless commits have gone
            found.join(kept)
            continue
        for metarange in kept.of.keys() & wanted.keys():
            found.add(metarange, [kept.ranges[name] for name in kept.of[metarange]])
    new = [name for name in wanted if name not in found.of]
    for at in range(0, len(new), TO_A_FILE):
        group = Lists()
        for metarange in new[at : at + TO_A_FILE]:
            group.add(metarange, list(ranges.metarange(metarange)))
        if len(group.of) == TO_A_FILE:
            _keep(store, ranges.prefix + FOLDER, group)
        found.join(group)
    return found


def _keep(store: ObjectStore, folder: str, group: Lists) -> None:
    places = {name: place for place, name in enumerate(group.ranges)}
    rows = [
        [one.id, one.min_key.hex(), one.max_key.hex(), one.estimated_size, one.count] for one in group.ranges.values()
    ]
    of = {metarange: [places[name] for name in names] for metarange, names in group.of.items()}
    data = json.dumps({"version": VERSION, "of": of, "ranges": rows}).encode()
    store.put(f"{folder}{hashlib.sha256(data).hexdigest()}.json", [data])


def _kept(store: ObjectStore, folder: str) -> Iterator[Lists]:
    """What each sound file says."""
    for key in [key for batch in store.list(folder) for key in batch["key"].to_pylist()]:
        try:
            data = store.get(key)
        except NotFound:
            continue  # a collection has just tidied up
        if key != f"{folder}{hashlib.sha256(data).hexdigest()}.json":
            continue  # damaged: what it said is read again
        said = json.loads(data)
        if said["version"] == VERSION:
            rows = [RangeData(name, bytes.fromhex(a), bytes.fromhex(z), *rest) for name, a, z, *rest in said["ranges"]]
            of = {metarange: [rows[place].id for place in places] for metarange, places in said["of"].items()}
            yield Lists({one.id: one for one in rows}, of)
