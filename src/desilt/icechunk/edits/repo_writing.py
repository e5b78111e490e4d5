"""The file ``repo`` of format 2, with a part of it changed: all else stays as it was, to the byte.

What was written is read back and compared with what was wanted, before anybody gets to see it.
"""

from collections.abc import Mapping

from desilt.errors import NotReadBack
from desilt.icechunk.edits.forward import NewTable, Part, Structs, Text, Vector, in_front
from desilt.icechunk.edits.operations import kept, said, with_one_more
from desilt.icechunk.edits.repo_change import RepoChange, expected
from desilt.icechunk.format.buffer import FlatTable, root
from desilt.icechunk.format.container import Asset, AssetKind, closed, opened
from desilt.icechunk.format.ids import bytes_of
from desilt.icechunk.format.repo_info import (
    BEFORE,
    BRANCHES,
    DELETED,
    FLUSHED,
    ID,
    MESSAGE,
    NO_PARENT,
    PARENT,
    PRUNED,
    REPO_SLOTS,
    SNAPSHOT_METADATA,
    SNAPSHOTS,
    SPEC,
    TAGS,
    UPDATES,
    RepoInfo,
    SnapshotInfo,
    read,
)
from desilt.icechunk.layout import REPO

CHANGES = frozenset({SPEC, TAGS, BRANCHES, DELETED, SNAPSHOTS, UPDATES, BEFORE})


def changed(data: bytes, change: RepoChange, *, at: int, backup: str) -> bytes:
    """The file with ``change`` made ``at`` a time in microseconds; the file before is called ``backup`` by then."""
    asset = opened(data, AssetKind.REPO, REPO)
    info, table = read(asset), root(asset.content)
    wanted = expected(info, change)
    content = in_front(_repo(table, info, wanted, change, at, backup), asset.content)
    body = closed(AssetKind.REPO, asset.format, content)
    _check(opened(body, AssetKind.REPO, REPO), wanted, table)
    return body


def _repo(table: FlatTable, info: RepoInfo, wanted: RepoInfo, change: RepoChange, at: int, backup: str) -> NewTable:
    index = {one.id: place for place, one in enumerate(wanted.snapshots)}
    updates, left_out = with_one_more(table, change, at, backup)
    fields: dict[int, bytes | Part | None] = {slot: kept(table, slot) for slot in range(REPO_SLOTS) if slot != SPEC}
    fields |= {
        SPEC: table.raw(SPEC, 1),
        TAGS: _refs(table, TAGS, wanted.tags, index),
        BRANCHES: _refs(table, BRANCHES, wanted.branches, index),
        SNAPSHOTS: _snapshots(table, info, wanted, index),
        UPDATES: updates,
    }
    if wanted.deleted_tags != info.deleted_tags:
        fields[DELETED] = Vector([Text(name) for name in sorted(wanted.deleted_tags, key=str.encode)])
    if left_out is not None:
        fields[BEFORE] = Text(left_out)
    return NewTable(fields)


def _refs(table: FlatTable, slot: int, staying: Mapping[str, str], index: Mapping[str, int]) -> Vector:
    named = [(one, one.text(0)) for one in table.tables(slot)]
    return Vector(
        [
            NewTable({0: kept(one, 0), 1: index[staying[name]].to_bytes(4, "little")})
            for one, name in named
            if name in staying
        ]
    )


def _snapshots(table: FlatTable, info: RepoInfo, wanted: RepoInfo, index: Mapping[str, int]) -> Vector:
    was = {one.id: (one, old) for one, old in zip(info.snapshots, table.tables(SNAPSHOTS), strict=True)}
    return Vector([_snapshot(one, *was[one.id], index) for one in wanted.snapshots])


def _snapshot(one: SnapshotInfo, was: SnapshotInfo, old: FlatTable, index: Mapping[str, int]) -> NewTable:
    parent = NO_PARENT if one.parent is None else index[one.parent]
    same = one.pruned == was.pruned
    return NewTable(
        {
            ID: bytes_of(one.id),
            PARENT: parent.to_bytes(4, "little", signed=True),
            FLUSHED: old.raw(FLUSHED, 8),
            MESSAGE: kept(old, MESSAGE),
            SNAPSHOT_METADATA: kept(old, SNAPSHOT_METADATA),
            PRUNED: kept(old, PRUNED) if same else Structs([bytes_of(log) for log in one.pruned]),
        }
    )


def _check(asset: Asset, wanted: RepoInfo, before: FlatTable) -> None:
    """That it reads as was wanted, and that what was not to change is where it was, from the end."""
    table = root(asset.content)
    if read(asset) != wanted or not table.data.endswith(before.data):
        raise NotReadBack(REPO, "it does not say what it should")
    for slot in set(range(REPO_SLOTS)) - CHANGES:
        if _from_the_end(table, slot) != _from_the_end(before, slot):
            raise NotReadBack(REPO, f"field {slot} is another")
    rows, old = ([said(row) for row in one.tables(UPDATES)] for one in (table, before))
    if rows[1:] != old[: len(rows) - 1] or table.raw(SPEC, 1) != before.raw(SPEC, 1):
        raise NotReadBack(REPO, "its log of operations is another")


def _from_the_end(table: FlatTable, slot: int) -> int | None:
    place = table.place(slot)
    return None if place is None else len(table.data) - place
