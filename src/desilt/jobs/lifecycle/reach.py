"""A lifecycle policy in numbers, and who reaches what it is about."""

from datetime import datetime

from desilt.columns.rules import Terms
from desilt.domain.cutoffs import Cutoffs
from desilt.domain.policy import Policy, Tags
from desilt.domain.times import microseconds
from desilt.jobs.rules.reach import (
    Classes,
    Groups,
    Reached,
    by_metarange,
    grouped,
    heads,
    ordered_hashes,
    ordered_prefixes,
)
from desilt.repository.snapshot import Snapshot
from desilt.repository.source import Source


def reached(source: Source, seen: Snapshot, policy: Policy, now: Cutoffs, looked_into: set[str]) -> Reached:
    """All of it; ranges that were never decoded are, now."""
    of_metaranges = by_metarange(seen, [heads(seen)], potential=looked_into, tags_hold=policy.tags is Tags.HOLD)
    classes = Classes()
    kinds = classes.numbers(tuple(_cutoff(now.before(rule, name)) for rule in now.rules) for name in seen.names)
    spared = sum(1 << place for place, rule in enumerate(now.rules) if rule.noncurrent_only)
    groups = Groups(kinds, [spared])
    entries, ranges = grouped(source, seen, of_metaranges, groups)
    terms = Terms(
        tuple(rule.id for rule in now.rules),
        tuple(rule.prefix for rule in now.rules),
        tuple(classes.found),
        tuple(groups.found),
        tuple(keep.prefix for keep in policy.keep if keep.prefix is not None),
        tuple(keep.glob for keep in policy.keep if keep.glob is not None),
        ordered_prefixes(seen),
        ordered_hashes(seen),
    )
    return Reached(terms, tuple(entries), ranges)


def _cutoff(before: datetime | None) -> int | None:
    return None if before is None else microseconds(before)
