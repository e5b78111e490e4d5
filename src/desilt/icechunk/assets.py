"""What collection asks of snapshot files that no ref reaches, and of logs."""

from collections.abc import Collection, Set
from datetime import UTC, datetime, timedelta

from desilt.domain.history import Commit
from desilt.domain.times import EPOCH
from desilt.errors import MissingAsset, UnknownAsset
from desilt.icechunk.core import IcechunkCore
from desilt.icechunk.format import states
from desilt.icechunk.format.states import SnapshotFile
from desilt.icechunk.history import history
from desilt.icechunk.layout import MANIFESTS, OVERWRITTEN, SNAPSHOTS, TRANSACTIONS, kind_of
from desilt.repository.assets import AssetFolders

BACKUP = "backup"
THE_END = datetime(3000, 1, 1, tzinfo=UTC)
MOST = (THE_END - EPOCH) // timedelta(milliseconds=1)
FOLDERS = AssetFolders(SNAPSHOTS, TRANSACTIONS, MANIFESTS, OVERWRITTEN)


class IcechunkAssets:
    """Of one repository."""

    folders = FOLDERS

    def __init__(self, core: IcechunkCore) -> None:
        self._core = core

    def commits(self, names: Collection[str], known: Set[str]) -> list[Commit]:
        """In format 1 with what they descend from; in format 2 parents are in `repo`, or nowhere."""
        found: dict[str, Commit] = {}
        ahead, parents = sorted(names, reverse=True), set[str]()
        while ahead:
            name = ahead.pop()
            if name in found or name in known:
                continue
            try:
                file = states.fetch(self._core.store, name)
            except MissingAsset:
                if name in parents:
                    raise
                continue
            found[name] = self._commit(file)
            parents |= set(found[name].parents)
            ahead += found[name].parents
        return list(found.values())

    def _commit(self, file: SnapshotFile) -> Commit:
        if file.format > self._core.format:  # as ``history`` has it: it would look like a first one
            said = f"it has format {file.format}, and the repository has {self._core.format}"
            raise UnknownAsset(f"{SNAPSHOTS}{file.id}", said)
        parents = (file.parent,) if self._core.format == 1 and file.parent is not None else ()
        return Commit(
            id=file.id,
            parents=parents,
            metarange=file.id,
            created_at=file.created_at,
            committer="",
            message=file.message,
            metadata={},
            generation=0,
        )

    def named_at(self, backup: str) -> datetime | None:
        """``overwritten/<file>.<milliseconds until the year 3000>.<id>``: the newest ones are listed first."""
        if kind_of(backup) != BACKUP:
            return None
        left = int(backup.rsplit(".", 2)[1])
        return THE_END - timedelta(milliseconds=left) if left < MOST else None

    def logs(self, dead: Set[str]) -> set[str]:
        """Format 2 keeps those of expired ones for the snapshots that were made to follow where they stood."""
        if self._core.format == 1:
            return set()
        pruned = history(self._core.store).pruned
        return {log for snapshot, logs in pruned.items() if snapshot not in dead for log in logs}
