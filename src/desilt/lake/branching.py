"""Branches and tags made and deleted. Neither ever touches an object."""

from desilt.domain.names import check_branch, check_tag
from desilt.errors import AlreadyExists, BadRequest, Dirty
from desilt.lake import refs, repositories, staging
from desilt.lake.core import Core
from desilt.lake.partitions import new_uid
from desilt.lake.refs import Branch, Tag


def create_branch(core: Core, name: str, source: str) -> Branch:
    """A branch at the commit ``source`` points to; what is staged there stays there."""
    check_branch(name)
    with core.database.write() as tx:
        repositories.moved(tx, core.uid)
        target = refs.resolve(tx, core.uid, source)
        if refs.has_tag(tx, core.uid, name):
            raise AlreadyExists("tag", name)
        now = core.clock()
        made = Branch(name, new_uid(now), target.commit.id, new_uid(now), (), now)
        refs.create_branch(tx, core.uid, made)
        return made


def delete_branch(core: Core, name: str, *, force: bool) -> None:
    """The branch goes, and what is staged on it; commits and objects stay until a job takes them."""
    if name == core.default_branch:
        raise BadRequest(f"{name!r} is the default branch of {core.name!r} and cannot be deleted")
    with core.database.write() as tx:
        repositories.moved(tx, core.uid)
        old = refs.branch(tx, core.uid, name, lock="alone")
        if not force and not staging.is_empty(tx, old.tokens):
            raise Dirty(name)
        for token in old.tokens:
            staging.drop(tx, token)
        refs.delete_branch(tx, core.uid, old, at=core.clock())


def create_tag(core: Core, name: str, source: str) -> Tag:
    """A name for a commit, for good."""
    check_tag(name)
    with core.database.write() as tx:
        repositories.moved(tx, core.uid)
        if refs.has_branch(tx, core.uid, name):
            raise AlreadyExists("branch", name)
        made = Tag(name, refs.resolve(tx, core.uid, source).commit.id, core.clock())
        refs.create_tag(tx, core.uid, made)
        return made


def delete_tag(core: Core, name: str) -> None:
    with core.database.write() as tx:
        repositories.moved(tx, core.uid)
        refs.delete_tag(tx, core.uid, name, at=core.clock())
