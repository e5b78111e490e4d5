"""Acts: the single steps that flows are made of, each done at once or not at all.

A *flow* is a generator that yields acts and is sent what became of each. It has
no other memory, so where it stands is the list of answers it has had.
"""

from collections.abc import Callable, Generator, Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple

from desilt.testing.explore.world import Blob, Declined, Visit

Flow = Callable[[], Generator["Act", Any, None]]
Steps = Generator["Act", Any, Any]  # a part of a flow, for ``yield from``


class Failure(NamedTuple):
    """The answer of an act that declined: thrown into its flow."""

    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Act:
    """One step: what it is called in a history, what it does, and whether it can be done yet."""

    says: str
    do: Callable[[Visit], Hashable]
    ready: Callable[[Visit], bool] | None = None  # None: always
    shows: bool = True  # whether its answer is worth a word
    tells: Callable[[Any], str] = lambda answer: shown(answer)  # that word

    def run(self, visit: Visit) -> Hashable:
        try:
            return self.do(visit)
        except Declined as declined:
            visit.undo()
            return Failure(declined.reason)

    def told(self, answer: Hashable) -> str:
        if isinstance(answer, Failure):
            return f"{self.says}: refused, {answer.reason}"
        return f"{self.says}: {self.tells(answer)}" if self.shows else self.says


@dataclass(frozen=True, slots=True)
class Actor:
    """Somebody who goes through a flow once."""

    name: str
    flow: Flow


def get(key: str) -> Act:
    return Act(f"reads {key}", lambda visit: visit.get(key))


def scan(prefix: str) -> Act:
    return Act(f"scans {prefix}", lambda visit: visit.scan(prefix))


def put(key: str, value: Hashable) -> Act:
    return Act(f"sets {key} = {shown(value)}", lambda visit: visit.set(key, value), shows=False)


def put_if(key: str, value: Hashable, *, was: Hashable) -> Act:
    """The answer is whether ``key`` was as expected, and is set now."""

    def do(visit: Visit) -> bool:
        if visit.get(key) != was:
            return False
        visit.set(key, value)
        return True

    return Act(f"sets {key} = {shown(value)} if it is {shown(was)}", do)


def drop(key: str) -> Act:
    return Act(f"deletes {key}", lambda visit: visit.delete(key), shows=False)


def upload(address: str, content: str, *, counter: int | None = None) -> Act:
    what = f"uploads {content} to {address}" + ("" if counter is None else f", counter {counter}")
    return Act(what, lambda visit: visit.put(address, Blob(content, counter, visit.now)), shows=False)


def erase(address: str) -> Act:
    return Act(f"removes object {address}", lambda visit: visit.erase(address), shows=False)


def look(address: str) -> Act:
    """What lies at an address, or None."""
    return Act(f"looks at object {address}", lambda visit: visit.object(address))


def listing(prefix: str) -> Act:
    """Addresses below ``prefix``, without it, and their objects."""
    return Act(f"lists objects of {prefix}", lambda visit: visit.objects(prefix))


def now() -> Act:
    return Act("looks at the clock", lambda visit: visit.now)


def wait(key: str, until: Callable[[Any], bool], what: str) -> Act:
    """Goes on only once the value of ``key`` allows it; the answer is that value."""
    return Act(f"waits until {what}", lambda visit: visit.get(key), ready=lambda visit: until(visit.get(key)))


def transaction(says: str, do: Callable[[Visit], Hashable], *, shows: bool = False) -> Act:
    """All of ``do`` at one moment; where it declines, nothing of it."""
    return Act(says, do, shows=shows)


def shown(value: object) -> str:
    """A value as a history shows it."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return "[" + ", ".join(" = ".join(map(shown, one)) if _is_pair(one) else shown(one) for one in value) + "]"
    return str(value)


def _is_pair(value: object) -> bool:
    return type(value) is tuple and len(value) == 2 and isinstance(value[0], str)
