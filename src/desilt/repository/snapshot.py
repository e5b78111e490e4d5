"""Refs, commits and holds of one moment: read once, and whole or not at all.

Every job, ``collect``, ``pins`` and ``explain`` begin with one. A commit or a branch that
is missing is never taken for one that nobody made: :func:`checked` is the only way to
a :class:`Snapshot`.
"""

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

from desilt.domain.history import Commit
from desilt.domain.keep_rules import walk_down
from desilt.domain.potential import reach
from desilt.errors import Unreadable
from desilt.records.holds import Hold, HoldKind


@dataclass(frozen=True, slots=True)
class Revision:
    """A move of refs: how many there were before it, and what tells it from another of the same number."""

    number: int
    mark: str


@dataclass(frozen=True, slots=True)
class Branch:
    """A name that moves."""

    name: str
    uid: str  # told from one that is made later under the same name
    head: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Tag:
    """A name that stays."""

    name: str
    target: str
    created_at: datetime

    @property
    def uid(self) -> str:
        """What tells it from one that is made again, by the same name and on the same commit."""
        return self.created_at.isoformat()


@dataclass(frozen=True, slots=True)
class Use:
    """What is known of a branch besides its commits."""

    last_upload: datetime | None = None  # at the latest
    protects: str = ""  # why it must not be deleted; "" if nothing is known


@dataclass(frozen=True)
class Snapshot:
    """A repository's history, and the revision it was seen at."""

    revision: Revision
    default_branch: str
    commits: Mapping[str, Commit]
    branches: tuple[Branch, ...]  # by name
    tags: tuple[Tag, ...]
    holds: tuple[Hold, ...]  # that count
    uses: Mapping[str, Use] = field(default_factory=dict)  # by branch, where it was asked for

    @property
    def names(self) -> list[str]:
        """Of branches, in the order of their bits."""
        return [branch.name for branch in self.branches]

    @cached_property
    def bits(self) -> Mapping[str, int]:
        """For each commit, the branches that reach it: bit i is the i-th branch."""
        return reach(self.parents, {branch.name: branch.head for branch in self.branches})

    @property
    def parents(self) -> dict[str, tuple[str, ...]]:
        return {commit.id: commit.parents for commit in self.commits.values()}

    @property
    def in_time(self) -> list[Commit]:
        """All commits, oldest first."""
        return sorted(self.commits.values(), key=lambda commit: (commit.created_at, commit.id))

    def held(self, kind: HoldKind) -> list[Hold]:
        return [hold for hold in self.holds if hold.kind is kind]

    @cached_property
    def tips(self) -> set[str]:
        """The commits that a branch, a tag or a hold names; a hold that lapsed by now may name one that is gone."""
        named = {branch.head for branch in self.branches} | {tag.target for tag in self.tags}
        return named | ({hold.value for hold in self.held(HoldKind.REF)} & self.commits.keys())

    def below(self, tips: Iterable[str]) -> set[str]:
        """``tips`` and all that they descend from."""
        return set(walk_down(tips, lambda name: self.commits[name].parents))

    def staying(self, going: Collection[str], released: Set[str]) -> set[str]:
        """Of commits that are to go, and all others, those that stay.

        What refs and holds reach, or released lately; and all that any commit descends from which is not to go.
        """
        return self.below(self.tips | (self.commits.keys() - set(going)) | (released & self.commits.keys()))

    def with_holds_at(self, now: datetime) -> "Snapshot":
        """With those holds alone that count at ``now``."""
        return replace(self, holds=tuple(hold for hold in self.holds if hold.counts(now)))


def checked(seen: Snapshot) -> Snapshot:
    """``seen``, if it is whole: every name leads to a commit, and every commit to its parents."""
    if not seen.commits:
        raise Unreadable("the commits are missing from the database, all of them; see `desilt fsck`")
    if seen.default_branch not in seen.names:
        raise Unreadable(f"branch {seen.default_branch!r} is missing from the database; see `desilt fsck`")
    named = {branch.head for branch in seen.branches} | {tag.target for tag in seen.tags}
    named |= {parent for commit in seen.commits.values() for parent in commit.parents}
    if missing := sorted(named - seen.commits.keys()):
        raise Unreadable(f"commit {missing[0]} is missing from the database; see `desilt fsck`")
    return seen
