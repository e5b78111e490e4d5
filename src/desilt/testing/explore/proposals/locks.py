"""Proposal 5: no two staged entries share an object, and each entry can be locked.

``lease``: how long a lock holds; None is for ever. ``locking``: whether a delete
takes the lock (the document's second version) or only looks at it (its first).
``watches_token``: an upload leaves the old object alone if the token was
replaced meanwhile.
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple

from desilt.testing.explore.acts import Act, Flow, Steps, drop, erase, get, now, put, put_if, scan, upload
from desilt.testing.explore.model import Model
from desilt.testing.explore.proposals.branches import Bough, find, held, hide, pointers, standing, start
from desilt.testing.explore.world import Declined, Visit

FOR_EVER = 10**6
TRIES = 2


class Lockable(NamedTuple):
    """A staged entry, and until when it is locked."""

    address: str
    until: int = 0

    def __str__(self) -> str:
        return f"{self.address} locked" if self.until else self.address


def model(store: Mapping[str, Hashable] | None = None, objects: Iterable[str] = ()) -> Model:
    entries = {key: Lockable(value) if isinstance(value, str) else value for key, value in (store or {}).items()}
    return Model(start(entries, objects), pointers, held)


def move(source: str, target: str, *, lease: int | None = None, only_staged: bool = False) -> Flow:
    """Lock, copy the entry to the new path on the token of that moment, delete the old one, unlock the new one.

    ``only_staged``: what is committed is not moved; the document leaves that open.
    """

    def flow() -> Steps:
        on = yield from standing("main")
        token, value = yield from _staged(on, source)
        if only_staged and not token:
            raise Declined("it is committed")
        if token:
            value = yield from _lock(f"staging/{token}/{source}", lease)
        there = yield from standing("main")
        yield put(f"staging/{there.token}/{target}", value)
        if token:
            yield drop(f"staging/{token}/{source}")
        else:
            yield hide(there, source)
        yield put(f"staging/{there.token}/{target}", Lockable(value.address))

    return flow


def put_object(path: str, address: str, *, lease: int | None = None, watches_token: bool = True) -> Flow:
    def flow() -> Steps:
        on = yield from standing("main")
        key = f"staging/{on.token}/{path}"
        old = None
        if (yield get(key)) is not None:
            old = yield from _lock(key, lease)
        yield upload(address, address)
        yield put(key, Lockable(address))
        if old is not None:
            if watches_token and (yield from standing("main")).token != on.token:
                return
            yield erase(old.address)

    return flow


def delete(path: str, *, lease: int | None = None, locking: bool = True) -> Flow:
    def flow() -> Steps:
        on = yield from standing("main")
        token, _ = yield from _staged(on, path)
        if not token:
            yield hide(on, path)
            return
        key = f"staging/{token}/{path}"
        value = (yield from _lock(key, lease)) if locking else (yield _unlocked(key))
        if value is None:
            raise Declined("nothing there")
        yield drop(key)
        yield erase(value.address)

    return flow


def reset(*, whole_branch: bool = False) -> Flow:
    """The branch goes on with another token, or goes; then each object below the old one, but for locked entries."""

    def flow() -> Steps:
        on = yield from standing("main")
        if whole_branch:
            yield drop("branch/main")
        elif not (yield put_if("branch/main", on.fresh(), was=on)):
            raise Declined("others were faster")
        at = yield now()
        for token in on.tokens:
            for _, value in (yield scan(f"staging/{token}/")):
                if isinstance(value, Lockable) and value.until <= at:
                    yield erase(value.address)

    return flow


def _staged(on: Bough, path: str) -> Steps:
    token, value = yield find(on, path)
    if value is None:
        raise Declined("nothing there")
    return (token, value if isinstance(value, Lockable) else Lockable(value))


def _lock(key: str, lease: int | None) -> Steps:
    """The entry, locked by us; waits while it is locked by others."""
    for _ in range(TRIES):
        value = yield _unlocked(key)
        if value is None:
            raise Declined("nothing there")
        until = FOR_EVER if lease is None else (yield now()) + lease
        locked = Lockable(value.address, until)
        if (yield put_if(key, locked, was=value)):
            return locked
    raise Declined("others were faster")


def _unlocked(key: str) -> Act:
    def entry(visit: Visit) -> Lockable | None:
        value = visit.get(key)
        return value if isinstance(value, Lockable) else None  # what was removed is not there

    def free(visit: Visit) -> bool:
        value = entry(visit)
        return value is None or value.until <= visit.now

    return Act(f"reads {key} once it is not locked", entry, ready=free)
