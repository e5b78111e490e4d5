"""Condemned objects, deleted or moved to the trash.

What the store fails at is tried again, after growing pauses; but never by a run
that has lost its lock meanwhile.
"""

import time
from collections.abc import Callable, Sequence

from desilt.errors import DesiltError, NotFound
from desilt.objects.store import ObjectStore, Outcome, Result

PAUSES = (0.2, 1.0, 5.0, 15.0)  # seconds between tries
COPIES_AT_ONCE = 32  # where a move is a copy: so many take a moment, not minutes
CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # asked before each file of a disk
SURE_SECONDS = 20.0  # how long a look at the lock is good for: a third of what an owner may be silent


class Sure:
    """Whether this process may still remove what it condemned: looked up again before it is too old to rely on."""

    def __init__(self, look: Callable[[], None], *, since: float) -> None:
        self._look, self.since = look, since  # since before the transaction that last looked

    def check(self) -> None:
        if now() - self.since > SURE_SECONDS:
            began = now()
            self._look()
            self.since = began


def now() -> float:
    """Seconds that pass even while the machine sleeps."""
    return time.clock_gettime(CLOCK)


def delete(
    store: ObjectStore, keys: Sequence[str], *, trash: Sequence[str] | None, sure: Sure, sleep: Callable[[float], None]
) -> list[Outcome]:
    """What came of each of ``keys``, in order; with ``trash``, each is moved to its place there."""
    places = dict(zip(keys, trash, strict=True)) if trash is not None else None
    found: dict[str, Outcome] = {}
    rest = list(dict.fromkeys(keys))
    look = sure.check
    for pause in (*PAUSES, None):
        outcomes = store.delete_many(rest, between=look) if places is None else _moved(store, rest, places, look)
        found |= {one.key: _ours(one) if one.key in found else one for one in outcomes}
        rest = [one.key for one in outcomes if one.result is Result.FAILED]
        if not rest or pause is None:
            break
        sleep(pause)
    found |= {key: _ours(_looked_at(store, found[key], places)) for key in rest}
    return [found[key] for key in keys]


def _ours(again: Outcome) -> Outcome:
    """Of a key that was asked for before, and failed: what is gone by now went by that."""
    return Outcome(again.key, Result.REMOVED) if again.result is Result.GONE else again


def _moved(store: ObjectStore, keys: Sequence[str], places: dict[str, str], look: Callable[[], None]) -> list[Outcome]:
    """Moved now, or by a try before this one that was cut off."""
    size = len(keys) if store.moves_cheaply else COPIES_AT_ONCE
    outcomes: list[Outcome] = []
    for at in range(0, len(keys), size):
        pairs = [(key, places[key]) for key in keys[at : at + size]]
        outcomes += store.move_many(pairs, between=look)
    return [
        Outcome(one.key, Result.REMOVED) if one.result is Result.GONE and _is_there(store, places[one.key]) else one
        for one in outcomes
    ]


def _looked_at(store: ObjectStore, failed: Outcome, places: dict[str, str] | None) -> Outcome:
    """After the last failure: moved after all, gone after all, or still there. A disk knows; a request may be lost."""
    if places is not None and _is_there(store, places[failed.key]) and not _is_there(store, failed.key):
        return Outcome(failed.key, Result.REMOVED)
    if store.moves_cheaply or _is_there(store, failed.key):
        return failed
    return Outcome(failed.key, Result.GONE)


def _is_there(store: ObjectStore, key: str) -> bool:
    """Whether there is an object; where the store does not say, there may be."""
    try:
        store.head(key)
    except NotFound:
        return False
    except DesiltError:
        return True
    return True
