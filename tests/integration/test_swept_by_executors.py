"""Every job that removes, where a lake lives in earnest: PostgreSQL, a bucket on S3, and others who do the work."""

import json
import uuid
from dataclasses import replace

import pytest

from desilt.executors.on_spark import OnSpark
from desilt.executors.processes import Processes
from desilt.jobs.lifecycle import kept_policy
from desilt.jobs.runner import plan, sweep
from desilt.lake import Lake, fsck
from desilt.lake.lake import locate
from desilt.records import ledger
from lake_in_a_bucket import ALL, JOBS, LOGS, START, LakeInABucket
from words import later, stage

COUNT, BATCH = 40, 3
MICRO = 1_000_000


@pytest.fixture
def lake(s3_server, fresh_postgres_url, monkeypatch):
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("desilt.sweep.batches.BATCHES_TO_A_PIECE", 4)  # some for each
    bucket = s3_server.create_bucket(f"executors-{uuid.uuid4().hex}")
    database = fresh_postgres_url()
    monkeypatch.setenv("DESILT_DB", database)
    made = Lake.create(locate(f"{bucket}/lake", db=database))
    filled = LakeInABucket(made.create_repository("demo", clock_at=START), COUNT, BATCH)
    filled.uri = f"{bucket}/lake#demo"
    yield filled
    made.close()


@pytest.fixture(params=["processes", "spark"])
def executor(request):
    if request.param == "spark":
        yield OnSpark(request.getfixturevalue("spark"))
        return
    two = Processes(2)
    yield two
    two.close()


def batches(lake, run):
    with lake.repo.database.read() as tx:
        return ledger.batches(tx, lake.repo.uid, run)


def test_all_three_jobs_remove_what_is_theirs_and_nothing_else(lake, executor):
    for job in JOBS:
        report = lake.sweep(job, executor)
        assert (report.swept.state, report.swept.failed, report.swept.held_again) == ("swept", 0, 0)
        assert lake.left(job) == set()
        rows = batches(lake, report.run)
        assert [row.number for row in rows] == list(range(len(rows)))
        assert sum(row.asked for row in rows) == report.swept.asked >= COUNT
        assert len(rows) > 4  # more than one task had some
    assert fsck.check(lake.repo, deep=True).sound
    for job in JOBS:
        again = lake.sweep(job, executor)
        assert (again.swept.asked, again.removed.objects) == (0, 0)


def test_what_came_back_to_life_is_not_touched_by_any_of_them(lake, executor):
    """Planned, and held by somebody by the time that executors come to it."""
    work, repo, _, asked = lake.asked("gc", executor)
    planned = plan(work, repo, executor, asked)
    back = sorted(lake.goes["gc"])[:5]
    stage(repo, "main", *(lake.entries[address] for address in back))
    done = sweep(repo, executor, planned.run, ALL).swept
    assert (done.removed, done.held_again) == (COUNT - 5, 5)
    assert lake.left("gc") == set(back)
    lake.judge()


def test_executors_share_one_budget_of_deletes(lake, executor):
    """Each delete was leased, from one row, whoever did it."""
    with lake.repo.database.read() as tx:
        began = tx.now()
    report = lake.sweep("lifecycle", executor, replace(ALL, max_deletes_per_second=30))
    assert (report.swept.removed, lake.left("lifecycle")) == (COUNT, set())
    with lake.repo.database.read() as tx:
        given_out, as_of = tx.one("SELECT given_out, as_of FROM delete_budgets WHERE repository = ?", lake.repo.uid)
    leased = given_out + as_of - round(began.timestamp() * MICRO)  # what of the time since then was given out, at least
    assert leased >= COUNT / 30 * MICRO


def test_without_a_limit_nobody_leases_anything(lake, executor):
    lake.sweep("collect", executor)
    with lake.repo.database.read() as tx:
        assert tx.rows("SELECT * FROM delete_budgets") == []


def test_commands_say_it(lake, cli):
    kept_policy.keep(lake.repo, LOGS, ())
    sure = ("--confirm", "--max-share", "100%", "--json")
    for words in (
        ("gc", "run", lake.uri, "--dropped-for", "0s", "--to", "trash", "--max-deletes-per-second", "200"),
        ("lifecycle", "run", lake.uri, "--max-deletes-per-second", "200"),
        ("collect", "run", lake.uri, "--older-than", "7d", "--max-deletes-per-second", "200"),
    ):
        before = leases(lake)
        code, out, err = cli(*words, *sure)
        assert (code, err) == (0, "")
        assert json.loads(out)["swept"]["removed"] >= COUNT
        assert leases(lake) != before
    later(lake.repo, days=8)
    before = leases(lake)
    code, out, _ = cli("purge", lake.uri, "--max-deletes-per-second", "200", "--json")
    assert (code, json.loads(out)["objects"]) == (0, COUNT)
    assert leases(lake) != before
    code, _, err = cli("gc", "run", lake.uri, "--max-deletes-per-second", "0")
    assert (code, "--max-deletes-per-second" in err) == (2, True)


def leases(lake):
    with lake.repo.database.read() as tx:
        return tx.one("SELECT given_out, as_of FROM delete_budgets WHERE repository = ?", lake.repo.uid)
