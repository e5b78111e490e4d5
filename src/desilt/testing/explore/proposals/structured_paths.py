"""Proposal 1: staged data lies in the object store, at ``<branch>/<staging token>/<path>``, and nowhere else.

branch/<name>            Bough
commit/<id>              (path, address, content) as the commit saw it
"""

from collections.abc import Iterable, Mapping

from desilt.testing.explore.acts import Flow, Steps, drop, erase, listing, look, put, put_if, upload
from desilt.testing.explore.model import Model, Pointer
from desilt.testing.explore.proposals.branches import child, standing, start
from desilt.testing.explore.proposals.branches import committed as known
from desilt.testing.explore.world import Blob, Declined, Visit, World


def model(staged: Mapping[str, str] | None = None) -> Model:
    """A branch with these paths staged, by their content."""
    blobs = {f"main/T0/{path}": Blob(content) for path, content in (staged or {}).items()}
    return Model(start({}, blobs), committed, held)


def write(path: str, content: str) -> Flow:
    def flow() -> Steps:
        on = yield from standing("main")
        yield upload(f"main/{on.token}/{path}", content)

    return flow


def copy(source: str, target: str) -> Flow:
    """A full copy, which the document asks for."""

    def flow() -> Steps:
        on = yield from standing("main")
        blob = yield look(f"main/{on.token}/{source}")
        if blob is None:
            raise Declined("nothing there")
        yield upload(f"main/{on.token}/{target}", blob.content)

    return flow


def delete(path: str) -> Flow:
    """What is staged is its object: the one goes with the other."""

    def flow() -> Steps:
        on = yield from standing("main")
        yield erase(f"main/{on.token}/{path}")

    return flow


def commit() -> Flow:
    def flow() -> Steps:
        on = yield from standing("main")
        seen = yield listing(f"main/{on.token}/")
        made = child(on.fresh())
        yield put(f"commit/{made}", tuple((path, f"main/{on.token}/{path}", blob.content) for path, blob in seen))
        if not (yield put_if("branch/main", on.fresh()._replace(head=made), was=on)):
            raise Declined("others were faster")

    return flow


def reset(*, whole_branch: bool = False) -> Flow:
    """The branch goes on with another token, or goes; then every object below the token it had."""

    def flow() -> Steps:
        on = yield from standing("main")
        if whole_branch:
            yield drop("branch/main")
        elif not (yield put_if("branch/main", on.fresh(), was=on)):
            raise Declined("others were faster")
        for path, _ in (yield listing(f"main/{on.token}/")):
            yield erase(f"main/{on.token}/{path}")

    return flow


def committed(world: World) -> Iterable[Pointer]:
    for name, entries in known(Visit(world)):
        yield from (Pointer(f"{path} of commit {name}", address, content) for path, address, content in entries)


def held(world: World) -> frozenset[str]:
    visit = Visit(world)
    live = tuple(f"{name}/{on.token}/" for name, on in visit.scan("branch/"))
    staged = {address for address in world.objects if address.startswith(live)}
    return frozenset(staged | {pointer.address for pointer in committed(world)})
