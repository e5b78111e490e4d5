"""Proposal 4: for each address the list of staging tokens that refer to it; tokens end, and objects with their last.

    references/<address>     tokens
    deleted/<token>          of a branch that was reset or deleted
    committed/<commit>       the tokens that it took

``keys_go``: the key of a list that was emptied goes with its object; else it
stays, empty, for ever.
"""

from collections.abc import Hashable, Iterable, Mapping

from desilt.testing.explore.acts import Actor, Flow, Steps, drop, erase, get, put, put_if, scan, upload
from desilt.testing.explore.model import Model
from desilt.testing.explore.proposals.branches import (
    REMOVED,
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

TRIES = 2


def model(store: Mapping[str, Hashable] | None = None, objects: Iterable[str] = (), *, keys_go: bool = True) -> Model:
    return Model(start(store or {}, objects), pointers, held, job=Actor("job", job(keys_go=keys_go)))


def put_object(path: str, address: str) -> Flow:
    def flow() -> Steps:
        yield upload(address, address)
        on = yield from standing("main")
        yield from _refer(address, on.token)
        yield put(f"staging/{on.token}/{path}", address)

    return flow


def copy(source: str, target: str, *, of: str = "main") -> Flow:
    """An address that has no list counts as committed; one whose list is empty as deleted."""

    def flow() -> Steps:
        _, address = yield find((yield from standing(of)), source)
        if address is None:
            raise Declined("nothing there")
        on = yield from standing("main")
        for _ in range(TRIES):
            tokens = yield get(f"references/{address}")
            if tokens == ():
                raise Declined("it counts as deleted")
            if tokens is None or (yield put_if(f"references/{address}", _with(tokens, on.token), was=tokens)):
                yield put(f"staging/{on.token}/{target}", address)
                return
        raise Declined("others were faster")

    return flow


def delete(path: str) -> Flow:
    """As it is today: references stay."""

    def flow() -> Steps:
        on = yield from standing("main")
        _, address = yield find(on, path)
        if address is None:
            raise Declined("nothing there")
        yield hide(on, path)

    return flow


def commit() -> Flow:
    def flow() -> Steps:
        sealed = yield from seal("main")
        made = yield from settle("main", sealed)
        yield put(f"committed/{made}", sealed.sealed)

    return flow


def reset(branch: str = "main", *, whole_branch: bool = False) -> Flow:
    def flow() -> Steps:
        on = yield from standing(branch)
        if whole_branch:
            yield drop(f"branch/{branch}")
        elif not (yield put_if(f"branch/{branch}", on.fresh(), was=on)):
            raise Declined("others were faster")
        for token in on.tokens:
            yield put(f"deleted/{token}", True)

    return flow


def job(*, keys_go: bool = True) -> Flow:
    def flow() -> Steps:
        for made, tokens in (yield scan("committed/")):
            for _, address in (yield get(f"commit/{made}")):
                yield drop(f"references/{address}")
            for token in tokens:
                yield put(f"deleted/{token}", True)
            yield drop(f"committed/{made}")
        for token, _ in (yield scan("deleted/")):
            for path, address in (yield scan(f"staging/{token}/")):
                if address != REMOVED:
                    yield from _release(address, token, keys_go=keys_go)
                yield drop(f"staging/{token}/{path}")
            yield drop(f"deleted/{token}")

    return flow


def _release(address: str, token: str, *, keys_go: bool) -> Steps:
    key = f"references/{address}"
    for _ in range(TRIES):
        tokens = yield get(key)
        if tokens is None or token not in tokens:
            return
        left = tuple(one for one in tokens if one != token)
        if (yield put_if(key, left, was=tokens)):
            if not left:
                yield erase(address)
                if keys_go:
                    yield drop(key)
            return


def _refer(address: str, token: str) -> Steps:
    key = f"references/{address}"
    for _ in range(TRIES):
        tokens = yield get(key)
        if (yield put_if(key, _with(tokens or (), token), was=tokens)):
            return
    raise Declined("others were faster")


def _with(tokens: tuple[str, ...], token: str) -> tuple[str, ...]:
    return tuple(sorted({*tokens, token}))
