"""How long nobody has worked on a branch, and whether anything speaks for keeping it."""

from datetime import datetime

from desilt.domain.address import PARTITION_AGE
from desilt.domain.policy import Policy
from desilt.domain.stale import Activity, stale
from desilt.domain.times import moment
from desilt.lake.core import Core
from desilt.lake.database import Transaction
from desilt.lake.holds import Kind
from desilt.lake.refs import Branch
from desilt.sources.graph import speaks_for
from desilt.sources.reached import History


def stale_branches(core: Core, history: History, policy: Policy, now: datetime) -> list[dict[str, str]]:
    """The branches that the policy lets go, each with its uid, its head, and why."""
    if not policy.branches:
        return []
    with core.database.read() as tx:
        known = [_activity(tx, core, history, branch) for branch in history.branches]
    going = stale(known, policy.branches, now)
    for name in _needed(history, set(going)):
        del going[name]
    return [
        {"name": branch.name, "uid": branch.uid, "head": branch.head, "why": going[branch.name]}
        for branch in history.branches
        if branch.name in going
    ]


def _needed(history: History, going: set[str]) -> set[str]:
    """Branches among ``going`` without which a commit that somebody holds would be reached by none."""
    gone = sum(1 << place for place, branch in enumerate(history.branches) if branch.name in going)
    held = {hold.value for hold in history.holds if hold.kind is Kind.REF}
    lonely = [bits for name in held if (bits := history.bits.get(name, 0)) and not bits & ~gone]
    return {branch.name for place, branch in enumerate(history.branches) if any(bits >> place & 1 for bits in lonely)}


def _activity(tx: Transaction, core: Core, history: History, branch: Branch) -> Activity:
    row = tx.one("SELECT MAX(opened_at) FROM partitions WHERE branch = ?", branch.uid)
    uploads = [moment(row[0]) + PARTITION_AGE] if row and row[0] is not None else []  # until it closed, at the latest
    last = max([branch.created_at, history.commits[branch.head].created_at, *uploads])
    return Activity(branch.name, branch.created_at, last, speaks_for(tx, core, branch))
