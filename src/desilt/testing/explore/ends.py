"""The end of a history: nobody else is at work, time passes, and whoever cleans up does so until nothing changes."""

import functools
from collections.abc import Iterator
from typing import NamedTuple

from desilt.testing.explore.acts import Act, Actor, Failure, Flow, erase, listing
from desilt.testing.explore.history import Line
from desilt.testing.explore.model import LONG, Model, loss, unheld
from desilt.testing.explore.world import Declined, Visit, World

ROUNDS = 8  # of cleaning up; more means that it never comes to rest


class Ending(NamedTuple):
    """What a world comes to when it is left to those who clean up."""

    world: World
    lines: tuple[Line, ...]  # what they changed
    loss: str
    left: frozenset[str]  # what the design's own job did not take
    leaked: frozenset[str]  # what the collector did not take either


@functools.lru_cache(maxsize=1 << 14)  # many histories end in the same world
def ending(model: Model, world: World) -> Ending:
    lines: list[Line] = []
    collector = model.collector or Actor("collector", naive(model, world))
    left: frozenset[str] | None = None
    for _ in range(ROUNDS):
        before = world
        for who in (model.job, collector):
            if who is None:
                continue
            if who is collector and left is None:
                left = unheld(model, world)
            if who is collector and model.collector is None:
                collector = who = Actor(who.name, naive(model, world))
            world, lost = _settle(model, who, world, lines)
            if lost:
                return Ending(world, tuple(lines), lost, left or frozenset(), frozenset())
        if _same(before, world):
            return Ending(world, tuple(lines), "", left or frozenset(), unheld(model, world))
    raise AssertionError(f"cleaning up does not come to rest: {lines}")


def alone(flow: Flow, world: World) -> Iterator[tuple[str, World]]:
    """Each step of a flow that nobody disturbs: what it did, and the world after it."""
    steps = flow()
    try:
        act: Act = next(steps)
        while True:
            visit = Visit(world)
            if act.ready is not None and not act.ready(visit):
                return
            answer = act.run(visit)
            world = visit.world()
            yield act.told(answer), world
            act = steps.throw(Declined(answer.reason)) if isinstance(answer, Failure) else steps.send(answer)
    except (StopIteration, Declined):
        return


def naive(model: Model, world: World) -> Flow:
    """The naive collector: deletes all that nobody holds, when nobody else is at work."""

    def flow() -> Iterator[Act]:
        yield listing("")
        for address in sorted(unheld(model, world)):
            yield erase(address)

    return flow  # type: ignore[return-value]


def _settle(model: Model, who: Actor, world: World, lines: list[Line]) -> tuple[World, str]:
    """``who``, again and again until nothing changes; what was lost by it."""
    for _ in range(ROUNDS):
        begun = world = world.later(LONG)
        waited = [Line("time", "passes")]
        for what, after in alone(who.flow, world):
            changed, world = not _same(world, after), after
            if changed:
                lines += [*waited, Line(who.name, what)]
                waited = []
                if lost := loss(model, world):
                    return world, lost
        if _same(begun, world):
            return world, ""
    raise AssertionError(f"{who.name} does not come to rest")


def _same(one: World, other: World) -> bool:
    return (one.store, one.objects) == (other.store, other.objects)
