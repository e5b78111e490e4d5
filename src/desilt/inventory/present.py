"""Which of many objects are there: asked for one by one, or, where many lie in a folder, by listing it."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from desilt.errors import NotFound
from desilt.objects.store import ObjectStore

AT_ONCE = 32
LISTED = 50  # a folder holds up to 50,000 objects, and a listing tells a thousand at a time


def present_keys(store: ObjectStore, keys: Sequence[str]) -> set[str]:
    """Those of ``keys`` that are there. What the store does not answer is raised: nothing is taken for gone."""
    folders: dict[str, list[str]] = {}
    for key in keys:
        folders.setdefault(key.rpartition("/")[0] + "/", []).append(key)
    found: set[str] = set()
    alone: list[str] = []
    for folder, some in folders.items():
        if len(some) < LISTED:
            alone += some
        else:
            listed = {key for batch in store.list(folder) for key in batch["key"].to_pylist()}
            found |= listed.intersection(some)
    with ThreadPoolExecutor(AT_ONCE) as threads:
        answers = threads.map(lambda key: is_there(store, key), alone)
        return found | {key for key, there in zip(alone, answers, strict=True) if there}


def is_there(store: ObjectStore, key: str) -> bool:
    """Whether there is an object."""
    try:
        store.head(key)
    except NotFound:
        return False
    return True
