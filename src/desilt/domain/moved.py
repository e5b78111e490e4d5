"""Refs that moved since a plan by rules was made: which commits keep by now what they did not keep then.

Where a commit is reached by a branch with other periods, by none any more, or by a
new tag, all that it has is left to the next plan. So is what came back into a head.
"""

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from desilt.domain.cutoffs import days_for
from desilt.domain.policy import Policy, Tags
from desilt.domain.potential import reach

Parents = Mapping[str, tuple[str, ...]]
Periods = tuple[int | None, ...]  # what each rule says on a branch


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


def kept_by_now(policy: Policy, then: Refs, now: Refs, *, parents: Parents, new: Set[str]) -> set[KeptCommit]:
    """What refs that moved and ``new`` commits keep. ``parents``: of all commits there are."""
    found = {KeptCommit(commit) for commit in reached_otherwise(policy, then, now, parents=parents, new=new)}
    # What a new commit has from a parent is judged there: whoever reaches the commit reaches the parent.
    found |= {KeptCommit(commit, parents[commit]) for commit in new}
    if policy.tags is Tags.HOLD:
        found |= {KeptCommit(target) for name, target in now.tags.items() if then.tags.get(name) != target}
    if any(rule.noncurrent_only for rule in policy.rules):
        found |= set(_heads(then, now))
    return found


def reached_otherwise(policy: Policy, then: Refs, now: Refs, *, parents: Parents, new: Set[str]) -> set[str]:
    """The commits on which some branch has a say by now whose periods none had then, or no branch (any more).

    Those that no branch reached then were kept by the plan itself.
    """
    before, after = _periods(policy, then, parents), _periods(policy, now, parents)
    lost = {name for name in parents if not after[name] and (before[name] or name in new)}
    return lost | {name for name in parents if before[name] and not after[name] <= before[name]}


def _heads(then: Refs, now: Refs) -> Iterator[KeptCommit]:
    """Branch by branch: what another one's head had says nothing about this one."""
    for name, head in now.branches.items():
        had = then.branches.get(name)
        if had != head:
            yield KeptCommit(head, (had,) if had else ())


def _periods(policy: Policy, refs: Refs, parents: Parents) -> dict[str, frozenset[Periods]]:
    """For every commit, the periods of the branches that reach it."""
    rules = [rule for rule in policy.rules if rule.enabled]
    of = [tuple(days_for(rule, name) for rule in rules) for name in sorted(refs.branches)]
    bits = reach(parents, refs.branches)
    sets = {
        number: frozenset(of[place] for place in range(len(of)) if number >> place & 1) for number in set(bits.values())
    }
    return {name: sets[number] for name, number in bits.items()}
