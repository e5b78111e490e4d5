"""The file ``repo`` of format 2: all refs and all snapshots in one object, which every change replaces.

Snapshots are in it that no ref reaches; what was expired is not. A snapshot names its parent by its place in the
list, which is sorted by id.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from itertools import pairwise
from typing import Any

from desilt.errors import Conflict
from desilt.icechunk.format.buffer import FlatTable, number_at, root
from desilt.icechunk.format.container import Asset, blaming, refuse_beyond
from desilt.icechunk.format.ids import ID_BYTES, name_of
from desilt.icechunk.format.states import metadata, moment
from desilt.icechunk.format.values import flexbuffer
from desilt.sstable.varint import Malformed

SPEC, TAGS, BRANCHES, DELETED, SNAPSHOTS, STATUS, METADATA, UPDATES, BEFORE, CONFIG, _ON, OFF, REPO_SLOTS = (
    *range(12),
    12,
)
REF_SLOTS = 2
ID, PARENT, FLUSHED, MESSAGE, SNAPSHOT_METADATA, PRUNED, INFO_SLOTS = *range(6), 6
NO_PARENT = -1
FLAG_BYTES = 2
DELETE_TAG = 5  # a flag
KNOWN = (2,)


class Availability(IntEnum):
    """Whether a repository may be written to."""

    ONLINE = 0
    READ_ONLY = 1
    OFFLINE = 2


@dataclass(frozen=True, slots=True)
class SnapshotInfo:
    """What the list says of one snapshot."""

    id: str
    parent: str | None
    created_at: datetime
    message: str
    metadata: Mapping[str, Any]
    pruned: tuple[str, ...]  # expired ones before it, oldest first, whose logs it needs


@dataclass(frozen=True, slots=True)
class RepoInfo:
    """A repository at one moment."""

    branches: Mapping[str, str]  # the snapshot of each
    tags: Mapping[str, str]
    deleted_tags: frozenset[str]  # names that can never be used again
    snapshots: tuple[SnapshotInfo, ...]  # by id
    availability: Availability
    metadata: Mapping[str, Any]
    config: Mapping[str, Any]
    switched_off: frozenset[int]  # what may not be done there, by the library's numbers


def refuse_unless_online(found: Availability) -> None:
    """What its owner has closed, nobody changes; its library neither expires nor collects anything there, either."""
    if found is not Availability.ONLINE:
        state = found.name.lower().replace("_", "-")
        raise Conflict(f"this Icechunk repository is {state}; set its status to online in the library, and plan again")


def read(asset: Asset) -> RepoInfo:
    """What it says; a list that is not in order, or leads nowhere, is damaged."""
    with blaming(asset.name):
        table = root(asset.content)
        refuse_beyond(asset, table.beyond(REPO_SLOTS), "the repository")
        refuse_beyond(asset, (spec := table.number(SPEC, 1)) not in KNOWN, f"its format ({spec})")
        infos = list(table.tables(SNAPSHOTS))
        refuse_beyond(asset, any(one.beyond(INFO_SLOTS) for one in infos), "a snapshot")
        ids = [name_of(one.struct(ID, ID_BYTES)) for one in infos]
        if any(one >= after for one, after in pairwise(ids)):
            raise Malformed("a snapshot is there twice, or not in its place")
        status = table.table(STATUS).number(0, 1)
        refuse_beyond(asset, status not in set(Availability), f"whether it may be written to ({status})")
        return RepoInfo(
            _refs(asset, table, BRANCHES, ids),
            _refs(asset, table, TAGS, ids),
            frozenset(table.texts(DELETED)),
            tuple(_snapshot(one, at, ids) for at, one in enumerate(infos)),
            Availability(status),
            metadata(table, METADATA, 2),
            _config(table),
            _flags(table, OFF),
        )


def _snapshot(table: FlatTable, at: int, ids: list[str]) -> SnapshotInfo:
    parent = table.number(PARENT, 4, signed=True)
    if parent != NO_PARENT and (not 0 <= parent < len(ids) or parent == at):
        raise Malformed("a snapshot's parent is not in the list")
    pruned = table.structs(PRUNED, ID_BYTES) if table.has(PRUNED) else []
    return SnapshotInfo(
        ids[at],
        None if parent == NO_PARENT else ids[parent],
        moment(table.number(FLUSHED, 8)),
        table.text(MESSAGE),
        metadata(table, SNAPSHOT_METADATA, 2),
        tuple(map(name_of, pruned)),
    )


def _refs(asset: Asset, table: FlatTable, slot: int, ids: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    last = ""
    for one in table.tables(slot):
        refuse_beyond(asset, one.beyond(REF_SLOTS), "a ref")
        name, at = one.text(0), one.number(1, 4)
        if name.encode() <= last.encode():
            raise Malformed(f"ref {name!r} is there twice, or not in its place")
        if at >= len(ids):
            raise Malformed(f"the snapshot of ref {name!r} is not in the list")
        found[name] = ids[at]
        last = name
    return found


def _flags(table: FlatTable, slot: int) -> frozenset[int]:
    start, count = table.vector(slot, FLAG_BYTES) or (0, 0)
    return frozenset(number_at(table.data, start + FLAG_BYTES * one, FLAG_BYTES) for one in range(count))


def _config(table: FlatTable) -> Mapping[str, Any]:
    raw = table.content(CONFIG)
    found = flexbuffer(raw) if raw else {}
    if not isinstance(found, dict | None):
        raise Malformed("its configuration is not a map")
    return found or {}
