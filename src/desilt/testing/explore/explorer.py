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
from desilt.testing.explore.world import CLOCK, EVERYTHING, Declined, Touched, Visit, World

FINISHED, CRASHED = -1, -2
TIME = -1  # in place of an actor's number
PASSING = Touched(frozenset(), frozenset(), frozenset({CLOCK}))


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much may go wrong in one history."""

    crashes: int = 0
    ticks: int = 0  # how often time passes
    patient: bool = False  # time passes only while no flow is half way
    tick: int = 1  # how much time passes at once


class Junction(NamedTuple):
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
    """How a junction was come to first, in how many ways in all, and which choices need not be tried from it."""

    came_from: Junction | None
    by: Choice | None
    ways: int
    asleep: dict[Choice, Touched]


@dataclass(frozen=True, slots=True)
class Exploration:
    """What was run, and the shortest history to each harm."""

    states: int  # junctions visited, each at each length of history
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
        self._levels: list[dict[Junction, Arrival]] = []

    def run(self, stop: Harm | None) -> Exploration:
        start = Junction(self._model.start, tuple(play.start for play in self._plays), 0, 0)
        self._levels.append({start: Arrival(None, None, 1, {})})
        states = steps = histories = 0
        ends = set()
        while self._levels[-1] and not (stop and stop in self._found):
            following: dict[Junction, Arrival] = {}
            states += len(self._levels[-1])
            for here, arrival in self._levels[-1].items():
                self._check(here)
                choices = self._choices(here)
                tried: dict[Choice, Touched] = {}
                for choice in choices:
                    if choice in arrival.asleep:
                        continue
                    taken = self._take(here, choice)
                    if taken is None:
                        continue
                    after, footprint = taken
                    steps += 1
                    asleep = {
                        other: its
                        for other, its in (*arrival.asleep.items(), *tried.items())
                        if other.who != choice.who and not its.meets(footprint)
                    }
                    self._arrive(following, after, Arrival(here, choice, arrival.ways, asleep))
                    if self._reduced:
                        tried[choice] = footprint
                if not choices:
                    histories += arrival.ways
                    ends.add(here.world)
                    self._end(here)
            self._levels.append(following)
        return Exploration(states, steps, histories, frozenset(ends), self._found)

    def _choices(self, here: Junction) -> list[Choice]:
        choices = []
        for number, place in enumerate(here.places):
            if place >= 0 and self._ready(number, here):
                choices.append(Choice(number))
                if here.crashes < self._bounds.crashes:
                    choices.append(Choice(number, dies=True))
        if here.ticks < self._bounds.ticks and (not self._bounds.patient or self._idle(here)):
            choices.append(Choice(TIME))
        return choices

    def _ready(self, number: int, here: Junction) -> bool:
        act = self._plays[number].act(here.places[number])
        return act.ready is None or act.ready(Visit(here.world))

    def _idle(self, here: Junction) -> bool:
        return all(place < 0 or place == play.start for place, play in zip(here.places, self._plays, strict=True))

    def _take(self, here: Junction, choice: Choice) -> tuple[Junction, Touched] | None:
        """One step; None where a crash after it would be no other than one before it, or than none."""
        if choice.who == TIME:
            after = Junction(here.world.later(self._bounds.tick), here.places, here.crashes, here.ticks + 1)
            return after, EVERYTHING if self._bounds.patient else PASSING  # whoever is patient waits for any step
        play, place = self._plays[choice.who], here.places[choice.who]
        visit = Visit(here.world)
        answer = play.act(place).run(visit)
        footprint, then = visit.footprint(), play.answered(place, answer)
        if choice.dies:
            if not footprint.writes or then == FINISHED:
                return None
            then = CRASHED
        places = (*here.places[: choice.who], then, *here.places[choice.who + 1 :])
        after = Junction(visit.world(), places, here.crashes + choice.dies, here.ticks)
        return after, footprint

    def _arrive(self, following: dict[Junction, Arrival], here: Junction, arrival: Arrival) -> None:
        """Asleep is only what every way to a junction may leave out."""
        known = following.get(here)
        if known is None:
            following[here] = arrival
        else:
            known.ways += arrival.ways
            known.asleep = {choice: its for choice, its in known.asleep.items() if choice in arrival.asleep}

    # ---- what came of it

    def _check(self, here: Junction) -> None:
        lost = self._losses.get(here.world)
        if lost is None:
            lost = self._losses[here.world] = loss(self._model, here.world)
        if lost:
            self._find(Harm.LOSS, here, (), lost)

    def _end(self, here: Junction) -> None:
        ended = ending(self._model, here.world)
        if ended.loss:
            self._find(Harm.LOSS, here, ended.lines, ended.loss)
        if ended.left:
            self._find(Harm.LEFT, here, (), f"{_some(ended.left)} held by nobody, and the design does not remove it")
        if ended.leaked:
            self._find(
                Harm.LEAK, here, ended.lines, f"{_some(ended.leaked)} held by nobody, and nothing will remove it"
            )
        for number, place in enumerate(here.places):
            if place >= 0 and not self._ready(number, here._replace(world=ended.world)):
                waiting = self._plays[number].act(place).says
                self._find(Harm.STUCK, here, ended.lines, f"{self._actors[number].name} {waiting}, for ever")

    def _find(self, harm: Harm, here: Junction, more: Sequence[Line], because: str) -> None:
        if harm not in self._found:
            self._found[harm] = History(harm, (*self._lines(here), *more), because)

    def _lines(self, here: Junction) -> list[Line]:
        """The way to a junction, gone once more."""
        way: list[tuple[Junction, Choice]] = []
        level = next(number for number in range(len(self._levels) - 1, -1, -1) if here in self._levels[number])
        arrival = self._levels[level][here]
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
