"""A retention document in numbers, and who reaches what it is about: commits, and staging areas."""

from collections.abc import Sequence
from datetime import datetime

from desilt.columns.rules import RangeGroup, Terms
from desilt.domain.policy import KeepRule
from desilt.domain.retention import Kind, Retention, RuleExpiry
from desilt.domain.times import microseconds
from desilt.jobs.rules.candidates import GroupedFile
from desilt.jobs.rules.reach import (
    Classes,
    Groups,
    Reached,
    Sense,
    by_metarange,
    grouped,
    ordered_hashes,
    ordered_prefixes,
)
from desilt.repository.snapshot import Snapshot
from desilt.repository.source import Source, StagedEntries

STAGED = (Kind.ALL, Kind.UNCOMMITTED)
COMMITTED = (Kind.ALL, Kind.NONCURRENT)


def reached(
    source: Source,
    seen: Snapshot,
    staged: StagedEntries,
    retention: Retention,
    keep: Sequence[KeepRule],
    now: datetime,
) -> Reached:
    """All of it; ranges that were never decoded are, now."""
    said = retention.expiries
    moments = sorted({one.before(now) for one in said if one.kind is Kind.NONCURRENT})
    classes = Classes()
    groups = Groups(
        classes.numbers(cutoffs(said, COMMITTED, name, now) for name in seen.names),
        [spared(said, moment, now) for moment in moments],
    )
    senses = [current_since(seen, moment) for moment in moments]
    entries, ranges = grouped(source, seen, by_metarange(seen, senses, potential=set(seen.commits)), groups)
    kinds = classes.numbers(cutoffs(said, STAGED, name, now) for name in staged.branches)
    numbers = tuple(groups.add(RangeGroup(frozenset([(kind, 0)]))) for kind in kinds)
    entries += [GroupedFile(file, numbers, (True,) * len(numbers)) for file in staged.files if file.rows]
    terms = Terms(
        tuple(one.id for one in said),
        tuple(one.rule.branch_and_path[1] or "" for one in said),
        tuple(classes.found),
        tuple(groups.found),
        tuple(one.prefix for one in keep if one.prefix is not None),
        tuple(one.glob for one in keep if one.glob is not None),
        ordered_prefixes(seen),
        ordered_hashes(seen),
    )
    return Reached(terms, tuple(entries), ranges)


def cutoffs(said: Sequence[RuleExpiry], kinds: Sequence[Kind], branch: str, now: datetime) -> tuple[int | None, ...]:
    """Before when entries on a branch expire, by each of ``said`` that is one of ``kinds``; None: not by that."""
    return tuple(
        microseconds(one.before(now)) if one.kind in kinds and one.rule.path_on(branch) is not None else None
        for one in said
    )


def spared(said: Sequence[RuleExpiry], moment: datetime, now: datetime) -> int:
    """Those of ``said``, as bits, that spare what is current since ``moment``."""
    found = [one.kind is Kind.NONCURRENT and one.before(now) == moment for one in said]
    return sum(1 << place for place, counts in enumerate(found) if counts)


def current_since(seen: Snapshot, moment: datetime) -> Sense:
    """For each commit, the branches on which it was the head at ``moment``, or came later.

    Which of several parents of a later commit was the head then, history does not say: each may have been.
    """
    found: dict[str, int] = {}
    for number, branch in enumerate(seen.branches):
        found[branch.head] = found.get(branch.head, 0) | 1 << number
    for name, commit in seen.commits.items():
        if commit.created_at >= moment:
            for one in (name, *commit.parents):
                found[one] = found.get(one, 0) | seen.bits[name]
    return found
