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


def metaranges_held(tx: Transaction, repository: str, watches: Mapping[str, Any]) -> tuple[set[str], set[str]]:
    """Metaranges all of which is kept by now; and those of today's heads.

    The second are given only where the policy tells heads from the rest: of them, what
    no head had when the plan was made is kept.
    """
    policy = parse(watches["policy"])
    then = Refs(watches["branches"], watches["tags"])
    now = Refs(
        {branch.name: branch.head for branch in refs.branches(tx, repository)},
        {tag.name: tag.target for tag in refs.tags(tx, repository)},
    )
    if now == then:
        return set(), set()
    every = {commit.id: commit for commit in commits.every(tx, repository)}
    held = {every[one].metarange for one in reached_otherwise(every, policy, then, now)}
    if policy.tags is Tags.HOLD:
        held |= {every[target].metarange for name, target in now.tags.items() if then.tags.get(name) != target}
    heads: set[str] = set()
    if any(rule.noncurrent_only for rule in policy.rules):
        heads = {every[head].metarange for head in now.branches.values()}
    return held, heads


def heads_then(tx: Transaction, repository: str, watches: Mapping[str, Any]) -> set[str]:
    """The metaranges of the heads that the plan saw."""
    fetch = commits.fetching(tx, repository)
    return {fetch(head).metarange for head in watches["branches"].values()}


def reached_otherwise(every: Mapping[str, Commit], policy: Policy, then: Refs, now: Refs) -> set[str]:
    """The commits on which some branch has a say by now whose periods none had then, or no branch any more."""
    parents = {name: commit.parents for name, commit in every.items()}
    before, after = _periods(parents, policy, then.branches), _periods(parents, policy, now.branches)
    return {name for name in every if before[name] and (not after[name] or not after[name] <= before[name])}


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
