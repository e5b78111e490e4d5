"""The commit graph: what a commit is, what it descends from, where two meet.

Everything here works on a ``fetch`` from id to :class:`Commit`, or to whatever is
:class:`Linked` like one, so that a walk touches only the commits it needs,
wherever they are kept.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeVar

from desilt.domain.identity import commit_hash
from desilt.domain.times import EPOCH, SECOND, seconds

SHORT = 12  # characters of an id, for people

Fetch = Callable[[str], "Commit"]


@dataclass(frozen=True, slots=True)
class Commit:
    """One state of a repository, and the states it came from."""

    id: str
    parents: tuple[str, ...]  # the first is the branch that was committed to
    metarange: str  # "" holds nothing
    created_at: datetime
    committer: str
    message: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    generation: int = 0  # commits down to a root, itself counted (older roots were not): larger than its parents'
    was: tuple[str, ...] | None = None  # the parents it was made with, if its history was edited since

    @property
    def made_from(self) -> tuple[str, ...]:
        """The parents it was made with, whatever was edited since."""
        return self.parents if self.was is None else self.was


class Linked(Protocol):
    """What a walk asks of a commit."""

    @property
    def id(self) -> str: ...

    @property
    def parents(self) -> tuple[str, ...]: ...

    @property
    def created_at(self) -> datetime: ...

    @property
    def generation(self) -> int: ...


L = TypeVar("L", bound=Linked)


def new_commit(
    *,
    parents: Iterable[Commit],
    metarange: str,
    created_at: datetime,
    committer: str,
    message: str,
    metadata: Mapping[str, str],
) -> Commit:
    """A commit named as lakeFS would name it, by its content and the second it was made in; its time is that second."""
    above = tuple(parents)
    ids = tuple(parent.id for parent in above)
    at = seconds(created_at)
    name = commit_hash(
        parents=ids, metarange=metarange, seconds=at, committer=committer, message=message, metadata=metadata
    )
    generation = 1 + max((parent.generation for parent in above), default=0)
    return Commit(name, ids, metarange, EPOCH + at * SECOND, committer, message, dict(metadata), generation)


def walk(fetch: Callable[[str], L], *tips: str) -> Iterator[L]:
    """Every commit that ``tips`` descend from, themselves first; children always before parents."""
    seen = set(tips)
    queue = [_youngest_first(fetch(tip)) for tip in seen]
    heapq.heapify(queue)
    while queue:
        commit = heapq.heappop(queue)[-1]
        yield commit
        for parent in commit.parents:
            if parent not in seen:
                seen.add(parent)
                heapq.heappush(queue, _youngest_first(fetch(parent)))


def merge_base(fetch: Callable[[str], L], left: str, right: str) -> L | None:
    """The youngest commit both descend from; None where two histories never met."""
    return next(common(fetch, left, right), None)


def common(fetch: Callable[[str], L], left: str, right: str) -> Iterator[L]:
    """The commits both descend from, children before parents.

    Commits are taken youngest generation first, each painted with the sides that
    reach it. The first one painted by both is nobody's ancestor but of ones
    already taken, so no better base can follow.
    """
    sides = {left: {"left"}, right: {"right"}} if left != right else {left: {"left", "right"}}
    queue = [_youngest_first(fetch(tip)) for tip in sides]
    heapq.heapify(queue)
    while queue:
        commit = heapq.heappop(queue)[-1]
        if len(sides[commit.id]) == 2:
            yield commit
        for parent in commit.parents:
            if parent not in sides:
                sides[parent] = set()
                heapq.heappush(queue, _youngest_first(fetch(parent)))
            sides[parent] |= sides[commit.id]


def _youngest_first(commit: L) -> tuple[int, float, str, L]:
    return (-commit.generation, -commit.created_at.timestamp(), commit.id, commit)
