"""Policies as people write them: what is read, and what is refused by name."""

import json

import pytest

from desilt.domain.document import unique
from desilt.domain.policy import BranchRule, KeepRule, Policy, Rule, Tags, parse
from desilt.errors import BadRequest

SEED = """
{
   "rule1" : {
   "prefix": "foo/bar",
   "days": 10,
   "enabled": true,
   "branch_days": {
   "b1": 5,
   "b2": 8
    }
   },
   "rule2" : {
   "prefix": "foo/zoo",
   "enabled": true,
   "branch_days": {
      "b1": 5
   }
   }
}
"""
OLD = {"prefix": "tmp/", "days": 30}


def test_the_seeds_document_is_read_as_written():
    assert parse(json.loads(SEED)) == Policy(
        rules=(
            Rule("rule1", "foo/bar", 10, branch_days={"b1": 5, "b2": 8}),
            Rule("rule2", "foo/zoo", None, branch_days={"b1": 5}),
        )
    )


def test_everything_a_policy_can_say():
    policy = parse(
        {
            "description": "what we agreed in May",
            "noncurrent_only": True,
            "tags": "ignore",
            "a": {"prefix": "", "days": 0, "enabled": False},
            "b": {"prefix": "x", "branch_days": {"dev-*": 3}, "noncurrent_only": False},
            "keep": [{"prefix": "gold/"}, {"id": "docs", "glob": "*.md"}],
            "branches": [{"match": "dev-*", "idle_days": 7}, {"match": "t?", "max_age_days": 0}],
        }
    )
    assert policy == Policy(
        rules=(
            Rule("a", "", 0, enabled=False, noncurrent_only=True),
            Rule("b", "x", None, branch_days={"dev-*": 3}),
        ),
        tags=Tags.IGNORE,
        keep=(KeepRule("keep-1", prefix="gold/"), KeepRule("docs", glob="*.md")),
        branches=(BranchRule("dev-*", idle_days=7), BranchRule("t?", max_age_days=0)),
        description="what we agreed in May",
    )
    assert parse(policy.to_json()) == policy
    assert parse(json.loads(json.dumps(policy.to_json()))).fingerprint == policy.fingerprint


def test_rules_may_stand_below_one_key():
    assert parse({"rules": {"old": OLD}, "tags": "hold"}) == parse({"old": OLD})


def test_a_policy_may_be_about_branches_alone():
    assert parse({"branches": [{"match": "x", "idle_days": 1}]}).rules == ()


def test_a_fingerprint_is_of_what_is_meant():
    first = {"a": OLD, "b": {"prefix": "x", "days": 1, "branch_days": {"p": 1, "q": 2}}, "keep": [{"prefix": "k"}]}
    again = {"keep": [{"prefix": "k", "id": "keep-1"}], "description": "hm", "tags": "hold", "rules": {
        "b": {"branch_days": {"q": 2, "p": 1}, "days": 1, "prefix": "x", "enabled": True}, "a": OLD}}  # fmt: skip
    assert parse(first).fingerprint == parse(again).fingerprint
    changes = [
        {"a": {**OLD, "days": 31}}, {"a": {**OLD, "enabled": False}}, {"a": {**OLD, "branch_days": {"m": 30}}},
        {"noncurrent_only": True}, {"tags": "ignore"}, {"keep": []}, {"keep": [{"glob": "k"}]}, {"c": OLD},
        {"branches": [{"match": "x", "idle_days": 1}]}, {"branches": [{"match": "x", "max_age_days": 1}]},
    ]  # fmt: skip
    prints = {parse({**first, **change}).fingerprint for change in [{}, *changes]}
    assert len(prints) == len(changes) + 1


def test_a_keep_rule_holds_by_plain_prefix_or_by_glob():
    assert KeepRule("k", prefix="a[").holds("a[b")
    assert not KeepRule("k", prefix="a").holds("ba")
    assert KeepRule("k", prefix="").holds("anything")
    assert KeepRule("k", glob="a/*.md").holds("a/b/c.md")
    assert not KeepRule("k", glob="a/*.md").holds("A/b.md")


def rule(**changes):
    return {"old": {**OLD, **changes}}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "policy: it is []; write an object, with names and values"),
        ({}, 'policy: it has no rules; write one such as {"old": {"prefix": "tmp/", "days": 30}}'),
        ({"rules": {}, "keep": [{"prefix": "a"}]}, "policy: it has no rules; write one such as"),
        ({1998: OLD}, "policy: the name 1998 is not a text; write a name, in quotes"),
        ({"": OLD}, "policy: the name '' is not a text"),
        (rule(dayz=3), "rule 'old': it has an unknown field 'dayz'; did you mean 'days'?"),
        (rule(Enabled=False), "rule 'old': it has an unknown field 'Enabled'; did you mean 'enabled'?"),
        (rule(zzz=3), "rule 'old': it has an unknown field 'zzz'; the fields are prefix, days, enabled, branch_days, "),
        (rule(days=True), "rule 'old': days is true; write a whole number of days, 0 to 36,500"),
        (rule(days=-1), "rule 'old': days is -1; write a whole number of days"),
        (rule(days=36_501), "rule 'old': days is 36501; write a whole number of days"),
        (rule(days=2.0), "rule 'old': days is 2.0; write a whole number of days"),
        (rule(days="7"), "rule 'old': days is '7'; write a whole number of days"),
        (rule(days=None), "rule 'old': days is None; write a whole number of days"),
        (rule(enabled=1), "rule 'old': enabled is 1; write true or false"),
        (rule(enabled="no"), "rule 'old': enabled is 'no'; write true or false"),
        (rule(noncurrent_only=0), "rule 'old': noncurrent_only is 0; write true or false"),
        (rule(prefix=7), "rule 'old': prefix is 7; write a text, in quotes"),
        (rule(prefix="a\0"), "rule 'old': prefix must be UTF-8 without NUL"),
        (rule(branch_days={"main": False}), "rule 'old', branch_days: main is false; write a whole number of days"),
        (rule(branch_days={"main": -3}), "rule 'old', branch_days: main is -3; write a whole number of days"),
        (rule(branch_days=[5]), "rule 'old', branch_days: it is [5]; write an object"),
        (rule(branch_days={7: 7}), "rule 'old', branch_days: the name 7 is not a text"),
        ({"old": {"days": 3}}, "rule 'old': it has no prefix; write one; \"\" is everything"),
        ({"old": {"prefix": "a"}}, "rule 'old': it has neither days nor branch_days; write days, or branch_days"),
        ({"old": {"prefix": "a", "branch_days": {}}}, "rule 'old': it has neither days nor branch_days"),
        ({"old": 30}, "rule 'old': it is 30; write an object, with names and values"),
        ({"a b": OLD}, "rule 'a b': 'a b' cannot be an id; use 1 to 64 letters, digits, '.', '_' and '-'"),
        ({"a\n": OLD}, "rule 'a\\n': 'a\\n' cannot be an id"),
        ({"é": OLD}, "rule 'é': 'é' cannot be an id"),
        ({"x" * 65: OLD}, "cannot be an id; use 1 to 64"),
        ({"old": OLD, "tag": "hold"}, "rule 'tag': it is 'hold', not a rule; did you mean 'tags'?"),
        ({"old": OLD, "keeps": []}, "rule 'keeps': it is [], not a rule; did you mean 'keep'?"),
        ({"rules": {"old": OLD}, "branchs": []}, "policy: 'branchs' is beside 'rules'; did you mean 'branches'?"),
        ({"rules": {"old": OLD}, "new": OLD}, "policy: 'new' is beside 'rules'; put all rules below 'rules'"),
        ({"rules": [OLD]}, "rules: it is [{'prefix': 'tmp/', 'days': 30}]; write an object"),
        ({**rule(), "tags": "holds"}, "policy: tags is 'holds'; write 'hold' or 'ignore'"),
        ({**rule(), "tags": OLD}, "policy: tags is {'prefix': 'tmp/', 'days': 30}; write 'hold' or 'ignore'"),
        ({**rule(), "noncurrent_only": "yes"}, "policy: noncurrent_only is 'yes'; write true or false"),
        ({**rule(), "description": 3}, "policy: description is 3; write a text, in quotes"),
        ({**rule(), "keep": {"prefix": "a"}}, "keep: it is {'prefix': 'a'}; write a list"),
        ({**rule(), "keep": "abc"}, "keep: it is 'abc'; write a list"),
        ({**rule(), "keep": [{}]}, "keep 1: it has neither prefix nor glob; write one of them"),
        ({**rule(), "keep": [{"prefix": "", "glob": ""}]}, "keep 1: it has both prefix and glob; write one of them"),
        ({**rule(), "keep": [{"prefix": "a"}, {"path": "b"}]}, "keep 2: it has an unknown field 'path'; the fields"),
        ({**rule(), "keep": [{"prefx": "b"}]}, "keep 1: it has an unknown field 'prefx'; did you mean 'prefix'?"),
        ({**rule(), "keep": [{"id": "old", "prefix": "a"}]}, "keep 1: the id 'old' is taken; give it an id of its own"),
        ({**rule(), "keep": [{"id": "k", "glob": "a"}, {"id": "k", "glob": "b"}]}, "keep 2: the id 'k' is taken"),
        ({**rule(), "keep": [{"id": "", "glob": "a"}]}, "keep 1: '' cannot be an id"),
        ({**rule(), "keep": [{"id": 3, "glob": "a"}]}, "keep 1: id is 3; write a text"),
        ({**rule(), "branches": [{"match": "x"}]}, "branches 1: it has neither idle_days nor max_age_days; write at"),
        ({**rule(), "branches": [{"idle_days": 3}]}, "branches 1: it has no match; write the name of a branch, or a"),
        ({**rule(), "branches": [{"match": "", "idle_days": 3}]}, "branches 1: it has no match"),
        ({**rule(), "branches": [{"match": "x", "idle_days": True}]}, "branches 1: idle_days is true; write a whole"),
        ({**rule(), "branches": [{"match": "x", "idle": 3}]}, "branches 1: it has an unknown field 'idle'; did you"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_the_fact_and_the_way_out(document, message):
    with pytest.raises(BadRequest) as caught:
        parse(document)
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 250


def test_of_two_rules_with_one_id_none_is_dropped_silently():
    with pytest.raises(BadRequest, match="'old' is there twice; give one of them another name"):
        json.loads('{"old": {"prefix": "a", "days": 1}, "old": {"prefix": "b", "days": 1}}', object_pairs_hook=unique)
    assert json.loads(SEED, object_pairs_hook=unique) == json.loads(SEED)
