"""In a bucket the next batch is condemned while the last one is removed: never later than that, never much earlier."""

import threading
import time
import uuid
from collections import defaultdict
from dataclasses import replace

import pytest

from desilt.errors import FencedOff
from desilt.lake import Lake, fsck
from desilt.lake.gate import LakeGate
from desilt.lake.lake import locate
from desilt.objects.cloud import CloudStore
from desilt.records import removals
from desilt.records.removals import State
from desilt.repository.gate import Safety
from lake_in_a_bucket import ALL, START, LakeInABucket

COUNT, BATCH = 20, 6
LONG = 60.0  # seconds that nobody waits, unless nothing comes


@pytest.fixture
def lake(s3_server, monkeypatch, fresh_postgres_url):
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    bucket = s3_server.create_bucket(f"ahead-{uuid.uuid4().hex}")
    made = Lake.create(locate(f"{bucket}/lake", db=fresh_postgres_url()))
    yield LakeInABucket(made.create_repository("demo", clock_at=START), count=COUNT, batch=BATCH)
    made.close()


class Watched:
    """What was condemned and what removed, in order; ``before`` is told of each batch that is about to be removed."""

    def __init__(self, monkeypatch, repo, before=lambda _: None):
        self.repo, self.before, self.said, self.condemned = repo, before, [], defaultdict(threading.Event)
        condemn, delete_many = LakeGate.condemn, CloudStore.delete_many

        def condemning(gate, batch, *rest):
            back = condemn(gate, batch, *rest)
            self.said.append(("condemned", batch.number))
            self.condemned[batch.number].set()
            return back

        def deleting(store, keys, **more):
            number = self.batch_of(keys)
            self.before(number)
            outcomes = delete_many(store, keys, **more)
            self.said.append(("removed", number))
            return outcomes

        monkeypatch.setattr(LakeGate, "condemn", condemning)
        monkeypatch.setattr(CloudStore, "delete_many", deleting)

    def batch_of(self, keys):
        """The batch that all of ``keys`` are condemned in by now."""
        addresses = [key.removeprefix(self.repo.prefix) for key in keys]
        with self.repo.database.read() as tx:
            stones = removals.recorded(tx, self.repo.uid, addresses)
        assert {stones[address].state for address in addresses} == {State.CONDEMNED}
        (number,) = {stones[address].batch for address in addresses}
        return number


def test_while_a_batch_is_removed_the_next_one_is_condemned_and_no_other(lake, monkeypatch):
    def wait_for_the_next(number):
        assert number == 3 or done.condemned[number + 1].wait(LONG)
        time.sleep(0.5)  # in which the one after it would be

    done = Watched(monkeypatch, lake.repo, wait_for_the_next)
    report = lake.sweep("gc").swept
    assert (report.state, report.removed, lake.left("gc")) == ("swept", COUNT, set())
    assert done.said == [
        ("condemned", 0),
        *(one for number in range(3) for one in (("condemned", number + 1), ("removed", number))),
        ("removed", 3),
    ]
    assert fsck.check(lake.repo, deep=True).sound


def test_what_was_condemned_ahead_stays_where_the_run_was_fenced_off_and_goes_with_the_next(lake, monkeypatch):
    def fenced_off(number):
        if number == 1:
            assert done.condemned[2].wait(LONG)
            raise FencedOff("run", "another")

    done = Watched(monkeypatch, lake.repo, fenced_off)
    with pytest.raises(FencedOff):
        lake.sweep("gc")
    assert set(done.said) == {("condemned", 0), ("condemned", 1), ("condemned", 2), ("removed", 0)}
    assert len(lake.left("gc")) == COUNT - BATCH
    done.before = lambda _: None
    report = lake.sweep("gc").swept
    assert (report.state, report.failed, lake.left("gc")) == ("swept", 0, set())
    assert fsck.check(lake.repo, deep=True).sound


@pytest.mark.parametrize("why", ["a look that grows old", "a budget"])
def test_one_by_one_where_what_is_condemned_should_not_wait(lake, monkeypatch, why):
    limits = replace(ALL, max_deletes_per_second=1_000) if why == "a budget" else ALL
    done = Watched(monkeypatch, lake.repo, lambda _: time.sleep(0.5))
    if why == "a look that grows old":
        monkeypatch.setattr(LakeGate, "safety", Safety.GRACE)
    lake.sweep("gc", limits=limits)
    assert lake.left("gc") == set()
    assert done.said == [one for number in range(4) for one in (("condemned", number), ("removed", number))]
