"""Stale branches, deleted one by one, each only if it is still as the plan saw it."""

from collections.abc import Mapping

from desilt.domain.address import PARTITION_AGE
from desilt.domain.times import moment
from desilt.errors import NotFound
from desilt.lake import holds, locks, refs, repositories, staging, tickets
from desilt.lake.holds import Kind
from desilt.lake.locks import Lock
from desilt.lake.repository import Repository
from desilt.runs.plan import Plan


def delete_stale(repository: Repository, lock: Lock, plan: Plan) -> dict[str, str]:
    """What became of each: "deleted", or why it is kept after all. Done twice, it is done once."""
    return {one["name"]: _delete(repository, lock, plan, one) for one in plan.refs}


def _delete(repository: Repository, lock: Lock, plan: Plan, one: Mapping[str, str]) -> str:
    with repository.database.write() as tx:
        repositories.moved(tx, repository.uid)
        locks.check(tx, lock)
        try:
            branch = refs.branch(tx, repository.uid, one["name"], lock="alone")
        except NotFound:
            return "deleted"
        if (branch.uid, branch.head) != (one["uid"], one["head"]) or branch.name == repository.default_branch:
            return "kept: it has moved since"
        if not staging.is_empty(tx, branch.tokens):
            return "kept: it has staged entries"
        if tickets.open_on(tx, repository.uid, branch.uid, repository.clock()):
            return "kept: it has open tickets"
        if any(hold.kind is Kind.REF for hold in holds.since(tx, repository.uid, plan.generation)):
            return "kept: a hold was made since, on a commit that it may reach"
        used = tx.one("SELECT MAX(opened_at) FROM partitions WHERE branch = ?", branch.uid)
        if used and used[0] is not None and moment(used[0]) + PARTITION_AGE >= plan.started_at:
            return "kept: somebody uploads to it"
        refs.delete_branch(tx, branch)
    return "deleted"
