"""Days become dates, and the tables of seed 000 come out as it prints them."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from desilt.domain.cutoffs import (
    CurrentRule,
    Cutoff,
    current_rule,
    days_for,
    deciding,
    matching,
    minimum_per_branch,
    resolve,
)
from desilt.domain.policy import Rule, parse
from desilt.errors import BadRequest

BOTH = json.loads(
    """{"rule1": {"prefix": "foo/bar", "days": 10, "enabled": true, "branch_days": {"b1": 5, "b2": 8}},
        "rule2": {"prefix": "foo/zoo", "enabled": true, "branch_days": {"b1": 5}}}"""
)
FIRST = {"rule1": BOTH["rule1"]}


def day(number):
    return datetime(1998, 1, number, tzinfo=UTC)


def policy(**rules):
    return parse(rules)


def test_the_policy_table_of_the_seed():
    """Its dates for b2 are wrong: 8 days before 20/01 is 12/01, before 19/01 it is 11/01."""
    assert resolve(parse(BOTH), ["b1"], day(20)).table == (
        Cutoff("rule1", "foo/bar", None, day(10)),
        Cutoff("rule1", "foo/bar", "b1", day(15)),
        Cutoff("rule1", "foo/bar", "b2", day(12)),
        Cutoff("rule2", "foo/zoo", "b1", day(15)),
    )


def test_the_current_rule_of_the_seed_and_its_minimum_per_branch():
    now, last = resolve(parse(BOTH), [], day(20)).table, resolve(parse(FIRST), [], day(19)).table
    rows = current_rule(now, last)
    assert rows == [
        CurrentRule("foo/bar", None, day(10), day(9)),
        CurrentRule("foo/bar", "b1", day(15), day(14)),
        CurrentRule("foo/bar", "b2", day(12), day(11)),
        CurrentRule("foo/zoo", "b1", day(15), None),
    ]
    assert list(minimum_per_branch(rows).items()) == [(None, day(9)), ("b1", None), ("b2", day(11))]
    assert minimum_per_branch(reversed(rows)) == {None: day(9), "b1": None, "b2": day(11)}


def test_the_minimum_is_over_all_prefixes_of_a_branch():
    rows = [CurrentRule(prefix, "b", day(9), day(last)) for prefix, last in (("p", 3), ("q", 2), ("r", 4))]
    assert minimum_per_branch(rows) == {"b": day(2)}


def test_rules_of_one_prefix_are_one_row_and_the_default_was_applied_where_no_row_was():
    now = policy(a={"prefix": "p", "days": 9, "branch_days": {"x": 3}}, b={"prefix": "p", "days": 5})
    last = policy(a={"prefix": "p", "days": 9}, c={"prefix": "p", "days": 12})
    rows = current_rule(resolve(now, [], day(20)).table, resolve(last, [], day(19)).table)
    assert rows == [CurrentRule("p", None, day(15), day(10)), CurrentRule("p", "x", day(17), day(10))]


@pytest.mark.parametrize(
    ("entries", "branch", "days"),
    [
        ({}, "main", 9),
        ({"main": 3}, "main", 3),
        ({"main": 3}, "mai", 9),
        ({"Main": 3}, "main", 9),
        ({"m*": 3, "main": 30}, "main", 30),  # by name, whatever else matches
        ({"*": 3, "ma*": 4, "m*": 5}, "main", 4),  # the most plain characters
        ({"m*": 3, "*n": 5}, "main", 5),  # equally specific: the longer period
        ({"*n": 5, "m*": 3}, "main", 5),
        ({"m[a-z]in": 3, "m??n": 5}, "main", 3),  # a set counts for nothing, and m, i, n are more than m, n
        ({"m[!a]*": 3}, "main", 9),
        ({"dev*x": 3}, "dev/a/x", 3),  # a slash is an ordinary character
        ({"dev?x": 3}, "dev/x", 3),
        ({"*": 0}, "main", 0),
        ({"m": 3}, "main", 9),
    ],
)
def test_a_branch_has_the_days_of_what_names_it_best(entries, branch, days):
    assert days_for(Rule("r", "", 9, branch_days=entries), branch) == days


def test_a_branch_with_neither_is_not_covered():
    rule = Rule("r", "", None, branch_days={"b1": 5})
    assert days_for(rule, "main") is None
    assert resolve(policy(r={"prefix": "", "branch_days": {"b1": 5}}), [], day(20)).before(rule, "main") is None


def test_deciding_gives_all_that_are_equally_specific():
    assert deciding(["m*", "*n", "*"], "main") == ["m*", "*n"]


def test_a_day_is_24_hours_and_now_may_be_in_any_zone():
    rule = Rule("r", "", 200)
    now = datetime(2026, 7, 1, 12, 30, tzinfo=timezone(timedelta(hours=2)))
    assert resolve(policy(r={"prefix": "", "days": 200}), [], now).before(rule, "main") == (
        datetime(2026, 7, 1, 10, 30, tzinfo=UTC) - timedelta(hours=4800)
    )
    with pytest.raises(BadRequest, match="time zone"):
        resolve(policy(r={"prefix": "", "days": 1}), [], datetime(2026, 7, 1))  # noqa: DTZ001


def test_the_longest_period_can_be_subtracted_from_the_earliest_now():
    first = datetime(1970, 1, 1, tzinfo=UTC)
    assert resolve(policy(r={"prefix": "", "days": 36_500}), [], first).table[0].before.year == 1870


def test_globs_stay_as_written_in_the_table_and_are_decided_by_branch():
    cutoffs = resolve(policy(r={"prefix": "", "branch_days": {"b*": 5, "b2": 8}}), ["c", "b2", "b1"], day(20))
    assert [(row.branch, row.before) for row in cutoffs.table] == [("b*", day(15)), ("b2", day(12))]
    assert [(branch, before) for _, branch, before in cutoffs.by_branch] == [("b1", day(15)), ("b2", day(12))]


def test_disabled_rules_remove_nothing():
    off = parse({"on": {"prefix": "", "days": 9}, "off": {"prefix": "", "days": 1, "enabled": False}})
    cutoffs = resolve(off, ["main"], day(20))
    assert [row.rule_id for row in cutoffs.table] == ["on"]
    assert [rule.id for rule in matching(off, "x")] == ["on"]
    assert cutoffs.threshold(off.rules, "main", current=False) == day(11)


def test_prefixes_are_plain_strings():
    rules = policy(a={"prefix": "a", "days": 1}, ab={"prefix": "ab", "days": 1}, all={"prefix": "", "days": 1})
    assert [rule.id for rule in matching(rules, "abc")] == ["a", "ab", "all"]
    assert [rule.id for rule in matching(rules, "xab")] == ["all"]


def test_of_several_rules_any_one_removes_and_some_spare_what_is_current():
    rules = policy(
        slow={"prefix": "", "days": 9},
        fast={"prefix": "a", "days": 5, "noncurrent_only": True},
        elsewhere={"prefix": "a", "branch_days": {"dev": 1}},
    )
    cutoffs = resolve(rules, ["main"], day(20))
    found = matching(rules, "a/b")
    assert cutoffs.threshold(found, "main", current=False) == day(15)
    assert cutoffs.threshold(found, "main", current=True) == day(11)
    assert cutoffs.threshold(found, "dev", current=True) == day(19)
    assert cutoffs.threshold(found[1:2], "main", current=True) is None
    assert cutoffs.threshold((), "main", current=False) is None
