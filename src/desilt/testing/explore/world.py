"""A world: a key-value store, an object store and a clock, as one value that can be compared.

A step changes it through a :class:`Visit`, which remembers every key that was
read, scanned or written: two steps whose visits do not meet can change places.
"""

from collections.abc import Hashable, ItemsView, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

CLOCK = "#"
OBJECT = "@"  # before an address, so that a footprint tells objects from keys


class Declined(Exception):
    """A flow that ends without having done what it was asked: with a reason, and nothing half done."""

    @property
    def reason(self) -> str:
        return str(self.args[0])


class Rows(Mapping[str, Any]):
    """Keys and values that never change; equal to others of the same content, with the hash known."""

    __slots__ = ("_hash", "_rows")

    def __init__(self, rows: Mapping[str, Hashable] | Iterable[tuple[str, Hashable]] = ()) -> None:
        self._rows: dict[str, Any] = dict(rows)
        self._hash = hash(frozenset(self._rows.items()))

    def __getitem__(self, key: str) -> Any:
        return self._rows[key]

    def get(self, key: str, default: Any = None) -> Any:
        return self._rows.get(key, default)

    def items(self) -> ItemsView[str, Any]:
        return self._rows.items()  # many times as fast as what a Mapping has

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows) and self._hash == other._hash and self._rows == other._rows


class Blob(NamedTuple):
    """What lies at an address."""

    content: str
    counter: int | None = None  # metadata, for the one design that counts there
    born: int = 0

    def __str__(self) -> str:
        return self.content if self.counter is None else f"{self.content}, counter {self.counter}"


class World(NamedTuple):
    """Everything there is at one moment."""

    store: Rows = Rows()
    objects: Rows = Rows()
    now: int = 0

    def later(self, by: int) -> "World":
        return self._replace(now=self.now + by)


class Touched(NamedTuple):
    """What a step touched: keys read, prefixes scanned, keys written."""

    reads: frozenset[str]
    scans: frozenset[str]
    writes: frozenset[str]

    def meets(self, other: "Touched") -> bool:
        """Whether the order of the two matters: one of them writes what the other writes or sees."""
        if EVERYTHING is self or EVERYTHING is other:
            return True
        return self._changes(other) or other._changes(self)

    def _changes(self, other: "Touched") -> bool:
        if not self.writes:
            return False
        if self.writes & other.writes or self.writes & other.reads:
            return True
        return any(key.startswith(prefix) for prefix in other.scans for key in self.writes)


EVERYTHING = Touched(frozenset(), frozenset({""}), frozenset({""}))
"""Of a step that changes places with no other."""


class Visit:
    """One step's visit to a world: what it sees, what it changes, and what of it was touched."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._store: dict[str, Any] | None = None  # copied once something changes
        self._objects: dict[str, Any] | None = None
        self._reads: set[str] = set()
        self._scans: set[str] = set()
        self._writes: set[str] = set()

    @property
    def now(self) -> int:
        self._reads.add(CLOCK)
        return self._world.now

    def get(self, key: str) -> Any:
        self._reads.add(key)
        return (self._world.store if self._store is None else self._store).get(key)

    def scan(self, prefix: str) -> tuple[tuple[str, Any], ...]:
        """Keys below ``prefix``, without it, and their values, in order."""
        self._scans.add(prefix)
        return _below(prefix, self._world.store if self._store is None else self._store)

    def set(self, key: str, value: Hashable) -> None:
        self._writes.add(key)
        if self._store is None:
            self._store = dict(self._world.store.items())
        self._store[key] = value

    def delete(self, key: str) -> None:
        self._writes.add(key)
        if self._store is None:
            self._store = dict(self._world.store.items())
        self._store.pop(key, None)

    def object(self, address: str) -> Blob | None:
        self._reads.add(OBJECT + address)
        found: Blob | None = (self._world.objects if self._objects is None else self._objects).get(address)
        return found

    def objects(self, prefix: str = "") -> tuple[tuple[str, Blob], ...]:
        self._scans.add(OBJECT + prefix)
        return _below(prefix, self._world.objects if self._objects is None else self._objects)

    def put(self, address: str, blob: Blob) -> None:
        self._writes.add(OBJECT + address)
        if self._objects is None:
            self._objects = dict(self._world.objects.items())
        self._objects[address] = blob

    def erase(self, address: str) -> None:
        self._writes.add(OBJECT + address)
        if self._objects is None:
            self._objects = dict(self._world.objects.items())
        self._objects.pop(address, None)

    def undo(self) -> None:
        """Nothing was changed; it was looked at all the same."""
        self._store = self._objects = None
        self._writes.clear()

    def world(self) -> World:
        store = self._world.store if self._store is None else Rows(self._store)
        objects = self._world.objects if self._objects is None else Rows(self._objects)
        return World(store, objects, self._world.now)

    def footprint(self) -> Touched:
        return Touched(frozenset(self._reads), frozenset(self._scans), frozenset(self._writes))


def _below(prefix: str, rows: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    cut = len(prefix)
    return tuple(sorted([(key[cut:], value) for key, value in rows.items() if key.startswith(prefix)]))
