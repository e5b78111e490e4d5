"""Many files at once: a distant store need not be waited for with each."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from desilt.icechunk.format.container import got
from desilt.objects.store import ObjectStore

AT_ONCE = 16  # requests
Found = TypeVar("Found")


def all_got(store: ObjectStore, keys: Sequence[str]) -> list[bytes]:
    """The bytes at each of ``keys``, which something refers to."""
    return each(store, lambda key: got(store, key), keys)


def each(store: ObjectStore, ask: Callable[[str], Found], keys: Sequence[str]) -> list[Found]:
    """What ``ask`` has of each key; one after the other where the store is near, which is as quick there."""
    if store.moves_cheaply or len(keys) < 2:
        return [ask(key) for key in keys]
    with ThreadPoolExecutor(min(AT_ONCE, len(keys))) as threads:
        return list(threads.map(ask, keys))
