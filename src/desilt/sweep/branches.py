"""Stale branches, deleted one by one, each only if it is still as the plan saw it."""

from collections.abc import Mapping, Sequence

from desilt.errors import NotFound
from desilt.lake import holds, locks, refs, repositories, staging, tickets
from desilt.lake.holds import Kind
from desilt.lake.locks import Lock
from desilt.lake.repository import Repository


def delete_stale(repository: Repository, lock: Lock, wanted: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """What became of each: "deleted", or why it is kept after all. Done twice, it is done once."""
    return {one["name"]: _delete(repository, lock, one) for one in wanted}


def _delete(repository: Repository, lock: Lock, one: Mapping[str, str]) -> str:
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
        orders = [hold for hold in holds.every(tx, repository.uid) if hold.counts(repository.clock())]
        if any(hold.kind is Kind.REF and hold.value == branch.head for hold in orders):
            return "kept: a hold keeps it"
        refs.delete_branch(tx, branch)
    return "deleted"
