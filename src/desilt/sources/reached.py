"""Who reaches what: for all that commits list, the branches, tags and holds behind it. Commit-sized, on the driver."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from desilt.domain.history import Commit
from desilt.domain.potential import reach
from desilt.errors import Unreadable
from desilt.lake import commits, holds, refs, repositories
from desilt.lake.core import Core
from desilt.lake.holds import Hold
from desilt.lake.refs import Branch, Tag


@dataclass(frozen=True, slots=True)
class History:
    """Refs, commits and holds of one moment."""

    commits: Mapping[str, Commit]
    branches: tuple[Branch, ...]  # by name
    tags: tuple[Tag, ...]
    holds: tuple[Hold, ...]
    generation: int
    mark: str
    bits: Mapping[str, int]  # for each commit, the branches that reach it: bit i is the i-th branch

    @property
    def names(self) -> list[str]:
        return [branch.name for branch in self.branches]


@dataclass(slots=True)
class Reach:
    """Who reaches a range, by any commit that has it."""

    branches: int = 0  # bits
    heads: int = 0  # bits: of branches whose last commit has it
    tagged: bool = False
    detached: bool = False
    held: str = ""  # the id of a hold
    potential: bool = False  # whether a commit that is looked into has it

    def add(self, other: "Reach") -> None:
        self.branches |= other.branches
        self.heads |= other.heads
        self.tagged |= other.tagged
        self.detached |= other.detached
        self.held = self.held or other.held
        self.potential |= other.potential


def read_history(core: Core, now: datetime) -> History:
    """All of it from one snapshot; what is missing stops whoever asks."""
    with core.database.read() as tx:
        generation = repositories.generation(tx, core.uid)
        mark = repositories.mark_at(tx, core.uid, generation)
        found = {commit.id: commit for commit in commits.every(tx, core.uid)}
        branches = tuple(sorted(refs.branches(tx, core.uid), key=lambda branch: branch.name))
        tags = tuple(refs.tags(tx, core.uid))
        orders = tuple(hold for hold in holds.every(tx, core.uid) if hold.counts(min(now, core.clock())))
    if missing := sorted({tag.target for tag in tags} - found.keys()):
        raise Unreadable(f"commit {missing[0]} is missing from the database; see `desilt fsck`")
    bits = reach({one.id: one.parents for one in found.values()}, {one.name: one.head for one in branches})
    return History(found, branches, tags, orders, generation, mark, bits)


def by_metarange(history: History, *, potential: set[str], tags_hold: bool) -> dict[str, Reach]:
    """For every metarange, who reaches it."""
    heads: dict[str, int] = {}
    for number, branch in enumerate(history.branches):
        heads[branch.head] = heads.get(branch.head, 0) | 1 << number
    tagged = {tag.target for tag in history.tags} if tags_hold else set()
    held = {hold.value: hold.id for hold in history.holds if hold.kind is holds.Kind.REF}
    found: dict[str, Reach] = {}
    for name, commit in history.commits.items():
        found.setdefault(commit.metarange, Reach()).add(
            Reach(
                history.bits[name],
                heads.get(name, 0),
                name in tagged,
                not history.bits[name],
                held.get(name, ""),
                name in potential,
            )
        )
    return found
