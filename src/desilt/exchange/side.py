"""One side of a copy, as far as objects and tables go."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from desilt.cache.ranges import Territory
from desilt.objects.store import ObjectStore
from desilt.sstable.ranges import FOLDER as TABLES
from desilt.sstable.ranges import Ranges

Addresses = frozenset[str]


def nothing_gone(_: Collection[str]) -> Addresses:
    """Nobody has said of any object that it is gone."""
    return frozenset()


@dataclass(frozen=True, slots=True)
class Partner:
    """A repository's place: its store, the prefix of all its keys, its tables."""

    store: ObjectStore
    prefix: str
    place: Territory
    ranges: Ranges
    gone: Callable[[Collection[str]], Addresses] = nothing_gone  # of some addresses, those that a run has condemned

    def put_table(self, name: str, data: bytes) -> None:
        """Stored again, it is the same file."""
        self.store.put(f"{self.prefix}{TABLES}{name}", [data])

    def table(self, name: str) -> bytes:
        return self.store.get(f"{self.prefix}{TABLES}{name}")
