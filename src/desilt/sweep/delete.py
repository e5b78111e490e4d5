"""Condemned objects, deleted or moved to the trash.

What the store fails at is tried again, after pauses that grow and are never twice the same; but never by a
run that has lost its lock meanwhile. Where there is a budget, all wait whom it concerns.
"""

import random
from collections.abc import Callable, Iterator, Sequence

from desilt.clock import elapsed  # asked before each file of a disk
from desilt.errors import DesiltError, NotFound
from desilt.objects.store import ObjectStore, Outcome, Result
from desilt.sweep.budget import Budget

PAUSES = (0.2, 1.0, 5.0, 15.0)  # seconds between tries, about
SPREAD = (0.5, 1.5)  # by which they differ: those who were refused at once do not come back at once
SILENT_SECONDS = 60.0  # a store that takes so long to fail at all it is asked for answers nobody
UNANSWERED = 16  # looks at objects, after which no more are tried
COPIES_AT_ONCE = 32  # where a move is a copy: so many take a moment, not minutes
SURE_SECONDS = 20.0  # how long a look at the lock is good for: a third of what an owner may be silent


class Sure:
    """Whether this process may still remove what it condemned: looked up again before it is too old to rely on."""

    def __init__(self, look: Callable[[], None], *, since: float) -> None:
        self._look, self.since = look, since  # since before the transaction that last looked

    def check(self) -> None:
        if elapsed() - self.since > SURE_SECONDS:
            began = elapsed()
            self._look()
            self.since = began


def delete(
    store: ObjectStore, keys: Sequence[str], *, trash: Sequence[str] | None, sure: Sure, budget: Budget
) -> list[Outcome]:
    """What came of each of ``keys``, in order; with ``trash``, each is moved to its place there."""
    places = dict(zip(keys, trash, strict=True)) if trash is not None else None
    found: dict[str, Outcome] = {}
    asked = set[str]()  # for at least once: what was only put off is not ours, if it is gone by then
    rest = list(dict.fromkeys(keys))
    for pause in (*PAUSES, None):
        outcomes = _tried(store, rest, places, sure.check, budget)
        found |= {one.key: _ours(one) if one.key in asked else one for one in outcomes}
        asked |= {one.key for one in outcomes if one.tried}
        rest = [one.key for one in outcomes if one.result is Result.FAILED]
        if not rest or pause is None:
            break
        wait(pause, budget)
    looked_at = _looked_at(store, [found[key] for key in rest], places)
    found |= {one.key: _ours(one) if one.key in asked else one for one in looked_at}
    return [found[key] for key in keys]


def wait(pause: float, budget: Budget) -> None:
    """About as long as ``pause``; and with it everybody who shares the budget."""
    seconds = pause * random.uniform(*SPREAD)
    budget.hold_back(seconds)
    budget.sleep(seconds)


def _tried(
    store: ObjectStore, keys: Sequence[str], places: dict[str, str] | None, look: Callable[[], None], budget: Budget
) -> list[Outcome]:
    """What came of each, asked for as the budget allows; once nobody is answered, the rest is not asked for."""
    found: list[Outcome] = []
    for some in budget.portions(keys):
        began = elapsed()
        outcomes = store.delete_many(some, between=look) if places is None else _moved(store, some, places, look)
        found += outcomes
        if elapsed() - began > SILENT_SECONDS and all(one.result is Result.FAILED for one in outcomes):
            left = keys[len(found) :]
            return found + [Outcome(key, Result.FAILED, outcomes[-1].detail, tried=False) for key in left]
    return found


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


def _looked_at(store: ObjectStore, failed: Sequence[Outcome], places: dict[str, str] | None) -> Iterator[Outcome]:
    """After the last failure: moved after all, gone after all, or still there. A disk knows; a request may be lost."""
    if store.moves_cheaply and places is None:
        yield from failed
        return
    patience = UNANSWERED
    for one in failed:
        here = _seen(store, one.key) if patience else None
        patience -= here is None and patience > 0
        if here is not False:
            yield one
        elif places is not None and _is_there(store, places[one.key]):
            yield Outcome(one.key, Result.REMOVED)
        else:
            yield one if store.moves_cheaply else Outcome(one.key, Result.GONE)


def _is_there(store: ObjectStore, key: str) -> bool:
    """Whether there is an object; where the store does not say, there may be."""
    return _seen(store, key) is not False


def _seen(store: ObjectStore, key: str) -> bool | None:
    """Whether there is an object; None where the store does not say."""
    try:
        store.head(key)
    except NotFound:
        return False
    except DesiltError:
        return None
    return True
