"""The explorer: runs every interleaving of some flows, with crashes and time passing, within bounds.

Worlds are searched breadth first, so that the first harm found is the shortest.
Of histories that differ only in the order of steps which do not meet, one is
run: a step that was tried before another one that it does not meet is asleep
after that other (sleep sets, by the keys that each step really touched). All
states are visited nevertheless; what is saved are steps.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from desilt.testing.explore.acts import Act, Actor, Failure
from desilt.testing.explore.ends import ending
from desilt.testing.explore.history import Harm, History, Line
from desilt.testing.explore.model import Model, loss
from desilt.testing.explore.world import CLOCK, EVERYTHING, Declined, Footprint, Visit, World

FINISHED, CRASHED = -1, -2
TIME = -1  # in place of an actor's number
PASSING = Footprint(frozenset(), frozenset(), frozenset({CLOCK}))


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much may go wrong in one history."""

    crashes: int = 0
    ticks: int = 0  # how often time passes
    patient: bool = False  # time passes only while no flow is half way
    tick: int = 1  # how much time passes at once


class Spot(NamedTuple):
    """Where a history stands: the world, where each actor is, and what may still go wrong."""

    world: World
    places: tuple[int, ...]
    crashes: int
    ticks: int


class Choice(NamedTuple):
    """The next step: whose it is, and whether it is the last one before a crash."""

    who: int
    dies: bool = False


@dataclass(slots=True)
class Arrival:
    """How a spot was come to first, in how many ways in all, and which choices need not be tried from it."""

    came_from: Spot | None
    by: Choice | None
    ways: int
    asleep: dict[Choice, Footprint]


@dataclass(frozen=True, slots=True)
class Exploration:
    """What was run, and the shortest history to each harm."""

    states: int  # spots visited, each at each length of history
    steps: int  # taken, of those that were tried
    histories: int  # from the start to an end, of those not asleep
    ends: frozenset[World]
    found: Mapping[Harm, History] = field(default_factory=dict)

    @property
    def violations(self) -> dict[Harm, History]:
        return {harm: history for harm, history in self.found.items() if harm is not Harm.LEFT}


def explore(
    model: Model,
    actors: Sequence[Actor],
    bounds: Bounds | None = None,
    *,
    reduced: bool = True,
    stop: Harm | None = None,  # as soon as this is found
) -> Exploration:
    """Every history of ``actors`` within ``bounds``."""
    return _Search(model, actors, bounds or Bounds(), reduced=reduced).run(stop)


class _Search:
    def __init__(self, model: Model, actors: Sequence[Actor], bounds: Bounds, *, reduced: bool) -> None:
        self._model, self._actors, self._bounds, self._reduced = model, actors, bounds, reduced
        self._plays = [Play(actor) for actor in actors]
        self._losses: dict[World, str] = {}
        self._found: dict[Harm, History] = {}
        self._levels: list[dict[Spot, Arrival]] = []

    def run(self, stop: Harm | None) -> Exploration:
        start = Spot(self._model.start, tuple(play.start for play in self._plays), 0, 0)
        self._levels.append({start: Arrival(None, None, 1, {})})
        states = steps = histories = 0
        ends = set()
        while self._levels[-1] and not (stop and stop in self._found):
            following: dict[Spot, Arrival] = {}
            states += len(self._levels[-1])
            for spot, arrival in self._levels[-1].items():
                self._check(spot)
                choices = self._choices(spot)
                tried: dict[Choice, Footprint] = {}
                for choice in choices:
                    if choice in arrival.asleep:
                        continue
                    taken = self._take(spot, choice)
                    if taken is None:
                        continue
                    after, footprint = taken
                    steps += 1
                    asleep = {
                        other: its
                        for other, its in (*arrival.asleep.items(), *tried.items())
                        if other.who != choice.who and not its.meets(footprint)
                    }
                    self._arrive(following, after, Arrival(spot, choice, arrival.ways, asleep))
                    if self._reduced:
                        tried[choice] = footprint
                if not choices:
                    histories += arrival.ways
                    ends.add(spot.world)
                    self._end(spot)
            self._levels.append(following)
        return Exploration(states, steps, histories, frozenset(ends), self._found)

    def _choices(self, spot: Spot) -> list[Choice]:
        choices = []
        for number, place in enumerate(spot.places):
            if place >= 0 and self._ready(number, spot):
                choices.append(Choice(number))
                if spot.crashes < self._bounds.crashes:
                    choices.append(Choice(number, dies=True))
        if spot.ticks < self._bounds.ticks and (not self._bounds.patient or self._idle(spot)):
            choices.append(Choice(TIME))
        return choices

    def _ready(self, number: int, spot: Spot) -> bool:
        act = self._plays[number].act(spot.places[number])
        return act.ready is None or act.ready(Visit(spot.world))

    def _idle(self, spot: Spot) -> bool:
        return all(place < 0 or place == play.start for place, play in zip(spot.places, self._plays, strict=True))

    def _take(self, spot: Spot, choice: Choice) -> tuple[Spot, Footprint] | None:
        """One step; None where a crash after it would be no other than one before it, or than none."""
        if choice.who == TIME:
            after = Spot(spot.world.later(self._bounds.tick), spot.places, spot.crashes, spot.ticks + 1)
            return after, EVERYTHING if self._bounds.patient else PASSING  # whoever is patient waits for any step
        play, place = self._plays[choice.who], spot.places[choice.who]
        visit = Visit(spot.world)
        answer = play.act(place).run(visit)
        footprint, then = visit.footprint(), play.answered(place, answer)
        if choice.dies:
            if not footprint.writes or then == FINISHED:
                return None
            then = CRASHED
        places = (*spot.places[: choice.who], then, *spot.places[choice.who + 1 :])
        after = Spot(visit.world(), places, spot.crashes + choice.dies, spot.ticks)
        return after, footprint

    def _arrive(self, following: dict[Spot, Arrival], spot: Spot, arrival: Arrival) -> None:
        """Asleep is only what every way to a spot may leave out."""
        known = following.get(spot)
        if known is None:
            following[spot] = arrival
        else:
            known.ways += arrival.ways
            known.asleep = {choice: its for choice, its in known.asleep.items() if choice in arrival.asleep}

    # ---- what came of it

    def _check(self, spot: Spot) -> None:
        lost = self._losses.get(spot.world)
        if lost is None:
            lost = self._losses[spot.world] = loss(self._model, spot.world)
        if lost:
            self._find(Harm.LOSS, spot, (), lost)

    def _end(self, spot: Spot) -> None:
        ended = ending(self._model, spot.world)
        if ended.loss:
            self._find(Harm.LOSS, spot, ended.lines, ended.loss)
        if ended.left:
            self._find(Harm.LEFT, spot, (), f"{_some(ended.left)} held by nobody, and the design does not remove it")
        if ended.leaked:
            self._find(
                Harm.LEAK, spot, ended.lines, f"{_some(ended.leaked)} held by nobody, and nothing will remove it"
            )
        for number, place in enumerate(spot.places):
            if place >= 0 and not self._ready(number, spot._replace(world=ended.world)):
                waiting = self._plays[number].act(place).says
                self._find(Harm.STUCK, spot, ended.lines, f"{self._actors[number].name} {waiting}, for ever")

    def _find(self, harm: Harm, spot: Spot, more: Sequence[Line], because: str) -> None:
        if harm not in self._found:
            self._found[harm] = History(harm, (*self._lines(spot), *more), because)

    def _lines(self, spot: Spot) -> list[Line]:
        """The way to a spot, gone once more."""
        way: list[tuple[Spot, Choice]] = []
        level = next(number for number in range(len(self._levels) - 1, -1, -1) if spot in self._levels[number])
        arrival = self._levels[level][spot]
        while arrival.came_from is not None and arrival.by is not None:
            way.append((arrival.came_from, arrival.by))
            level -= 1
            arrival = self._levels[level][arrival.came_from]
        lines = []
        for before, choice in reversed(way):
            if choice.who == TIME:
                lines.append(Line("time", "passes"))
                continue
            act, name = self._plays[choice.who].act(before.places[choice.who]), self._actors[choice.who].name
            lines.append(Line(name, act.told(act.run(Visit(before.world)))))
            if choice.dies:
                lines.append(Line(name, "crashes"))
        return lines


class Play:
    """One actor's flow as a tree: a place in it for every list of answers it can have had."""

    def __init__(self, actor: Actor) -> None:
        self._actor = actor
        self._acts: list[Act] = []
        self._answers: list[tuple[Hashable, ...]] = []
        self._after: dict[tuple[int, type, Hashable], int] = {}
        self.start = self._place(())

    def act(self, place: int) -> Act:
        return self._acts[place]

    def answered(self, place: int, answer: Hashable) -> int:
        """Where the flow is once its act has had this answer."""
        key = (place, type(answer), answer)
        if key not in self._after:
            self._after[key] = self._place((*self._answers[place], answer))
        return self._after[key]

    def _place(self, answers: tuple[Hashable, ...]) -> int:
        steps = self._actor.flow()
        try:
            act = next(steps)
            for answer in answers:
                act = steps.throw(Declined(answer.reason)) if isinstance(answer, Failure) else steps.send(answer)
        except (StopIteration, Declined):
            return FINISHED
        self._acts.append(act)
        self._answers.append(answers)
        return len(self._acts) - 1


def _some(addresses: frozenset[str]) -> str:
    return f"{', '.join(sorted(addresses))} {'is' if len(addresses) == 1 else 'are'}"
