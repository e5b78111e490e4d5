"""What a policy's writer is told before anything is removed."""

import pytest

from desilt.domain.lint import lint
from desilt.domain.policy import parse

BRANCHES = ["main", "dev", "b1"]


def said(document, branches=BRANCHES, **facts):
    return [(one.level, one.rule) for one in lint(parse(document), branches=branches, **facts)]


def rule(prefix, days=None, **more):
    return {"prefix": prefix, **({} if days is None else {"days": days}), **more}


def on(prefix, **branch_days):
    return {"prefix": prefix, "branch_days": {name.replace("_", "*"): days for name, days in branch_days.items()}}


def test_a_longer_period_below_a_shorter_one_is_refused_and_a_keep_rule_is_offered():
    (found,) = lint(parse({"wide": rule("a/", 30), "narrow": rule("a/gold/", 365)}), branches=BRANCHES)
    assert (found.level, found.rule) == ("error", "narrow")
    assert (
        found.fact
        == "on 'b1' and 3 more it waits 365 days, but rule 'wide' (prefix 'a/') has removed all of it after 30"
    )
    assert found.fix == 'to keep it, write {"keep": [{"prefix": "a/gold/"}]}; else give it at most 30 days there'


@pytest.mark.parametrize(
    ("wide", "narrow", "level"),
    [
        (rule("a", 30), rule("ab", 31), "error"),
        (rule("", 30, noncurrent_only=True), rule("ab", 31, noncurrent_only=True), "error"),
        (rule("a", 30), rule("ab", 29), None),
        (rule("a", 30), rule("ab", 30), "warning"),  # shadowed
        (rule("a", 30), rule("b", 300), None),
        (rule("a", 30), on("ab", b1=31), "error"),
        (on("a", b1=30), rule("ab", 31), "error"),
        (on("a", b1=30), on("ab", dev=31), None),
        (on("a", dev=30), on("ab", dev=31), "error"),
        (rule("a", 30, branch_days={"dev": 60}), on("ab", dev=31), None),
        (rule("a", 30, branch_days={"dev": 10}), rule("ab", 20), "error"),  # on dev alone
        (on("a", d_=30), on("ab", dev=31), "error"),
        (on("a", _v=30), on("ab", d_=31), "error"),
        (rule("a", 30, enabled=False), rule("ab", 31), None),
        (rule("a", 30), rule("ab", 31, enabled=False), None),
        (rule("a", 30, noncurrent_only=True), rule("ab", 31), "warning"),  # it also removes what is current
        (rule("a", 30), rule("ab", 31, noncurrent_only=True), "error"),
        (rule("a", 30, noncurrent_only=True), rule("ab", 31, noncurrent_only=True), "error"),
    ],
)
def test_a_narrower_prefix_may_not_wait_longer_on_any_branch(wide, narrow, level):
    found = said({"wide": wide, "narrow": narrow})
    assert found == ([(level, "narrow")] if level else [])
    assert said({"narrow": narrow, "wide": wide}) == found


def test_branches_that_are_not_there_yet_count_too():
    def level(wide, narrow):
        return [one for one in lint(parse({"w": wide, "n": narrow}), branches=[]) if one.level == "error"]

    assert level(on("a", x=5), rule("ab", 9))[0].fact.startswith("on a branch such as 'x' it waits 9 days")
    assert level(on("a", tmp_=5), on("ab", tmp_=9))[0].fact.startswith("on a branch such as 'tmpx' it waits")
    assert level(on("a", rel_=5), on("ab", _tmp=9))[0].fact.startswith("on a branch such as 'relxtmp' it waits")
    assert level(on("a", _=5), rule("ab", 9))[-1].fact.startswith("on a branch such as 'x' and 1 more it waits")
    assert level(rule("a", 5), rule("ab", 9))[0].fact.startswith("on any other branch it waits")
    assert level(on("a", x=5), on("ab", y=9)) == []


@pytest.mark.parametrize(
    ("first", "second", "shadowed"),
    [
        (rule("a", 30), rule("a", 30), ["second"]),
        (rule("a", 30), rule("a", 40), ["second"]),
        (rule("a", 40), rule("a", 30), ["first"]),
        (rule("a", 30, noncurrent_only=True), rule("a", 40), []),
        (rule("a", 30), rule("a", 40, noncurrent_only=True), ["second"]),
        (rule("a", 30), on("a", dev=40), ["second"]),
        (rule("a", 30), on("a", dev=20), []),
        (on("a", dev=30), rule("a", 40), []),
        (on("a", dev=30), rule("a", 30), ["first"]),
        (rule("a", 30, branch_days={"dev": 60}), rule("a", 50), []),
        (rule("a", 30), rule("a", 40, enabled=False), []),
        (on("a", d_=30), on("a", dev=40), ["second"]),
        (on("a", dev=30), on("a", d_=40), []),
    ],
)
def test_a_rule_that_another_makes_idle_is_told(first, second, shadowed):
    assert said({"first": first, "second": second}) == [("warning", name) for name in shadowed]


def test_a_keep_rule_that_keeps_nothing_is_an_error():
    document = {"r": rule("a", 1), "keep": [{"prefix": "gold/"}, {"id": "md", "glob": "*.md"}]}
    assert said(document) == []
    assert said(document, has_path="a".__eq__, has_glob=lambda _: False) == [("error", "keep-1"), ("error", "md")]
    assert said(document, has_path=lambda _: True, has_glob="*.md".__eq__) == []


def test_what_matches_nothing_is_told():
    assert said({"r": rule("a", 9), "off": rule("b", 9, enabled=False)}, has_path=lambda _: False) == [("warning", "r")]
    assert said({"r": on("a", main=1, d_=2)}) == []
    assert said({"r": on("a", mian=1, x_=2)}) == [("warning", "r")] * 2
    assert said({"r": rule("a", 9, branch_days={"mian": 3})}) == [("warning", "r")]


def test_a_misspelt_branch_that_should_have_had_more_days_wants_a_yes():
    (found,) = lint(parse({"r": rule("a", 9, branch_days={"mian": 365})}), branches=BRANCHES)
    assert found.level == "confirm"
    assert (
        found.fact == "branch_days names 'mian', which matches no branch, so its 365 days protect nothing and 9 apply"
    )


@pytest.mark.parametrize(
    ("document", "confirms"),
    [
        ({"r": rule("", 9)}, True),
        ({"r": rule("", 9, noncurrent_only=True)}, False),
        ({"r": rule("", 9, enabled=False)}, False),
        ({"r": rule("a", 9)}, False),
        ({"r": on("", main=9, dev=9)}, False),
        ({"r": on("", main=9, dev=9), "s": on("", b1=1)}, True),
        ({"r": on("", _=9)}, True),
    ],
)
def test_a_policy_for_every_path_of_every_branch_wants_a_yes(document, confirms):
    assert said(document) == [("confirm", "")] * confirms
    assert said({"x": rule("zz", 1), **document}, branches=[])[:1] != [("confirm", "")]


def test_branch_rules_for_nothing_or_for_the_default_branch_alone_are_told():
    def match(*globs, default="main"):
        rules = [{"match": glob, "idle_days": 3} for glob in globs]
        return said({"branches": rules}, default_branch=default)

    assert match("dev", "*", "m*", "x*") == [("warning", "branches 3"), ("warning", "branches 4")]
    assert match("m*", default=None) == []


def test_the_worst_is_said_first():
    document = {"w": rule("", 3), "n": rule("a", 9), "s": on("b", xx=1), "keep": [{"prefix": "k"}]}
    levels = [level for level, _ in said(document, has_path=lambda prefix: prefix != "k")]
    assert levels == ["error", "error", "confirm", "warning"]
