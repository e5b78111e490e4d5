"""The history of a lake as the algorithm of expiration sees it: commits, and all that points to them."""

from dataclasses import dataclass
from datetime import datetime

from desilt.domain.expiration import Node, Ref
from desilt.domain.expiry import Graph
from desilt.domain.history import Commit
from desilt.lake import commits, holds, refs, repositories, staging, tickets
from desilt.lake.core import Core
from desilt.lake.database import Transaction
from desilt.lake.holds import Kind
from desilt.lake.refs import Branch, Tag


@dataclass(frozen=True, slots=True)
class Seen:
    """A lake's history, and the move of refs it was seen at."""

    graph: Graph
    commits: dict[str, Commit]
    branches: dict[str, Branch]  # by name
    tags: dict[str, Tag]
    generation: int
    mark: str


def see(tx: Transaction, core: Core, now: datetime) -> Seen:
    """All of it from one snapshot; a hold counts if it does at ``now`` or by the clock."""
    generation = repositories.generation(tx, core.uid)
    found = {commit.id: commit for commit in commits.every(tx, core.uid)}
    branches = {branch.name: branch for branch in refs.branches(tx, core.uid)}
    now = min(now, core.clock())
    pointing = [Ref("branch", branch.name, branch.head) for branch in branches.values()]
    tags = {tag.name: tag for tag in refs.tags(tx, core.uid)}
    pointing += [Ref("tag", tag.name, tag.target) for tag in tags.values()]
    pointing += [
        Ref("hold", hold.id, hold.value)
        for hold in holds.every(tx, core.uid)
        if hold.kind is Kind.REF and hold.counts(now)
    ]
    graph = Graph(
        {name: Node(name, commit.parents, commit.created_at) for name, commit in found.items()},
        pointing,
        {branch.name: why for branch in branches.values() if (why := speaks_for(tx, core, branch))},
    )
    return Seen(graph, found, branches, tags, generation, repositories.mark_at(tx, core.uid, generation))


def speaks_for(tx: Transaction, core: Core, branch: Branch) -> str:
    """Why a branch must not be deleted; "" if nothing is known."""
    if branch.name == core.default_branch:
        return "it is the default branch"
    if not staging.is_empty(tx, branch.tokens):
        return "it has staged entries"
    if tickets.open_on(tx, core.uid, branch.uid, core.clock()):
        return "it has open tickets"
    return ""
