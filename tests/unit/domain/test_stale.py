"""Which branches go, and which never do."""

from datetime import UTC, datetime, timedelta

import pytest

from desilt.domain.policy import BranchRule
from desilt.domain.stale import Activity, stale

NOW = datetime(2026, 3, 1, tzinfo=UTC)
RULE = BranchRule("ci-*", idle_days=14, max_age_days=60)
MOMENT = timedelta(microseconds=1)


def branch(name="ci-1", *, age=20, idle=0, keeps=""):
    return Activity(name, NOW - timedelta(days=age), NOW - timedelta(days=idle), keeps)


@pytest.mark.parametrize(("idle", "goes"), [(13, False), (14, False), (15, True)])
def test_an_idle_branch_goes_when_its_days_are_over(idle, goes):
    assert bool(stale([branch(idle=idle)], [RULE], NOW)) is goes


def test_a_day_is_over_only_when_it_is_over():
    last = NOW - timedelta(days=14)
    assert not stale([Activity("ci-1", last, last, "")], [RULE], NOW)
    assert stale([Activity("ci-1", last, last - MOMENT, "")], [RULE], NOW)


def test_an_old_branch_goes_however_busy_it_is():
    assert stale([branch(age=61)], [RULE], NOW) == {"ci-1": "'ci-*': older than 60 days"}
    assert not stale([branch(age=60)], [RULE], NOW)


def test_what_no_rule_names_or_something_keeps_stays():
    assert not stale([branch("main", age=900, idle=900)], [RULE], NOW)
    assert not stale([branch(idle=900, keeps="it has staged entries")], [RULE], NOW)
