"""What becomes different in the file ``repo``, and what it says then; nothing is read or written here."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

from desilt.errors import Conflict
from desilt.icechunk.format.repo_info import RepoInfo, SnapshotInfo
from desilt.icechunk.layout import REPO


class RepoOperation(IntEnum):
    """What is told of a change in the log of operations, as the library numbers it."""

    TAG_DELETED = 6
    BRANCH_DELETED = 8
    GARBAGE_COLLECTED = 13
    EXPIRED = 14


@dataclass(frozen=True, slots=True)
class RepoChange:
    """Other parents, snapshots and refs that go; one ref at most, where the operation is that it was deleted."""

    operation: RepoOperation
    parents: Mapping[str, str] = field(default_factory=dict)  # of snapshots that get others; an ancestor of each
    taken: frozenset[str] = frozenset()  # snapshots that leave the list
    branches: frozenset[str] = frozenset()  # that go
    tags: frozenset[str] = frozenset()


def expected(info: RepoInfo, change: RepoChange) -> RepoInfo:
    """What the file says then; :class:`Conflict` where that would be no history."""
    by_id = {one.id: one for one in info.snapshots}
    branches = {name: head for name, head in info.branches.items() if name not in change.branches}
    tags = {name: head for name, head in info.tags.items() if name not in change.tags}
    snapshots = tuple(_edited(by_id, one, change.parents) for one in info.snapshots if one.id not in change.taken)
    stay = {one.id for one in snapshots}
    needed = {*branches.values(), *tags.values(), *(one.parent for one in snapshots if one.parent is not None)}
    if lost := sorted(needed - stay):
        raise Conflict(f"snapshot {lost[0]} is needed and cannot be taken from {REPO!r}; plan again")
    if unknown := sorted(change.parents.keys() - stay):
        raise Conflict(f"snapshot {unknown[0]} is to get another parent and is not in {REPO!r}; plan again")
    deleted = info.deleted_tags | (change.tags & info.tags.keys())
    return replace(info, branches=branches, tags=tags, deleted_tags=deleted, snapshots=snapshots)


def _edited(by_id: Mapping[str, SnapshotInfo], one: SnapshotInfo, parents: Mapping[str, str]) -> SnapshotInfo:
    """With another parent, and the logs that a diff over what is left out needs."""
    new = parents.get(one.id, one.parent)
    if new == one.parent:
        return one
    logs = dict.fromkeys((*_between(by_id, one, new), *one.pruned))
    return replace(one, parent=new, pruned=tuple(logs))


def _between(by_id: Mapping[str, SnapshotInfo], one: SnapshotInfo, new: str | None) -> Iterator[str]:
    """What a snapshot descended from above its new parent, and what had been between those, oldest first."""
    between, here = list[SnapshotInfo](), one.parent
    while here != new:
        if here is None:
            raise Conflict(f"snapshot {one.id} does not descend from {new}, which cannot become its parent; plan again")
        between.append(by_id[here])
        here = by_id[here].parent
    for each in reversed(between):
        yield from (*each.pruned, each.id)
