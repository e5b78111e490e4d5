"""Proposal 3: a key for each address and staging token that refers to it, with a state and a time.

    references/<address>/<token>   Mention

A background job deletes the object once all of its keys have been *deleted* for
long enough. ``oldest``: by the oldest of them, which is what the document
writes; else by the newest.
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple

from desilt.testing.explore.acts import Actor, Flow, Steps, drop, erase, get, now, put, put_if, scan, upload
from desilt.testing.explore.model import Model
from desilt.testing.explore.proposals.branches import (
    address_of,
    find,
    held,
    hide,
    pointers,
    seal,
    settle,
    standing,
    start,
)
from desilt.testing.explore.world import Declined

STAGED, DELETED, COMMITTED = "staged", "deleted", "committed"
LONG_ENOUGH = 1
TRIES = 2


class Mention(NamedTuple):
    """The state of one reference, and since when it is so."""

    state: str
    at: int = 0

    def __str__(self) -> str:
        return f"{self.state}@{self.at}"


def model(store: Mapping[str, Hashable] | None = None, objects: Iterable[str] = (), *, oldest: bool = True) -> Model:
    return Model(start(store or {}, objects), pointers, held, job=Actor("job", job(oldest=oldest)))


def put_object(path: str, address: str) -> Flow:
    def flow() -> Steps:
        yield upload(address, address)
        on = yield from standing("main")
        yield from _mark(address, on.token, STAGED)
        old = yield get(f"staging/{on.token}/{path}")
        yield put(f"staging/{on.token}/{path}", address)
        if old is not None:
            yield from _mark(address_of(old), on.token, DELETED)

    return flow


def copy(source: str, target: str, *, of: str = "main") -> Flow:
    """Staging an object of the repository once more: no bytes are copied in this one."""

    def flow() -> Steps:
        _, address = yield find((yield from standing(of)), source)
        if address is None:
            raise Declined("nothing there")
        on = yield from standing("main")
        yield from _mark(address, on.token, STAGED)
        yield put(f"staging/{on.token}/{target}", address)

    return flow


def get_address(address: str) -> Flow:
    """Its key says *deleted* from the start: nobody refers to it yet."""

    def flow() -> Steps:
        on = yield from standing("main")
        at = yield now()
        yield put(f"references/{address}/{on.token}", Mention(DELETED, at))

    return flow


def link(path: str, address: str, *, issued: int = 0) -> Flow:
    """Declined once its time is over, which is the time that the job waits."""

    def flow() -> Steps:
        if (yield now()) >= issued + LONG_ENOUGH:
            raise Declined("it has expired")
        on = yield from standing("main")
        yield from _mark(address, on.token, STAGED)
        yield put(f"staging/{on.token}/{path}", address)

    return flow


def delete(path: str, *, of: str = "main") -> Flow:
    def flow() -> Steps:
        on = yield from standing(of)
        token, address = yield find(on, path)
        if address is None:
            raise Declined("nothing there")
        yield hide(on, path)
        if token:
            yield from _mark(address, token, DELETED)

    return flow


def commit() -> Flow:
    """Mark, swap the token, make the commit, move the branch."""

    def flow() -> Steps:
        on = yield from standing("main")
        at = yield now()
        for token in on.tokens:
            for _, address in (yield scan(f"staging/{token}/")):
                yield put(f"references/{address}/{token}", Mention(COMMITTED, at))
        sealed = yield from seal("main")
        yield from settle("main", sealed)

    return flow


def reset() -> Flow:
    def flow() -> Steps:
        on = yield from standing("main")
        if not (yield put_if("branch/main", on.fresh(), was=on)):
            raise Declined("others were faster")
        for token in on.tokens:
            for _, address in (yield scan(f"staging/{token}/")):
                yield from _mark(address, token, DELETED)

    return flow


def job(*, oldest: bool = True) -> Flow:
    def flow() -> Steps:
        at = yield now()
        addresses: dict[str, dict[str, Mention]] = {}
        for key, mention in (yield scan("references/")):
            address, _, token = key.rpartition("/")
            addresses.setdefault(address, {})[token] = mention
        for address, mentions in sorted(addresses.items()):
            states = {mention.state for mention in mentions.values()}
            since = (min if oldest else max)(mention.at for mention in mentions.values())
            if COMMITTED in states:
                order = [DELETED, STAGED, COMMITTED]
                for token in sorted(mentions, key=lambda token: order.index(mentions[token].state)):
                    yield drop(f"references/{address}/{token}")
            elif states == {DELETED} and since + LONG_ENOUGH <= at:
                yield erase(address)
                for token in sorted(mentions):
                    yield drop(f"references/{address}/{token}")

    return flow


def _mark(address: str, token: str, state: str) -> Steps:
    """Set if it is not committed; what is committed stays so."""
    key = f"references/{address}/{token}"
    for _ in range(TRIES):
        was = yield get(key)
        if was is not None and was.state == COMMITTED:
            return
        at = yield now()
        if (yield put_if(key, Mention(state, at), was=was)):
            return
    raise Declined("others were faster")
