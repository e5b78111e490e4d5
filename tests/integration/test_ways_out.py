"""What a message tells people to do about a damaged file is what helps."""

from datetime import UTC, datetime, timedelta

import pytest

from desilt.domain.policy import parse
from desilt.errors import BadRequest, DamagedRun, DamagedWatermark, NotReadBack
from desilt.executors.executor import HERE
from desilt.jobs.collect import job as collection
from desilt.jobs.expire import job as expiration
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.guarded import refusal
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.runner import plan, run, sweep
from desilt.sweep.limits import Limits

START = datetime(2026, 1, 1, tzinfo=UTC)
SURE = Limits(max_share=1.0, confirm=True, allow_empty=True, clock_is_right=True)
RULES = parse({"old": {"prefix": "tmp/", "days": 10, "branch_days": {"slow": 300}}})


@pytest.fixture
def repo(repo):
    repo.put("main", "tmp/a", b"a")
    repo.commit("main", "a")
    repo.create_branch("slow", "main")
    repo.put("main", "tmp/b", b"b")
    repo.commit("main", "b")
    repo.put("main", "staged", b"for long")
    repo.set_clock(START + timedelta(days=20))
    return repo


def keys(repo, *words):
    found = [key for batch in repo.store.list(f"{repo.prefix}_desilt/") for key in batch["key"].to_pylist()]
    return [key for key in found if all(word in key for word in words)]


def damage(repo, *words):
    assert keys(repo, *words)
    for key in keys(repo, *words):
        repo.store.put(key, [b"damaged"])


JOBS = {"gc": (uncommitted.job, {}), "lifecycle": (lifecycle.job, {"policy": RULES})}


@pytest.mark.parametrize(
    ("job", "file"),
    [
        ("gc", "/pending/"),
        ("lifecycle", "/last-"),
        ("lifecycle", "/deferred/"),
    ],
)
def test_without_what_the_last_run_left_a_full_one_helps(repo, job, file):
    one, ask = JOBS[job]
    run(one, repo, HERE, one.ask(**ask), SURE)
    damage(repo, f"/runs/{job}/", file)
    for _ in range(2):
        with pytest.raises(DamagedWatermark, match="pass --full") as told:
            plan(one, repo, HERE, one.ask(**ask))
        assert file in told.value.name
    run(one, repo, HERE, one.ask(full=True, **ask), SURE)
    plan(one, repo, HERE, one.ask(**ask))


def test_a_last_run_whose_file_is_gone_is_told_alike(repo):
    run(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=RULES), SURE)
    repo.store.delete_many(keys(repo, "/last-"))
    with pytest.raises(DamagedWatermark, match="it is missing; pass --full"):
        plan(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=RULES))
    run(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=RULES, full=True), SURE)


def test_a_damaged_cache_is_made_again_by_running_again(repo):
    plan(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=RULES))
    (key,) = keys(repo, "/ranges/", ".parquet")
    raw = bytearray(repo.store.get(key))
    raw[len(raw) // 3] ^= 0xFF
    repo.store.put(key, [bytes(raw)])
    with pytest.raises(NotReadBack, match="run again") as told:
        plan(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=RULES))
    assert told.value.name == key
    assert plan(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=RULES)).removed.objects == 1


@pytest.mark.parametrize("how", ["damaged", "missing"])
def test_instead_of_a_damaged_plan_another_one_helps(repo, how):
    made = plan(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=RULES))
    if how == "missing":
        repo.store.delete_many(keys(repo, made.run, "/plan/"))
    else:
        damage(repo, made.run, "/plan/")
    with pytest.raises(DamagedRun, match=r"/plan/.* is (missing|not what was planned); plan again$"):
        sweep(repo, HERE, made.run, SURE)
    assert run(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=RULES), SURE)[-1].swept.removed == 1


# ---- what only Python can ask wrongly


def test_an_expiration_that_is_not_told_what_to_expire_is_a_bad_request(repo):
    with pytest.raises(BadRequest, match="must be told how old, once"):
        plan(expiration.job, repo, HERE)


@pytest.mark.parametrize("other", [lifecycle.job, expiration.job, collection.job], ids=lambda job: job.name)
def test_what_a_guard_would_say_is_asked_of_the_job_that_planned(repo, other):
    made = plan(uncommitted.job, repo, HERE)
    with pytest.raises(BadRequest, match="one of 'gc', not of"):
        refusal(other, repo, made.run, Limits())
    assert refusal(uncommitted.job, repo, made.run, SURE) == (None, SURE)
