"""Expiration and collection where a lake lives in earnest: PostgreSQL, a bucket on S3, real time."""

import time
from datetime import timedelta

import pytest

from desilt.domain.expiry import Expiry, Omission
from desilt.errors import CommitGone
from desilt.executors.executor import HERE
from desilt.jobs.collect import job as collection
from desilt.jobs.collect import options
from desilt.jobs.expire import job as expiration
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.runner import run
from desilt.lake import Lake, fsck
from desilt.lake.lake import locate
from desilt.sweep.limits import Limits
from desilt.testing import oracle
from words import collecting

SURE = Limits(max_share=1.0, confirm=True)
SECOND = timedelta(seconds=1)


@pytest.fixture
def repo(s3_server, fresh_postgres_url, monkeypatch):
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    bucket = s3_server.create_bucket(f"collect-{time.monotonic_ns()}")
    lake = Lake.create(locate(f"{bucket}/lake", db=fresh_postgres_url()))
    yield lake.create_repository("earnest")
    lake.close()


def test_from_a_bucket_with_real_clocks(repo, monkeypatch):
    monkeypatch.setattr(options, "LEAST_AGE", timedelta(0))  # nobody else writes here
    made = []
    for number in range(4):
        repo.put("main", "prices", f"{number}".encode())
        made.append(repo.commit("main", str(number)).id)
    cut = repo.resolve("main").commit.created_at + SECOND
    while repo.clock() < cut:  # quick commits are a second apart, and so ahead of the clock
        time.sleep(0.1)
    repo.put("main", "prices", b"last")
    repo.commit("main", "last")
    run(expiration.job, repo, HERE, expiration.job.ask(wish=Expiry(cut)), SURE)
    assert [commit.message for commit in repo.log("main")] == ["last", "Repository created"]
    assert b"".join(repo.get(made[2], "prices")) == b"2"

    before = oracle.stored(repo)
    time.sleep(3)
    report = run(collection.job, repo, HERE, collecting(older_than=SECOND), SURE)[-1]
    assert (report.history["commits collected"], report.swept.state) == (4, "swept")
    assert len(before) - len(oracle.stored(repo)) == 4
    with pytest.raises(CommitGone):
        repo.stat(made[2], "prices")
    assert b"".join(repo.get("main", "prices")) == b"last"
    assert fsck.check(repo, deep=True).sound
    again = run(collection.job, repo, HERE, collecting(older_than=SECOND), SURE)[-1]
    assert (again.removed.objects, again.history) == (0, {"commits collected": 0})
    clean = run(uncommitted.job, repo, HERE, uncommitted.job.ask(), SURE)[-1]
    assert (clean.removed.objects, clean.inputs["listed"]) == (0, 1)


def test_a_mistake_is_abandoned_in_a_bucket(repo):
    for number in range(3):
        repo.put("main", "prices", f"{number}".encode())
        repo.commit("main", str(number))
    run(expiration.job, repo, HERE, expiration.job.ask(wish=Omission("main", "main~1", "main~1")), SURE)
    assert [commit.message for commit in repo.log("main")] == ["2", "0", "Repository created"]
