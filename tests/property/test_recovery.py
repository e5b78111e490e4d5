"""A database restored from a copy at any moment, and recovered: as it was, but for what was staged since.

Random days of a lake: writers, holds, and every job with real removals. Then the
database is put back to an earlier day. Until it is recovered nothing goes; afterwards
it knows every commit, ref, hold and removal that it had known, and nothing that was
committed or staged when it was lost is ever removed.
"""

import random
import uuid
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from copies import backup, brought_back, put_back, refs_of
from desilt.clock import ManualClock
from desilt.domain.expiry import Expiry
from desilt.domain.policy import parse
from desilt.errors import DesiltError, WentBack
from desilt.executors.executor import HERE
from desilt.jobs import holds, purge, trash
from desilt.jobs.collect import job as collection
from desilt.jobs.expire import job as expiration
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.lifecycle import kept_policy
from desilt.jobs.retention import job as retention
from desilt.jobs.retention import restore as unmarking
from desilt.jobs.retention.document import retention_of
from desilt.jobs.runner import run
from desilt.lake import Lake, moves, schema
from desilt.lake.fsck import check
from desilt.objects import open_store
from desilt.records import locks, marks
from desilt.records import removals as tombstones
from desilt.records.database import open_database
from desilt.records.holds import HoldKind
from desilt.recovery.recover import recover, survey
from desilt.runs.steps import CHOICES
from desilt.sweep.limits import Limits
from desilt.sweep.unmark import COMES_BACK
from desilt.testing import oracle

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
ALL = Limits(max_share=1.0, confirm=True, allow_empty=True)
RELEASED = Limits(max_share=1.0, confirm=True, allow_empty=True, after_restore=True)
POLICY = parse({"logs": {"prefix": "logs/", "days": 4}})
EXPIRING = retention_of(
    {
        "rules": [
            {"status": "enabled", "filter": {}, "expiration": {"uncommitted": {"days": 1}, "noncurrent": {"days": 2}}}
        ]
    }
)


@pytest.fixture(autouse=True)
def _no_heartbeat(monkeypatch):
    monkeypatch.setattr(locks, "BEAT_SECONDS", 1e6)


class Lakeside:
    """A repository, and days that go by at random."""

    def __init__(self, directory, chance):
        self.chance, self.clock = chance, ManualClock(START)
        self.database = open_database(f"sqlite://{directory}/{uuid.uuid4().hex}.db", create=True)
        schema.create(self.database, storage="")
        store = open_store(f"memory://{uuid.uuid4().hex}")
        store.clock, store.delete_batch = self.clock, 2
        lake = Lake(self.database, store, clock=self.clock, raggedness=3)
        self.repo = lake.create_repository("side", ticket_life=timedelta(hours=1))
        self.names, self.unmarked = iter(range(10**6)), set()
        kept_policy.keep(self.repo, POLICY)

    def days(self, count):
        for _ in range(count):
            for _ in range(self.chance.randint(2, 6)):
                with suppress(DesiltError, IndexError):  # there may be none to choose from
                    getattr(self, self.chance.choice(ACTS))()
                self.clock.now += timedelta(minutes=self.chance.choice((1, 50, 300)))

    def branch(self):
        return self.chance.choice(self.repo.branches()).name

    def commit_id(self):
        return self.chance.choice(sorted(oracle.history(self.repo)))

    def put(self):
        path = f"{self.chance.choice(('logs', 'data'))}/{next(self.names)}"
        self.repo.put(self.branch(), path, path.encode())

    def put_again(self):
        branch = self.branch()
        path = self.chance.choice([entry.path for entry in self.repo.list(branch)] or ["data/x"])
        self.repo.put(branch, path, f"again {next(self.names)}".encode())

    def commit(self):
        self.repo.commit(self.branch(), f"commit {next(self.names)}")

    def copy(self):
        branch = self.branch()
        path = self.chance.choice([entry.path for entry in self.repo.list(branch)] or ["data/x"])
        self.repo.copy(branch, path, branch, f"data/{next(self.names)}")

    def remove(self):
        branch = self.branch()
        self.repo.remove(branch, self.chance.choice([entry.path for entry in self.repo.list(branch)] or ["data/x"]))

    def reset(self):
        self.repo.reset(self.branch())

    def hand_out(self):
        branch, path = self.branch(), f"data/direct{next(self.names)}"
        handed = self.repo.physical_address(branch, path)
        self.repo.store.put(self.repo.prefix + handed.ticket.address, [b"direct"])
        if self.chance.random() < 0.7:
            self.repo.link(branch, path, handed.token)

    def branch_off(self):
        self.repo.create_branch(f"b{next(self.names)}", self.commit_id())

    def delete_branch(self):
        self.repo.delete_branch(self.branch(), force=True)

    def tag(self):
        self.repo.create_tag(f"t{next(self.names)}", self.commit_id())

    def delete_tag(self):
        self.repo.delete_tag(self.chance.choice(self.repo.tags()).name)

    def merge(self):
        self.repo.merge(self.branch() + "@", self.branch(), message=f"merge {next(self.names)}")

    def hold(self):
        kind = self.chance.choice(list(HoldKind))
        named = {
            HoldKind.PREFIX: lambda: f"logs/{next(self.names)}",
            HoldKind.REF: self.commit_id,
            HoldKind.ADDRESS: lambda: self.chance.choice(sorted(oracle.stored(self.repo))),
        }[kind]()
        holds.hold(self.repo, kind, named, reason="because")

    def lift(self):
        holds.lift(self.repo, self.chance.choice(holds.every(self.repo)).id)

    def gc(self):
        run(uncommitted.job, self.repo, HERE, uncommitted.job.ask(action=self.action()), ALL)

    def lifecycle(self):
        run(lifecycle.job, self.repo, HERE, lifecycle.job.ask(action=self.action()), ALL)

    def expire(self):
        wish = Expiry(self.clock.now - 3 * DAY, delete_tags=self.chance.random() < 0.3)
        run(expiration.job, self.repo, HERE, expiration.job.ask(wish=wish), ALL)

    def collect(self):
        run(collection.job, self.repo, HERE, collection.job.ask(unreached_for=timedelta(0)), ALL)

    def restore(self):
        trash.bring_back(self.repo, HERE, "last")

    def retain(self):
        wait = self.chance.choice((timedelta(0), timedelta(hours=5), 3 * DAY))
        run(retention.job, self.repo, HERE, retention.job.ask(document=EXPIRING, wait=wait), ALL)

    def unmark(self):
        """In part, where a run is brought back by address."""
        with self.repo.database.read() as tx:
            runs = marks.marking_runs(tx, self.repo.uid, *COMES_BACK)
            last = self.chance.choice(runs)
            stones = [one for one in tombstones.of_run(tx, self.repo.uid, last) if one.state in COMES_BACK]
        one = self.chance.choice(stones).address
        self.unmarked.add(last)
        unmarking.restore(self.repo, HERE, **self.chance.choice(({"run": last}, {"addresses": (one,)})))

    def purge(self):
        purge.empty(self.repo, HERE, older_than=timedelta(hours=5))

    def action(self):
        return self.chance.choice(list(CHOICES))


ACTS = (
    *("put", "put", "put", "put_again", "commit", "commit", "copy", "remove", "reset", "hand_out", "branch_off"),
    *("delete_branch", "tag", "delete_tag", "merge", "hold", "lift", "gc", "lifecycle", "expire", "collect"),
    *("restore", "purge", "retain", "retain", "unmark"),
)


def gone(repo):
    """What no reader may have any more."""
    with repo.database.read() as tx:
        return set(tombstones.every(tx, repo.uid).to_pylist())


def lived(seed, directory):
    chance = random.Random(seed)
    side = Lakeside(directory, chance)
    repo = side.repo
    side.days(chance.randint(2, 10))
    copy, copied_at = backup(side.database), side.clock.now
    side.days(chance.randint(1, 10))
    with suppress(DesiltError, IndexError):  # there may be none to choose from
        side.gc()
    repo.create_tag("last", "main")  # a last move that takes something away would be left out
    whole, condemned = backup(side.database), gone(repo)
    held = oracle.committed(repo) | oracle.staged(repo)
    lost = oracle.staged(repo)
    made = repo.generation()
    put_back(side.database, copy)
    side.clock.now += chance.choice((timedelta(minutes=1), 2 * DAY, 40 * DAY))
    behind = made - repo.generation()
    if behind > 1:
        for act in (side.gc, side.collect, side.purge, lambda: repo.create_tag("now", "main")):
            with pytest.raises(WentBack):
                act()
    assert held - condemned <= set(oracle.stored(repo))
    with suppress(DesiltError, IndexError):  # there may be none to choose from
        side.put()  # staging goes on
    found = survey(repo)
    assert len(found.moves) == behind
    recover(repo)
    moves.check(repo.core)
    assert brought_back(backup(side.database), whole) == refs_of(whole)
    # an object that was gone is gone; what the copy knew of the trash may be told more exactly
    back = condemned - gone(repo)
    with repo.database.read() as tx:  # of a run whose marks were taken back in part, all are
        assert {one.run for one in tombstones.recorded(tx, repo.uid, sorted(back)).values()} <= side.unmarked
    assert gone(repo) <= condemned
    assert check(repo).sound, check(repo).findings
    survived(side, held - condemned, lost, copied_at)
    return side


def survived(side, held, lost, copied_at):
    """Whatever runs come now: nothing that was committed goes, and what was staged only once somebody says so."""
    repo = side.repo
    side.clock.now += 3 * DAY
    run(uncommitted.job, repo, HERE, uncommitted.job.ask(), ALL)
    uploaded_since = {one for one in lost if oracle.uid_time(one.rsplit("/", 1)[-1]) >= copied_at}
    assert (held & oracle.committed(repo)) | (uploaded_since & held) <= set(oracle.stored(repo))
    run(uncommitted.job, repo, HERE, uncommitted.job.ask(after_restore=True, full=True), RELEASED)
    assert held & (oracle.committed(repo) | oracle.staged(repo)) <= set(oracle.stored(repo))
    side.clock.now += DAY
    run(uncommitted.job, repo, HERE, uncommitted.job.ask(), ALL)
    assert oracle.collectable(repo, repo.clock()) == set()


def told(seed, directory):
    try:
        return lived(seed, directory)
    except Exception as error:
        raise AssertionError(f"lived({seed})") from error


def test_a_database_restored_from_a_copy_is_as_it_was(tmp_path):
    for _ in range(8):
        told(random.randrange(2**40), tmp_path).database.close()


@pytest.mark.slow
def test_databases_restored_from_many_copies_are_as_they_were(tmp_path):
    for _ in range(1500):
        told(random.randrange(2**40), tmp_path).database.close()
