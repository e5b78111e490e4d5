"""Lifecycle from its policy to what reads as gone."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from desilt.domain.policy import parse
from desilt.domain.times import nanoseconds
from desilt.errors import Gone, NotReadBack
from desilt.executors.executor import HERE
from desilt.executors.on_spark import OnSpark
from desilt.jobs import trash
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.runner import plan, run
from desilt.objects.store import Outcome, Result
from desilt.records import ledger
from desilt.runs.steps import Action
from desilt.sweep import delete as removing
from desilt.sweep.limits import Limits
from desilt.testing import oracle
from words import days, stage

START = datetime(1998, 1, 1, tzinfo=UTC)
SURE = Limits(max_share=1.0, confirm=True, allow_empty=True)


def policy(**rules):
    return parse(rules)


def commit(repo, branch, *paths):
    found = [repo.put(branch, path, path.encode()).address for path in paths]
    repo.commit(branch, " ".join(paths))
    return found


def expire(repo, rules, *, executor=HERE, **ask):
    return run(lifecycle.job, repo, executor, lifecycle.job.ask(policy=rules, **ask), SURE)[-1]


ISSUE = {"rule": {"prefix": "foo/bar", "days": 10, "branch_days": {"b1": 5}}}


@pytest.mark.parametrize(
    ("branches", "path", "age", "goes"),
    [
        (("main", "b1"), "foo/bar/a", 11, True),
        (("main", "b1"), "foo/bar/a", 9, False),
        (("b1",), "foo/bar/a", 6, True),
        (("b1",), "foo/bar/a", 4, False),
        (("main", "b1"), "other/a", 30, False),
    ],
)
def test_the_story_of_lakefs_issue_2365(repo, branches, path, age, goes):
    repo.create_branch("b1", "main")
    if "main" in branches:
        (address,) = commit(repo, "main", path)
        repo.merge("main", "b1")
    else:
        (address,) = commit(repo, "b1", path)
    days(repo, age)
    expire(repo, parse(ISSUE))
    assert (address not in oracle.stored(repo)) is goes
    if goes:
        with pytest.raises(Gone):
            repo.stat(branches[0], path)


def test_on_spark_the_same_goes(spark, repo):
    commit(repo, "main", "tmp/a", "tmp/b", "keep/c")
    days(repo, 11)
    report = expire(repo, parse({"r": {"prefix": "tmp/", "days": 10}}), executor=OnSpark(spark))
    assert report.swept.removed == 2
    assert [entry.path for entry in repo.list("main")] == ["keep/c", "tmp/a", "tmp/b"]
    assert repo.count_gone("main") == 2


def test_a_plan_says_why_each_stays(repo):
    commit(repo, "main", "tmp/a")
    repo.create_tag("v1", "main")
    commit(repo, "main", "tmp/b")
    days(repo, 11)
    report = plan(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=parse({"r": {"prefix": "tmp/", "days": 10}})))
    assert report.removed.objects == 1
    assert {reason: amount.objects for reason, amount in report.keep.items()} == {"tagged": 1}


def test_what_was_restored_and_then_failed_to_go_is_tried_again(repo, monkeypatch):
    (address,) = commit(repo, "main", "tmp/a")
    commit(repo, "main", "keep/b")
    rules = parse({"r": {"prefix": "tmp/", "days": 10}})
    days(repo, 11)
    expire(repo, rules, action=Action.TRASH)
    expire(repo, rules)  # what the first run removed is written down
    trash.bring_back(repo, HERE, first_run(repo))
    assert repo.stat("main", "tmp/a").address == address
    days(repo, 2)
    with monkeypatch.context() as patch:
        patch.setattr(repo.store, "delete_many", lambda keys, **_: [Outcome(key, Result.FAILED, "no") for key in keys])
        patch.setattr(removing, "PAUSES", ())
        assert expire(repo, rules).swept.failed == 1
    assert address in oracle.stored(repo)
    assert expire(repo, rules).swept.removed == 1
    assert address not in oracle.stored(repo)


def first_run(repo):
    with repo.database.read() as tx:
        return ledger.every(tx, repo.uid)[-1].id


def test_what_a_slow_clock_staged_is_as_young_as_its_object(repo):
    """The entry says a year ago, the name of its object says today."""
    entry = repo.put("main", "tmp/a", b"1")
    old = replace(entry, modified_ns=nanoseconds(START - timedelta(days=365)))
    none = replace(repo.put("main", "tmp/b", b"1"), modified_ns=0)
    stage(repo, "main", old, none)
    repo.commit("main", "by a clock that is a year behind, and by none")
    rules = parse({"r": {"prefix": "tmp/", "days": 10}})
    days(repo, 1)
    assert expire(repo, rules).swept.removed == 0
    days(repo, 10)
    assert expire(repo, rules).swept.removed == 1
    assert none.address in oracle.stored(repo)


def test_what_a_run_condemned_and_could_not_delete_can_be_read_again(repo, monkeypatch):
    commit(repo, "main", "tmp/a", "keep/b")
    days(repo, 11)
    with monkeypatch.context() as patch:
        patch.setattr(repo.store, "delete_many", lambda keys, **_: [Outcome(key, Result.FAILED, "no") for key in keys])
        patch.setattr(removing, "PAUSES", ())
        expire(repo, parse({"r": {"prefix": "tmp/", "days": 10}}))
    with pytest.raises(Gone):
        repo.stat("main", "tmp/a")
    days(repo, 1)
    assert trash.bring_back(repo, HERE, "last").restored == 1
    assert repo.stat("main", "tmp/a").size == len("tmp/a")


def test_a_damaged_record_of_what_was_removed_is_written_again(repo):
    commit(repo, "main", "tmp/a", "tmp/b", "keep/c")
    rules = parse({"r": {"prefix": "tmp/", "days": 10}})
    days(repo, 11)
    expire(repo, rules)
    expire(repo, rules)
    folder = f"{repo.prefix}_desilt/removed/"
    (key,) = [k for batch in repo.store.list(folder) for k in batch["key"].to_pylist() if k.endswith(".parquet")]
    repo.store.put(key, [b"damaged"])
    repo.store.put(f"{folder}notes.json", [b"mine"])
    with pytest.raises(NotReadBack, match=r"run again$"):
        expire(repo, rules)
    assert expire(repo, rules).swept.asked == 0
