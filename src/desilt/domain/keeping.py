"""Which old commits a person still wants to see: the last few of each ref, one a day, a week, a month, a year.

A rule looks at a ref's own line, the first parents from its tip down: the states
the ref has had. A commit that came in through a merge was never the state of
the ref, however new it is. Days are UTC's, weeks begin on Monday (ISO 8601).
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Protocol

from desilt.errors import BadRequest


class Dated(Protocol):
    """What a rule asks of a commit."""

    @property
    def parents(self) -> tuple[str, ...]: ...

    @property
    def created_at(self) -> datetime: ...


@dataclass(frozen=True, slots=True)
class Keep:
    """How many buckets of each size are kept, counted down from the tip; young commits count too."""

    last: int = 0  # each commit is a bucket of its own
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
    "daily": lambda _, at: at.date(),
    "weekly": lambda _, at: at.isocalendar()[:2],
    "monthly": lambda _, at: (at.year, at.month),
    "yearly": lambda _, at: at.year,
}


def kept(nodes: Mapping[str, Dated], tips: Iterable[tuple[str, str]], keep: Keep) -> dict[str, str]:
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
