"""A directory that may only be read: what is worked out from it, and kept for the next who asks, is kept aside.

Nothing else is written, neither there nor aside: whoever asks for more is told that it cannot be done.
"""

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from urllib.parse import quote

import pyarrow as pa

from desilt.errors import StorageFailed
from desilt.objects.local import LocalStore
from desilt.objects.store import LISTING, ObjectInfo, Outcomes, nothing

QUERY = "aside="
KEPT_ASIDE = ("_desilt/ranges/", "_desilt/metaranges/", "_desilt/removed/")  # what can be worked out again


class OnlyReadStore(LocalStore):
    """Objects below ``root``, and caches below ``aside``."""

    def __init__(self, root: str, aside: str) -> None:
        super().__init__(root)
        self._aside = LocalStore(aside, fsync=False)
        self.uri = f"{self.uri}?{QUERY}{quote(aside)}"

    def put(self, key: str, body: Iterable[bytes]) -> int:
        return self._writing(key).put(key, body)

    def put_new(self, key: str, body: bytes) -> bool:
        return self._writing(key).put_new(key, body)

    def stream(self, key: str, *, start: int = 0, length: int | None = None) -> Iterator[bytes]:
        if self._is_aside(key):
            return self._aside.stream(key, start=start, length=length)
        return super().stream(key, start=start, length=length)

    def head(self, key: str) -> ObjectInfo:
        return self._aside.head(key) if self._is_aside(key) else super().head(key)

    def list(self, prefix: str = "", *, after: str = "", until: str = "") -> Iterator[pa.RecordBatch]:
        found = super().list(prefix, after=after, until=until)
        if not may_be_aside(prefix):
            return found
        both = [*found, *self._aside.list(prefix, after=after, until=until)]
        return iter(pa.Table.from_batches(both, LISTING).sort_by("key").to_batches())

    def delete_many(self, keys: Sequence[str], *, between: Callable[[], None] = nothing) -> Outcomes:  # noqa: ARG002
        raise self._refusal()

    def move_many(self, pairs: Sequence[tuple[str, str]], *, between: Callable[[], None] = nothing) -> Outcomes:  # noqa: ARG002
        raise self._refusal()

    def _is_aside(self, key: str) -> bool:
        return may_be_aside(key) and os.path.lexists(f"{self._aside.root}/{key}")

    def _writing(self, key: str) -> LocalStore:
        if not may_be_aside(key):
            raise self._refusal()
        return self._aside

    def _refusal(self) -> StorageFailed:
        return StorageFailed(f"{self.root} may only be read here; ask whoever owns it, nothing was changed")


def may_be_aside(key: str) -> bool:
    return any(f"/{folder}" in f"/{key}" for folder in KEPT_ASIDE)


def may_write(root: str) -> bool:
    """Whether this process may put objects there; one that is not there yet is for whoever makes it."""
    if not os.path.isdir(root):  # noqa: PTH112
        return True
    below = [one.path for one in os.scandir(root) if one.is_dir()] if os.access(root, os.R_OK) else []
    return any(os.access(place, os.W_OK | os.X_OK) for place in (root, *below))


@cache
def only_read(root: str) -> OnlyReadStore:
    """``root``, with a place aside that is gone with this process."""
    aside = tempfile.mkdtemp(prefix="desilt-aside-")
    atexit.register(shutil.rmtree, aside, ignore_errors=True)
    return OnlyReadStore(root, aside)
