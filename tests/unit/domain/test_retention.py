"""A retention document, read as a table of documents and of what is said of them; what a prefix is about."""

from datetime import UTC, datetime, timedelta

import pytest

from desilt.domain.policy import KeepRule
from desilt.domain.retention import Kind, parse
from desilt.domain.retention_lint import lint
from desilt.errors import BadRequest

NOW = datetime(2026, 3, 1, tzinfo=UTC)
WEEK = {"weeks": 1}


def rule(prefix="", status="enabled", **expiration):
    periods = {kind: period if isinstance(period, dict) else {"days": period} for kind, period in expiration.items()}
    return {"status": status, "filter": {"prefix": prefix} if prefix else {}, "expiration": periods}


def document(*rules, **more):
    return {"rules": list(rules), **more}


def test_weeks_and_days_are_summed():
    (one,) = parse(document(rule("main/", noncurrent={"weeks": 2, "days": 3}))).expiries
    assert one.span == timedelta(days=17)
    assert one.before(NOW) == NOW - timedelta(days=17)
    assert (one.id, one.kind) == ("rule 1 (noncurrent)", Kind.NONCURRENT)


@pytest.mark.parametrize(
    "document",
    [
        document(rule(all=1)),
        document(rule("main/a", all=WEEK, noncurrent=3, uncommitted=0.5), description="why"),
        document(rule("x", "disabled", all=1), rule("y", uncommitted={"weeks": 1, "days": 1})),
    ],
)
def test_what_is_read_is_written_again(document):
    assert parse(document).to_json() == document
    assert parse(parse(document).to_json()) == parse(document)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "retention: it is []; write an object, with names and values"),
        ({}, "retention: it has no rules; write a list of rules below 'rules'"),
        ({"rules": []}, "retention: it has no rules; write at least one"),
        ({"rules": {}}, "rules: it is {}; write a list"),
        ({"rules": [], "rule": 1}, "retention: it has an unknown field 'rule'; did you mean 'rules'?"),
        (document({}), "rule 1: it has no status; write 'enabled' or 'disabled'"),
        (document(rule(all=1), {"status": "enabled"}), "rule 2: it has no filter; write "),
        (document({"status": "on", "filter": {}, "expiration": {}}), "rule 1: status is 'on'; write 'enabled' or"),
        (document({"status": "enabled", "filter": {}}), "rule 1: it has no expiration; write one such as"),
        (document(rule()), "rule 1, expiration: it says nothing; write at least one of all, noncurrent, uncommitted"),
        (document(rule("/logs", all=1)), "rule 1, filter: prefix '/logs' begins with a slash; write <branch>/<path"),
        (document(rule(all={})), "rule 1, expiration, all: it has neither weeks nor days; write at least one"),
        (document(rule(old=1)), "rule 1, expiration: it has an unknown field 'old'; "),
        (document(rule(all={"hours": 3})), "rule 1, expiration, all: it has an unknown field 'hours'"),
        (document(rule(all="30")), "rule 1, expiration, all: days is '30'; write a number of days, 0 to 36,500"),
        (document(rule(all=True)), "rule 1, expiration, all: days is true; write a number of days"),
        (document(rule(all=-1)), "rule 1, expiration, all: days is -1; write a number of days"),
        (document(rule(all=float("nan"))), "rule 1, expiration, all: days is nan; write a number of days"),
        (document(rule(all=0)), "rule 1, expiration, all: it comes to 0 hours; give at least 2 hours"),
        (document(rule(all=0.08)), "rule 1, expiration, all: it comes to 1.92 hours; give at least 2 hours"),
        (document(rule(all={"weeks": 36_500})), "rule 1, expiration, all: it comes to "),
    ],
)
def test_a_document_that_is_none_is_told_by_rule_and_field(document, said):
    with pytest.raises(BadRequest) as told:
        parse(document)
    assert str(told.value).startswith(said)


def test_two_hours_are_enough():
    assert parse(document(rule(all=2 / 24))).expiries


@pytest.mark.parametrize(
    ("prefix", "branch", "path"),
    [
        ("", "main", ""),
        ("main/", "main", ""),
        ("main/logs/", "main", "logs/"),
        ("main/lo", "main", "lo"),
        ("main/", "maintenance", None),
        ("main", "maintenance", ""),
        ("main", "main", ""),
        ("dev", "main", None),
        ("logs/", "main", None),
    ],
)
def test_a_prefix_names_the_branch_first(prefix, branch, path):
    (only,) = parse(document(rule(prefix, all=1))).rules
    assert only.path_on(branch) == path


@pytest.mark.parametrize(
    ("said", "age", "expires"),
    [
        (rule("main/", uncommitted=2), 2.01, True),
        (rule("main/", uncommitted=2), 2, False),  # before is strictly earlier
        (rule("main/", all=2), 3, True),
        (rule("main/", noncurrent=2), 3, False),
        (rule("main/a", uncommitted=2), 3, False),
        (rule("dev", uncommitted=2), 3, False),
        (rule("main/", "disabled", uncommitted=2), 3, False),
    ],
)
def test_what_is_staged_expires_by_rules_for_that(said, age, expires):
    asked = parse(document(said))
    assert asked.staged_expires("main", "b/1", NOW - timedelta(days=age), NOW) is expires


def test_documents_that_mean_the_same_have_one_fingerprint():
    one = parse(document(rule("a/", all=7), rule("b/", noncurrent=WEEK), description="x"))
    same = parse(document(rule("b/", noncurrent=7), rule("c", "disabled", all=1), rule("a/", all=WEEK)))
    assert one.fingerprint() == same.fingerprint()
    assert one.fingerprint() != parse(document(rule("a/", all=8), rule("b/", noncurrent=WEEK))).fingerprint()
    assert one.fingerprint() != one.fingerprint([KeepRule("k", "gold/", None)])


def found(*rules, branches=("main", "dev"), paths=("logs/1",)):
    def has_path(prefix):
        return any(path.startswith(prefix) for path in paths)

    told = lint(parse(document(*rules)), branches=branches, default_branch="main", has_path=has_path)
    return [(one.level, one.rule, one.fact) for one in told]


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ([rule("dev/logs", all=1)], []),
        ([rule("main/logs", all=1)], []),
        ([rule("main/", noncurrent=1, uncommitted=1)], []),
        ([rule("main/", all=1)], [("confirm", "rule 1", "'all' covers every path of 'main': ")]),
        ([rule(all=1)], [("confirm", "rule 1", "'all' covers every path of 'main' and 1 more: ")]),
        ([rule("logs/", all=1)], [("warning", "rule 1", "no branch is called 'logs'")]),
        ([rule("feature", all=1)], [("warning", "rule 1", "no branch begins with 'feature'")]),
        ([rule("main/log-", all=1)], [("warning", "rule 1", "no path begins with 'log-'")]),
        ([rule("main/", "disabled", all=1)], [("warning", "", "every rule is disabled")]),
        (
            [rule("dev/", all=7, noncurrent=9)],
            [("warning", "rule 1", "noncurrent after 9 days does nothing: rule 1 (all) expires all of that no later")],
        ),
        (
            [rule("dev/", noncurrent=7), rule("dev/logs/", noncurrent=7)],
            [("warning", "rule 2", "noncurrent after 7 days does nothing: rule 1 (noncurrent)")],
        ),
        ([rule("dev/", noncurrent=7), rule("dev/logs/", noncurrent=5)], []),
        ([rule("dev/", noncurrent=7), rule("dev/logs/", all=9)], []),
        ([rule("dev/", noncurrent=7), rule("dev/", noncurrent=7)], [("warning", "rule 2", "noncurrent after 7 days")]),
    ],
)
def test_what_lint_says(rules, said):
    told = found(*rules)
    assert [one[:2] for one in told] == [one[:2] for one in said]
    assert all(fact.startswith(wanted) for (_, _, fact), (_, _, wanted) in zip(told, said, strict=True))
