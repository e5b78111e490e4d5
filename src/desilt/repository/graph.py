"""A history as the algorithm of expiration sees it: commits, and all that points to them."""

from desilt.domain.expiration import Node, Ref
from desilt.domain.expiry import Graph
from desilt.records.holds import HoldKind
from desilt.repository.snapshot import Snapshot

DEFAULT = "it is the default branch"


def graph_of(seen: Snapshot) -> Graph:
    """``seen``, read with the uses of its branches."""
    pointing = [Ref("branch", branch.name, branch.head) for branch in seen.branches]
    pointing += [Ref("tag", tag.name, tag.target) for tag in seen.tags]
    pointing += [Ref("hold", hold.id, hold.value) for hold in seen.held(HoldKind.REF)]
    return Graph(
        {name: Node(name, commit.parents, commit.created_at) for name, commit in seen.commits.items()},
        pointing,
        {seen.default_branch: DEFAULT} | {name: use.protects for name, use in seen.uses.items() if use.protects},
    )
