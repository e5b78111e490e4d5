"""A model: where a world starts, what in it must be there, who holds what, and who cleans up."""

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from typing import NamedTuple

from desilt.testing.explore.acts import Actor
from desilt.testing.explore.world import World

LONG = 100  # more time than anything in a model waits for


class Pointer(NamedTuple):
    """Something that people can see, and that must lead to an object."""

    where: str
    address: str
    content: str | None = None  # where it also matters what the object says


@dataclass(frozen=True, slots=True)
class Model:
    """A design, small enough that all of its histories can be run."""

    start: World
    pointers: Callable[[World], Iterable[Pointer]]  # committed and visible staged entries
    held: Callable[[World], Set[str]]  # by any commit, staging area or open upload: what a collector leaves alone
    job: Actor | None = None  # one round of the design's own background job
    collector: Actor | None = None  # one round of its complement; None: deletes whatever is not held
    gone: Callable[[World], Set[str]] = lambda _: frozenset()  # addresses that answer so, though an object is there


def loss(model: Model, world: World) -> str:
    """What points to nothing, or to something else than it was made for; empty where all is well."""
    gone = model.gone(world)
    for pointer in sorted(model.pointers(world), key=lambda one: one[:2]):
        blob = world.objects.get(pointer.address)
        if blob is None:
            return f"{pointer.where} points to {pointer.address}, which is gone"
        if pointer.address in gone:
            return f"{pointer.where} points to {pointer.address}, which is condemned"
        if pointer.content is not None and blob.content != pointer.content:
            return f"{pointer.where} was made of {pointer.content}, and {pointer.address} now holds {blob.content}"
    return ""


def unheld(model: Model, world: World) -> frozenset[str]:
    """Objects that nobody holds."""
    return frozenset(world.objects) - model.held(world)
