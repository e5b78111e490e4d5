"""Refs that moved since a lifecycle plan was made, judged again: what they keep by now that they did not keep then.

A plan names the branches and tags it saw, and its policy. Where a commit is
reached by a branch with other cutoffs, by none any more, or by a new tag, all that
it has is left to the next plan. So is what came back into a head.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from desilt.domain.cutoffs import days_for
from desilt.domain.history import Commit
from desilt.domain.policy import Policy, Tags, parse
from desilt.domain.potential import reach
from desilt.lake import commits, refs
from desilt.lake.database import Transaction

Periods = tuple[int | None, ...]  # what each rule says on a branch


@dataclass(frozen=True, slots=True)
class Refs:
    """Where branches and tags point."""

    branches: Mapping[str, str]
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Moved:
    """A metarange of which all is kept by now, but for what its bases have: that was judged with them."""

    metarange: str
    bases: tuple[str, ...] = ()


def moves(tx: Transaction, repository: str, watches: Mapping[str, Any], generation: int) -> set[Moved]:
    """What refs and commits that moved since a plan was made at ``generation`` keep by now."""
    policy = parse(watches["policy"])
    then = Refs(watches["branches"], watches["tags"])
    now = Refs(
        {branch.name: branch.head for branch in refs.branches(tx, repository)},
        {tag.name: tag.target for tag in refs.tags(tx, repository)},
    )
    new = commits.ids_since(tx, repository, generation)
    if now == then and not new:
        return set()
    every = {commit.id: commit for commit in commits.every(tx, repository)}
    found = {Moved(every[one].metarange) for one in reached_otherwise(every, policy, then, now, new)}
    # What a new commit has from a parent is judged there: whoever reaches the commit reaches the parent.
    found |= {Moved(every[one].metarange, tuple(every[up].metarange for up in every[one].parents)) for one in new}
    if policy.tags is Tags.HOLD:
        found |= {Moved(every[target].metarange) for name, target in now.tags.items() if then.tags.get(name) != target}
    if any(rule.noncurrent_only for rule in policy.rules):
        for name, head in now.branches.items():
            had = then.branches.get(name)
            if had != head:  # branch by branch: what another one's head had says nothing about this one
                found.add(Moved(every[head].metarange, (every[had].metarange,) if had else ()))
    return found


def reached_otherwise(every: Mapping[str, Commit], policy: Policy, then: Refs, now: Refs, new: set[str]) -> set[str]:
    """The commits on which some branch has a say by now whose periods none had then, or no branch (any more)."""
    parents = {name: commit.parents for name, commit in every.items()}
    before, after = _periods(parents, policy, then.branches), _periods(parents, policy, now.branches)
    return {
        name
        for name in every
        if (not after[name] if name in new else before[name] and (not after[name] or not after[name] <= before[name]))
    }


def _periods(
    parents: Mapping[str, tuple[str, ...]], policy: Policy, heads: Mapping[str, str]
) -> dict[str, frozenset[Periods]]:
    """For every commit, the periods of the branches that reach it."""
    of = [tuple(days_for(rule, name) for rule in policy.rules if rule.enabled) for name in sorted(heads)]
    bits = reach(parents, heads)
    sets = {
        number: frozenset(of[place] for place in range(len(of)) if number >> place & 1) for number in set(bits.values())
    }
    return {name: sets[number] for name, number in bits.items()}
