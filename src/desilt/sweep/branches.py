"""Branches and tags that a plan lets go, deleted one by one, each only if it is still as the plan saw it."""

from collections.abc import Mapping

from desilt.domain.address import PARTITION_AGE
from desilt.domain.times import moment
from desilt.errors import NotFound
from desilt.lake import holds, locks, refs
from desilt.lake.changes import BranchDeleted, TagDeleted
from desilt.lake.holds import Kind
from desilt.lake.locks import Lock
from desilt.lake.moves import Move, moving
from desilt.lake.refs import Tag
from desilt.lake.repository import Repository
from desilt.runs.plan import Plan
from desilt.sources.graph import speaks_for
from desilt.sweep.policy import check_policy

DELETED = "deleted"


def delete_stale(repository: Repository, lock: Lock, plan: Plan) -> dict[str, str]:
    """What became of each: "deleted", or why it is kept after all. Done twice, it is done once."""
    fates = {}
    for one in plan.refs:
        with moving(repository.core) as move:
            locks.check(move.tx, lock)
            check_policy(move.tx, plan)
            fates[one["name"]] = delete(move, repository, plan, one)
    return fates


def fates(repository: Repository, plan: Plan) -> dict[str, str]:
    """What became of a plan's refs, as far as can be seen later."""
    there = {(branch.name, branch.uid) for branch in repository.branches()}
    there |= {(tag.name, tag_uid(tag)) for tag in repository.tags()}
    return {one["name"]: "kept" if (one["name"], one["uid"]) in there else DELETED for one in plan.refs}


def tag_uid(tag: Tag) -> str:
    """What tells a tag from one that was made again, by the same name and on the same commit."""
    return tag.created_at.isoformat()


def delete(move: Move, repository: Repository, plan: Plan, one: Mapping[str, str]) -> str:
    """What becomes of a ref that ``plan`` names, as part of a move."""
    return (_delete_tag if one.get("kind") == "tag" else _delete_branch)(move, repository, plan, one)


def _delete_tag(move: Move, repository: Repository, plan: Plan, one: Mapping[str, str]) -> str:
    tag = {tag.name: tag for tag in refs.tags(move.tx, repository.uid)}.get(one["name"])
    if tag is None:
        return DELETED
    if (tag.target, tag_uid(tag)) != (one["head"], one["uid"]) or tag.created_at >= plan.started_at:
        return "kept: it was made again since"
    move.do(TagDeleted(one["name"]))
    return DELETED


def _delete_branch(move: Move, repository: Repository, plan: Plan, one: Mapping[str, str]) -> str:
    tx = move.tx
    try:
        branch = refs.branch(tx, repository.uid, one["name"], lock="alone")
    except NotFound:
        return DELETED
    if (branch.uid, branch.head) != (one["uid"], one["head"]):
        return "kept: it has moved since"
    if why := speaks_for(tx, repository.core, branch):
        return f"kept: {why}"
    if any(hold.kind is Kind.REF for hold in holds.since(tx, repository.uid, plan.generation)):
        return "kept: a hold was made since, on a commit that it may reach"
    used = tx.one("SELECT MAX(opened_at) FROM partitions WHERE branch = ?", branch.uid)
    if used and used[0] is not None and moment(used[0]) + PARTITION_AGE >= plan.started_at:
        return "kept: somebody uploads to it"
    move.do(BranchDeleted(branch.name, branch.uid, branch.head))
    return DELETED
