"""Branches that a policy lets go: planned, guarded, deleted, each only if nobody came back to it."""

from datetime import UTC, datetime

import pytest

from desilt.domain.policy import parse
from desilt.errors import FirstRun, PolicyReplaced
from desilt.executors.executor import HERE
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.lifecycle import kept_policy
from desilt.jobs.runner import plan, run, sweep
from desilt.lake.changes import PolicySet
from desilt.lake.editor import LakeEditor
from desilt.records.holds import Hold, HoldKind
from desilt.sweep.limits import Limits
from words import add_hold, contents, days

START = datetime(2026, 1, 1, tzinfo=UTC)
POLICY = parse({"branches": [{"match": "*", "idle_days": 14}]})
LONGER = parse({"branches": [{"match": "*", "idle_days": 90}]})
SURE = Limits(confirm=True)


@pytest.fixture
def repo(repo):
    repo.put("main", "a", b"1")
    repo.commit("main", "a")
    for name in ("ci-1", "ci-2"):
        repo.create_branch(name, "main")
    return repo


def names(repo):
    return [branch.name for branch in repo.branches()]


def expire(repo, limits=SURE):
    return run(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=POLICY), limits)[-1]


def test_idle_branches_go_and_the_default_branch_stays(repo):
    days(repo, 15)
    report = plan(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=POLICY))
    assert list(report.refs) == ["ci-1", "ci-2"]
    assert names(repo) == ["ci-1", "ci-2", "main"]
    assert expire(repo).refs == {"ci-1": "deleted", "ci-2": "deleted"}
    assert names(repo) == ["main"]
    assert contents(repo, "main") == {"a": "1"}
    assert expire(repo, Limits()).refs == {}  # confirmed once, it may go on


def test_the_first_time_needs_a_look_at_the_plan(repo):
    days(repo, 15)
    with pytest.raises(FirstRun):
        expire(repo, Limits())
    assert names(repo) == ["ci-1", "ci-2", "main"]


def test_every_write_counts_staged_and_forgotten_ones_too(repo):
    days(repo, 10)
    repo.put("ci-1", "b", b"2")
    repo.reset("ci-1")
    days(repo, 5)
    assert list(expire(repo).refs) == ["ci-2"]
    days(repo, 10)
    assert list(expire(repo).refs) == ["ci-1"]


def test_a_branch_with_staged_entries_or_tickets_or_a_hold_stays(repo):
    repo.put("ci-1", "b", b"2")
    repo.create_branch("ci-3", "main")
    commit = repo.put("ci-3", "c", b"3") and repo.commit("ci-3", "c").id
    add_hold(repo, Hold("h", HoldKind.REF, commit, "audit", repo.clock(), None))
    days(repo, 15)
    repo.physical_address("ci-2", "d")
    assert expire(repo).refs == {}
    assert names(repo) == ["ci-1", "ci-2", "ci-3", "main"]


@pytest.mark.parametrize("back", ["commit", "stage", "ticket", "made anew"])
def test_a_branch_that_somebody_came_back_to_since_the_plan_stays(repo, back):
    days(repo, 15)
    planned = plan(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=POLICY))
    if back == "made anew":
        repo.delete_branch("ci-1")
        repo.create_branch("ci-1", "main")
    elif back == "ticket":
        repo.physical_address("ci-1", "b")
    else:
        repo.put("ci-1", "b", b"2")
        if back == "commit":
            repo.commit("ci-1", "b")
    report = sweep(repo, HERE, planned.run, SURE)
    assert report.refs["ci-1"].startswith("kept")
    assert names(repo) == ["ci-1", "main"]


def test_holds_are_told_with_the_bytes_they_keep(repo):
    entry = repo.stat("main", "a")
    add_hold(repo, Hold("by-prefix", HoldKind.PREFIX, "a", "audit", repo.clock(), None))
    add_hold(repo, Hold("by-address", HoldKind.ADDRESS, entry.address, "audit", repo.clock(), None))
    days(repo, 15)
    report = plan(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=parse({"all": {"prefix": "", "days": 1}})))
    assert report.removed.objects == 0
    assert report.keep["held"].objects == 1
    assert {name: amount.bytes for name, amount in report.holds.items()} == {"by-address": 1}


def test_of_branches_that_alone_reach_a_held_commit_none_goes(repo):
    repo.put("ci-1", "b", b"2")
    held = repo.commit("ci-1", "b").id
    repo.create_branch("ci-3", "ci-1")
    hold(repo, held)
    days(repo, 15)
    assert list(expire(repo).refs) == ["ci-2"]
    assert names(repo) == ["ci-1", "ci-3", "main"]


def test_a_hold_made_since_the_plan_keeps_every_branch(repo):
    repo.put("ci-1", "b", b"2")
    held = repo.commit("ci-1", "b").id
    repo.put("ci-1", "c", b"3")
    repo.commit("ci-1", "c")
    days(repo, 15)
    planned = plan(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=POLICY))
    hold(repo, held)
    assert set(sweep(repo, HERE, planned.run, SURE).refs) == {"ci-1", "ci-2"}
    assert names(repo) == ["ci-1", "ci-2", "main"]


def hold(repo, commit):
    add_hold(repo, Hold("h", HoldKind.REF, commit, "audit", repo.clock(), None))


def test_a_policy_that_is_replaced_before_the_last_branch_went_keeps_the_rest(repo, monkeypatch):
    kept_policy.keep(repo, POLICY)
    days(repo, 15)
    real = LakeEditor._delete

    def delete(editor, move, *values):
        fate = real(editor, move, *values)
        move.do(PolicySet(lifecycle.JOB, LONGER.to_json(), []))
        return fate

    monkeypatch.setattr(LakeEditor, "_delete", delete)
    with pytest.raises(PolicyReplaced, match="replaced since"):
        run(lifecycle.job, repo, HERE, lifecycle.job.ask(), SURE)
    assert names(repo) == ["ci-2", "main"]
    assert run(lifecycle.job, repo, HERE, lifecycle.job.ask(), SURE)[-1].refs == {}  # what was cut off is given up
    assert names(repo) == ["ci-2", "main"]
