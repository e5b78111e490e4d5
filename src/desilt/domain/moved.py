"""Refs that moved since a plan by rules was made: which commits keep by now what they did not keep then.

Where a commit is reached by a branch with other periods, by none any more, or by a
new tag, all that it has is left to the next plan. So is what came back into a head.
"""

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from enum import Enum

from desilt.domain.cutoffs import days_for
from desilt.domain.keep_rules import walk_down
from desilt.domain.policy import Policy, Tags
from desilt.domain.potential import reach
from desilt.domain.retention import Kind, Retention

Parents = Mapping[str, tuple[str, ...]]
Periods = tuple[object, ...]  # what each rule says on a branch


class Current(Enum):
    """What a branch has that rules may spare."""

    NOTHING = "nothing"
    HEAD = "its last commit"
    LATELY = "every commit that it has had lately"


@dataclass(frozen=True, slots=True)
class Manner:
    """How a set of rules looks at branches and tags."""

    periods: Callable[[str], Periods]  # what the rules say on a branch
    tags_hold: bool
    spares: Current


def of_policy(policy: Policy) -> Manner:
    """Of a lifecycle policy."""
    rules = [rule for rule in policy.rules if rule.enabled]
    spares = Current.HEAD if any(rule.noncurrent_only for rule in policy.rules) else Current.NOTHING
    return Manner(lambda name: tuple(days_for(rule, name) for rule in rules), policy.tags is Tags.HOLD, spares)


def of_retention(retention: Retention) -> Manner:
    """Of a retention document."""
    noncurrent = any(one.kind is Kind.NONCURRENT for one in retention.expiries)
    return Manner(retention.periods_on, tags_hold=True, spares=Current.LATELY if noncurrent else Current.NOTHING)


@dataclass(frozen=True, slots=True)
class Refs:
    """Where branches and tags point."""

    branches: Mapping[str, str]
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class KeptCommit:
    """A commit of which all is kept by now, but for what its bases have: that was judged with them."""

    commit: str
    bases: tuple[str, ...] = ()


def kept_by_now(manner: Manner, then: Refs, now: Refs, *, parents: Parents, new: Set[str]) -> set[KeptCommit]:
    """What refs that moved and ``new`` commits keep. ``parents``: of all commits there are."""
    found = {KeptCommit(commit) for commit in reached_otherwise(manner, then, now, parents=parents, new=new)}
    # What a new commit has from a parent is judged there: whoever reaches the commit reaches the parent.
    found |= {KeptCommit(commit, parents[commit]) for commit in new}
    if manner.tags_hold:
        found |= {KeptCommit(target) for name, target in now.tags.items() if then.tags.get(name) != target}
    if manner.spares is not Current.NOTHING:
        found |= set(_heads(then, now))
    if manner.spares is Current.LATELY:
        found |= set(_came_by(then, now, parents))
    return found


def reached_otherwise(manner: Manner, then: Refs, now: Refs, *, parents: Parents, new: Set[str]) -> set[str]:
    """The commits on which some branch has a say by now whose periods none had then, or no branch (any more).

    Those that no branch reached then were kept by the plan itself.
    """
    before, after = _periods(manner, then, parents), _periods(manner, now, parents)
    lost = {name for name in parents if not after[name] and (before[name] or name in new)}
    return lost | {name for name in parents if before[name] and not after[name] <= before[name]}


def _heads(then: Refs, now: Refs) -> Iterator[KeptCommit]:
    """Branch by branch: what another one's head had says nothing about this one."""
    for name, head in now.branches.items():
        had = then.branches.get(name)
        if had != head:
            yield KeptCommit(head, (had,) if had else ())


def _came_by(then: Refs, now: Refs, parents: Parents) -> Iterator[KeptCommit]:
    """Every commit that a branch has come to reach, and its parents: each may have been its head for a moment."""
    for name, head in now.branches.items():
        had = [one for one in [then.branches.get(name)] if one in parents and one is not None]
        new = set(walk_down([head], parents.__getitem__)) - set(walk_down(had, parents.__getitem__))
        for commit in new:
            yield from (KeptCommit(one, tuple(had)) for one in (commit, *parents[commit]))


def _periods(manner: Manner, refs: Refs, parents: Parents) -> dict[str, frozenset[Periods]]:
    """For every commit, the periods of the branches that reach it."""
    of = [manner.periods(name) for name in sorted(refs.branches)]
    bits = reach(parents, refs.branches)
    sets = {
        number: frozenset(of[place] for place in range(len(of)) if number >> place & 1) for number in set(bits.values())
    }
    return {name: sets[number] for name, number in bits.items()}
