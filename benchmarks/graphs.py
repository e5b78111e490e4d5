"""A made-up history of commits without entries, and how many of them a lifecycle run would look into.

A commit a day on main, releases with a commit a week, features that live ten days:
most are merged, some are deleted and leave commits that no branch reaches.
"""

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from desilt.domain import cutoffs as cut
from desilt.domain.cutoffs import Cutoffs
from desilt.domain.policy import Policy, parse
from desilt.domain.potential import Applied, Branches, Commits, Last, after, applied, eff, named, potential, reach
from long_lake import DAY, START

Parents = dict[str, list[str]]

POLICIES: dict[str, dict[str, object]] = {
    "one rule": {"logs": {"prefix": "logs/", "days": 7}},
    "four rules, the same on all branches": {
        "tmp": {"prefix": "tmp/", "days": 1},
        "logs": {"prefix": "logs/", "days": 7},
        "raw": {"prefix": "raw/", "days": 90},
        "audit": {"prefix": "audit/", "days": 365},
    },
    "four rules, some branches keep some longer": {
        "tmp": {"prefix": "tmp/", "days": 1},
        "logs": {"prefix": "logs/", "days": 7, "branch_days": {"main": 365}},
        "raw": {"prefix": "raw/", "days": 30, "branch_days": {"release-*": 365}},
        "cache": {"prefix": "cache/", "days": 7, "branch_days": {"feature-*": 365}},
    },
    "four rules, two of them for some branches only": {
        "tmp": {"prefix": "tmp/", "days": 1},
        "logs": {"prefix": "logs/", "days": 7},
        "raw": {"prefix": "raw/", "branch_days": {"release-*": 365}},
        "cache": {"prefix": "cache/", "branch_days": {"feature-*": 90}},
    },
}


def compare(days: int) -> tuple[dict[str, object], list[dict[str, object]]]:
    """What there is, and for each policy the commits looked into by branch (as it is done) and by rule."""
    dated, names = history(days)
    unreachable = sum(not branches for _, branches in dated.values())
    there: dict[str, object] = {
        "commits": len(dated),
        "branches": len(names),
        "unreachable": unreachable,
        "unreachable_share": round(unreachable / len(dated), 3),
    }
    rows: list[dict[str, object]] = []
    for said, rules in POLICIES.items():
        policy = parse(rules)
        last, now = a_day_between(policy, names, START + days * DAY, dated)
        as_done, by_rule = potential(dated, last, now), set(potential_by_rule(dated, last, now))
        assert by_rule <= as_done
        rows.append({"policy": said, "by_branch": len(as_done), "by_rule": len(by_rule)})
    return there, rows


def a_day_between(policy: Policy, names: list[str], at: datetime, dated: Commits) -> tuple[Last, Cutoffs]:
    """What a run of yesterday (after one of the day before) has left, and the cutoffs of today."""
    last = None
    for day in (2, 1):
        last = after(dated, last, cut.resolve(policy, names, at - day * DAY))
    assert last is not None
    return last, cut.resolve(policy, names, at)


def potential_by_rule(commits: Commits, last: Last, now: Cutoffs) -> Iterator[str]:
    """The seed's other way: for each rule the branches are intersected, and a commit is looked into if one calls.

    Only to be counted: what is *behind* would have to be kept for each rule too, and is not.
    """
    before = applied(last.table, now.branches)
    numbers = {branches: number for number, branches in enumerate(last.sets)}
    since: dict[Branches, datetime | None] = {}
    for name, (at, branches) in commits.items():
        if branches not in since:
            since[branches] = min(_by_rule(branches, before, now), default=None)
        start = since[branches]
        if start is not None and (last.known.get(name) != numbers.get(branches) or at >= start):
            yield name


def _by_rule(branches: Branches, before: Applied, now: Cutoffs) -> Iterator[datetime]:
    for rule in now.rules:
        wider = replace(now, rules=tuple(one for one in now.rules if rule.prefix.startswith(one.prefix)))
        found = [eff(branch, wider, before) for branch in branches]
        if found and None not in found:  # a branch without a rule for the prefix keeps all that it reaches there
            yield max(at for at in found if at is not None)


def history(days: int) -> tuple[Commits, list[str]]:
    """Commits of so many days with the branches that reach each; the branches' names."""
    random_one, parents, at = random.Random(1), Parents(), dict[str, datetime]()
    heads, ends = {"main": ""}, dict[str, int]()

    def commit(branch: str, day: int, *others: str) -> None:
        name = f"{len(parents):06d}"
        parents[name] = [parent for parent in (heads[branch], *others) if parent]
        at[name], heads[branch] = START + day * DAY, name

    for day in range(days):
        commit("main", day)
        if day % 500 == 100:
            heads[f"release-{day // 500}"] = heads["main"]
        for release in [name for name in heads if name.startswith("release")]:
            if day % 7 == 0:
                commit(release, day)
        if day % 2 == 0:
            heads[f"feature-{day}"], ends[f"feature-{day}"] = heads["main"], day + 10
        for feature in list(ends):
            if ends[feature] == day:
                if random_one.random() < 0.7:
                    commit("main", day, heads[feature])
                del heads[feature], ends[feature]
            elif day % 2:
                commit(feature, day)
    names = sorted(heads)
    sets = named(reach(parents, heads), names)
    return {name: (at[name], sets[name]) for name in parents}, names
