"""The three ways in which history is made shorter: that of the document, and those of Icechunk's library.

They differ in what becomes of an old tip that stays:

    design  it is left as it is, and all that it descends from stays with it
    v1      it gets the root as its parent, like the young ones; on the way of others it is left out
    v2      the same, and on the way of others it stays; what is old and nothing names leaves history at once, and can
            no longer be opened. The root is never counted as old, so no ref goes that is on it

``v1`` and ``v2`` are what the library does to repositories of format 1 and of format 2. Where it gives a commit the
root, the nearest one that a keep rule holds is given here, which is the root where there are no rules.
"""

from collections.abc import Iterable, Mapping, Set
from datetime import datetime
from typing import Literal, Protocol, get_args

from desilt.domain.keep_rules import Dated, Detour, walk_down
from desilt.errors import BadRequest

Mode = Literal["design", "v1", "v2"]
MODES: tuple[Mode, ...] = get_args(Mode)
NOTES: dict[Mode, str] = {
    "v1": "History is made shorter in the mode v1: old commits that stay get the root as their parent",
    "v2": "History is made shorter in the mode v2: old commits that stay get the root as their parent, and what is "
    "released leaves history at once: it can no longer be opened",
}
"""What people are to know of those that are not a lake's."""


class Pointing(Protocol):
    """A ref, as far as it is asked here."""

    @property
    def target(self) -> str: ...


def read_mode(given: object) -> Mode:
    for mode in MODES:
        if mode == given:
            return mode
    raise BadRequest(f"{given!r} is no way to make history shorter; there are {', '.join(MODES)}")


def young(nodes: Mapping[str, Dated], roots: Set[str], before: datetime, mode: Mode) -> set[str]:
    """The commits from ``before`` or later; in ``v1`` all of them, if the roots are."""
    found = {name for name, node in nodes.items() if node.created_at >= before}
    return set(nodes) if mode == "v1" and roots <= found else found


def parents(
    nodes: Mapping[str, Dated],
    live: Iterable[Pointing],
    skipped: Iterable[Pointing],
    stays: Set[str],
    released: Set[str],
    mode: Mode,
) -> dict[str, tuple[str, ...]]:
    """Of the commits that may be edited, the parents that each is to have; ``live`` are refs with young tips."""
    detour = Detour(nodes, stays)
    if mode == "v2":
        return {name: _past(node, released, detour) for name, node in nodes.items() if name not in released}
    tips = [ref.target for ref in (live if mode == "design" else (*live, *skipped))]
    return {name: detour.parents(nodes[name]) for name in walk_down(tips, lambda name: detour.parents(nodes[name]))}


def _past(node: Dated, released: Set[str], detour: Detour) -> tuple[str, ...]:
    """The parents of ``node`` that stay; for one that does not, what its way leads to that is more than a tip."""
    if released.isdisjoint(node.parents):
        return node.parents
    lists = (detour.trim(detour.nearest(one)) if one in released else (one,) for one in node.parents)
    return tuple(dict.fromkeys(near for met in lists for near in met))
