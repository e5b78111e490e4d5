"""Ranges and metaranges of a repository whose own folder of tables we may not read: asked of the server, and kept.

Executors read tables from the store, so what they need is brought there first, below ``_desilt/``; whatever else is
asked for is brought when it is. A table never changes, so each is asked for once.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

from desilt.errors import MissingTable, NotFound, StorageFailed
from desilt.lakefs.server import Server
from desilt.objects.store import ObjectStore
from desilt.sstable.ranges import FOLDER as THEIRS
from desilt.sstable.ranges import Ranges

OURS = "_desilt/tables/"
AT_ONCE = 8  # requests


class ServedRanges(Ranges):
    """Tables as the server gives them, each kept in the store."""

    def __init__(self, store: ObjectStore, prefix: str, server: Server) -> None:
        super().__init__(store, prefix, folder=OURS)
        self._server = server

    def bring(self, names: Iterable[str]) -> None:
        """Have ``names`` in the store, for executors to read."""
        below = self.prefix + OURS
        there = {key.removeprefix(below) for batch in self._store.list(below) for key in batch["key"].to_pylist()}
        with ThreadPoolExecutor(AT_ONCE) as threads:
            for _ in threads.map(self._fetch, sorted(set(names) - there - {""})):
                pass

    def _bytes(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        try:
            return super()._bytes(name, start, length)
        except MissingTable:
            data = self._fetch(name)
            return data[start:] if length is None else data[start : start + length]

    def _fetch(self, name: str) -> bytes:
        try:
            data = self._server.table("range", name)
        except MissingTable:
            data = self._server.table("meta_range", name)
        self._store.put(self.prefix + OURS + name, [data])
        return data


def ranges_of(store: ObjectStore, prefix: str, server: Server) -> Ranges:
    """The tables of a repository, from its store, or where that does not let us, from the server."""
    return Ranges(store, prefix) if _may_read(store, prefix) else ServedRanges(store, prefix, server)


def bring(ranges: Ranges, names: Iterable[str]) -> None:
    """Have tables where executors look for them; they are, where we may read the repository's own."""
    if isinstance(ranges, ServedRanges):
        ranges.bring(names)


def _may_read(store: ObjectStore, prefix: str) -> bool:
    try:
        for key in _some(store, prefix + THEIRS):
            store.get(key, length=1)
    except NotFound:
        return True  # it was there a moment ago: to say so is to read
    except StorageFailed:
        return False
    return True


def _some(store: ObjectStore, folder: str) -> Iterator[str]:
    """One file beside the tables, if there is any: a server puts one there at once. Others may be others' to read."""
    for batch in store.list(folder):
        for key in batch["key"].to_pylist():
            if "/" not in key.removeprefix(folder):
                yield key
                return
