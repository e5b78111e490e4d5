"""The database of the model: branches, staging areas, commits, rows, tombstones, tickets and holds.

branch/<name>            Tip
staging/<token>/<path>   an address, or REMOVED
commit/<id>              (path, address) pairs
row/<address>            uploaded, inside the lake, never committed
stone/<address>          Stone
ticket/<address>         when it expires
hold/<address>
on                       whether anything is condemned at all
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from desilt.testing.explore.model import Pointer
from desilt.testing.explore.world import Declined, Visit, World

REMOVED = "(removed)"
ELSEWHERE = "s3:"  # what an address outside of the lake begins with
LIFE = GRACE = LEASE = 1  # of a ticket; before a claim; of a claim
CONDEMNED, CLAIMED, OF_A_RUN, GONE = "condemned", "claimed", "of a run", "gone"


class Tip(NamedTuple):
    """A branch: its commit, its open staging area, and those that are sealed, newest first."""

    uid: str
    head: str
    token: str
    sealed: tuple[str, ...] = ()
    made: int = 0  # names given out so far

    @property
    def tokens(self) -> tuple[str, ...]:
        return (self.token, *self.sealed)

    def fresh(self) -> str:
        return f"{self.uid}.{self.made + 1}"


class Stone(NamedTuple):
    """A tombstone, and what it takes to bring its entry back."""

    state: str
    at: int  # condemned, or when a claim runs out
    uid: str = ""
    path: str = ""
    below: str | None = None  # what the path meant once its entry was dropped


def tip(visit: Visit, branch: str) -> Tip:
    found: Tip | None = visit.get(f"branch/{branch}")
    if found is None:
        raise Declined(f"no branch {branch}")
    return found


def tips(visit: Visit) -> dict[str, Tip]:
    return dict(visit.scan("branch/"))


def staged(visit: Visit, tokens: Iterable[str], path: str) -> str | None:
    """What the newest of some areas says of a path; None if none knows it."""
    for token in tokens:
        value: str | None = visit.get(f"staging/{token}/{path}")
        if value is not None:
            return value
    return None


def area(visit: Visit, token: str) -> dict[str, str]:
    return dict(visit.scan(f"staging/{token}/"))


def merged(visit: Visit, tokens: Iterable[str]) -> dict[str, str]:
    """What areas, newest first, say together."""
    found: dict[str, str] = {}
    for token in tokens:
        found = {**area(visit, token), **found}
    return found


def contents(visit: Visit, commit: str) -> dict[str, str]:
    return dict(visit.get(f"commit/{commit}") or ())


def applied(below: Mapping[str, str], changes: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """What a commit of ``changes`` holds."""
    return tuple(sorted((path, one) for path, one in {**below, **changes}.items() if one != REMOVED))


def visible(visit: Visit, on: Tip, path: str) -> str | None:
    """The address at a path of a branch, if there is one."""
    value = staged(visit, on.tokens, path) or contents(visit, on.head).get(path)
    return None if value == REMOVED else value


# ---- what is asked of a world


def pointers(world: World) -> Iterable[Pointer]:
    """Committed entries, staged ones that people see, and what people ordered to be held."""
    visit = Visit(world)
    for commit, entries in visit.scan("commit/"):
        yield from (Pointer(f"{path} of commit {commit}", address) for path, address in entries)
    for name, on in tips(visit).items():
        for path, address in merged(visit, on.tokens).items():
            if address != REMOVED:
                yield Pointer(f"{path} staged on {name}", address)
    for address, _ in visit.scan("hold/"):
        stone = visit.get(f"stone/{address}")
        if stone is None or stone.state != CONDEMNED:
            yield Pointer("a hold", address)


def condemned(world: World) -> frozenset[str]:
    """What answers that it is gone, whether its object is still there or not."""
    return frozenset(address for address, _ in Visit(world).scan("stone/"))


def held(world: World) -> frozenset[str]:
    """By commits, by any staging area, by tickets that live, by orders; and all that is elsewhere."""
    visit = Visit(world)
    found = {address for _, entries in visit.scan("commit/") for _, address in entries}
    found |= {address for _, address in visit.scan("staging/")}
    found |= {address for address, expires in visit.scan("ticket/") if expires > world.now}
    found |= {address for address, _ in visit.scan("hold/")}
    return frozenset(found | {address for address in world.objects if address.startswith(ELSEWHERE)})
