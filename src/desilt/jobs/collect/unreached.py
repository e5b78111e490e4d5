"""Commits that nothing reaches, and the ranges that only they have. Commit-sized, on the driver."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from desilt.cache.metaranges import Lists
from desilt.domain.history import Commit
from desilt.repository.snapshot import Snapshot
from desilt.repository.source import Source


@dataclass(frozen=True)
class Divided:
    """Commits that something reaches, and those that nothing does; and the ranges of either."""

    seen: Snapshot
    live: Set[str]
    lists: Lists  # of all commits whose tables are there
    young: int = 0
    ordered: int = 0

    @property
    def commits(self) -> Mapping[str, Commit]:
        return self.seen.commits

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
        live = self.live | self.seen.below(having)
        return replace(self, live=live, ordered=len(live) - len(self.live))


def divide(seen: Snapshot, source: Source, there: Set[str], before: datetime, spared: Set[str]) -> Divided:
    """What refs and holds on commits reach lives; so does what is young, or was released lately (``spared``).

    ``there`` are the tables in the store. What lives must be readable; a dead commit
    may have lost its own, if the database was restored to before it was collected.
    """
    made = seen.commits
    young = {name for name, commit in made.items() if commit.created_at >= before}
    live = seen.below(seen.tips | young | (spared & made.keys()))
    lists = source.lists(one for one in seen.in_time if one.id in live)
    known = set(lists.ranges)
    lists.join(source.lists(one for one in seen.in_time if one.id not in live and one.metarange in there))
    lists.ranges = {name: one for name, one in lists.ranges.items() if name in known or name in there}
    return Divided(seen, live, lists, young=len(live) - len(seen.below(seen.tips)))
