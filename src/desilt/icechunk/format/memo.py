"""What files were read as: a file that is found with the same bytes again need not be read again.

Whoever asks has just fetched the bytes, so nothing is taken for granted of a file that may be written anew.
"""

from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from threading import Lock
from typing import Generic, TypeVar

Value = TypeVar("Value")
ROOM = 64 << 20  # bytes of files whose contents are kept
LEAST = 1_000  # bytes, that what is kept of the smallest file takes


class Memo(Generic[Value]):
    """What was read last, as far as there is room; several threads may ask."""

    def __init__(self, room: int = ROOM) -> None:
        self._room, self._lock = room, Lock()
        self._kept: OrderedDict[tuple[str, bytes], tuple[Value, int]] = OrderedDict()

    def of(self, name: str, data: bytes, read: Callable[[], Value]) -> Value:
        """What ``read`` makes of ``data``, the file called ``name``; what it refuses is refused each time."""
        key = name, sha256(data).digest()
        with self._lock:
            if (found := self._kept.get(key)) is not None:
                self._kept.move_to_end(key)
                return found[0]
        value, size = read(), max(len(data), LEAST)
        with self._lock:
            if key not in self._kept:
                self._kept[key] = value, size
                self._room -= size
            while self._room < 0:
                _, (_, freed) = self._kept.popitem(last=False)
                self._room += freed
        return value
