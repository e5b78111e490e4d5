"""Branches and tags made and deleted. Neither ever touches an object."""

from desilt.domain.names import check_branch, check_tag
from desilt.domain.times import microseconds
from desilt.errors import AlreadyExists, BadRequest, Dirty
from desilt.lake import refs, staging
from desilt.lake.changes import BranchDeleted, TagDeleted, TagMade, branch_made
from desilt.lake.core import Core
from desilt.lake.moves import moving
from desilt.lake.partitions import new_uid
from desilt.lake.refs import LakeBranch
from desilt.repository.snapshot import Tag


def create_branch(core: Core, name: str, source: str) -> LakeBranch:
    """A branch at the commit ``source`` points to; what is staged there stays there."""
    check_branch(name)
    with moving(core) as move:
        target = refs.resolve(move.tx, core.uid, source)
        if refs.has_tag(move.tx, core.uid, name):
            raise AlreadyExists("tag", name)
        now = core.clock()
        made = LakeBranch(name, new_uid(now), target.commit.id, now, new_uid(now))
        move.do(branch_made(made))
        return made


def delete_branch(core: Core, name: str, *, force: bool) -> None:
    """The branch goes, and what is staged on it; commits and objects stay until a job takes them."""
    if name == core.default_branch:
        raise BadRequest(f"{name!r} is the default branch of {core.name!r} and cannot be deleted")
    with moving(core) as move:
        old = refs.branch(move.tx, core.uid, name, lock="alone")
        if not force and not staging.is_empty(move.tx, old.tokens):
            raise Dirty(name)
        move.do(BranchDeleted(old.name, old.uid, old.head))


def create_tag(core: Core, name: str, source: str) -> Tag:
    """A name for a commit, for good."""
    check_tag(name)
    with moving(core) as move:
        if refs.has_branch(move.tx, core.uid, name):
            raise AlreadyExists("branch", name)
        made = Tag(name, refs.resolve(move.tx, core.uid, source).commit.id, core.clock())
        move.do(TagMade(made.name, made.target, microseconds(made.created_at)))
        return made


def delete_tag(core: Core, name: str) -> None:
    with moving(core) as move:
        move.do(TagDeleted(name))
