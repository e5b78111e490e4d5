"""Snapshot files: what a repository was at one commit, as the list of its manifests.

Manifests are named twice, in that list and by each array. What arrays name must be in the list: one that lost a
manifest to damage would make garbage of all that it holds.

Where nodes are few, they are read one by one, sooner than by the column; both refuse the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from desilt.domain.times import EPOCH
from desilt.icechunk.format.buffer import FlatTable, root
from desilt.icechunk.format.container import Asset, AssetKind, blaming, got, opened, refuse_beyond
from desilt.icechunk.format.ids import ID_BYTES, name_of
from desilt.icechunk.format.memo import Memo
from desilt.icechunk.format.strides import Strides
from desilt.icechunk.format.values import decoded
from desilt.icechunk.layout import SNAPSHOTS
from desilt.objects.store import ObjectStore
from desilt.sstable.varint import Malformed

ID, PARENT, NODES, FLUSHED, MESSAGE, METADATA, FILES, FILES_2, STATE_SLOTS = *range(8), 8
NODE_TYPE, NODE_DATA, NODE_SLOTS = 3, 4, 5
ARRAY, GROUP = 1, 2
MANIFESTS, ARRAY_SLOTS = 2, 4
OBJECT_ID, MANIFEST_REF_SLOTS = 0, 2
FEW = 100  # nodes that are read one by one sooner than by the column
STRIDE = 32  # of a manifest in the list of format 1: twelve bytes, four of nothing, eight, four, and four of nothing
FILE_SLOTS = 3
OFFSET = 4  # bytes


@dataclass(frozen=True, slots=True)
class ListedManifest:
    """What a snapshot says of one of its manifests."""

    id: str
    size: int  # bytes of the file
    references: int


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    """One commit, as its own file has it."""

    id: str
    format: int
    parent: str | None  # None of the first, and of all in format 2
    created_at: datetime
    message: str
    metadata: Mapping[str, Any]
    manifests: tuple[ListedManifest, ...]  # by id


KNOWN: Memo[SnapshotFile] = Memo()


def fetch(store: ObjectStore, snapshot: str) -> SnapshotFile:
    """The snapshot of that name, as its file is by now."""
    return of(got(store, f"{SNAPSHOTS}{snapshot}"), snapshot)


def of(data: bytes, snapshot: str) -> SnapshotFile:
    """What that file says. Bytes that were read before are known: a file that was written anew has others."""

    def made() -> SnapshotFile:
        return read(opened(data, AssetKind.SNAPSHOT, f"{SNAPSHOTS}{snapshot}"), snapshot)

    return KNOWN.of(snapshot, data, made)


def read(asset: Asset, snapshot: str) -> SnapshotFile:
    """The snapshot of that name; one that has another inside is damaged."""
    with blaming(asset.name):
        table = root(asset.content)
        refuse_beyond(asset, table.beyond(STATE_SLOTS), "a snapshot")
        if (found := name_of(table.struct(ID, ID_BYTES))) != snapshot:
            raise Malformed(f"it is the snapshot {found}, under another name")
        parent = table.raw(PARENT, ID_BYTES)
        manifests = _manifests(asset, table)
        if missing := _used(asset, table) - {one.id for one in manifests}:
            raise Malformed(f"an array has the manifest {min(missing)}, which is not in its list")
        return SnapshotFile(
            snapshot,
            asset.format,
            None if parent is None else name_of(parent),
            moment(table.number(FLUSHED, 8)),
            table.text(MESSAGE),
            metadata(table, METADATA, asset.format),
            manifests,
        )


def metadata(table: FlatTable, slot: int, version: int) -> dict[str, Any]:
    """What was said beside the message, by name."""
    if not table.has(slot):
        return {}
    items = list(table.tables(slot))
    found = {item.text(0): decoded(item.content(1) or b"", version) for item in items}
    if len(found) != len(items):
        raise Malformed("a snapshot has metadata of one name twice")
    return found


def moment(microseconds: int) -> datetime:
    try:
        return EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        raise Malformed("a snapshot was made at no time that there is") from None


def _manifests(asset: Asset, table: FlatTable) -> tuple[ListedManifest, ...]:
    """Those of either list; format 2 leaves the first one empty."""
    found = []
    for raw in table.structs(FILES, STRIDE):
        size, references = int.from_bytes(raw[16:24], "little"), int.from_bytes(raw[24:28], "little")
        found.append(ListedManifest(name_of(raw[:ID_BYTES]), size, references))
    if table.has(FILES_2):
        for one in table.tables(FILES_2):
            refuse_beyond(asset, one.beyond(FILE_SLOTS), "a manifest")
            found.append(ListedManifest(name_of(one.struct(0, ID_BYTES)), one.number(1, 8), one.number(2, 4)))
    if len({one.id for one in found}) != len(found):
        raise Malformed("it lists a manifest twice")
    return tuple(sorted(found, key=lambda one: one.id))


def _used(asset: Asset, table: FlatTable) -> set[str]:
    """The manifests that arrays name."""
    nodes = table.vector(NODES, 4)
    return used_one_by_one(asset, table) if nodes is not None and nodes[1] <= FEW else used_by_column(asset, table)


def used_one_by_one(asset: Asset, table: FlatTable) -> set[str]:
    found, room = set[bytes](), len(asset.content)
    for node in table.tables(NODES):
        refuse_beyond(asset, node.beyond(NODE_SLOTS), "an array")
        (kind,) = node.struct(NODE_TYPE, 1)
        refuse_beyond(asset, kind not in (ARRAY, GROUP), "a node")
        if kind != ARRAY:
            continue
        array = node.table(NODE_DATA)
        refuse_beyond(asset, array.beyond(ARRAY_SLOTS), "an array")
        for one in array.tables(MANIFESTS):
            if (room := room - OFFSET) < 0:  # however often damage names one list
                raise Malformed("it has more in its lists than there is room")
            refuse_beyond(asset, one.beyond(MANIFEST_REF_SLOTS), "a manifest")
            found.add(one.struct(OBJECT_ID, ID_BYTES))
    return set(map(name_of, found))


def used_by_column(asset: Asset, table: FlatTable) -> set[str]:
    strides = Strides(asset.content)
    nodes, _ = strides.tables(np.array([table.at])).tables(NODES)
    refuse_beyond(asset, nodes.beyond(NODE_SLOTS), "an array")
    types = strides.bytes[nodes.places(NODE_TYPE, 1)]
    refuse_beyond(asset, not np.isin(types, (ARRAY, GROUP)).all(), "a node")
    rows = np.flatnonzero(types == ARRAY)
    arrays = strides.tables(strides.targets(nodes.places(NODE_DATA, 4, rows)))
    refuse_beyond(asset, arrays.beyond(ARRAY_SLOTS), "an array")
    named, _ = arrays.tables(MANIFESTS)
    refuse_beyond(asset, named.beyond(MANIFEST_REF_SLOTS), "a manifest")
    raw = strides.structs(named.places(OBJECT_ID, ID_BYTES), ID_BYTES)
    return {name_of(one.tobytes()) for one in np.unique(raw, axis=0)}
