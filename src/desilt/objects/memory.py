"""Objects in this process's memory: for tests, demonstrations and models.

Stores opened by the same name are the same store. Another process has its own
memory, where a store of that name would be empty: a URI therefore carries the
process it belongs to, and pickling is refused. An empty listing must never be
an accident.
"""

import os
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import NoReturn

import pyarrow as pa

from desilt.clock import Clock, system_clock
from desilt.domain.times import microseconds
from desilt.errors import BadRequest, NotFound
from desilt.objects.conditional import ReadObject
from desilt.objects.removal import check_pairs
from desilt.objects.store import (
    CHUNK_BYTES,
    ObjectInfo,
    Outcome,
    Outcomes,
    Result,
    batches,
    check_key,
    check_prefix,
    check_range,
    nothing,
)


class MemoryStore:
    """Objects in a dictionary. Safe to use from many threads."""

    delete_batch = 1000
    moves_cheaply = True
    tagging = versions = parts = None

    def __init__(self, name: str = "", *, clock: Clock | None = None) -> None:
        self.name = name
        self.uri = f"memory://{name}?process={os.getpid()}"
        self.clock: Clock = clock or system_clock
        self._objects: dict[str, tuple[bytes, datetime]] = {}
        self._lock = threading.Lock()

    def dated(self, clock: Clock) -> "MemoryStore":
        """The same objects, with what is put from here on dated by ``clock``."""
        other = MemoryStore(self.name, clock=clock)
        other._objects, other._lock = self._objects, self._lock
        return other

    def put(self, key: str, body: Iterable[bytes]) -> int:
        check_key(key)
        whole = b"".join(body)
        with self._lock:
            self._objects[key] = whole, self.clock()
        return len(whole)

    def put_new(self, key: str, body: bytes) -> bool:
        check_key(key)
        with self._lock:
            return self._objects.setdefault(key, (body, self.clock()))[0] is body

    @property
    def conditional(self) -> "MemoryStore":
        return self

    def read(self, key: str) -> ReadObject:
        found = self._object(key)
        return ReadObject(key, found[0], found)

    def put_over(self, seen: ReadObject, body: bytes) -> bool:
        with self._lock:
            if self._objects.get(seen.key) is not seen.mark:
                return False
            self._objects[seen.key] = body, self.clock()
        return True

    def get(self, key: str, *, start: int = 0, length: int | None = None) -> bytes:
        check_range(start, length)
        return self._object(key)[0][start : None if length is None else start + length]

    def stream(self, key: str, *, start: int = 0, length: int | None = None) -> Iterator[bytes]:
        wanted = self.get(key, start=start, length=length)
        for at in range(0, len(wanted), CHUNK_BYTES):
            yield wanted[at : at + CHUNK_BYTES]

    def head(self, key: str) -> ObjectInfo:
        body, modified_at = self._object(key)
        return ObjectInfo(key, len(body), modified_at)

    def copy(self, source: str, destination: str) -> None:
        check_key(destination)
        self.put(destination, [self.get(source)])

    def folders(self, folder: str = "") -> Sequence[str]:
        check_prefix(folder)
        with self._lock:
            below = [key.removeprefix(folder) for key in self._objects if key.startswith(folder)]
        return sorted({f"{folder}{rest.partition('/')[0]}/" for rest in below if "/" in rest})

    def list(self, prefix: str = "", *, after: str = "", until: str = "") -> Iterator[pa.RecordBatch]:
        check_prefix(prefix)
        with self._lock:
            seen = {key: (len(body), at) for key, (body, at) in self._objects.items()}
        keys = sorted(seen)
        first = max(bisect_left(keys, prefix), bisect_right(keys, after))
        last = bisect_left(keys, until) if until else len(keys)
        found = (key for key in keys[first:last] if key.startswith(prefix))
        return batches((key, seen[key][0], microseconds(seen[key][1])) for key in found)

    def delete_many(self, keys: Sequence[str], *, between: Callable[[], None] = nothing) -> Outcomes:
        for key in keys:
            check_key(key)
        outcomes = []
        for key in keys:
            between()
            with self._lock:
                found = self._objects.pop(key, None)
            outcomes.append(Outcome(key, Result.REMOVED if found else Result.GONE))
        return outcomes

    def move_many(self, pairs: Sequence[tuple[str, str]], *, between: Callable[[], None] = nothing) -> Outcomes:
        check_pairs(pairs)
        outcomes = []
        for source, destination in pairs:
            between()
            with self._lock:
                found = self._objects.pop(source, None)
                if found:
                    self._objects[destination] = found
            outcomes.append(Outcome(source, Result.REMOVED if found else Result.GONE))
        return outcomes

    def _object(self, key: str) -> tuple[bytes, datetime]:
        check_key(key)
        with self._lock:
            if key not in self._objects:
                raise NotFound("object", key)
            return self._objects[key]

    def __reduce__(self) -> NoReturn:
        raise BadRequest(f"{self.uri} lives in one process and cannot be sent to another; use a directory or a bucket")


_NAMED: dict[str, MemoryStore] = {}
_NAMED_LOCK = threading.Lock()


def named(name: str, *, clock: Clock | None = None) -> MemoryStore:
    """The one store of that name in this process; made when first asked for."""
    with _NAMED_LOCK:
        store = _NAMED.setdefault(name, MemoryStore(name, clock=clock))
    if clock is not None:
        store.clock = clock
    return store
