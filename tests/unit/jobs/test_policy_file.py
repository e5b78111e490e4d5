"""Policies in files: JSON and YAML mean the same, and nothing is guessed."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desilt.domain.policy import parse
from desilt.errors import BadRequest
from desilt.jobs.documents import from_yaml
from desilt.jobs.lifecycle.policy_file import read_policy, written

SEED = {
    "rule1": {"prefix": "foo/bar", "days": 10, "enabled": True, "branch_days": {"b1": 5, "b2": 8}},
    "rule2": {"prefix": "foo/zoo", "enabled": True, "branch_days": {"b1": 5}},
}
AS_YAML = """
# the same
rule1:
  prefix: foo/bar
  days: 10
  enabled: true
  branch_days: {b1: 5, b2: 8}
rule2:
  prefix: 'foo/zoo'
  enabled: true
  branch_days:
    b1: 5
"""


@pytest.mark.parametrize("name", ["", "stdin", "policy", "policy.txt"])
def test_what_a_file_is_shows_in_how_it_begins(name):
    assert read_policy(json.dumps(SEED), name=name) == read_policy(AS_YAML, name=name) == parse(SEED)


def test_its_ending_decides_first():
    flow = '{rule: {prefix: "a/", days: 3}}'
    assert read_policy(flow, name="policy.YAML") == parse({"rule": {"prefix": "a/", "days": 3}})
    for name in ("policy.json", "stdin"):
        with pytest.raises(BadRequest, match=r"1: this is not JSON, .*; mend it, or call the file \.yaml"):
            read_policy(flow, name=name)
    with pytest.raises(BadRequest, match="this is not JSON"):
        read_policy(AS_YAML, name="policy.json")
    assert read_policy(json.dumps(SEED), name="policy.yml") == parse(SEED)


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("no", "no"),
        ("on", "on"),
        ("Yes", "Yes"),
        ("010", "010"),
        ("0x10", "0x10"),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("2026-01-31", "2026-01-31"),
        ("<<", "<<"),
        ("=", "="),
        ("9" * 5000, "9" * 5000),
        ("'30'", "30"),
        ("30", 30),
        ("-1", -1),
        ("1.5", 1.5),
        ("true", True),
        ("null", None),
        ("", None),
        ("[a, 1]", ["a", 1]),
    ],
    ids=lambda value: str(value)[:12],
)
def test_words_without_quotes_mean_what_they_would_in_json_or_themselves(text, means):
    found = from_yaml(f"x: {text}", "policy")["x"]
    assert (found, type(found)) == (means, type(means))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": {"prefix": "x", "days": 1}, "a": {"prefix": "y", "days": 2}}', "'a' is there twice"),
        ("a: {prefix: x, days: 1}\na: {prefix: y, days: 2}", "'a' is there twice"),
        ("a: {prefix: x, branch_days: {main: 1, main: 2}}", "'main' is there twice"),
        ("a: &a {prefix: x, days: 1}\nb: *a", "line 1 has an anchor"),
        ("a: {prefix: x, days: 1}\nb: *a", "line 2 has an anchor or an alias; write it out"),
        ("a: !!python/object:os.system {}", "line 1 has a tag"),
        ("a: {prefix: x, days: !!int '010'}", "line 1 has a tag"),
        ("a: {prefix: x, days: 010}", "rule 'a': days is '010'; write a whole number"),
        ("a: {prefix: x, days: 1, enabled: yes}", "enabled is 'yes'; write true or false"),
        ("a: {prefix: 7, days: 1}", "prefix is 7; write a text, in quotes"),
        ("1: {prefix: x, days: 1}", "line 1: a name is not a text"),
        ("a: {prefix: x, branch_days: {true: 1}}", "line 1: a name is not a text"),
        ("? [a]\n: {prefix: x}", "line 1: a name is not a text"),
        ("<<: {prefix: x, days: 1}", "cannot be an id"),
        ("a: {prefix: x, days: 1}\n---\nb: {prefix: x, days: 1}", "stdin:2: this is not YAML"),
        ("a: [", "stdin:1: this is not YAML"),
        ("a: \x07", "cannot be read"),
        ('{"a": ', "stdin:1: this is not JSON"),
        ('{"a": {"prefix": "x", "days": NaN}}', "days is nan"),
        ('{"a": ' + "9" * 5000 + "}", "cannot be read"),
        ('{"a": ' * 100_000, "nested too deeply"),
        ("[" * 5_000, "nested too deeply"),
        ("", "policy: it is None; write an object"),
        ("[]", "policy: it is \\[\\]; write an object"),
        ("just words", "policy: it is 'just words'; write an object"),
    ],
    ids=lambda value: value[:30],
)
def test_what_is_refused_says_where_and_why(text, says):
    with pytest.raises(BadRequest, match=says) as refused:
        read_policy(text, name="stdin")
    assert "\n" not in str(refused.value)


WORDS = st.one_of(
    st.sampled_from(
        ["", "~", "null", "no", "1e5", "010", "1", "-1.5", "true", "a: b", "#x", "{", "é\u2028", "\x85", "'"]
    ),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8),
)


@given(
    rule=st.fixed_dictionaries(
        {"prefix": WORDS, "days": st.integers(0, 999), "branch_days": st.dictionaries(WORDS.filter(bool), st.just(3))}
    ),
    name=st.sampled_from(["null", "1e5", "010", "-", "true", "1.5", "a"]),
    keep=st.lists(st.fixed_dictionaries({"glob": WORDS}), max_size=2),
    description=WORDS,
)
def test_a_policy_that_is_written_down_is_read_back(rule, name, keep, description):
    policy = parse({"rules": {name: rule}, "keep": keep, "description": description, "tags": "ignore"})
    assert read_policy("# a comment\n" + written(policy)) == policy
    assert read_policy(json.dumps(policy.to_json())) == policy
