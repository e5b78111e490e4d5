"""The commits that a server's rules keep: its own answers, its algorithm step by step, and its rule in words."""

import csv
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desilt.domain.history import Commit
from desilt.errors import Unreadable
from desilt.lakefs import dump
from desilt.lakefs.active import active, meant
from desilt.lakefs.server import GcRules
from lakefs_server import ROOT
from sstable_records import unhurried

NOW = datetime(2026, 11, 18, tzinfo=UTC)
CAPTURED = datetime(2026, 11, 16, 5, 18, 7, tzinfo=UTC)


def commit(name, *parents, days):
    return Commit(name, parents, f"m-{name}", NOW - timedelta(days=days), "", "")


def history(*commits):
    return {one.id: one for one in commits}


def test_both_answers_of_the_server_are_worked_out(server):
    found = dump.read(server.table, server.dump(), default_branch="main").snapshot
    server.rules()
    heads = {branch.name: branch.head for branch in found.branches}
    ours = active(found.commits, heads, server.rules(), CAPTURED)
    files = sorted((ROOT / "namespace/_lakefs/retention/gc/commits").glob("*/commits.csv"))
    assert len(files) == 2
    for file in files:
        rows = list(csv.DictReader(file.read_text().splitlines()))
        assert {row["commit_id"]: row["metarange_id"] for row in rows} == {
            name: found.commits[name].metarange for name in ours
        }


def test_the_state_a_branch_was_in_at_the_cut_is_kept_and_what_is_below_goes():
    line = history(commit("a", days=30), commit("b", "a", days=20), commit("c", "b", days=2), commit("d", "c", days=1))
    assert active(line, {"main": "d"}, GcRules(7, {}), NOW) == {"b", "c", "d"}


def test_a_head_never_goes_and_the_cut_itself_is_old():
    line = history(commit("a", days=30), commit("b", "a", days=7))
    assert active(line, {"main": "b"}, GcRules(7, {}), NOW) == {"b"}


def test_a_branch_has_its_own_days_by_its_whole_name():
    line = history(commit("a", days=30), commit("b", "a", days=20), commit("c", "b", days=9))
    assert active(line, {"main": "c"}, GcRules(7, {"main": 25}), NOW) == {"a", "b", "c"}
    assert active(line, {"main": "c"}, GcRules(7, {"mai": 25, "main*": 25}), NOW) == {"c"}


def test_what_was_merged_from_a_deleted_branch_is_kept_for_the_default_days():
    merged = history(
        commit("a", days=30), commit("b", "a", days=3), commit("m", "a", "b", days=2), commit("old", "a", days=20)
    )
    assert active(merged, {"main": "m"}, GcRules(7, {"main": 1}), NOW) == {"m", "b", "a"}
    assert active(merged, {"main": "m"}, GcRules(1, {"main": 1}), NOW) == {"m"}


def test_days_may_be_any_number_that_a_server_takes():
    line = history(commit("a", days=30), commit("b", "a", days=0))
    assert active(line, {"main": "b"}, GcRules(-1, {}), NOW) == {"b"}
    assert active(line, {"main": "b"}, GcRules(2**31 - 1, {}), NOW) == {"a", "b"}


def test_a_parent_that_is_missing_is_no_end():
    with pytest.raises(Unreadable, match="commit gone is missing"):
        active(history(commit("a", "gone", days=1)), {"main": "a"}, GcRules(7, {}), NOW)


def test_the_server_forgets_a_state_that_an_old_head_was_asked_about_first():
    """Both heads come from p, and b's walk would keep it; a's, which comes first by its id, was there already."""
    forked = history(commit("p", days=60), commit("a", "p", days=30), commit("b", "p", days=1))
    assert active(forked, {"one": "a", "two": "b"}, GcRules(7, {}), NOW) == {"a", "b"}
    assert meant(forked, {"one": "a", "two": "b"}, GcRules(7, {}), NOW) == {"a", "b", "p"}
    other = history(commit("p", days=60), commit("z", "p", days=30), commit("b", "p", days=1))
    assert active(other, {"one": "z", "two": "b"}, GcRules(7, {}), NOW) == {"z", "b", "p"}


@st.composite
def histories(draw):
    """Commits with merges and dates that need not ascend; some with a branch, others dangling."""
    names = draw(st.lists(st.text("abcdef", min_size=1, max_size=4), min_size=1, max_size=12, unique=True))
    commits = {}
    for place, name in enumerate(names):
        parents = draw(st.lists(st.sampled_from(names[:place]), max_size=2, unique=True)) if place else []
        commits[name] = commit(name, *parents, days=draw(st.integers(0, 30)))
    branches = st.sampled_from(["main", "dev", "x", "y", "z"])
    heads = draw(st.dictionaries(branches, st.sampled_from(names), max_size=5))
    days = st.integers(-1, 31)
    return commits, heads, GcRules(draw(days), draw(st.dictionaries(branches, days)))


def in_words(commits, heads, rules):
    """The rule, from every start alone, nothing remembered of the others."""
    main = {one.id: one.parents[0] if one.parents else None for one in commits.values()}
    dangling = set(commits) - set(main.values()) - set(heads.values())
    kept = set(heads.values())
    walks = [(head, main[head], rules.branch_days.get(name, rules.default_days)) for name, head in heads.items()]
    for child, parent, days in walks + [(one, one, rules.default_days) for one in dangling]:
        while parent:
            if commits[child].created_at > NOW - timedelta(days=days):
                kept.add(parent)
            child, parent = parent, main[parent]
    return kept


def step_by_step(commits, heads, rules):
    """The server's own steps, as they were read: a starting point, its walk, and where it breaks off."""
    main = {one.id: one.parents[0] if one.parents else None for one in commits.values()}
    starts = [(head, name) for name, head in heads.items()]
    starts += [(one, "") for one in set(commits) - set(main.values()) - set(heads.values())]
    processed, result = {}, set()
    for start, branch in sorted(starts):
        days = rules.branch_days.get(branch, rules.default_days) if branch else rules.default_days
        threshold = NOW - timedelta(days=days)
        node = (commits[start].created_at, main[start] if branch else start)
        if branch:
            result.add(start)
            processed[start] = threshold
        while node[1] is not None:
            following = node[1]
            if following in processed and not processed[following] > threshold:
                break
            if node[0] > threshold:
                result.add(following)
            node = (commits[following].created_at, main[following])
            processed[following] = threshold
    return result


@unhurried
@given(histories())
def test_any_history_gives_what_the_servers_steps_give_and_what_its_rule_says(drawn):
    ours = active(*drawn, NOW)
    assert ours == step_by_step(*drawn)
    assert meant(*drawn, NOW) == in_words(*drawn)
    assert set(drawn[1].values()) <= ours <= meant(*drawn, NOW)


@unhurried
@given(histories())
def test_the_order_of_branches_of_one_commit_changes_nothing(drawn):
    commits, heads, rules = drawn
    renamed = {name: name[::-1] + "-" for name in heads}
    others = GcRules(rules.default_days, {renamed.get(name, name): days for name, days in rules.branch_days.items()})
    again = {renamed[name]: heads[name] for name in reversed(list(heads))}
    assert active(commits, again, others, NOW) == active(commits, heads, rules, NOW)
