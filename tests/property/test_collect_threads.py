"""Real threads that write, against real runs of all jobs: what was acknowledged is readable, and nothing is broken.

Time stands still while anybody works, and moves on between rounds; so commits and
files become old enough to be collected within seconds.
"""

import os
import random
import threading
import time
import uuid
from collections import Counter
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from desilt.clock import ManualClock
from desilt.domain.expiry import Expiry
from desilt.domain.keep_rules import KeepCounts
from desilt.errors import BadRequest, Conflict, Gone, Locked, NotFound, Refused
from desilt.executors.executor import HERE
from desilt.jobs import holds
from desilt.jobs.collect import job as collection
from desilt.jobs.expire import job as expiration
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.runner import plan, run, sweep
from desilt.lake import Lake, commits, editor, fsck, schema
from desilt.objects import open_store
from desilt.records.database import open_database
from desilt.records.holds import HoldKind
from desilt.sweep.limits import Limits
from words import collecting

ALL = Limits(max_share=1.0, confirm=True, allow_empty=True)
START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
REFUSALS = (Conflict, NotFound, Gone, BadRequest, Refused, Locked)  # all that a writer or a run may meet
PATHS = [f"p{number}" for number in range(8)]
WRITERS = 3


class Scene:
    """A repository that several threads open for themselves, and the bytes that each address was given."""

    def __init__(self, database, store):
        self.database, self.store, self.clock = database, store, store.clock
        self.bytes = {}
        self.failures, self.told = [], Counter()
        self.going, self.over = threading.Event(), threading.Event()
        self.busy = [False] * WRITERS
        self.lake().create_repository("crowd")

    def lake(self):
        return Lake(self.database, self.store, clock=self.clock, raggedness=3)

    def repository(self):
        return self.lake().repository("crowd")

    @contextmanager
    def quiet(self):
        """Nobody writes meanwhile."""
        self.going.clear()
        while any(self.busy):
            time.sleep(0.001)
        yield
        self.going.set()

    def write(self, place, seed):
        writer = Writer(self.repository(), random.Random(seed), self.bytes)
        while not self.over.is_set():
            self.going.wait()
            self.busy[place] = True
            if self.going.is_set():
                try:
                    self.told[writer.act()] += 1
                except REFUSALS as refused:
                    self.told[type(refused).__name__] += 1
                except BaseException as error:  # a failure of the test, which another thread must tell
                    self.failures.append(error)
                    self.over.set()
            self.busy[place] = False

    def look(self):
        """Everything that a ref or a hold has is what was written, and the repository is sound."""
        repo = self.repository()
        held = [hold.value for hold in holds.every(repo) if hold.kind is HoldKind.REF and hold.counts(self.clock.now)]
        for ref in [*(branch.name for branch in repo.branches()), *(tag.name for tag in repo.tags()), *held]:
            for entry in repo.list(ref):
                assert b"".join(repo.get(ref, entry.path)) == self.bytes[entry.address]
        assert fsck.check(repo, deep=True).sound


class Writer:
    """Does whatever comes to its mind."""

    def __init__(self, repo, chance, known):
        self.repo, self.chance, self.bytes = repo, chance, known

    def act(self):
        does = self.chance.choice(
            [self.put, self.commit, self.put_and_commit, self.put_and_commit, self.remove, self.revert, self.merge,
             self.merge_from, self.branch, self.branch, self.delete_branch, self.tag, self.delete_tag, self.copy,
             self.save, self.hold, self.lift]
        )  # fmt: skip
        does()
        return does.__name__

    def some_branch(self):
        return self.chance.choice(self.repo.branches()).name

    def some_commit(self):
        with self.repo.database.read() as tx:
            return self.chance.choice(sorted(one.id for one in commits.every(tx, self.repo.uid)))

    def put(self):
        body = os.urandom(6)
        self.bytes[self.repo.put(self.some_branch(), self.chance.choice(PATHS), body).address] = body

    def commit(self):
        self.repo.commit(self.some_branch(), "commit")

    def put_and_commit(self):
        self.put()
        self.commit()

    def remove(self):
        branch = self.some_branch()
        self.repo.remove(branch, self.chance.choice(PATHS))
        self.repo.commit(branch, "remove")  # brings back the tables of an earlier commit, now and then

    def revert(self):
        self.repo.revert(self.some_branch(), self.some_commit(), parent=self.chance.choice([None, 1, 2]))

    def merge(self):
        self.repo.merge(self.some_commit(), self.some_branch(), strategy="source-wins")

    def merge_from(self):
        self.repo.merge(self.some_commit(), self.some_branch(), strategy="dest-wins", base=self.some_commit())

    def branch(self):
        if len(self.repo.branches()) < 6:
            self.repo.create_branch(f"b{self.chance.randrange(10**9)}", self.some_commit())

    def delete_branch(self):
        branch = self.some_branch()
        if branch != "main" and len(self.repo.branches()) > 2:
            self.repo.delete_branch(branch, force=True)

    def tag(self):
        if len(self.repo.tags()) < 3:
            self.repo.create_tag(f"t{self.chance.randrange(10**9)}", self.some_commit())

    def delete_tag(self):
        for tag in self.repo.tags()[:1]:
            self.repo.delete_tag(tag.name)

    def copy(self):
        branch = self.some_branch()
        self.repo.copy(branch, self.chance.choice(PATHS), branch, self.chance.choice(PATHS))

    def save(self):
        """Copy a file out of any commit."""
        commit, path = self.some_commit(), self.chance.choice(PATHS)
        body = self.bytes[self.repo.stat(commit, path).address]
        self.bytes[self.repo.copy(commit, path, self.some_branch(), path).address] = body

    def hold(self):
        if len(holds.every(self.repo)) < 3:
            until = self.chance.choice([HOUR, 50 * HOUR])
            holds.hold(self.repo, HoldKind.REF, self.some_commit(), reason="audit", until=until)

    def lift(self):
        for hold in holds.every(self.repo)[:1]:
            holds.lift(self.repo, hold.id)


def collect(repo, chance):
    ask = collecting(older_than=HOUR, keep_runs=chance.choice([0, 3, 50]) * HOUR)
    return run(collection.job, repo, HERE, ask, ALL)


def collect_later(repo, _chance):
    made = plan(collection.job, repo, HERE, collecting(older_than=HOUR)).run
    time.sleep(0.1)
    return sweep(repo, HERE, made, ALL)


def expire(repo, chance):
    keep = chance.choice([None, KeepCounts(last=2)])
    before = repo.clock() - chance.choice([0, 1, 3]) * HOUR
    wish = Expiry(before, keep, delete_tags=chance.random() < 0.3, delete_branches=chance.random() < 0.3)
    return run(expiration.job, repo, HERE, expiration.job.ask(wish=wish), ALL)


def gc(repo, _chance):
    return run(uncommitted.job, repo, HERE, uncommitted.job.ask(), ALL)


JOBS = (collect, collect, collect_later, expire, expire, gc)


def wrote_enough(scene):
    """Beside runs that are quick, writers on a busy machine may hardly get a turn."""
    return scene.told["put_and_commit"] > 5


def crowd(scene, seed, runs):
    """Writers and so many runs that were not refused; then all of it is looked at."""
    chance, done = random.Random(seed), Counter()
    threads = [threading.Thread(target=scene.write, args=(place, seed * 100 + place)) for place in range(WRITERS)]
    for thread in threads:
        thread.start()
    scene.going.set()
    try:
        while (sum(done[job.__name__] for job in JOBS) < runs or not wrote_enough(scene)) and not scene.over.is_set():
            job = chance.choice(JOBS)
            try:
                job(scene.repository(), chance)
                done[job.__name__] += 1
            except REFUSALS as refused:
                done[type(refused).__name__] += 1
            with scene.quiet():
                if chance.random() < 0.3:
                    scene.look()
                scene.clock.now += chance.choice([0.05, 0.3, 1.2, 30]) * HOUR
    finally:
        scene.over.set()
        scene.going.set()
        for thread in threads:
            thread.join()
    if scene.failures:
        raise scene.failures[0]
    scene.look()
    return done


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def scene(request, tmp_path, monkeypatch):
    monkeypatch.setattr(editor, "PAGE", 3)  # commits go in several transactions
    if request.param == "SQLite":
        database = open_database(f"sqlite://{tmp_path}/lake.db", create=True)
    else:
        database = open_database(request.getfixturevalue("fresh_postgres_url")())
    schema.create(database, storage="")
    store = open_store(f"memory://{uuid.uuid4().hex}", clock=ManualClock(START))
    yield Scene(database, store)
    database.close()


def test_a_crowd_of_writers_and_every_job(scene):
    done = crowd(scene, seed=1, runs=8)
    assert done["collect"] + done["collect_later"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 8))
def test_a_crowd_for_longer(scene, seed):
    crowd(scene, seed, runs=150)
