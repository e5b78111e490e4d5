"""Every order in which flows can take turns on a real lake: what is lost, left behind or stuck in any of them.

Each flow is a thread, of which one runs at a time up to its next step. One history
after the other is run from the same start: it follows the last one up to the deepest
place where somebody else can still go first. Of histories that differ only in the
order of steps that do not meet (:mod:`~desilt.testing.footprints`), one is run:
somebody else goes first only where a later step of his met the one taken there, and
whoever was tried is asleep until a step meets his (dynamic partial order reduction).

    found = search(start)
    assert not found.violations, found
"""

import hashlib
import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from desilt.testing.explore.history import Harm, History, Line
from desilt.testing.faults import Turns
from desilt.testing.footprints import Footprint, Tracks

HANGS = 60.0  # seconds; a step takes milliseconds


class Violation(Exception):
    """What must not come of any history."""

    def __init__(self, harm: Harm, because: str) -> None:
        self.harm, self.because = harm, because
        super().__init__(f"{harm}: {because}")


class Asleep(Exception):
    """Whatever comes next was run before, in another order."""


class Beginning(Protocol):
    """A start, and flows that begin there, as often as they are asked to."""

    tracks: Tracks

    def flows(self, pause: Callable[[], None]) -> Mapping[str, Callable[[], None]]:
        """All as it was at the start; the flows by their names, each of whose steps waits for ``pause``."""

    def look(self, touched: Footprint) -> None:
        """After each step: :class:`Violation` where something is wrong."""

    def end(self) -> Sequence[Line]:
        """When all flows have ended, what became of them; :class:`Violation` where something is wrong."""


@dataclass(slots=True)
class Place:
    """Where somebody was chosen."""

    waiting: tuple[str, ...]
    asleep: dict[str, Footprint]
    todo: set[str]  # who is to be chosen here, sooner or later
    chosen: str
    tried: dict[str, Footprint] = field(default_factory=dict)  # and what they did


@dataclass(slots=True)
class Found:
    """What was run, and the shortest history to each harm."""

    histories: int = 0
    asleep: int = 0  # given up half way
    steps: int = 0
    whole: bool = True  # nothing was left out
    violations: dict[Harm, History] = field(default_factory=dict)

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.violations.values())) or f"{self.histories} histories, and nothing wrong"


def search(start: Beginning, *, reduced: bool = True, most: int | None = None, stop: bool = True) -> Found:
    """Every history of ``start``, or at most so many; ``stop`` at the first violation."""
    found, path = Found(), list[Place]()
    while True:
        if found.histories == most:
            found.whole = False
            return found
        with same_chances():
            if _Run(start, path, found, reduced=reduced).broken and stop:
                return found
        if reduced:
            _meet(path)
        while path and not path[-1].todo - path[-1].tried.keys() - path[-1].asleep.keys():
            path.pop()
        if not path:
            return found
        path[-1].chosen = min(path[-1].todo - path[-1].tried.keys() - path[-1].asleep.keys())


class _Run:
    """One history, along ``path`` as far as that goes, and on from there."""

    def __init__(self, start: Beginning, path: list[Place], found: Found, *, reduced: bool) -> None:
        self._start, self._path, self._found, self._reduced = start, path, found, reduced
        self._depth, self._ended, self.broken = 0, threading.Semaphore(0), False
        self._turns = Turns(self._choose, limit=HANGS)
        bodies = start.flows(self._turns.pause)
        try:
            self._turns.run({who: self._told(body) for who, body in bodies.items()})
            self._over(sorted(bodies))
            found.histories += 1
            start.end()
        except Asleep:
            found.asleep += 1
        except Violation as wrong:
            found.histories += 1
            self._keep(wrong)
        finally:
            for _ in bodies:  # nobody of this history is left when the next one begins
                self._ended.acquire(timeout=HANGS)
        found.steps += self._depth

    def _told(self, body: Callable[[], None]) -> Callable[[], None]:
        def whole() -> None:
            try:
                body()
            finally:
                self._ended.release()

        return whole

    def _choose(self, waiting: Sequence[str]) -> str:
        self._over(waiting)
        if self._depth == len(self._path):
            self._path.append(self._next(tuple(waiting)))
        place = self._path[self._depth]
        if place.waiting != tuple(waiting):
            raise AssertionError(f"a history is not what it was before: {place.waiting}, {waiting}")
        place.tried[place.chosen] = self._start.tracks.turn(place.chosen)
        self._depth += 1
        return place.chosen

    def _over(self, waiting: Sequence[str]) -> None:
        """The last step has been taken."""
        if self._depth:
            last = self._path[self._depth - 1]
            if last.chosen in waiting:
                self._start.tracks.pause(last.chosen)
            self._start.look(last.tried[last.chosen])

    def _next(self, waiting: tuple[str, ...]) -> Place:
        if not self._depth:
            return Place(waiting, {}, {waiting[0]} if self._reduced else set(waiting), waiting[0])
        last = self._path[self._depth - 1]
        step, asleep = last.tried[last.chosen], dict[str, Footprint]()
        if self._reduced:
            before = {**last.asleep, **last.tried}
            asleep = {who: its for who, its in before.items() if who != last.chosen and not its.meets(step)}
        awake = [who for who in waiting if who not in asleep]
        if not awake:
            raise Asleep
        chosen = last.chosen if last.chosen in awake else awake[0]  # histories with few switches read best
        return Place(waiting, asleep, {chosen} if self._reduced else set(waiting), chosen)

    def _keep(self, wrong: Violation) -> None:
        self.broken = True
        lines = [Line(one.chosen, str(one.tried[one.chosen])) for one in self._path[: self._depth]]
        made = History(wrong.harm, tuple(_told(lines)), wrong.because)
        known = self._found.violations.get(wrong.harm)
        if known is None or len(known.lines) > len(made.lines):
            self._found.violations[wrong.harm] = made


def _told(lines: Sequence[Line]) -> Iterator[Line]:
    """Steps that only read, one after the other, on one line."""
    for at, line in enumerate(lines):
        quiet = line.what.startswith("reads")
        if not quiet or at + 1 == len(lines) or lines[at + 1].who != line.who:
            yield line


def _meet(path: Sequence[Place]) -> None:
    """Where two steps met with nothing between them, whoever took the later one is to go first another time."""
    before = list[int]()  # for each step, those that it cannot come before of, as bits
    steps = [(one.chosen, one.tried[one.chosen]) for one in path]
    for later, (who, touched) in enumerate(steps):
        known = 0
        for earlier in range(later - 1, -1, -1):
            if known >> earlier & 1:
                continue
            other, its = steps[earlier]
            if other != who and not its.meets(touched):
                continue
            if other != who:
                path[earlier].todo.add(who)
            known |= before[earlier] | 1 << earlier
        before.append(known)


@contextmanager
def same_chances() -> Iterator[None]:
    """Names that are made by chance are the same in every history: they go by the thread, and how many it has made."""
    made: dict[str, int] = {}

    def some(count: int) -> bytes:
        who = threading.current_thread().name
        made[who] = made.get(who, 0) + 1
        return hashlib.blake2b(f"{who} {made[who]}".encode(), digest_size=count).digest()

    real = os.urandom, secrets.token_hex
    os.urandom, secrets.token_hex = some, lambda count=None: some(count or 32).hex()  # type: ignore[assignment]
    try:
        yield
    finally:
        os.urandom, secrets.token_hex = real
