"""Who reaches what: for all that commits list, the branches, tags and holds behind it. Commit-sized, on the driver."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from desilt.columns.hashing import address_hash
from desilt.columns.rules import RangeGroup, Terms
from desilt.domain.cutoffs import Cutoffs
from desilt.domain.policy import Policy, Tags
from desilt.domain.times import microseconds
from desilt.jobs.lifecycle.candidates import GroupedFile
from desilt.records.holds import HoldKind
from desilt.repository.snapshot import Snapshot
from desilt.repository.source import Source
from desilt.sstable.values import RangeData


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


@dataclass(frozen=True, slots=True)
class Reached:
    """A policy in numbers, and the files of all entries with who reaches them."""

    terms: Terms
    entries: list[GroupedFile]
    ranges: Sequence[RangeData]


def reached(source: Source, seen: Snapshot, policy: Policy, now: Cutoffs, looked_into: set[str]) -> Reached:
    """All of it; ranges that were never decoded are, now."""
    of_metaranges = by_metarange(seen, potential=looked_into, tags_hold=policy.tags is Tags.HOLD)
    lists = source.lists(seen.in_time)
    of_ranges: dict[str, Reach] = {name: Reach() for name in lists.ranges}
    for metarange, names in lists.of.items():
        for name in names:
            of_ranges[name].add(of_metaranges[metarange])
    classes, groups = Classes(now, seen.names), Groups(any(rule.noncurrent_only for rule in now.rules))
    numbers = {name: groups.number(one, classes) for name, one in of_ranges.items()}
    wanted = [lists.ranges[name] for name in sorted(lists.ranges)]
    entries = []
    for one in source.entries(wanted):
        owned = [one.ranges.get(owner) for owner in range(one.owners)]
        groups_of = tuple(-1 if name is None else numbers[name] for name in owned)
        looked_at = tuple(name is not None and of_ranges[name].potential for name in owned)
        entries.append(GroupedFile(one.file, groups_of, looked_at))
    kept = {hold.id: hold.value for hold in seen.held(HoldKind.ADDRESS)}
    terms = Terms(
        tuple(rule.id for rule in now.rules),
        tuple(rule.prefix for rule in now.rules),
        tuple(rule.noncurrent_only for rule in now.rules),
        tuple(classes.found),
        tuple(groups.found),
        tuple(keep.prefix for keep in policy.keep if keep.prefix is not None),
        tuple(keep.glob for keep in policy.keep if keep.glob is not None),
        tuple((hold.value, hold.id) for hold in seen.held(HoldKind.PREFIX)),
        tuple(zip(address_hash(pa.array(kept.values(), pa.string())).tolist(), kept, strict=True)),
    )
    return Reached(terms, entries, wanted)


def by_metarange(seen: Snapshot, *, potential: set[str], tags_hold: bool) -> dict[str, Reach]:
    """For every metarange, who reaches it."""
    heads: dict[str, int] = {}
    for number, branch in enumerate(seen.branches):
        heads[branch.head] = heads.get(branch.head, 0) | 1 << number
    tagged = {tag.target for tag in seen.tags} if tags_hold else set()
    held = {hold.value: hold.id for hold in seen.held(HoldKind.REF)}
    found: dict[str, Reach] = {}
    for name, commit in seen.commits.items():
        found.setdefault(commit.metarange, Reach()).add(
            Reach(
                seen.bits[name],
                heads.get(name, 0),
                name in tagged,
                not seen.bits[name],
                held.get(name, ""),
                name in potential,
            )
        )
    return found


class Classes:
    """Branches to which all rules give the same cutoffs are one class."""

    def __init__(self, now: Cutoffs, names: list[str]) -> None:
        self.found: dict[tuple[int | None, ...], int] = {}
        self.of = [self._number(tuple(self._cutoff(now.before(rule, name)) for rule in now.rules)) for name in names]

    def _number(self, kind: tuple[int | None, ...]) -> int:
        return self.found.setdefault(kind, len(self.found))

    @staticmethod
    def _cutoff(before: datetime | None) -> int | None:
        return None if before is None else microseconds(before)


class Groups:
    """Ranges that are reached alike are one group."""

    def __init__(self, heads_matter: bool) -> None:
        self.found: dict[RangeGroup, int] = {}
        self._heads_matter = heads_matter
        self._members: dict[tuple[int, int], frozenset[tuple[int, bool]]] = {}

    def number(self, one: Reach, classes: Classes) -> int:
        key = (one.branches, one.heads if self._heads_matter else 0)
        if key not in self._members:
            self._members[key] = frozenset(
                (kind, bool(key[1] >> place & 1)) for place, kind in enumerate(classes.of) if key[0] >> place & 1
            )
        group = RangeGroup(self._members[key], one.tagged, one.detached, one.held)
        return self.found.setdefault(group, len(self.found))
