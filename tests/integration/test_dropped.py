"""What lost its last reference a moment ago may still be read: gc leaves it alone for a day, however old it is."""

from datetime import UTC, datetime, timedelta

import pytest

from desilt.domain.policy import parse
from desilt.errors import BadRequest
from desilt.executors.executor import HERE
from desilt.jobs.collect import job as collection
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.runner import plan, run, sweep
from desilt.lake.source import LakeSource
from desilt.sweep.limits import Limits
from words import later, stage, stored

START = datetime(2026, 1, 1, tzinfo=UTC)
ALL = Limits(max_share=1.0, confirm=True, allow_empty=True)


@pytest.fixture
def repo(repo):
    repo.put("main", "data", b"data")
    repo.commit("main", "data")
    repo.create_branch("dev", "main")
    return repo


def gc(repo, **ask):
    return run(uncommitted.job, repo, HERE, uncommitted.job.ask(**ask), ALL)[-1]


@pytest.fixture
def old(repo):
    """Staged for a month."""
    entry = repo.put("dev", "old", b"x")
    later(repo, days=30)
    return entry


DROPS = {
    "reset": lambda repo: repo.reset("dev"),
    "reset by path": lambda repo: repo.reset("dev", path="old"),
    "put again": lambda repo: repo.put("dev", "old", b"new"),
    "removed": lambda repo: repo.remove("dev", "old"),
    "deleted with its branch": lambda repo: repo.delete_branch("dev", force=True),
}


@pytest.mark.parametrize("drop", DROPS.values(), ids=DROPS)
@pytest.mark.parametrize("before", [False, True], ids=["", "after another run"])
def test_an_old_object_that_was_dropped_a_moment_ago_stays_for_a_day(repo, old, drop, before):
    if before:
        assert gc(repo).swept.removed == 0
    drop(repo)
    for hours in (0, 12, 11.9):
        later(repo, hours=hours)
        report = gc(repo)
        assert (report.keep["dropped"].objects, report.swept.removed) == (1, 0)
    assert old.address in stored(repo)
    later(repo, hours=0.2)
    assert gc(repo).swept.removed == 1
    assert old.address not in stored(repo)


def test_who_wants_it_to_go_at_once_says_so(repo, old):
    repo.reset("dev")
    assert gc(repo, dropped_for=timedelta(0)).swept.removed == 1
    assert old.address not in stored(repo)


def test_what_was_dropped_after_the_plan_was_made_is_left_alone_by_its_sweep(repo, old):
    repo.reset("dev")
    later(repo, days=5)
    made = plan(uncommitted.job, repo, HERE)
    assert made.removed.objects == 1
    stage(repo, "main", old)  # as other programs may
    repo.reset("main")
    swept = sweep(repo, HERE, made.run, ALL).swept
    assert (swept.removed, swept.held_again) == (0, 1)
    assert old.address in stored(repo)


@pytest.mark.usefixtures("old")
@pytest.mark.parametrize("looks", ["staged", "dropped"])
def test_what_is_dropped_while_a_plan_looks_is_either_staged_or_dropped_to_it(repo, looks, monkeypatch):
    """Looked for among what was dropped first, it would be neither."""
    real = getattr(LakeSource, looks)

    def look(*values):
        found = real(*values)
        repo.reset("dev")
        return found

    monkeypatch.setattr(LakeSource, looks, look)
    made = plan(uncommitted.job, repo, HERE)
    assert made.removed.objects == 0
    assert made.keep["staged"].objects == 1


def test_for_longer_than_that_is_known_it_is_not_left_alone(repo):
    with pytest.raises(BadRequest, match="give at most 30 days"):
        gc(repo, dropped_for=timedelta(days=31))


JOBS = {
    "lifecycle": (lifecycle.job, lifecycle.job.ask(policy=parse({"l": {"prefix": "logs/", "days": 7}}))),
    "collect": (collection.job, collection.job.ask(unreached_for=timedelta(0))),
}


@pytest.mark.parametrize(("job", "ask"), JOBS.values(), ids=JOBS)
@pytest.mark.parametrize("planned", [False, True], ids=["", "after the plan"])
def test_a_staged_copy_that_was_dropped_a_moment_ago_keeps_what_commits_had(repo, job, ask, planned):
    address = repo.put("dev", "logs/a", b"x").address
    repo.commit("dev", "a")
    later(repo, days=30)
    (entry,) = [one for one in repo.list("dev") if one.path == "logs/a"]
    if job is collection.job:
        repo.delete_branch("dev", force=True)
    made = plan(job, repo, HERE, ask).run if planned else ""
    stage(repo, "main", entry)
    repo.reset("main")
    report = sweep(repo, HERE, made, ALL) if planned else run(job, repo, HERE, ask, ALL)[-1]
    assert planned or report.keep["dropped"].objects == 1
    assert report.swept.removed == 0 or job is collection.job  # its tables go
    assert address in stored(repo)
    later(repo, days=1, hours=1)
    again = (uncommitted.job, uncommitted.job.ask()) if job is collection.job else (job, ask)
    run(again[0], repo, HERE, again[1], ALL)
    assert address not in stored(repo)
