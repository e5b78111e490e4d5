"""What time it is by an object store's own clock."""

from datetime import datetime

from desilt.errors import NotFound
from desilt.objects.store import ObjectStore

PROBE = "_desilt/clock"  # one small object beside all repositories, written over and over


def store_time(store: ObjectStore) -> datetime:
    """What the store's clock says, by the time it gives a fresh object."""
    store.put(PROBE, [b"what time is it?\n"])
    return store.head(PROBE).modified_at


def last_asked(store: ObjectStore) -> datetime | None:
    """When somebody last asked for :func:`store_time`; None if nobody ever did."""
    try:
        return store.head(PROBE).modified_at
    except NotFound:
        return None
