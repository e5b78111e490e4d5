"""Commits as the new side has them: their tables, their generations, and where it must be so their ids.

A server names a commit by its content, and takes no other name for it. A lake keeps the names that commits have.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from graphlib import TopologicalSorter

from desilt.domain.history import Commit
from desilt.domain.identity import commit_hash
from desilt.domain.times import seconds

MOMENT = timedelta(microseconds=1)  # the least that a lake tells apart


def moved(commits: Mapping[str, Commit], metaranges: Mapping[str, str]) -> list[Commit]:
    """Parents before children, each with its own name, and later than its parents, as jobs of a lake rely on.

    A server takes any date that somebody gives; one that is too early becomes the next moment after the parents'.
    """
    made: dict[str, Commit] = {}
    for name, commit in _moved(commits, metaranges, named=False).items():
        after = max((made[parent].created_at + MOMENT for parent in commit.parents), default=commit.created_at)
        made[name] = replace(commit, created_at=max(commit.created_at, after))
    return list(made.values())


def renamed(commits: Mapping[str, Commit], metaranges: Mapping[str, str]) -> dict[str, Commit]:
    """The same with the names that a server gives, by the names that they had; children follow their parents."""
    return _moved(commits, metaranges, named=True)


def _moved(commits: Mapping[str, Commit], metaranges: Mapping[str, str], *, named: bool) -> dict[str, Commit]:
    made: dict[str, Commit] = {}
    for name in TopologicalSorter({one.id: one.parents for one in commits.values()}).static_order():
        old = commits[name]
        above = [made[parent] for parent in old.parents]
        new = replace(
            old,
            parents=tuple(parent.id for parent in above),
            metarange=metaranges[old.metarange],
            generation=1 + max((parent.generation for parent in above), default=0),
            was=None,
        )
        made[name] = replace(new, id=_hash(new)) if named else new
    return made


def _hash(commit: Commit) -> str:
    return commit_hash(
        parents=commit.parents,
        metarange=commit.metarange,
        seconds=seconds(commit.created_at),
        committer=commit.committer,
        message=commit.message,
        metadata=commit.metadata,
    )
