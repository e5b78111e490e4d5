"""The history of a repository, read in one transaction: the only reader that anything is judged by."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from desilt import cycles
from desilt.domain.address import PARTITION_AGE
from desilt.domain.history import Commit
from desilt.domain.times import moment
from desilt.errors import Unreadable
from desilt.lake import commits, refs, repositories, staging, tickets
from desilt.lake.core import Core
from desilt.lake.refs import LakeBranch
from desilt.records import holds
from desilt.records.database import Transaction
from desilt.records.holds import HoldKind
from desilt.repository.snapshot import Revision, Snapshot, Use, checked


@cycles.left_alone()
def read(tx: Transaction, core: Core, now: datetime, *, uses: bool = False) -> Snapshot:
    """All of it, checked; a hold counts if it does at ``now`` or by the clock."""
    if stray := staging.strays(tx):
        raise Unreadable(f"staging area {stray[0]} belongs to no branch: rows are missing; see `desilt fsck`")
    branches = sorted(refs.branches(tx, core.uid), key=lambda branch: branch.name)
    orders = holds.every(tx, core.uid)
    seen = checked(
        Snapshot(
            revision(tx, core),
            core.default_branch,
            {commit.id: commit for commit in commits.every(tx, core.uid)},
            tuple(branches),
            tuple(refs.tags(tx, core.uid)),
            tuple(hold for hold in orders if hold.counts(min(now, core.clock()))),
            {branch.name: _use(tx, core, branch) for branch in branches} if uses else {},
        )
    )
    there = {"commit": len(seen.commits), "branch": len(branches), "tag": len(seen.tags), "hold": len(orders)}
    for fact in miscounted(tx, core, there, seen.commits):
        raise Unreadable(f"{fact}; see `desilt fsck`, restore the database from a copy, then `desilt lake recover`")
    return seen


def miscounted(tx: Transaction, core: Core, there: Mapping[str, int], known: Mapping[str, Commit]) -> Iterator[str]:
    """What does not add up: rows that are lost, or that nobody made; commits that have lost their parents."""
    for what, count in repositories.counted(tx, core.uid).items():
        if there[what] != count:
            named = {"branch": "branches"}.get(what, f"{what}s")
            yield f"the database has {there[what]:,} {named}, and {count:,} were made: rows are missing"
    first = min((commit.generation for commit in known.values()), default=0)
    for commit in known.values():
        if not commit.parents and commit.was is None and commit.generation > first:
            yield f"commit {commit.id} has no parents in the database, and was made with some"


def revision(tx: Transaction, core: Core) -> Revision:
    """What refs are at."""
    number = repositories.generation(tx, core.uid)
    return Revision(number, repositories.mark_at(tx, core.uid, number))


def protects(tx: Transaction, core: Core, branch: LakeBranch) -> str:
    """Why a branch must not be deleted; "" if nothing is known."""
    if branch.name == core.default_branch:
        return "it is the default branch"
    if not staging.is_empty(tx, branch.tokens):
        return "it has staged entries"
    if tickets.open_on(tx, core.uid, branch.uid, core.clock()):
        return "it has open tickets"
    return ""


def last_upload(tx: Transaction, branch: LakeBranch) -> datetime | None:
    """Until when somebody may have uploaded to a branch: until its newest partition closed, at the latest."""
    row = tx.one("SELECT MAX(opened_at) FROM partitions WHERE branch = ?", branch.uid)
    return moment(row[0]) + PARTITION_AGE if row and row[0] is not None else None


def _use(tx: Transaction, core: Core, branch: LakeBranch) -> Use:
    return Use(last_upload(tx, branch), protects(tx, core, branch))


def released_since(tx: Transaction, core: Core, since: datetime) -> set[str]:
    """The commits that a ref, a hold or an edit released at ``since`` or later."""
    lapsed = [hold for hold in holds.every(tx, core.uid) if hold.until is not None and since <= hold.until]
    return commits.released_since(tx, core.uid, since) | {hold.value for hold in lapsed if hold.kind is HoldKind.REF}
