"""Lifecycle rules over columns of entries: which are past their cutoff, and what holds the others back.

An entry lies in a range, and a range is reached by many commits and branches.
Ranges that are reached alike form a *group*; branches to which all rules give the
same cutoffs form a *class*. So what is decided is decided for a handful of pairs
of group and matching rules, never for each branch and each row.
"""

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from desilt.columns.arrays import Flags, Numbers
from desilt.columns.hashing import Hashes
from desilt.domain.entry import decode_path
from desilt.domain.reason import Reason

BITS = 8  # flags that are looked at together
NEVER = np.iinfo(np.int64).min  # a cutoff that nothing is before


@dataclass(frozen=True, slots=True)
class RangeGroup:
    """Who reaches some ranges: classes of branches, each with the rules that spare what it reaches; and who else."""

    members: frozenset[tuple[int, int]]  # class, and rules that do not count for it, since it is current: bits
    tagged: bool = False
    detached: bool = False
    held: str = ""  # the hold of a person, on everything in the commit


@dataclass(frozen=True)
class Terms:
    """A policy at one moment, in numbers."""

    rule_ids: tuple[str, ...]
    prefixes: tuple[str, ...]  # of the rules
    classes: tuple[tuple[int | None, ...], ...]  # for each class, what each rule's cutoff is (microseconds)
    groups: tuple[RangeGroup, ...]
    keep_prefixes: tuple[str, ...] = ()
    keep_globs: tuple[str, ...] = ()
    held_prefixes: tuple[tuple[str, str], ...] = ()  # with the hold's id
    held_hashes: tuple[tuple[int, str], ...] = ()  # of addresses

    @cached_property
    def _decided(self) -> dict[tuple[int, bytes], tuple[int, int, int]]:
        return {}

    def decided(self, group: int, rules: bytes) -> tuple[int, int, int]:
        """For entries of ``group`` that match ``rules`` (a mask): before when every branch lets them go; before when
        it would, were they not current; and before when any branch would, by date alone."""
        known = self._decided.get((group, rules))
        if known is None:
            matching = [number for number, byte in enumerate(rules) if byte]
            of = [
                (self._latest(matching, kind, spared), self._latest(matching, kind))
                for kind, spared in self.groups[group].members
            ]
            every = min((now for now, _ in of), default=NEVER)
            by_date = min((date for _, date in of), default=NEVER)
            known = self._decided[group, rules] = every, by_date, max((date for _, date in of), default=NEVER)
        return known

    def by_rule(self, group: int, rules: bytes) -> list[int]:
        """For each rule of the mask, before when some branch of ``group`` releases by it."""
        members = self.groups[group].members
        return [
            max((self._latest([rule], kind, spared) for kind, spared in members), default=NEVER) if byte else NEVER
            for rule, byte in enumerate(rules)
        ]

    def _latest(self, rules: Sequence[int], kind: int, spared: int = 0) -> int:
        """Of several rules any one removes, so the latest cutoff counts."""
        found = [self.classes[kind][rule] for rule in rules if not spared >> rule & 1]
        return max((before for before in found if before is not None), default=NEVER)


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What rules say of entries, each seen by itself."""

    reasons: npt.NDArray[np.int8]  # places in :data:`ORDER`
    past: Flags  # some branch would let it go, by date alone
    masks: list[bytes]  # the rules that match, for each of ``mask_of``
    mask_of: Numbers
    holds: list[str]  # ids, for each of ``hold_of``; the first is none
    hold_of: npt.NDArray[np.int32]

    def of(self, chosen: Flags) -> "Verdicts":
        """The same, of some entries."""
        return Verdicts(
            self.reasons[chosen], self.past[chosen], self.masks, self.mask_of[chosen], self.holds, self.hold_of[chosen]
        )


ORDER = [Reason.EXPIRED, Reason.HOLDER, Reason.CURRENT, Reason.DETACHED, Reason.TAGGED, Reason.KEPT, Reason.HELD]
"""The later one is told where several entries of one object differ."""


def judged(paths: pa.Array, hashes: Hashes, created: Numbers, groups: Numbers, terms: Terms) -> Verdicts:
    """What the rules say of each entry."""
    masks, mask_of = matched(paths, terms.prefixes)
    cutoffs, place = _decided(masks, mask_of, groups, terms)
    every, by_date, some = (of_pair[place] for of_pair in cutoffs)
    reasons = np.full(len(created), ORDER.index(Reason.HOLDER), np.int8)
    reasons[created < by_date] = ORDER.index(Reason.CURRENT)
    reasons[created < every] = ORDER.index(Reason.EXPIRED)
    for reason, flags in (
        (Reason.DETACHED, np.array([group.detached for group in terms.groups], np.bool_)[groups]),
        (Reason.TAGGED, np.array([group.tagged for group in terms.groups], np.bool_)[groups]),
        (Reason.KEPT, starts(paths, terms.keep_prefixes) | fits(paths, terms.keep_globs)),
    ):
        reasons[flags] = ORDER.index(reason)
    holds, hold_of = ordered(paths, hashes, groups, terms)
    reasons[hold_of > 0] = ORDER.index(Reason.HELD)
    return Verdicts(reasons, created < some, masks, mask_of, holds, hold_of)


def past(paths: pa.Array, created: Numbers, groups: Numbers, terms: Terms) -> Flags:
    """Which entries some branch would release, by date alone: so much of :func:`judged` as it takes to find them."""
    cutoffs, place = _decided(*matched(paths, terms.prefixes), groups, terms)
    flags: Flags = created < cutoffs[2][place]
    return flags


def _decided(masks: list[bytes], mask_of: Numbers, groups: Numbers, terms: Terms) -> tuple[Numbers, Numbers]:
    """What :meth:`Terms.decided` says, three rows of it, and where in them each entry's is."""
    pairs, place = _numbered(groups * len(masks) + mask_of)
    found = [terms.decided(pair // len(masks), masks[pair % len(masks)]) for pair in pairs.tolist()]
    return np.ascontiguousarray(np.array(found, np.int64).reshape(-1, 3).T), place


def ordered(paths: pa.Array, hashes: Hashes, groups: Numbers, terms: Terms) -> tuple[list[str], npt.NDArray[np.int32]]:
    """Which order of a person keeps each entry, if any: ids, and for each entry a place among them; 0 is none."""
    names = ["", *dict.fromkeys([g.held for g in terms.groups if g.held])]
    found = np.array([names.index(group.held) for group in terms.groups] or [0], np.int32)[groups]
    for prefix, name in terms.held_prefixes:
        names.append(name)
        found[_flags(pc.starts_with(paths, prefix))] = len(names) - 1
    for value, name in terms.held_hashes:
        names.append(name)
        found[hashes == np.uint64(value)] = len(names) - 1
    return names, found


def releasing(verdicts: Verdicts, created: Numbers, groups: Numbers, terms: Terms) -> tuple[list[bytes], Numbers]:
    """Of the rules that match each entry, those whose cutoff on some branch it is past; as masks, like ``matched``."""
    masks, mask_of = verdicts.masks, verdicts.mask_of
    if not terms.prefixes:
        return masks, mask_of
    pairs, place = _numbered(groups * len(masks) + mask_of)
    cutoffs = np.array(
        [terms.by_rule(pair // len(masks), masks[pair % len(masks)]) for pair in pairs.tolist()], np.int64
    )
    return distinct_flags([created < of_rule[place] for of_rule in cutoffs.reshape(len(pairs), len(terms.prefixes)).T])


def matched(paths: pa.Array, prefixes: Sequence[str]) -> tuple[list[bytes], Numbers]:
    """Which prefixes each path begins with: the distinct answers, and which of them is each path's."""
    if not prefixes or not len(paths):
        return [bytes(len(prefixes))], np.zeros(len(paths), np.int64)
    return distinct_flags([_flags(pc.starts_with(paths, prefix)) for prefix in prefixes])


def distinct_flags(columns: Sequence[Flags]) -> tuple[list[bytes], Numbers]:
    """The distinct rows of some columns, and which of them each row is."""
    place = np.zeros(len(columns[0]), np.int64)
    if not len(place):
        return [bytes(len(columns))], place
    for first in range(0, len(columns), BITS):
        place <<= BITS
        for bit, column in enumerate(columns[first : first + BITS]):
            place |= column.astype(np.int64) << bit
        _, place = _numbered(place)
    one = np.zeros(place.max() + 1, np.int64)
    one[place] = np.arange(len(place))
    return [bytes(int(column[row]) for column in columns) for row in one.tolist()], place


def _numbered(numbers: Numbers) -> tuple[Numbers, Numbers]:
    """The distinct ``numbers``, none big or negative, and which of them each is: looked up, where others would sort."""
    there = np.zeros(numbers.max(initial=-1) + 1, np.bool_)
    there[numbers] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[numbers]


def starts(paths: pa.Array, prefixes: Sequence[str]) -> Flags:
    """Which paths begin with one of ``prefixes``."""
    found = np.zeros(len(paths), np.bool_)
    for prefix in prefixes:
        found |= _flags(pc.starts_with(paths, prefix))
    return found


def fits(paths: pa.Array, globs: Sequence[str]) -> Flags:
    """Which paths fit one of ``globs``."""
    found = np.zeros(len(paths), np.bool_)
    for glob in globs:
        found |= np.array([fnmatch.fnmatchcase(decode_path(path), glob) for path in paths.to_pylist()], np.bool_)
    return found


def _flags(array: pa.Array) -> Flags:
    flags: Flags = array.to_numpy(zero_copy_only=False).astype(np.bool_)
    return flags
