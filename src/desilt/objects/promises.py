"""What a store promises of conditional puts, tried out before anybody relies on it.

Some stores take a condition and never look at it. Two machines would then both be told that they were first, and a
commit that came in between would be written over. So each asks once, of an object that nobody reads, for what must be
refused.
"""

import secrets
from typing import TYPE_CHECKING

from desilt.errors import StorageFailed

if TYPE_CHECKING:
    from desilt.objects.store import ObjectStore

WAY_OUT = "move the repository to a store that looks at it, or update this one"


def check_put_new(store: "ObjectStore", key: str) -> None:
    """:class:`StorageFailed` where an object is replaced by one that was to be stored only if there was none."""
    if store.moves_cheaply:  # a disk, which has no conditions: there a name is given to one file
        return
    store.put(key, [_anything()])
    if store.put_new(key, _anything()):
        raise StorageFailed(
            f"{store.uri} replaces an object although it was asked to store one only if there is none (If-None-Match); "
            f"nothing would keep two machines apart there: {WAY_OUT}"
        )


def check_put_over(store: "ObjectStore", key: str) -> None:
    """:class:`StorageFailed` where an object is replaced that is no longer what was read; not of stores that say so."""
    if store.conditional is None:
        return
    store.put(key, [_anything()])
    seen = store.conditional.read(key)
    store.put(key, [_anything()])
    if store.conditional.put_over(seen, _anything()):
        raise StorageFailed(
            f"{store.uri} replaces an object although it is not what was read any more (If-Match); whatever somebody "
            f"commits at that moment would be lost: {WAY_OUT}"
        )


def _anything() -> bytes:
    """Like nobody else's, so that another who tries at the same time changes no answer."""
    return f"written to see whether conditions are looked at: {secrets.token_hex(16)}\n".encode()
