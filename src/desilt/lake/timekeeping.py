"""Commit times that history and the object store agree with.

Expiry by age is only as good as the times it reads. A commit is later than all
its parents, and its time is within ten minutes of the store's own clock.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from desilt.domain.history import Commit
from desilt.errors import NotFound, WrongClock
from desilt.objects.store import ObjectStore

TOLERANCE = timedelta(minutes=10)
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


def check(now: datetime, store_now: datetime) -> None:
    """Refuse to go on with a clock that is more than ten minutes off the store's."""
    if abs(now - store_now) > TOLERANCE:
        raise WrongClock(now, store_now, "the object store's")


def later_than(parents: Iterable[Commit], now: datetime) -> datetime:
    """``now``, moved on a little where a parent is not earlier; refused where that would be much."""
    latest = max((parent.created_at for parent in parents), default=now - TOLERANCE)
    if latest - now > TOLERANCE:
        raise WrongClock(now, latest, "the commit before was made at")
    return max(now, latest + timedelta(microseconds=1))
