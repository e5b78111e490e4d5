"""A repository made with a history that it brings along.

Its place is known first, so that objects and tables can be put there; they count for nothing until it is made, in one
move. Whoever is cut off before has made nothing.
"""

import secrets
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from desilt.domain import ticket
from desilt.domain.history import Commit
from desilt.domain.names import check_branch, check_repository, check_tag, check_text
from desilt.domain.times import check_date, microseconds
from desilt.errors import AlreadyExists
from desilt.lake import commit_time, repositories, restored
from desilt.lake.changes import RepositoryMade, TagMade, branch_made, committed
from desilt.lake.core import Core
from desilt.lake.lake import Lake
from desilt.lake.moves import moving_in, new_mark
from desilt.lake.partitions import new_uid
from desilt.lake.refs import LakeBranch
from desilt.lake.repositories import RepositoryRow
from desilt.lake.repository import LakeRepository
from desilt.objects import store_clock
from desilt.repository.snapshot import Tag


@dataclass(frozen=True, slots=True)
class Founding:
    """A repository that is about to be."""

    row: RepositoryRow
    core: Core
    branch: str  # the uid of the default branch


def begin(lake: Lake, name: str, default_branch: str, *, uid: str = "", branch: str = "") -> Founding:
    """One that nobody has; with the uids that it had, one that was begun before."""
    check_repository(name)
    check_branch(default_branch)
    if name in lake.repositories():
        raise AlreadyExists("repository", name)
    now = check_date(lake.clock())
    row = RepositoryRow(
        name, uid or new_uid(now), default_branch, now, secrets.token_hex(32), ticket.LIFE, manual_now=None
    )
    return Founding(row, lake.core_of(row), branch or new_uid(now))


def make(
    lake: Lake,
    new: Founding,
    commits: Iterable[Commit],
    branches: Mapping[str, str],
    tags: Iterable[Tag],
    partitions: Collection[str],
) -> LakeRepository:
    """The repository, with commits (parents first), heads by branch, tags; objects lie in ``partitions`` already."""
    row, core = new.row, new.core
    now = row.created_at
    commit_time.check(now, store_clock.store_time(core.store))
    with lake.database.write() as tx:
        repositories.insert(tx, row)
        restored.adopt(tx, sorted(partitions))
        with moving_in(tx, core, new_mark()) as made:
            made.do(RepositoryMade(row.name, row.default_branch))
            for commit in commits:
                made.do(committed(_checked(commit)))
            for name, head in branches.items():
                uid = new.branch if name == row.default_branch else new_uid(now)
                made.do(branch_made(LakeBranch(check_branch(name), uid, head, now, new_uid(now))))
            for tag in tags:
                made.do(TagMade(check_tag(tag.name), tag.target, microseconds(tag.created_at)))
    return LakeRepository(core)


def _checked(commit: Commit) -> Commit:
    """``commit``, if a database can keep what people have written there."""
    check_text("a committer", commit.committer)
    check_text("a message", commit.message)
    for text in (*commit.metadata, *commit.metadata.values()):
        check_text("metadata of a commit", text)
    return commit
