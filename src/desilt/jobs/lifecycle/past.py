"""A history as it was: what of today's commits, branches, tags and holds there was at a moment.

Branches that were deleted since, tags that were, and where a branch stood before
it was moved by hand are not on record. A commit that only such a branch reached
is reached by none here, and holds what it has.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from desilt.domain.history import Commit
from desilt.repository.snapshot import Snapshot


def as_of(history: Snapshot, at: datetime) -> Snapshot:
    """``history`` at ``at``, judged by the branches and tags there are today."""
    known = _with_ancestors(history.commits, (one.id for one in history.commits.values() if one.created_at <= at))
    heads = _Heads(history.commits, at)
    branches = tuple(
        replace(branch, head=head)
        for branch in history.branches
        if branch.created_at <= at and (head := heads.of(branch.head)) is not None
    )
    return replace(
        history,
        commits=known,
        branches=branches,
        tags=tuple(tag for tag in history.tags if tag.created_at <= at and tag.target in known),
        holds=tuple(hold for hold in history.holds if hold.made_at <= at and hold.counts(at)),
    )


class _Heads:
    """The first commit that is old enough, going up first parents; each commit is passed once."""

    def __init__(self, commits: Mapping[str, Commit], at: datetime) -> None:
        self._commits, self._at = commits, at
        self._found: dict[str, str | None] = {}

    def of(self, head: str) -> str | None:
        passed: list[str] = []
        place: str | None = head
        while place is not None and place not in self._found and self._commits[place].created_at > self._at:
            passed.append(place)
            place = next(iter(self._commits[place].parents), None)
        found = place if place is None else self._found.get(place, place)
        self._found |= dict.fromkeys(passed, found)
        return found


def _with_ancestors(commits: Mapping[str, Commit], names: Iterable[str]) -> dict[str, Commit]:
    """A commit was never there without its parents, whatever their clocks said."""
    found: dict[str, Commit] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = commits[name]
            waiting += commits[name].parents
    return found
