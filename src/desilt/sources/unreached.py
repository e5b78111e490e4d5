"""Commits that nothing reaches, and the ranges that only they have. Commit-sized, on the driver."""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from desilt.domain.keeping import walk_down
from desilt.errors import Unreadable
from desilt.lake.core import Core
from desilt.lake.holds import Kind
from desilt.lake.ranges import Ranges
from desilt.lake.staging import after_prefix
from desilt.sources import metarange_cache
from desilt.sources.metarange_cache import Lists
from desilt.sources.reached import History
from desilt.sstable.values import RangeData


@dataclass(frozen=True)
class Divided:
    """Commits that something reaches, and those that nothing does; and the ranges of either."""

    live: Sequence[str]  # metaranges
    dead: Sequence[str]  # commits, children before their parents
    lists: Lists
    young: int
    ordered: int

    @cached_property
    def live_ranges(self) -> set[str]:
        return {name for metarange in self.live for name in self.lists.of.get(metarange, ())}

    @cached_property
    def live_tables(self) -> set[str]:
        return self.live_ranges | set(self.live)

    @cached_property
    def dead_ranges(self) -> set[str]:
        return self.lists.ranges.keys() - self.live_ranges


def divide(history: History, core: Core, there: Set[str], before: datetime) -> Divided:
    """What refs and holds reach lives; so does what is young, and what has something below a held prefix alone.

    ``there`` are the tables in the store. What lives must be readable; a dead commit
    may have lost its own, if a collection was cut off before the database was restored.
    """
    made = history.commits

    def below(tips: Iterable[str]) -> set[str]:
        return set(walk_down(tips, lambda name: made[name].parents))

    tips = {branch.head for branch in history.branches} | {tag.target for tag in history.tags}
    if missing := sorted(tips - made.keys()):
        raise Unreadable(f"commit {missing[0]} is missing from the database; see `desilt fsck`")
    tips |= {hold.value for hold in history.holds if hold.kind is Kind.REF} & made.keys()  # a lapsed one's may be gone
    reached = below(tips)
    live = below(tips | {name for name, commit in made.items() if commit.created_at >= before})
    in_time = sorted(made.values(), key=lambda commit: (commit.created_at, commit.id))
    lists = metarange_cache.lists(core.store, core.ranges, [one.metarange for one in in_time if one.id in live])
    known, young = set(lists.ranges), len(live) - len(reached)
    readable = [one.metarange for one in in_time if one.id not in live and one.metarange in there]
    lists.join(metarange_cache.lists(core.store, core.ranges, readable))
    prefixes = [hold.value.encode() for hold in history.holds if hold.kind is Kind.PREFIX]
    if prefixes:
        lone = [listed for name, listed in lists.ranges.items() if name not in known and name in there]
        kept = {one.id for one in lone if any(has_below(core.ranges, one, prefix) for prefix in prefixes)}
        live |= below(
            one.id for one in in_time if one.id not in live and kept.intersection(lists.of.get(one.metarange, ()))
        )
    dead = sorted(made.keys() - live, key=lambda name: (-made[name].generation, name))
    lists.ranges = {name: one for name, one in lists.ranges.items() if name in known or name in there}
    metaranges = sorted({made[name].metarange for name in live})
    return Divided(metaranges, dead, lists, young, len(live) - len(reached) - young)


def has_below(ranges: Ranges, listed: RangeData, prefix: bytes) -> bool:
    """Whether a range has an entry below ``prefix``; it is looked into only where it may."""
    if not (listed.min_key.startswith(prefix) or listed.min_key <= prefix <= listed.max_key):
        return False
    return next(ranges.table(listed.id).scan(prefix, after_prefix(prefix)), None) is not None
