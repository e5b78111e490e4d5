"""Commits that nothing reaches, and the ranges that only they have. Commit-sized, on the driver."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from desilt.domain.history import Commit
from desilt.domain.keeping import walk_down
from desilt.errors import Unreadable
from desilt.lake import commits, holds
from desilt.lake.core import Core
from desilt.lake.database import Transaction
from desilt.lake.holds import Kind
from desilt.sources import metarange_cache
from desilt.sources.metarange_cache import Lists
from desilt.sources.reached import History


@dataclass(frozen=True)
class Divided:
    """Commits that something reaches, and those that nothing does; and the ranges of either."""

    commits: Mapping[str, Commit]
    live: Set[str]
    lists: Lists  # of all commits whose tables are there
    young: int = 0
    ordered: int = 0

    @cached_property
    def dead(self) -> list[str]:
        """Children before their parents."""
        return sorted(self.commits.keys() - self.live, key=lambda name: (-self.commits[name].generation, name))

    @cached_property
    def metaranges(self) -> set[str]:
        return {self.commits[name].metarange for name in self.live}

    @cached_property
    def live_ranges(self) -> set[str]:
        return {name for metarange in self.metaranges for name in self.lists.of.get(metarange, ())}

    @property
    def live_tables(self) -> set[str]:
        return self.live_ranges | self.metaranges

    @property
    def dead_ranges(self) -> set[str]:
        return self.lists.ranges.keys() - self.live_ranges

    def keeping(self, ranges: Set[str]) -> "Divided":
        """With the commits that have some of ``ranges``, by order of people, and all that they descend from."""
        having = {
            name for name in self.dead if not ranges.isdisjoint(self.lists.of.get(self.commits[name].metarange, ()))
        }
        live = self.live | _below(self.commits, having)
        return replace(self, live=live, ordered=len(live) - len(self.live))


def divide(history: History, core: Core, there: Set[str], before: datetime, spared: Set[str]) -> Divided:
    """What refs and holds on commits reach lives; so does what is young, or was let go of lately (``spared``).

    ``there`` are the tables in the store. What lives must be readable; a dead commit
    may have lost its own, if the database was restored to before it was collected.
    """
    made = history.commits
    tips = {branch.head for branch in history.branches} | {tag.target for tag in history.tags}
    if missing := sorted(tips - made.keys()):
        raise Unreadable(f"commit {missing[0]} is missing from the database; see `desilt fsck`")
    tips |= {hold.value for hold in history.holds if hold.kind is Kind.REF} & made.keys()  # a lapsed one's may be gone
    young = {name for name, commit in made.items() if commit.created_at >= before}
    live = _below(made, tips | young | (spared & made.keys()))
    in_time = sorted(made.values(), key=lambda commit: (commit.created_at, commit.id))
    lists = metarange_cache.lists(core.store, core.ranges, [one.metarange for one in in_time if one.id in live])
    known = set(lists.ranges)
    readable = [one.metarange for one in in_time if one.id not in live and one.metarange in there]
    lists.join(metarange_cache.lists(core.store, core.ranges, readable))
    lists.ranges = {name: one for name, one in lists.ranges.items() if name in known or name in there}
    return Divided(made, live, lists, young=len(live) - len(_below(made, tips)))


def let_go_since(tx: Transaction, core: Core, since: datetime) -> set[str]:
    """The commits that a ref, a hold or an edit let go of at ``since`` or later."""
    lapsed = [hold for hold in holds.every(tx, core.uid) if hold.until is not None and since <= hold.until]
    return commits.let_go_since(tx, core.uid, since) | {hold.value for hold in lapsed if hold.kind is Kind.REF}


def _below(made: Mapping[str, Commit], tips: Iterable[str]) -> set[str]:
    return set(walk_down(tips, lambda name: made[name].parents))
