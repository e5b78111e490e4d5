"""All refs of a repository and all snapshots they reach, of either format; whole, or an error.

A repository of format 2 has the file ``repo``, and whatever it had of format 1 no longer counts. In format 1 each
ref is a file, and a snapshot's own file names its parent. That there is no repository, that it lost all of
its refs, and that it cannot be read are three answers.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from graphlib import CycleError, TopologicalSorter
from typing import Any, NoReturn, Protocol

from desilt.domain.history import Commit
from desilt.errors import DamagedAsset, MissingAsset, NotFound, UnknownAsset, Unreadable
from desilt.icechunk.brought import Brought
from desilt.icechunk.format import refs, repo_info, states
from desilt.icechunk.format.container import AssetKind, opened
from desilt.icechunk.format.memo import Memo
from desilt.icechunk.format.refs import RefFiles
from desilt.icechunk.format.repo_info import Availability, RepoInfo
from desilt.icechunk.format.states import SnapshotFile
from desilt.icechunk.layout import MANIFESTS, OVERWRITTEN, REFS, REPO, SNAPSHOTS
from desilt.objects.store import ObjectStore
from desilt.repository.snapshot import Branch, Revision, Snapshot, Tag, checked

MAIN = "main"  # which the library lets nobody delete
KEPT = 16 << 20  # bytes of `repo` in all that are known as they were read: each is asked for again and again
UNKNOWN = 0  # moves of refs, which nobody counts


class AnySnapshot(Protocol):
    """What both formats say of a snapshot."""

    @property
    def id(self) -> str: ...
    @property
    def parent(self) -> str | None: ...
    @property
    def created_at(self) -> datetime: ...
    @property
    def message(self) -> str: ...
    @property
    def metadata(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True)
class IcechunkHistory:
    """A repository at one moment."""

    format: int
    seen: Snapshot  # whole, as ``checked`` has it; in format 2 with snapshots that no ref reaches
    deleted_tags: frozenset[str]
    pruned: Mapping[str, tuple[str, ...]]  # by snapshot, where there are any: others whose logs it needs
    files: Mapping[str, SnapshotFile]  # those that were read: in format 1 all, in 2 what is held and in no list
    availability: Availability = Availability.ONLINE  # which format 1 always is


KNOWN: Memo[tuple[RepoInfo, IcechunkHistory]] = Memo(KEPT)


def history(store: ObjectStore, also: Iterable[str] = ()) -> IcechunkHistory:
    """All that refs reach, and refs; and with what they descend from, the snapshots that people want kept ``also``."""
    if (data := _repo(store)) is None:
        found = _of_files(store, also)
        if (data := _repo(store)) is None:
            return found
        # else it was upgraded meanwhile, which takes refs away that are in there from then on
    info, found = KNOWN.of(REPO, data, lambda: _of_repo(data))
    expired = {name: states.fetch(store, name) for name in sorted(set(also) - found.seen.commits.keys())}
    if not expired:
        return found
    alone = {name: replace(one, parent=None) for name, one in expired.items()}
    whole = _seen(info, [*info.snapshots, *alone.values()], found.seen.revision.mark)
    return replace(found, seen=whole, files=alone)


def _of_repo(data: bytes) -> tuple[RepoInfo, IcechunkHistory]:
    info = repo_info.read(opened(data, AssetKind.REPO, REPO))
    pruned = {one.id: one.pruned for one in info.snapshots if one.pruned}
    whole = _seen(info, info.snapshots, hashlib.sha256(data).hexdigest())
    return info, IcechunkHistory(2, whole, info.deleted_tags, pruned, {}, info.availability)


def _repo(store: ObjectStore) -> bytes | None:
    """The file that format 1 has not."""
    try:
        return store.get(REPO)
    except NotFound:
        return None


def _of_files(store: ObjectStore, also: Iterable[str]) -> IcechunkHistory:
    found = refs.read(store)
    if _any(store, f"{OVERWRITTEN}{REPO}."):  # refs that an upgrade left behind are of a past that is over
        raise MissingAsset(REPO)
    if not found.branches and not found.tags:
        refuse_without_refs(store)
    files = _reached(store, {*found.branches.values(), *found.tags.values()})
    said = [(name, *sorted(refs.items())) for name, refs in (("branches", found.branches), ("tags", found.tags))]
    parents = sorted((one.id, one.parent or "") for one in files.values())
    mark = hashlib.sha256(json.dumps([said, parents]).encode()).hexdigest()
    files = _with_ordered(store, also, files)
    return IcechunkHistory(1, _seen(found, files.values(), mark), found.deleted_tags, {}, files)


def refuse_without_refs(store: ObjectStore) -> NoReturn:
    """There are no refs: because there is no repository, or because it lost them."""
    if any(_any(store, folder) for folder in (SNAPSHOTS, MANIFESTS, REFS)):
        raise Unreadable(
            f"the Icechunk repository at {store.uri} has no refs any more, though it has snapshots or manifests; "
            "restore `repo` or `refs/` from a copy"
        )
    raise NotFound("Icechunk repository", store.uri, "see whether the place is right")


def _reached(store: ObjectStore, tips: Iterable[str]) -> dict[str, SnapshotFile]:
    """The files of ``tips`` and of all that they descend from."""
    files: dict[str, SnapshotFile] = {}
    ahead, brought = sorted(tips), Brought(store)
    while ahead:
        name = ahead.pop()
        if name in files:
            continue
        files[name] = one = _of_format_1(brought.file(name))
        if one.parent is not None:
            ahead.append(one.parent)
    return files


def _of_format_1(one: SnapshotFile) -> SnapshotFile:
    if one.format != 1:  # which has its parent in `repo`, and would look like a first one
        raise UnknownAsset(f"{SNAPSHOTS}{one.id}", f"it has format {one.format}, and the repository has 1")
    return one


def _with_ordered(
    store: ObjectStore, also: Iterable[str], known: Mapping[str, SnapshotFile]
) -> dict[str, SnapshotFile]:
    """Those that are ``known``, and ``also`` others with what they descend from, as far as collectors have left it."""
    files = dict(known)
    for name in sorted(also):
        files |= _line(store, name, files) if name not in files else {}
    return files


def _line(store: ObjectStore, name: str, known: Mapping[str, SnapshotFile]) -> dict[str, SnapshotFile]:
    """A snapshot that must be there, and what it descends from, up to what is ``known`` or to one that is gone."""
    files = {name: _of_format_1(states.fetch(store, name))}
    while (parent := files[name].parent) is not None and parent not in known and parent not in files:
        try:
            files[parent] = _of_format_1(states.fetch(store, parent))
        except MissingAsset:
            files[name] = replace(files[name], parent=None)
            break
        name = parent
    return files


def _seen(found: RefFiles | RepoInfo, listed: Iterable[AnySnapshot], mark: str) -> Snapshot:
    by_id = {one.id: one for one in listed}
    commits: dict[str, Commit] = {}
    for name in _parents_first(by_id):
        one = by_id[name]
        below = commits[one.parent].generation if one.parent is not None else 0
        commits[name] = Commit(
            id=name,
            parents=() if one.parent is None else (one.parent,),
            metarange=name,
            created_at=one.created_at,
            committer="",
            message=one.message,
            metadata={
                key: value if isinstance(value, str) else json.dumps(value) for key, value in one.metadata.items()
            },
            generation=below + 1,
        )
    branches = [Branch(name, name, head, commits[head].created_at) for name, head in sorted(found.branches.items())]
    tags = [Tag(name, target, commits[target].created_at) for name, target in sorted(found.tags.items())]
    return checked(Snapshot(Revision(UNKNOWN, mark), MAIN, commits, tuple(branches), tuple(tags), holds=()))


def _parents_first(by_id: Mapping[str, AnySnapshot]) -> list[str]:
    parents = {one.id: [one.parent] if one.parent is not None else [] for one in by_id.values()}
    try:
        return list(TopologicalSorter(parents).static_order())
    except CycleError as fault:
        raise DamagedAsset(f"{SNAPSHOTS}{fault.args[1][0]}", "it descends from itself") from None


def _any(store: ObjectStore, folder: str) -> bool:
    return any(batch.num_rows for batch in store.list(folder))
