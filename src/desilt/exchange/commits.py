"""Commits as the new side has them: their tables, their generations, and where it must be so their ids.

A server names a commit by its content, and takes no other name for it. A lake keeps the names that commits have.
"""

from collections.abc import Mapping
from dataclasses import replace
from graphlib import TopologicalSorter

from desilt.domain.history import Commit
from desilt.domain.identity import commit_hash
from desilt.domain.times import seconds


def moved(commits: Mapping[str, Commit], metaranges: Mapping[str, str]) -> list[Commit]:
    """Parents before children, each with its own name; what was edited since is as if it had been made so."""
    return list(_moved(commits, metaranges, named=False).values())


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
