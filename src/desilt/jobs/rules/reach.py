"""Who reaches what: for all that commits list, the branches, tags and holds behind it. Commit-sized, on the driver.

A branch may reach what is *current* there, in one sense or another: in its head, or in a commit since some moment.
Rules may spare that; so for each sense it is told which branches reach it so.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from desilt.columns.hashing import address_hash
from desilt.columns.rules import RangeGroup, Terms
from desilt.jobs.rules.candidates import GroupedFile
from desilt.records.holds import HoldKind
from desilt.repository.snapshot import Snapshot
from desilt.repository.source import Source
from desilt.sstable.values import RangeData

Bits = int  # bit i is the i-th branch
Sense = Mapping[str, Bits]  # by commit: the branches on which it is current in one sense


@dataclass(slots=True)
class Reach:
    """Who reaches a range, by any commit that has it."""

    branches: Bits = 0
    current: list[Bits] = field(default_factory=list)  # for each sense
    tagged: bool = False
    detached: bool = False
    held: str = ""  # the id of a hold
    potential: bool = False  # whether a commit that is looked into has it

    @property
    def key(self) -> tuple[object, ...]:
        """The same for whatever is reached alike."""
        return self.branches, *self.current, self.tagged, self.detached, self.held, self.potential

    def add(self, other: "Reach") -> None:
        self.branches |= other.branches
        self.current = [mine | theirs for mine, theirs in zip(self.current, other.current, strict=True)]
        self.tagged |= other.tagged
        self.detached |= other.detached
        self.held = self.held or other.held
        self.potential |= other.potential


@dataclass(frozen=True, slots=True)
class Reached:
    """Rules in numbers, and the files of all entries with who reaches them."""

    terms: Terms
    entries: tuple[GroupedFile, ...]
    ranges: Sequence[RangeData]


def by_metarange(
    seen: Snapshot, senses: Sequence[Sense], *, potential: set[str], tags_hold: bool = True
) -> dict[str, Reach]:
    """For every metarange, who reaches it."""
    tagged = {tag.target for tag in seen.tags} if tags_hold else set()
    held = {hold.value: hold.id for hold in seen.held(HoldKind.REF)}
    found: dict[str, Reach] = {}
    for name, commit in seen.commits.items():
        found.setdefault(commit.metarange, Reach(current=[0] * len(senses))).add(
            Reach(
                seen.bits[name],
                [sense.get(name, 0) for sense in senses],
                name in tagged,
                not seen.bits[name],
                held.get(name, ""),
                name in potential,
            )
        )
    return found


def grouped(
    source: Source, seen: Snapshot, of_metaranges: Mapping[str, Reach], groups: "Groups"
) -> tuple[list[GroupedFile], list[RangeData]]:
    """The files of all entries with the groups that reach them; ranges that were never decoded are, now."""
    lists = source.lists(seen.in_time)
    of_ranges = by_range(lists.of, of_metaranges)
    numbers = {name: groups.number(one) for name, one in of_ranges.items()}
    wanted = [lists.ranges[name] for name in sorted(lists.ranges)]
    entries = []
    for one in source.entries(wanted):
        owned = [one.ranges.get(owner) for owner in range(one.owners)]
        groups_of = tuple(-1 if name is None else numbers[name] for name in owned)
        looked_at = tuple(name is not None and of_ranges[name].potential for name in owned)
        entries.append(GroupedFile(one.file, groups_of, looked_at))
    return entries, wanted


def by_range(of: Mapping[str, Sequence[str]], of_metaranges: Mapping[str, Reach]) -> dict[str, Reach]:
    """For every range, who reaches it; ``of`` says which metaranges have it.

    Thousands of metaranges are reached alike, and a range is in many of them: all that
    are reached in one way are looked at together.
    """
    alike: dict[tuple[object, ...], tuple[Reach, dict[str, None]]] = {}
    for metarange, names in of.items():
        reach = of_metaranges[metarange]
        alike.setdefault(reach.key, (reach, {}))[1].update(dict.fromkeys(names))
    found: dict[str, Reach] = {}
    for reach, those in alike.values():
        for name in those:
            found.setdefault(name, Reach(current=[0] * len(reach.current))).add(reach)
    return found


def heads(seen: Snapshot) -> Sense:
    """Current is what the last commit of a branch has."""
    found: dict[str, Bits] = {}
    for number, branch in enumerate(seen.branches):
        found[branch.head] = found.get(branch.head, 0) | 1 << number
    return found


def ordered_prefixes(seen: Snapshot) -> tuple[tuple[str, str], ...]:
    """Prefixes that people ordered to be kept, each with the order's id."""
    return tuple((hold.value, hold.id) for hold in seen.held(HoldKind.PREFIX))


def ordered_hashes(seen: Snapshot) -> tuple[tuple[int, str], ...]:
    """The hashes of addresses that people ordered to be kept, each with the order's id."""
    kept = {hold.id: hold.value for hold in seen.held(HoldKind.ADDRESS)}
    return tuple(zip(address_hash(pa.array(kept.values(), pa.string())).tolist(), kept, strict=True))


class Classes:
    """Branches to which all rules give the same cutoffs are one class."""

    def __init__(self) -> None:
        self.found: dict[tuple[int | None, ...], int] = {}

    def numbers(self, cutoffs: Iterable[tuple[int | None, ...]]) -> list[int]:
        """The class of each of some branches, by its cutoffs."""
        return [self.found.setdefault(one, len(self.found)) for one in cutoffs]


class Groups:
    """Ranges that are reached alike are one group."""

    def __init__(self, classes: Sequence[int], spares: Sequence[int]) -> None:
        self.found: dict[RangeGroup, int] = {}
        self._classes = classes  # by branch
        self._spares = spares  # for each sense, the rules that spare what is current in it: bits
        self._members: dict[tuple[int, ...], frozenset[tuple[int, int]]] = {}
        self._numbers: dict[tuple[object, ...], int] = {}  # by who reaches it

    def number(self, one: Reach) -> int:
        """The group of a range."""
        known = self._numbers.get(one.key)
        if known is None:
            known = self.add(RangeGroup(self._of(one), one.tagged, one.detached, one.held))
            self._numbers[one.key] = known
        return known

    def add(self, group: RangeGroup) -> int:
        return self.found.setdefault(group, len(self.found))

    def _of(self, one: Reach) -> frozenset[tuple[int, int]]:
        current = [bits if spared else 0 for bits, spared in zip(one.current, self._spares, strict=True)]
        key = (one.branches, *current)
        if key not in self._members:
            self._members[key] = frozenset(
                (kind, self._spared(place, current))
                for place, kind in enumerate(self._classes)
                if one.branches >> place & 1
            )
        return self._members[key]

    def _spared(self, place: int, current: Sequence[Bits]) -> int:
        """The rules that do not count for what a branch reaches so."""
        found = 0
        for bits, rules in zip(current, self._spares, strict=True):
            found |= rules if bits >> place & 1 else 0
        return found
