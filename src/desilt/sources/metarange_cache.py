"""The ranges that many metaranges list between them, kept together: a run reads only the metaranges that are new.

A file is named by the hash of what is in it, so a damaged one is told from a
sound one. It counts only while every metarange it was made from is asked for:
of some of them alone, it would say too much.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence

from desilt.lake.ranges import EMPTY, Ranges
from desilt.objects.store import ObjectStore
from desilt.sstable.values import RangeData

FOLDER = "_desilt/metaranges/"
VERSION = 1
TO_A_FILE = 50  # metaranges; fewer than that are quickly read again


def listed(store: ObjectStore, ranges: Ranges, metaranges: Sequence[str]) -> dict[str, RangeData]:
    """By id, all ranges that ``metaranges`` list; those that lie together there (in time, say) are kept together."""
    wanted = dict.fromkeys(one for one in metaranges if one != EMPTY)
    known: set[str] = set()
    found: dict[str, RangeData] = {}
    for covered, some in _kept(store, ranges.prefix + FOLDER):
        if covered <= wanted.keys():
            known |= covered
            found |= {one.id: one for one in some}
    new = [name for name in wanted if name not in known]
    for at in range(0, len(new), TO_A_FILE):
        group = new[at : at + TO_A_FILE]
        read = {one.id: one for metarange in group for one in ranges.metarange(metarange)}
        found |= read
        if len(group) == TO_A_FILE:
            _keep(store, ranges.prefix + FOLDER, group, read.values())
    return found


def _keep(store: ObjectStore, folder: str, metaranges: Sequence[str], ranges: Iterable[RangeData]) -> None:
    rows = [[one.id, one.min_key.hex(), one.max_key.hex(), one.estimated_size, one.count] for one in ranges]
    data = json.dumps({"version": VERSION, "metaranges": metaranges, "ranges": rows}).encode()
    store.put(f"{folder}{hashlib.sha256(data).hexdigest()}.json", [data])


def _kept(store: ObjectStore, folder: str) -> Iterator[tuple[set[str], list[RangeData]]]:
    """Of each sound file, the metaranges and the ranges in it."""
    for key in [key for batch in store.list(folder) for key in batch["key"].to_pylist()]:
        data = store.get(key)
        if key != f"{folder}{hashlib.sha256(data).hexdigest()}.json":
            continue  # damaged: what it said is read again
        said = json.loads(data)
        if said["version"] == VERSION:
            rows = [RangeData(name, bytes.fromhex(a), bytes.fromhex(z), *rest) for name, a, z, *rest in said["ranges"]]
            yield set(said["metaranges"]), rows
