"""Which commits a run looks into, and that none is passed over that mattered.

The model below is a lake of dictionaries with days for time. Each run of it asks
two things: what would a full look remove, and does the short look (potential
commits and deferred addresses) see all of it?
"""

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from desilt.domain.cutoffs import current_rule, matching, minimum_per_branch, resolve
from desilt.domain.policy import KeepRule, Policy, Rule, Tags, parse
from desilt.domain.potential import (
    BEGINNING,
    Last,
    after,
    applied,
    eff,
    from_bits,
    named,
    potential,
    reach,
)
from desilt.errors import Unreadable

HOUR = timedelta(hours=1)
SEED = {
    "rule1": {"prefix": "foo/bar", "days": 10, "branch_days": {"b1": 5, "b2": 8, "b3": 14}},
    "rule2": {"prefix": "foo/zoo", "branch_days": {"b1": 5}},
}


def day(number):
    return datetime(1998, 1, 1, tzinfo=UTC) + timedelta(days=number - 1)


def known(commits, table, behind=()):
    sets = tuple({branches for _, branches in commits.values()})
    numbers = {name: sets.index(branches) for name, (_, branches) in commits.items()}
    return Last(table, sets, behind or (frozenset(),) * len(sets), numbers)


def on(*branches):
    """A commit a day, each reachable from exactly these branches."""
    return {f"{number:02}": (day(number), frozenset(branches)) for number in range(1, 20)}


@pytest.mark.parametrize(
    ("branches", "since"),
    [(["b1"], 1), (["b3"], 5), (["b1", "b3"], 5), (["b1", "b2", "b3"], 9), (["b2"], 9), (["main"], 9), ([], 20)],
)
def test_the_seeds_four_examples(branches, since):
    """b1 none, b3 05/01, everything else 09/01: b2's own 11/01 is later than the default's, which counts."""
    now = resolve(parse(SEED), ["b1", "b2", "b3", "main"], day(20))
    last = resolve(parse({"rule1": SEED["rule1"]}), now.branches, day(19))
    commits = on(*branches)
    assert potential(commits, known(commits, last.table), now) == {f"{number:02}" for number in range(since, 20)}


def test_eff_of_the_seeds_branches():
    now = resolve(parse(SEED), ["b1", "b2", "b3", "main"], day(20))
    last = applied(resolve(parse({"rule1": SEED["rule1"]}), [], day(19)).table, now.branches)
    assert {branch: eff(branch, now, last) for branch in now.branches} == {
        "b1": BEGINNING, "b2": day(9), "b3": day(5), "main": day(9)
    }  # fmt: skip


def test_a_branch_that_no_rule_covers_has_no_eff_and_its_commits_wait():
    now = resolve(parse({"r": {"prefix": "", "branch_days": {"b1": 5}}}), ["b1", "main"], day(20))
    assert eff("main", now, {}) is None
    assert potential(on("main"), None, now) == set()
    assert len(potential(on("b1", "main"), None, now)) == 19


def test_a_commit_is_looked_into_when_it_is_new_or_other_branches_reach_it():
    rules = parse({"r": {"prefix": "", "days": 1}})
    commits = {"old": (day(2), frozenset({"a"})), "moved": (day(2), frozenset({"a", "b"}))}
    last = known({**commits, "moved": (day(2), frozenset({"a"}))}, resolve(rules, "ab", day(19)).table)
    now = resolve(rules, "ab", day(20))
    assert potential(commits, last, now) == {"moved"}
    assert potential({**commits, "new": (day(2), frozenset({"a"}))}, last, now) == {"moved", "new"}


def test_a_commit_of_the_very_date_is_looked_into():
    rules = parse({"r": {"prefix": "", "days": 1}})
    commits = {"before": (day(18) - HOUR, frozenset("a")), "at": (day(18), frozenset("a"))}
    last = known(commits, resolve(rules, "a", day(19)).table)
    assert potential(commits, last, resolve(rules, "a", day(20))) == {"at"}


def test_what_was_applied_to_a_wider_prefix_was_applied_to_the_narrower_one():
    now = resolve(parse({"r": {"prefix": "a/b", "days": 1}}), ["x"], day(20))
    wide = resolve(parse({"r": {"prefix": "a", "days": 3}}), ["x"], day(19)).table
    assert eff("x", now, applied(wide, ["x"])) == day(16)
    narrow = resolve(parse({"r": {"prefix": "a/b/c", "days": 3}}), ["x"], day(19)).table
    assert eff("x", now, applied(narrow, ["x"])) == BEGINNING


def test_a_rule_given_to_one_branch_and_later_to_the_other_finds_what_lay_there():
    """The commit is passed over for dev's sake in the second run, and would be for main's in the third."""
    commits = {"c": (day(2), frozenset({"main", "dev"}))}
    other = {"prefix": "other", "days": 1}
    last = None
    for number, (branch_days, looks) in enumerate(
        [({}, True), ({"main": 1}, False), ({"main": 1, "dev": 1}, True), ({"main": 1, "dev": 1}, False)]
    ):
        rules = {"other": other} | ({"p": {"prefix": "p", "branch_days": branch_days}} if branch_days else {})
        now = resolve(parse(rules), ["main", "dev"], day(10 + number))
        assert potential(commits, last, now) == ({"c"} if looks else set())
        last = after(commits, last, now)
        assert last.behind == ((frozenset({"main"}) if number == 1 else frozenset()),)


@pytest.mark.parametrize(
    ("parents", "heads", "found"),
    [
        ({"a": [], "b": ["a"]}, {"x": "b"}, {"a": 1, "b": 1}),
        ({"a": [], "b": ["a"], "c": ["a"]}, {"x": "b", "y": "c"}, {"a": 3, "b": 1, "c": 2}),
        ({"m": ["b", "c"], "b": ["a"], "c": ["a"], "a": []}, {"y": "m", "x": "b"}, {"m": 2, "b": 3, "c": 2, "a": 3}),
        ({"a": [], "loose": ["a"]}, {"x": "a", "y": "a"}, {"a": 3, "loose": 0}),
        ({"a": [], "b": ["a", "a"]}, {"x": "b"}, {"a": 1, "b": 1}),
        ({}, {}, {}),
    ],
)
def test_reach_is_every_branch_from_which_a_commit_can_be_seen(parents, heads, found):
    assert reach(parents, heads) == found


@pytest.mark.parametrize(
    ("parents", "heads", "fact"),
    [
        ({"a": ["gone"]}, {}, "commit a has parent gone, which is not there"),
        ({"a": []}, {"x": "gone"}, "branch 'x' points to commit gone, which is not there"),
        ({"a": ["b"], "b": ["a"], "c": []}, {"x": "c"}, "2 commits descend from themselves"),
    ],
)
def test_a_history_with_holes_is_not_guessed_at(parents, heads, fact):
    with pytest.raises(Unreadable, match=fact):
        reach(parents, heads)


def test_bits_and_names_are_the_same_sets_and_equal_sets_are_one_object():
    branches = ["a", "b", "c"]
    assert [from_bits(bits, branches) for bits in (0, 5)] == [frozenset(), frozenset("ac")]
    sets = named({"x": 5, "y": 5, "z": 1}, branches)
    assert sets["x"] is sets["y"]
    assert sets["z"] == frozenset("a")


def test_of_a_hundred_thousand_commits_on_a_thousand_branches_a_later_run_looks_into_few():
    """Sets of names for each commit would be a hundred million names."""
    chance = random.Random(7)
    parents, heads = {"c0": ()}, {}
    for number in range(1, 100_000):
        above = {f"c{max(0, number - 1 - chance.randrange(3))}"}
        parents[f"c{number}"] = tuple(above | ({f"c{chance.randrange(number)}"} if number % 50 == 0 else set()))
    for number in range(1_000):
        heads[f"b{number}"] = f"c{chance.randrange(100_000)}"
    branches = sorted(heads)
    sets = named(reach(parents, heads), branches)
    commits = {name: (day(1) + HOUR * int(name[1:]), reached) for name, reached in sets.items()}
    rules = parse(
        {"r": {"prefix": "", "days": 30, "branch_days": {"b1*": 90, "b2": 3}}, "s": {"prefix": "x", "days": 9}}
    )
    last, looked = None, []
    for now in (day(4165), day(4166), day(4167)):
        cutoffs = resolve(rules, branches, now)
        looked.append(len(potential(commits, last, cutoffs)))
        last = after(commits, last, cutoffs)
    assert looked[0] > 50_000
    assert 0 < looked[1] < 5_000
    assert 0 < looked[2] < 5_000


# --- the model ---

BRANCHES = ("b1", "b2", "b3")
PATHS = ("a/1", "a/2", "ab", "z")
PREFIXES = ("", "a", "a/", "z")


@dataclass
class Model:
    """Commits are (date, parents, tree); a tree is path → address; an address has one creation date."""

    now: datetime = datetime(1998, 1, 1, tzinfo=UTC)
    commits: dict = field(default_factory=lambda: {"c0": (day(1), (), {})})
    heads: dict = field(default_factory=lambda: {"b1": "c0"})
    tags: dict = field(default_factory=dict)
    created: dict = field(default_factory=dict)
    gone: set = field(default_factory=set)
    holds: set = field(default_factory=set)
    policy: Policy = field(default_factory=lambda: Policy((Rule("r", "", 3),)))

    def add(self, branch, *, parents, tree):
        name = f"c{len(self.commits)}"
        self.now += HOUR
        self.commits[name] = (self.now, parents, tree)
        self.heads[branch] = name

    def tree(self, branch):
        return dict(self.commits[self.heads[branch]][2])

    def reached(self):
        parents = {name: above for name, (_, above, _) in self.commits.items()}
        sets = named(reach(parents, self.heads), sorted(self.heads))
        return {name: (self.commits[name][0], branches) for name, branches in sets.items()}

    def tagged(self):
        found, todo = set(), [] if self.policy.tags is Tags.IGNORE else list(self.tags.values())
        while todo:
            name = todo.pop()
            if name not in found:
                found.add(name)
                todo += self.commits[name][1]
        return found

    def judge(self, cutoffs):
        """By a full look: what may go, and what has at least one pair past its cutoff."""
        reached, tagged = self.reached(), self.tagged()
        uses = {}
        for name, (_, _, tree) in self.commits.items():
            for path, address in tree.items():
                if address not in self.gone:
                    uses.setdefault(address, []).append((path, name))
        removable, past = set(), set()
        for address, places in uses.items():
            free = address not in self.holds
            for path, name in places:
                rules = matching(self.policy, path)
                free &= (
                    bool(reached[name][1]) and name not in tagged and not any(k.holds(path) for k in self.policy.keep)
                )
                for branch in reached[name][1]:
                    current = self.tree(branch).get(path) == address
                    limit = cutoffs.threshold(rules, branch, current=current)
                    free &= limit is not None and self.created[address] < limit
                    by_date = cutoffs.threshold(rules, branch, current=False)
                    if by_date is not None and self.created[address] < by_date:
                        past.add(address)
            if free:
                removable.add(address)
        return removable, past


def missed(steps, look=potential, remember=after, *, defer=True):
    """Play ``steps``; what runs that look into ``look``'s commits did not see, and a full look would have removed."""
    model, last, deferred = Model(), None, set()
    for kind, *facts in steps:
        if kind != "run":
            STEPS[kind](model, *facts)
            continue
        (failing,) = facts
        cutoffs = resolve(model.policy, model.heads, model.now)
        commits = model.reached()
        removable, past = model.judge(cutoffs)
        seen = {address for name in look(commits, last, cutoffs) for address in model.commits[name][2].values()}
        seen = (seen | deferred) - model.gone
        if removable - seen:
            return removable - seen
        removed = {address for address in removable if not failing or hash(address) % 2}
        model.gone |= removed
        deferred = (seen & past) - removed if defer else set()
        last = remember(commits, last, cutoffs)
    return set()


def put(model, branch, path, new, age):
    if branch in model.heads:
        tree = model.tree(branch)
        others = sorted(set(model.created) - model.gone)
        if new or not others:
            address = len(model.created)
            model.created[address] = model.now - HOUR * age
        else:
            address = others[age % len(others)]  # the same bytes at another path, or brought back
        model.add(branch, parents=(model.heads[branch],), tree={**tree, path: address})


def remove(model, branch, path):
    if branch in model.heads and path in (tree := model.tree(branch)):
        model.add(branch, parents=(model.heads[branch],), tree={p: a for p, a in tree.items() if p != path})


def start(model, branch, number):
    """Make a branch, or reset it, to whatever commit: some are left to no branch."""
    names = sorted(model.commits)
    model.heads[branch] = names[number % len(names)]


def drop(model, branch):
    if len(model.heads) > 1:
        model.heads.pop(branch, None)


def merge(model, source, target):
    if {source, target} <= set(model.heads) and source != target:
        parents = (model.heads[target], model.heads[source])
        model.add(target, parents=parents, tree={**model.tree(target), **model.tree(source)})


def toggle_tag(model, branch):
    if model.tags.pop(branch, None) is None and branch in model.heads:
        model.tags[branch] = model.heads[branch]


def wait(model, days):
    model.now += timedelta(days=days)


def hold(model, address):
    model.holds ^= {address}


def adopt(model, policy):
    model.policy = policy


STEPS = {
    "put": put, "remove": remove, "start": start, "drop": drop, "merge": merge,
    "tag": toggle_tag, "wait": wait, "hold": hold, "policy": adopt,
}  # fmt: skip

branch_names = st.sampled_from(BRANCHES)
days_counts = st.integers(0, 6)


@st.composite
def rules(draw, name):
    days = draw(st.none() | days_counts)
    names = st.sampled_from([*BRANCHES, "b*", "?2", "[!b]*", "b[13]"])
    entries = draw(st.dictionaries(names, days_counts, min_size=int(days is None), max_size=2))
    return Rule(
        name,
        draw(st.sampled_from(PREFIXES)),
        days,
        enabled=draw(st.integers(0, 5)) > 0,
        branch_days=entries,
        noncurrent_only=draw(st.integers(0, 3)) == 0,
    )


@st.composite
def policies(draw):
    count = draw(st.integers(1, 3))
    kept = draw(st.lists(st.sampled_from(PREFIXES[1:]), max_size=1))
    return Policy(
        tuple(draw(rules(f"r{number}")) for number in range(count)),
        tags=draw(st.sampled_from(Tags)),
        keep=tuple(KeepRule(f"k{number}", prefix=prefix) for number, prefix in enumerate(kept)),
    )


@st.composite
def patchy(draw):
    """A prefix here, a prefix there: what makes runs trust one branch for another's sake."""
    places = draw(st.sets(st.tuples(st.sampled_from("az"), st.sampled_from(BRANCHES[:2])), min_size=1))
    on_branches = {prefix: {branch: 1 for with_it, branch in places if with_it == prefix} for prefix, _ in places}
    return Policy(tuple(Rule(prefix, prefix, None, branch_days=entries) for prefix, entries in on_branches.items()))


steps = st.one_of(
    st.tuples(st.just("put"), branch_names, st.sampled_from(PATHS), st.booleans(), st.integers(0, 30)),
    st.tuples(st.just("put"), branch_names, st.sampled_from(PATHS), st.just(True), st.integers(0, 30)),
    st.tuples(st.just("remove"), branch_names, st.sampled_from(PATHS)),
    st.tuples(st.just("start"), branch_names, st.integers(0, 20)),
    st.tuples(st.just("drop"), branch_names),
    st.tuples(st.just("merge"), branch_names, branch_names),
    st.tuples(st.just("tag"), branch_names),
    st.tuples(st.just("hold"), st.integers(0, 5)),
    st.tuples(st.just("wait"), st.integers(1, 4)),
    st.tuples(st.just("policy"), policies()),
    st.tuples(st.just("run"), st.booleans()),
)
ending = st.lists(
    st.tuples(policies(), st.integers(0, 3), st.booleans()).map(
        lambda facts: [("policy", facts[0]), ("wait", facts[1]), ("run", facts[2])]
    ),
    min_size=1,
    max_size=4,
).map(lambda runs: [step for run in runs for step in run])
broad = st.tuples(st.lists(steps, min_size=4, max_size=25), ending).map(lambda parts: parts[0] + parts[1])
shared = st.lists(patchy(), min_size=3, max_size=5).map(
    lambda found: (
        [("put", "b1", "a/1", True, 0), ("start", "b2", 1)]
        + [step for policy in found for step in [("policy", policy), ("wait", 3), ("run", False)]]
    )
)
histories = broad | shared
QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@settings(max_examples=200, **QUIET)
@given(histories)
def test_nothing_is_missed_that_a_full_look_would_remove(history):
    assert missed(history) == set()


@pytest.mark.slow
@settings(max_examples=20_000, **QUIET)
@given(histories)
def test_nothing_is_missed_in_many_histories(history):
    assert missed(history) == set()


def by_the_seed(commits, last, now):
    """Its own rule, as written: the minimum of last_deleted per branch, then the intersection."""
    dates = minimum_per_branch(current_rule(now.table, last.table if last else ()))

    def since(branches):
        own = [dates[one] for one in branches if one in dates]
        rest = [dates[None]] if None in dates and not set(branches) <= set(dates) else []
        return max((date or BEGINNING for date in own + rest), default=None)

    return {name for name, (at, branches) in commits.items() if (date := since(branches)) and at >= date}


def forgetful(commits, last, now):
    """What is remembered without the branches that are behind."""
    found = after(commits, last, now)
    return Last(found.table, found.sets, (frozenset(),) * len(found.sets), found.known)


SEARCH = settings(max_examples=20_000, database=None, derandomize=True, phases=[Phase.generate], **QUIET)


@pytest.mark.parametrize(
    ("weaker", "where"),
    [
        pytest.param({"look": by_the_seed, "defer": False}, broad, id="the seed as written"),
        pytest.param({"look": by_the_seed}, broad, id="the seed, with deferred addresses"),
        pytest.param({"defer": False}, broad, id="no deferred addresses"),
        pytest.param({"remember": forgetful}, shared, id="no branch is ever behind", marks=pytest.mark.slow),
    ],
)
def test_the_model_sees_what_weaker_rules_miss(weaker, where):
    assert missed(find(where, lambda history: bool(missed(history, **weaker)), settings=SEARCH), **weaker)


RULE, OTHER = Rule("p", "a", None, branch_days={"b1": 1}), Rule("o", "z", 1)
BEHIND = [
    ("put", "b1", "a/1", True, 0),
    ("start", "b2", 1),
    *(
        step
        for policy in (Policy((OTHER,)), Policy((OTHER, RULE)), Policy((OTHER, Rule("p", "a", 1))))
        for step in [("policy", policy), ("wait", 5), ("run", False)]
    ),
]


def test_without_the_branches_that_are_behind_the_model_misses_an_object():
    assert missed(BEHIND) == set()
    assert missed(BEHIND, remember=forgetful) == {0}
