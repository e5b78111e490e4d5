"""Random histories with chains of lifecycle runs: each removes what the naive oracle names, no more and no less.

Policies, holds and refs change between the runs, deletes fail, the trash gives
back, other jobs run. An incremental run must name what a clean one names.
"""

import uuid
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from aging import ALL, START, Aging, Stubborn, order
from desilt.domain.policy import Tags, parse
from desilt.errors import Gone
from desilt.executors.executor import HERE
from desilt.jobs import trash
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.runner import plan, run
from desilt.lake import Lake, schema
from desilt.objects import open_store
from desilt.records.database import open_database
from desilt.records.holds import HoldKind
from desilt.runs.steps import Action
from desilt.sweep import delete as removing
from desilt.testing import oracle
from plan_rows import named
from words import days, lift_hold


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr(removing, "PAUSES", (0.0,))


@pytest.fixture(autouse=True)
def _any_policy_fits(monkeypatch):
    """Drawn by chance, few make sense; that those are refused is told elsewhere."""
    monkeypatch.setattr(lifecycle, "findings", lambda *_: [])


def aging(examples, steps):
    run_state_machine_as_test(
        Aging,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],  # to make a history smaller would take minutes
        ),
    )


def test_a_chain_of_runs_removes_what_is_expired_and_nothing_else():
    aging(examples=2, steps=40)


@pytest.mark.slow
def test_a_long_chain_of_runs_removes_what_is_expired_and_nothing_else():
    aging(examples=300, steps=60)


# ---- orders of events that random chains seldom hit


TMP = parse({"r": {"prefix": "tmp/", "days": 10}})


@pytest.fixture
def repo(tmp_path):
    database = open_database(f"sqlite://{tmp_path}/lake.db", create=True)
    schema.create(database, storage="")
    store = open_store(f"memory://{uuid.uuid4().hex}")
    yield Lake(database, store, raggedness=1).create_repository("chain", clock_at=START)
    database.close()


def written(repo, branch, *paths):
    found = [repo.put(branch, path, path.encode()).address for path in paths]
    repo.commit(branch, "some")
    return found


def removed_by(repo, policy=TMP, **ask):
    """What an incremental run removes: what the oracle and a clean plan name."""
    before, wanted = set(oracle.stored(repo)), oracle.expired(repo, policy, repo.clock())
    assert named(repo, plan(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=policy, full=True))) == wanted
    run(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=policy, **ask), ALL)
    removed = before - set(oracle.stored(repo))
    assert removed == wanted
    return removed


def test_what_is_just_as_old_as_its_rule_says_stays_one_moment_more(repo):
    (old,) = written(repo, "main", "tmp/a")
    days(repo, 10)
    assert removed_by(repo) == set()
    repo.set_clock(repo.clock() + timedelta(microseconds=1))
    assert removed_by(repo) == {old}


def test_on_each_branch_what_is_just_as_old_as_its_rule_says_stays_one_moment_more(repo):
    policy = parse({"r": {"prefix": "tmp/", "days": 10, "branch_days": {"dev": 5}}})
    (old,) = written(repo, "main", "tmp/a")
    repo.create_branch("dev", "main")
    days(repo, 10)
    assert removed_by(repo, policy) == set()
    repo.set_clock(repo.clock() + timedelta(microseconds=1))
    assert removed_by(repo, policy) == {old}


def test_what_comes_of_age_in_a_commit_that_was_seen_goes(repo):
    (first,) = written(repo, "main", "tmp/a")
    days(repo, 5)
    (second,) = written(repo, "main", "tmp/b")
    days(repo, 6)
    assert removed_by(repo) == {first}
    assert removed_by(repo) == set()  # gone once is gone for good
    days(repo, 5)
    assert removed_by(repo) == {second}


def test_a_tag_holds_the_commit_it_names_and_not_those_before(repo):
    gone, kept = written(repo, "main", "tmp/a", "tmp/b")
    repo.remove("main", "tmp/a")
    repo.commit("main", "one less")
    repo.create_tag("v1", "main")
    days(repo, 11)
    assert removed_by(repo) == {gone}
    repo.delete_tag("v1")
    assert removed_by(repo) == {kept}


@pytest.mark.parametrize("kind", HoldKind)
def test_what_a_hold_kept_goes_once_it_is_released(repo, kind):
    (old,) = written(repo, "main", "tmp/a")
    days(repo, 11)
    value = {HoldKind.PREFIX: "tmp/", HoldKind.REF: repo.resolve("main").commit.id, HoldKind.ADDRESS: old}[kind]
    hold = order(repo, kind, value)
    assert removed_by(repo) == removed_by(repo) == set()
    lift_hold(repo, hold)
    assert removed_by(repo) == {old}


def test_a_hold_with_a_day_holds_until_then(repo):
    (old,) = written(repo, "main", "tmp/a")
    order(repo, HoldKind.PREFIX, "tmp/", until=repo.clock() + timedelta(days=20))
    days(repo, 19)
    assert removed_by(repo) == set()
    days(repo, 1)
    assert removed_by(repo) == {old}


def test_a_commit_that_no_branch_reaches_holds_though_another_one_has_the_same(repo):
    kept, gone = written(repo, "main", "tmp/a", "tmp/b")
    repo.create_branch("dev", "main")
    repo.remove("dev", "tmp/b")
    repo.commit("dev", "one less")
    repo.delete_branch("dev")
    days(repo, 11)
    assert removed_by(repo, replace(TMP, tags=Tags.IGNORE)) == {gone}
    assert kept in oracle.stored(repo)


def test_every_path_of_an_object_has_a_say(repo):
    kept, gone, first = written(repo, "main", "tmp/a", "tmp/b", "kept/c")
    repo.copy("main", "tmp/a", "main", "kept/a")
    repo.copy("main", "kept/c", "main", "tmp/c")
    repo.commit("main", "second paths")
    days(repo, 5)
    repo.copy("main", "tmp/b", "main", "tmp/b2")
    repo.commit("main", "a younger one")
    days(repo, 6)
    assert removed_by(repo) == set()
    days(repo, 5)
    assert removed_by(repo) == {gone}
    assert removed_by(repo, parse({"r": {"prefix": "", "days": 10}})) == {kept, first}


def test_every_branch_has_a_say_and_a_rule_may_come_to_one_after_the_other(repo):
    (old,) = written(repo, "main", "tmp/a")
    repo.create_branch("dev", "main")
    days(repo, 11)
    only = {name: parse({"r": {"prefix": "tmp/", "branch_days": {name: 10}}}) for name in ("main", "dev")}
    for name in ("main", "dev", "main", "dev"):
        assert removed_by(repo, only[name]) == set()
    assert removed_by(repo, TMP) == {old}


def test_what_a_head_has_goes_once_it_is_replaced(repo):
    policy = parse({"r": {"prefix": "", "days": 10, "noncurrent_only": True}})
    (old,) = written(repo, "main", "tmp/a")
    days(repo, 11)
    assert removed_by(repo, policy) == removed_by(repo, policy) == set()
    written(repo, "main", "tmp/a")
    assert removed_by(repo, policy) == {old}


def test_what_was_staged_goes_once_it_is_reset(repo):
    (old,) = written(repo, "main", "tmp/a")
    days(repo, 11)
    repo.copy("main", "tmp/a", "main", "kept")
    assert removed_by(repo) == removed_by(repo) == set()
    repo.reset("main")
    assert removed_by(repo) == set()  # somebody may still be reading it
    days(repo, 1)
    days(repo, 1)
    assert removed_by(repo) == {old}


def test_a_delete_that_failed_is_tried_again_by_every_run(repo):
    old, other = written(repo, "main", "tmp/a", "tmp/b")
    days(repo, 11)
    repo.store = Stubborn(repo.store)
    repo.store.keeps = {repo.prefix + old}
    for asked in ({old, other}, {old}, {old}):
        assert oracle.expired(repo, TMP, repo.clock()) == asked
        report = run(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=TMP), ALL)[-1]
        assert (report.swept.asked, report.swept.failed) == (len(asked), 1)
        with pytest.raises(Gone):
            repo.stat("main", "tmp/a")
    repo.store.keeps = set()
    assert removed_by(repo) == {old}


def test_what_was_brought_back_is_left_alone_for_a_while(repo):
    (old,) = written(repo, "main", "tmp/a")
    days(repo, 11)
    assert removed_by(repo, action=Action.TRASH) == {old}
    trash.bring_back(repo, HERE, "last")
    assert removed_by(repo) == set()
    assert b"".join(repo.get("main", "tmp/a")) == b"tmp/a"
    days(repo, 2)
    assert removed_by(repo) == {old}


def test_an_entry_that_points_outside_of_the_lake_stops_nothing(repo):
    (old,) = written(repo, "main", "tmp/a")
    repo.stage("main", "tmp/far", "s3://elsewhere/far", size=3, checksum="123")
    repo.commit("main", "from elsewhere")
    days(repo, 11)
    assert removed_by(repo) == {old}
