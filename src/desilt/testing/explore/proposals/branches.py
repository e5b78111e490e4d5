"""What the five have in common: branches, staging areas and commits in a key-value store without transactions.

branch/<name>            Bough
staging/<token>/<path>   an address, REMOVED, or what has an address
commit/<id>              (path, address) pairs
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from desilt.testing.explore.acts import Act, Flow, Steps, get, put, put_if, scan, shown
from desilt.testing.explore.model import Pointer
from desilt.testing.explore.world import Blob, Declined, Rows, Visit, World

REMOVED = "(removed)"


class Bough(NamedTuple):
    """A branch: its commit, the staging token that is written to, and those that are being committed."""

    head: str = "c0"
    token: str = "T0"
    sealed: tuple[str, ...] = ()

    @property
    def tokens(self) -> tuple[str, ...]:
        return (self.token, *self.sealed)

    def fresh(self) -> "Bough":
        """With a new token, and nothing sealed."""
        return self._replace(token=following(self.token), sealed=())

    def __str__(self) -> str:
        return " + ".join((self.head, *reversed(self.sealed), self.token))


def child(of: "Bough") -> str:
    """The name of a commit: that of its parent, and of the token that was new when it was begun."""
    return f"{of.head}.{of.token}"


def following(name: str) -> str:
    """``T1`` after ``T0``."""
    return f"{name[:-1]}{int(name[-1]) + 1}"


def start(store: Mapping[str, Hashable], objects: Mapping[str, Blob] | Iterable[str] = ()) -> World:
    """One branch, one empty commit, and what is given besides."""
    blobs = objects if isinstance(objects, Mapping) else {address: Blob(address) for address in objects}
    return World(Rows({"branch/main": Bough(), "commit/c0": (), **store}), Rows(blobs))


def address_of(value: Any) -> str:
    return str(value if isinstance(value, str) else value.address)


def committed(visit: Visit) -> Iterator[tuple[str, Any]]:
    """Commits that a branch has come to, and all below them: the others were given up by whoever made them."""
    heads = [on.head for _, on in visit.scan("branch/")]
    for commit, entries in visit.scan("commit/"):
        if any(f"{head}.".startswith(f"{commit}.") for head in heads):
            yield commit, entries


def pointers(world: World) -> Iterable[Pointer]:
    """Committed entries, and staged ones that people see."""
    visit = Visit(world)
    for commit, entries in committed(visit):
        yield from (Pointer(f"{path} of commit {commit}", address) for path, address in entries)
    for name, on in visit.scan("branch/"):
        together: dict[str, Any] = {}
        for token in reversed(on.tokens):
            together |= dict(visit.scan(f"staging/{token}/"))
        for path, value in together.items():
            if value != REMOVED:
                yield Pointer(f"{path} staged on {name}", address_of(value))


def held(world: World) -> frozenset[str]:
    """By commits and by every staging area of a branch."""
    visit = Visit(world)
    found = {address for _, entries in committed(visit) for _, address in entries}
    for _, on in visit.scan("branch/"):
        found |= {address_of(value) for token in on.tokens for _, value in visit.scan(f"staging/{token}/")}
    return frozenset(found)


def standing(branch: str) -> Steps:
    """The branch, as it is read once."""
    on = yield get(f"branch/{branch}")
    if on is None:
        raise Declined("no such branch")
    return on


def find(on: Bough, path: str) -> Act:
    """What a path means on a branch: the token it is staged under, or an empty one, and its value.

    One act: below the token that is written to, nothing changes.
    """

    def do(visit: Visit) -> Hashable:
        for token in on.tokens:
            value = visit.get(f"staging/{token}/{path}")
            if value is not None:
                return (token, None if value == REMOVED else value)
        return ("", dict(visit.get(f"commit/{on.head}") or ()).get(path))

    return Act(f"finds {path} in {on}", do, tells=lambda answer: shown(answer[1]))


def seal(branch: str) -> Steps:
    """First part of a commit as it is today: writes go to a new token."""
    on = yield from standing(branch)
    sealed = on._replace(token=following(on.token), sealed=on.tokens)
    if not (yield put_if(f"branch/{branch}", sealed, was=on)):
        raise Declined("others were faster")
    return sealed


def settle(branch: str, sealed: Bough) -> Steps:
    """The rest of it: read what is sealed, write the commit, move the branch."""
    changes: dict[str, Any] = {}
    for token in reversed(sealed.sealed):
        changes |= dict((yield scan(f"staging/{token}/")))
    below = yield get(f"commit/{sealed.head}")
    content = {**dict(below or ()), **{path: address_of(value) for path, value in changes.items()}}
    made = child(sealed)
    yield put(f"commit/{made}", tuple(sorted(pair for pair in content.items() if pair[1] != REMOVED)))
    if not (yield put_if(f"branch/{branch}", sealed._replace(head=made, sealed=()), was=sealed)):
        raise Declined("others were faster")
    return made


def then(*flows: Flow) -> Flow:
    """One after the other, by the same."""

    def flow() -> Steps:
        for one in flows:
            yield from one()

    return flow


def commit(branch: str = "main") -> Flow:
    """A commit as it is today."""

    def flow() -> Steps:
        sealed = yield from seal(branch)
        yield from settle(branch, sealed)

    return flow


def hide(on: Bough, path: str) -> Act:
    """A path goes from a branch: its staged entry, and what there is below it."""

    def do(visit: Visit) -> None:
        below = any(visit.get(f"staging/{token}/{path}") is not None for token in on.sealed)
        if below or path in dict(visit.get(f"commit/{on.head}") or ()):
            visit.set(f"staging/{on.token}/{path}", REMOVED)
        else:
            visit.delete(f"staging/{on.token}/{path}")

    return Act(f"removes entry {path} from {on.token}", do, shows=False)
