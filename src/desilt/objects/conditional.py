"""Replacing an object only if it is still what was read.

In a bucket the store itself compares, at the moment of the put: of any number who try, one succeeds. A directory
cannot; there the object is read again right before, and somebody may come in between.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from desilt.errors import NotFound, StorageFailed

if TYPE_CHECKING:
    from desilt.objects.store import ObjectStore


@dataclass(frozen=True, slots=True)
class ReadObject:
    """An object as it was read, and what the store tells this state of it by."""

    key: str
    body: bytes
    mark: Any = None  # None: nothing but the bytes tells


class ConditionalPuts(Protocol):
    """What compares and puts in one."""

    def read(self, key: str) -> ReadObject:
        """All of the object."""
        ...

    def put_over(self, seen: ReadObject, body: bytes) -> bool:
        """Stores ``body`` in place of what was ``seen``, unless that was replaced or removed since.

        False may also be told to the one who did, where the answer to a first try was lost:
        what is there says who it was.
        """
        ...


def read(store: "ObjectStore", key: str) -> ReadObject:
    """The object at ``key``, to be put over."""
    if store.conditional is not None:
        return store.conditional.read(key)
    return ReadObject(key, store.get(key))


def put_over(store: "ObjectStore", seen: ReadObject, body: bytes) -> bool:
    """Whether ``body`` took the place of what was ``seen``; it must be like nobody else's.

    Where the answer is lost, what is there tells. An error is raised only where it is not
    there, and might be later.
    """
    if store.conditional is None:
        return _put_right_after_a_look(store, seen, body)
    try:
        if store.conditional.put_over(seen, body):
            return True
    except StorageFailed:
        if _is_there(store, seen.key, body):
            return True
        raise
    return _is_there(store, seen.key, body)


def _put_right_after_a_look(store: "ObjectStore", seen: ReadObject, body: bytes) -> bool:
    if not _is_there(store, seen.key, seen.body):
        return False
    store.put(seen.key, [body])
    return True


def _is_there(store: "ObjectStore", key: str, body: bytes) -> bool:
    try:
        return store.get(key) == body
    except NotFound:
        return False
