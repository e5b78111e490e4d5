"""Which old commits a person still wants to see, and where a parent is looked for when it is not among them.

:class:`KeepCounts` asks for the last few of each ref, one an hour, a day, a week, a month, a year.
It looks at a ref's own line, the first parents from its tip down: the states that
the ref has had. A commit that came in through a merge was never the state of the
ref, however new it is. Days are UTC's, weeks begin on Monday (ISO 8601).
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Protocol

from desilt.errors import BadRequest


class Dated(Protocol):
    """What is asked of a commit here."""

    @property
    def parents(self) -> tuple[str, ...]: ...

    @property
    def created_at(self) -> datetime: ...


@dataclass(frozen=True, slots=True)
class KeepCounts:
    """How many buckets of each size are kept, counted down from the tip; young commits count too."""

    last: int = 0  # each commit is a bucket of its own
    hourly: int = 0
    daily: int = 0
    weekly: int = 0
    monthly: int = 0
    yearly: int = 0

    def __post_init__(self) -> None:
        counts = {field.name: getattr(self, field.name) for field in fields(self)}
        for rule, count in counts.items():
            if count < 0:
                raise BadRequest(f"keep {rule} is {count}; write how many to keep, 0 for none")
        if not any(counts.values()):
            raise BadRequest("the keep rules keep nothing; write at least one of " + ", ".join(counts))


BUCKETS: Mapping[str, Callable[[str, datetime], Hashable]] = {
    "last": lambda name, _: name,
    "hourly": lambda _, at: (at.date(), at.hour),
    "daily": lambda _, at: at.date(),
    "weekly": lambda _, at: at.isocalendar()[:2],
    "monthly": lambda _, at: (at.year, at.month),
    "yearly": lambda _, at: at.year,
}


def kept(nodes: Mapping[str, Dated], tips: Iterable[tuple[str, str]], keep: KeepCounts) -> dict[str, str]:
    """The commits that ``keep`` holds, each with a reason; ``tips`` are refs, as people call them, and their tips.

    Of each bucket that has a commit on a ref's line the newest is kept, which is the
    one nearest to the tip. Of several reasons the first is told: by rule, then by ref.
    """
    found: dict[str, str] = {}
    tips = sorted(tips)
    for rule in BUCKETS:
        if count := getattr(keep, rule):
            line = _Line(nodes, rule)
            for ref, tip in tips:
                for number, name in zip(range(1, count + 1), line.newest(tip), strict=False):
                    found.setdefault(name, f"{rule} {number} of {count} on {ref}")
    return found


class Detour:
    """The parents of a commit when only some commits stay.

    For a parent that does not: first the one that stays and is met first down its
    first parents, so that a ref's line is the line it had, with gaps; then all else
    that stays and is met through merges, unless another of these descends from it.
    """

    def __init__(self, nodes: Mapping[str, Dated], stays: Set[str]) -> None:
        self.nodes, self.stays = nodes, stays
        self.met: dict[str, tuple[str, ...]] = {}
        self.trimmed: dict[tuple[str, ...], tuple[str, ...]] = {}

    def parents(self, node: Dated) -> tuple[str, ...]:
        if all(parent in self.stays for parent in node.parents):
            return node.parents
        return tuple(dict.fromkeys(near for parent in node.parents for near in self.trim(self.nearest(parent))))

    def nearest(self, name: str) -> tuple[str, ...]:
        """What stays and is met first on every way down from ``name``, itself if it does."""
        if name in self.stays:
            return (name,)
        waiting = [name]
        while waiting:
            here = waiting[-1]
            parents = self.nodes[here].parents
            unknown = [one for one in parents if one not in self.stays and one not in self.met]
            if unknown:
                waiting += unknown
                continue
            waiting.pop()
            lists = ((one,) if one in self.stays else self.met[one] for one in parents)
            self.met[here] = tuple(dict.fromkeys(one for met in lists for one in met))
        return self.met[name]

    def trim(self, met: tuple[str, ...]) -> tuple[str, ...]:
        """``met`` without those that another one descends from; the first stays whatever descends from it."""
        if len(met) > 1 and met not in self.trimmed:
            lower = set(walk_down((below for one in met for below in self.below(one)), self.below))
            self.trimmed[met] = (met[0], *(one for one in met[1:] if one not in lower))
        return self.trimmed.get(met, met)

    def below(self, name: str) -> Iterator[str]:
        """The history of what stays, one step down from ``name``."""
        return (near for parent in self.nodes[name].parents for near in self.nearest(parent))


def walk_down(tips: Iterable[str], below: Callable[[str], Iterable[str]]) -> Iterator[str]:
    """``tips`` and all that is below them, each once."""
    seen = dict.fromkeys(tips)
    waiting = list(seen)
    while waiting:
        name = waiting.pop()
        yield name
        for one in below(name):
            if one not in seen:
                seen[one] = None
                waiting.append(one)


class _Line:
    """Lines of first parents in steps of buckets; where lines meet, a step is looked for once."""

    def __init__(self, nodes: Mapping[str, Dated], rule: str) -> None:
        self.nodes, self.bucket_of = nodes, BUCKETS[rule]
        self.next: dict[str, str | None] = {}

    def newest(self, tip: str) -> Iterator[str]:
        """The newest commit of every bucket, from ``tip`` down."""
        name: str | None = tip
        while name is not None:
            yield name
            name = self.step(name)

    def step(self, name: str) -> str | None:
        """The first commit below ``name`` that is in another bucket; None: the line ends before."""
        passed, bucket, here = list[str](), self.bucket(name), name
        while here not in self.next:
            passed.append(here)
            below = self.nodes[here].parents[:1]
            if not below or self.bucket(below[0]) != bucket:
                self.next[here] = below[0] if below else None
            else:
                here = below[0]
        self.next.update(dict.fromkeys(passed, self.next[here]))
        return self.next[here]

    def bucket(self, name: str) -> Hashable:
        return self.bucket_of(name, self.nodes[name].created_at.astimezone(UTC))
