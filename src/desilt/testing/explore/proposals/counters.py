"""Proposal 2: each object's metadata counts the references to it.

``conditional``: the store changes metadata only if it is as it was read (Azure,
Google); else the last one to write wins (S3, where it is a copy onto itself).
``only_staged``: a delete counts down only for entries that are staged; the
document counts down for any.
"""

from collections.abc import Hashable, Mapping

from desilt.testing.explore.acts import Act, Flow, Steps, drop, erase, look, put, put_if, scan, shown, upload
from desilt.testing.explore.model import Model
from desilt.testing.explore.proposals.branches import address_of, find, held, hide, pointers, standing, start
from desilt.testing.explore.world import Blob, Declined, Visit

TRIES = 3


def model(store: Mapping[str, Hashable] | None = None, counts: Mapping[str, int] | None = None) -> Model:
    blobs = {address: Blob(address, counter) for address, counter in (counts or {}).items()}
    return Model(start(store or {}, blobs), pointers, held)


def put_object(path: str, address: str) -> Flow:
    def flow() -> Steps:
        yield upload(address, address, counter=1)
        on = yield from standing("main")
        yield put(f"staging/{on.token}/{path}", address)

    return flow


def stage(path: str, address: str, *, conditional: bool) -> Flow:
    """One more entry on an object of the repository: stage, link and copy alike."""

    def flow() -> Steps:
        yield from _count(address, +1, conditional=conditional)
        on = yield from standing("main")
        yield put(f"staging/{on.token}/{path}", address)

    return flow


def delete(path: str, *, conditional: bool, only_staged: bool = False) -> Flow:
    def flow() -> Steps:
        on = yield from standing("main")
        token, address = yield find(on, path)
        if address is None:
            raise Declined("nothing there")
        yield hide(on, path)
        if token or not only_staged:
            yield from _release(address, conditional=conditional)

    return flow


def reset(*, conditional: bool, whole_branch: bool = False) -> Flow:
    """The branch goes on with another token, or goes; then each entry below the old one is counted down."""

    def flow() -> Steps:
        on = yield from standing("main")
        if whole_branch:
            yield drop("branch/main")
        elif not (yield put_if("branch/main", on.fresh(), was=on)):
            raise Declined("others were faster")
        for token in on.tokens:
            for _, value in (yield scan(f"staging/{token}/")):
                yield from _release(address_of(value), conditional=conditional)

    return flow


def _release(address: str, *, conditional: bool) -> Steps:
    left = yield from _count(address, -1, conditional=conditional)
    if left == 0:
        yield erase(address)


def _count(address: str, by: int, *, conditional: bool) -> Steps:
    for _ in range(TRIES):
        blob = yield look(address)
        if blob is None or blob.counter == 0:
            raise Declined("it counts as deleted")
        if (yield _set(address, blob.counter + by, was=blob.counter if conditional else None)):
            return blob.counter + by
    raise Declined("others were faster")


def _set(address: str, counter: int, *, was: int | None) -> Act:
    """The answer is whether it was done; no object, no metadata."""

    def do(visit: Visit) -> bool:
        blob = visit.object(address)
        if blob is None or (was is not None and blob.counter != was):
            return False
        visit.put(address, blob._replace(counter=counter))
        return True

    condition = "" if was is None else f" if it is {shown(was)}"
    return Act(f"sets counter of {address} = {counter}{condition}", do)
