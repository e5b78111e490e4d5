"""A database restored from a copy, on PostgreSQL with S3: refused, named, and brought back."""

from datetime import timedelta

import pytest

from copies import backup, brought_back, put_back, refs_of
from desilt.domain.policy import parse
from desilt.errors import WentBack
from desilt.executors.executor import HERE
from desilt.jobs import holds
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.lifecycle import kept_policy
from desilt.jobs.runner import run
from desilt.lake import Lake, moves
from desilt.lake.fsck import check
from desilt.lake.lake import locate
from desilt.records.holds import HoldKind
from desilt.recovery.recover import recover
from desilt.sweep.limits import Limits
from desilt.testing import oracle
from words import contents

ALL = Limits(confirm=True, max_share=1.0, allow_empty=True)


@pytest.fixture
def lake(s3_server, fresh_postgres_url, monkeypatch):
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    bucket = s3_server.create_bucket("recovered")
    made = Lake.create(locate(f"{bucket}/lake", db=fresh_postgres_url()))
    yield made
    made.close()


def test_a_week_that_the_database_lost_is_in_the_bucket(lake, monkeypatch):
    repo = lake.create_repository("demo")
    monkeypatch.setattr(uncommitted, "CLOCK_MARGIN", -repo.grace - timedelta(minutes=1))  # what was just put is old
    repo.put("main", "kept", b"kept")
    repo.commit("main", "kept")
    run(uncommitted.job, repo, HERE, uncommitted.job.ask(), ALL)
    copy = backup(lake.database)
    for number in range(3):
        repo.put("main", f"work/{number}", b"a week's work")
        repo.commit("main", f"day {number}")
    holds.hold(repo, HoldKind.PREFIX, "work/", reason="audit")
    kept_policy.keep(repo, parse({"old": {"prefix": "old/", "days": 3}}))
    whole, stored = backup(lake.database), set(oracle.stored(repo))
    put_back(lake.database, copy)
    for job, ask in (
        (uncommitted.job, lifecycle.job.ask()),
        (lifecycle.job, lifecycle.job.ask(policy=parse({"all": {"prefix": "", "days": 0}}))),
    ):
        with pytest.raises(WentBack, match=r"the journal has 5 moves after .* policy of lifecycle set"):
            run(job, repo, HERE, ask, ALL)
    with pytest.raises(WentBack):
        repo.create_tag("v1", "main")
    assert not check(repo).sound
    recover(repo)
    assert brought_back(backup(lake.database), whole) == refs_of(whole)
    moves.check(repo.core)
    run(uncommitted.job, repo, HERE, uncommitted.job.ask(full=True), ALL)
    assert set(oracle.stored(repo)) == stored
    assert check(repo, deep=True).sound
    assert contents(repo, "main") == {"kept": "kept", **{f"work/{number}": "a week's work" for number in range(3)}}
