"""S3 on a bad day: requests refused, connections broken, answers lost or cut off. What was planned goes, no more."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from random import Random

import pytest
from botocore.retries.standard import ExponentialBackoff

from desilt.errors import StorageFailed
from desilt.executors.processes import Processes
from desilt.lake import Lake, fsck
from desilt.lake.lake import locate
from desilt.objects import buckets, cloud_listing, open_store, s3_removal
from desilt.records import ledger
from desilt.sweep import delete as removing
from lake_in_a_bucket import ALL, JOBS, START, LakeInABucket
from unsteady_s3 import unsteady
from words import stored

QUICKLY = {"init_backoff": timedelta(milliseconds=5), "max_backoff": timedelta(milliseconds=20), "base": 2}
FAULTS = ("busy", "loses", "resets", "cuts", "busy_keys", "errors")


@pytest.fixture
def quick(monkeypatch):
    """Nobody waits for long; in this process."""
    monkeypatch.setattr(buckets, "RETRY", {"max_retries": 2, "backoff": QUICKLY})
    monkeypatch.setattr(s3_removal, "REMOVALS", 3)
    monkeypatch.setattr(ExponentialBackoff, "delay_amount", lambda *_: 0.01)
    monkeypatch.setattr(removing, "PAUSES", (0.0, 0.0, 0.0))
    monkeypatch.setattr(cloud_listing, "PAUSES", (0.0, 0.0, 0.0))


@pytest.fixture
def between(s3_server, monkeypatch):
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    with unsteady(s3_server.endpoint) as passing:
        monkeypatch.setenv("AWS_ENDPOINT_URL", passing.endpoint)
        yield passing


@pytest.fixture
def lake(s3_server, between, fresh_postgres_url):  # noqa: ARG001 - everything passes it
    bucket = s3_server.create_bucket(f"unsteady-{uuid.uuid4().hex}")
    made = Lake.create(locate(f"{bucket}/lake", db=fresh_postgres_url()))
    yield LakeInABucket(made.create_repository("demo", clock_at=START), count=20, batch=6)
    made.close()


def kinds_of(between, faults, kind, times):
    for fault in faults:
        getattr(between, fault)[kind] = times


# ---- removing


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("fault", FAULTS)
def test_what_was_to_go_is_gone_whatever_becomes_of_bulk_deletes(lake, between, fault):
    kinds_of(between, [fault], "bulk", 3)
    done = lake.sweep("gc").swept
    assert (done.state, done.asked, done.failed, lake.left("gc")) == ("swept", 20, 0, set())
    assert not +getattr(between, fault)


@pytest.mark.usefixtures("quick")
def test_a_store_that_has_no_time_for_an_hour_keeps_all_and_the_next_run_finishes(lake, between):
    kinds_of(between, ["busy"], "bulk", 10_000)
    done = lake.sweep("gc").swept
    assert (done.state, done.asked, done.removed, done.gone, done.failed) == ("swept in part", 20, 0, 0, 20)
    assert lake.left("gc") == lake.goes["gc"]
    assert between.seen["DELETE object"] == 0  # nobody asks such a server for each of a thousand
    between.busy.clear()
    done = lake.sweep("gc").swept
    assert (done.state, done.failed, lake.left("gc")) == ("swept", 0, set())
    assert fsck.check(lake.repo, deep=True).sound


@pytest.mark.usefixtures("quick")
def test_answers_that_are_always_lost_are_told_by_what_is_there(lake, between):
    """The server has done it each time; nobody ever hears of it."""
    kinds_of(between, ["loses"], "bulk", 10_000)
    done = lake.sweep("gc").swept
    assert (done.asked, done.removed, done.failed, lake.left("gc")) == (20, 20, 0, set())


@pytest.mark.usefixtures("quick")
def test_what_is_refused_makes_all_wait_who_share_a_budget(lake, between, monkeypatch):
    waits = []
    monkeypatch.setattr("desilt.sweep.batches.time.sleep", waits.append)
    monkeypatch.setattr(removing, "PAUSES", (1000.0, 1000.0))
    monkeypatch.setattr(removing, "SPREAD", (1.0, 1.0))
    kinds_of(between, ["busy"], "bulk", 3)  # two tries of boto3's own, and the first of ours
    done = lake.sweep("gc", limits=replace(ALL, max_deletes_per_second=10)).swept
    assert (done.removed, lake.left("gc")) == (20, set())
    assert sum(wait >= 900 for wait in waits) >= 4  # its own pause, and every lease after it


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("job", JOBS)
def test_one_request_of_six_fails_and_processes_finish_all_the_same(lake, between, job, seed):
    two = Processes(2)
    try:
        between.chance = Random(seed), 1 / 6, ("bulk", "list", "GET object", "HEAD object", "PUT object")
        report = lake.sweep(job, two)
    finally:
        two.close()
        between.chance = None
    assert (report.swept.state, report.swept.failed, lake.left(job)) == ("swept", 0, set())
    assert sum(between.failed.values())
    with lake.repo.database.read() as tx:
        rows = ledger.batches(tx, lake.repo.uid, report.run)
    assert sum(row.asked for row in rows) == report.swept.asked
    assert fsck.check(lake.repo, deep=True).sound


# ---- listing


KEYS = [f"a/{number:04d}" for number in range(2500)]


@pytest.fixture(scope="module")
def pages(s3_server):
    """A bucket of some pages."""
    bucket = s3_server.create_bucket(f"listed-{uuid.uuid4().hex}")
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(8) as pool:
        for name, value in s3_server.env.items():
            patch.setenv(name, value)
        store = open_store(f"{bucket}/lake")
        list(pool.map(lambda key: store.put(key, [b"x"]), KEYS))
    return bucket


@pytest.fixture
def listed(pages, between, monkeypatch):  # noqa: ARG001 - what passes it
    """A function that lists it in one of the two ways."""

    def found(way):
        monkeypatch.setenv("DESILT_LISTING", way)
        return [key for batch in open_store(f"{pages}/lake").list("a/") for key in batch["key"].to_pylist()]

    return found


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("way", ["flat", "walk"])
def test_a_page_that_fails_is_asked_for_again_and_the_listing_is_complete(listed, between, way):
    for fault in ("busy", "loses", "resets", "cuts", "errors", "empties"):
        kinds_of(between, [fault], "list", 2)
        assert listed(way) == KEYS, fault
        assert not +getattr(between, fault)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("way", ["flat", "walk"])
@pytest.mark.parametrize("fault", ["busy", "loses", "resets", "cuts", "errors", "empties"])
def test_a_listing_that_cannot_be_had_whole_is_an_error(listed, between, way, fault):
    kinds_of(between, [fault], "list", 10_000)
    with pytest.raises(StorageFailed, match=r"listing '(lake/)?a/' in|does not say whether there is more in 'lake/a/'"):
        listed(way)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("way", ["flat", "walk"])
@pytest.mark.parametrize("fault", ["errors", "empties"])
@pytest.mark.parametrize("after", [0, 1, 2])
def test_an_error_in_place_of_a_page_is_not_the_last_page(listed, between, way, fault, after):
    between.after["list"] = after
    kinds_of(between, [fault], "list", 1)
    assert listed(way) == KEYS
    assert not +getattr(between, fault)


@pytest.mark.usefixtures("quick")
def test_a_run_whose_listing_fails_removes_nothing(lake, between):
    before = stored(lake.repo)
    kinds_of(between, ["cuts"], "list", 10_000)
    with pytest.raises(StorageFailed, match="listing"):
        lake.sweep("gc")
    between.cuts.clear()
    assert stored(lake.repo) == before
