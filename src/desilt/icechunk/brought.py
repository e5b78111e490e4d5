"""Snapshot files of format 1, each of which only tells the next: where the store is far, all are brought ahead.

Which of them are wanted is not known before; so what is wrong with one that nobody asks for is not told.
"""

from collections.abc import Iterator

import pyarrow as pa

from desilt.errors import DamagedAsset, MissingAsset, UnknownAsset
from desilt.icechunk.fetching import each
from desilt.icechunk.format import states
from desilt.icechunk.format.states import SnapshotFile
from desilt.icechunk.layout import SNAPSHOTS
from desilt.objects.store import ObjectStore

FEW = 16  # that are asked for one after the other sooner than all


class Brought:
    """Files for one look: each is fetched after that begins."""

    def __init__(self, store: ObjectStore) -> None:
        self._store, self._asked = store, 0
        self._there: Iterator[pa.RecordBatch] | None = None
        self._files: dict[str, SnapshotFile] = {}

    def file(self, name: str) -> SnapshotFile:
        """The snapshot of that name, or what is wrong with it."""
        self._asked += 1
        while name not in self._files and self._asked > FEW and not self._store.moves_cheaply:
            if self._there is None:
                self._there = self._store.list(SNAPSHOTS)
            if (batch := next(self._there, None)) is None:
                break
            names = [key.removeprefix(SNAPSHOTS) for key in batch["key"].to_pylist()]
            self._files |= {one.id: one for one in each(self._store, self._sound, names) if one is not None}
        return self._files.get(name) or states.fetch(self._store, name)

    def _sound(self, name: str) -> SnapshotFile | None:
        try:
            return states.fetch(self._store, name)
        except (MissingAsset, DamagedAsset, UnknownAsset):
            return None
