"""A transaction that took effect, and whose answer was lost: nothing is done twice, nothing is lost, nobody refuses.

The database commits, then the connection breaks: PostgreSQL's driver finds its socket closed. SQLite has no wire;
there the disk fails at the very last moment.
"""

import os
import socket
import sqlite3
import uuid
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from copies import backup, refs_of
from desilt.clock import ManualClock
from desilt.domain.policy import parse
from desilt.errors import AlreadyExists, Locked, NotFound, NothingToCommit, StorageFailed
from desilt.executors.executor import HERE
from desilt.jobs import holds
from desilt.jobs.collect import job as collection
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.lifecycle import kept_policy
from desilt.jobs.runner import plan, run
from desilt.jobs.unfinished import unfinished
from desilt.lake import Lake, journal, moves, repositories, schema
from desilt.lake.fsck import check
from desilt.objects import open_store
from desilt.records import ledger, locks
from desilt.records import removals as tombstones
from desilt.records.database import open_database
from desilt.records.holds import HoldKind
from desilt.records.ledger import RunState
from desilt.records.removals import State
from desilt.sweep.limits import Limits
from desilt.testing import oracle
from words import collecting, committed, contents, write

IN_DOUBT = "may have been done or not: look before you try again"
POLICY = parse({"r": {"prefix": "logs/", "days": 3}})
SURE = Limits(max_share=1.0, confirm=True)


class Loss:
    """Write transactions are counted, and the answer to one of them never comes."""

    def __init__(self):
        self._left, self._writing, self.done = None, set(), True

    def of(self, number, *, done=True):
        """Of transaction ``number`` from here on, the first being 0, which takes effect or does not."""
        self._left, self.done = number, done

    def happened(self):
        """Whether it came to that; either way, no more is lost."""
        left, self._left = self._left, None
        return left == -1

    def is_of(self, connection, statement):
        """Whether the answer to ``statement`` is the one."""
        if statement in ("BEGIN IMMEDIATE", b"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"):
            self._writing.add(id(connection))
        if statement != "COMMIT" or id(connection) not in self._writing:
            return False
        self._writing.remove(id(connection))
        if self._left is None or self._left < 0:
            return False
        self._left -= 1
        return self._left < 0


@pytest.fixture(autouse=True)
def loss(monkeypatch):
    """From the first connection on."""
    lost = Loss()
    connect, execute = sqlite3.connect, psycopg.Connection.execute

    class Disk(sqlite3.Connection):
        def execute(self, statement, *values):
            if lost.is_of(self, statement):
                super().execute("COMMIT" if lost.done else "ROLLBACK")
                raise sqlite3.OperationalError("disk I/O error")
            return super().execute(statement, *values)

    def wired(connection, statement, *values, **named):
        if lost.is_of(connection, statement):
            execute(connection, "COMMIT" if lost.done else "ROLLBACK")
            with socket.socket(fileno=os.dup(connection.fileno())) as wire:
                wire.shutdown(socket.SHUT_RDWR)
        return execute(connection, statement, *values, **named)  # on a closed socket, the driver finds out for itself

    monkeypatch.setattr(sqlite3, "connect", lambda *values, **named: connect(*values, factory=Disk, **named))
    monkeypatch.setattr(psycopg.Connection, "execute", wired)
    return lost


@pytest.fixture
def busy(repo):
    """With something for every kind of move."""
    committed(repo, "main", a="1")
    repo.create_branch("dev", "main")
    repo.create_branch("old", "main")
    committed(repo, "dev", c="3")
    repo.create_tag("v1", "main")
    holds.hold(repo, HoldKind.PREFIX, "a", reason="a court's order")
    return repo


def staged_and_committed(repo):
    write(repo, "old", b="2")
    return lambda: repo.commit("old", "one")


def reverted(repo):
    last = repo.resolve("dev").commit.id
    return lambda: repo.revert("dev", last)


def first_hold_lifted(repo):
    first = holds.every(repo)[0].id
    return lambda: holds.lift(repo, first)


MOVES = {  # what is done, in which of its write transactions, and what whoever tries again is told
    "commit": (staged_and_committed, 2, NothingToCommit),
    "merge": (lambda repo: lambda: repo.merge("dev", "main"), 1, None),
    "revert": (reverted, 1, NothingToCommit),
    "branch": (lambda repo: lambda: repo.create_branch("new", "main"), 1, AlreadyExists),
    "tag": (lambda repo: lambda: repo.create_tag("v2", "main"), 1, AlreadyExists),
    "hold": (lambda repo: lambda: holds.hold(repo, HoldKind.REF, "dev", reason="a court's order"), 1, None),
    "policy": (lambda repo: lambda: kept_policy.keep(repo, POLICY), 1, None),
    "delete a branch": (lambda repo: lambda: repo.delete_branch("old"), 1, NotFound),
    "delete a tag": (lambda repo: lambda: repo.delete_tag("v1"), 1, NotFound),
    "lift a hold": (first_hold_lifted, 1, NotFound),
}


@pytest.mark.parametrize(("prepare", "number", "again"), MOVES.values(), ids=MOVES)
def test_a_move_whose_answer_was_lost_was_made_once(busy, loss, prepare, number, again):
    act, before = prepare(busy), busy.generation()
    loss.of(number)
    with pytest.raises(StorageFailed, match=IN_DOUBT):
        act()
    assert loss.happened()
    assert busy.generation() == before + 1
    with busy.database.read() as tx:  # it is on record, and no cut-off
        assert repositories.mark_at(tx, busy.uid, before + 1) == journal.read(busy.core, before + 1).mark
    assert moves.cut_off(busy.core) is None
    moves.check(busy.core)
    made, found = refs_of(backup(busy.database)), check(busy)
    assert found.sound
    assert not found.counts
    if again is not None:
        with pytest.raises(again):
            act()
        assert refs_of(backup(busy.database)) == made
    else:
        act()
    busy.create_tag("next", "main")
    moves.check(busy.core)


def test_a_move_that_was_not_made_though_it_is_on_record_is_made_by_the_next(busy, loss):
    """So nobody may be told that nothing was changed: a disk that was full, and has room again, has the tag."""
    loss.of(1, done=False)
    with pytest.raises(StorageFailed, match=IN_DOUBT):
        busy.create_tag("v2", "main")
    assert loss.happened()
    assert {tag.name for tag in busy.tags()} == {"v1"}
    busy.create_tag("next", "main")
    assert {tag.name for tag in busy.tags()} == {"v1", "v2", "next"}


def test_a_hold_asked_for_again_is_there_twice_and_each_holds(busy, loss):
    loss.of(1)
    with pytest.raises(StorageFailed, match=IN_DOUBT):
        holds.hold(busy, HoldKind.PREFIX, "c", reason="another order")
    assert loss.happened()
    holds.hold(busy, HoldKind.PREFIX, "c", reason="another order")
    assert [one.value for one in holds.every(busy)] == ["a", "c", "c"]


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_commit_whose_answer_was_lost_is_in_history_once(busy, loss, number):
    """Lost when staging was sealed, when the move was announced, or when the branch moved."""
    write(busy, "main", b="2")
    loss.of(number)
    with pytest.raises(StorageFailed, match=IN_DOUBT):
        busy.commit("main", "one")
    assert loss.happened()
    assert contents(busy, "main") == {"a": "1", "b": "2"}
    if number < 2:
        busy.commit("main", "one")
    with pytest.raises(NothingToCommit):
        busy.commit("main", "one")
    assert [commit.message for commit in busy.log("main")].count("one") == 1
    assert contents(busy, "main@") == {"a": "1", "b": "2"}
    assert not list(busy.uncommitted("main"))


def test_what_was_staged_without_an_answer_is_staged_once(busy, loss):
    busy.put("main", "before", b"0")  # its partition is open
    loss.of(0)
    with pytest.raises(StorageFailed, match=IN_DOUBT):
        busy.put("main", "b", b"2")
    assert loss.happened()
    first = busy.stat("main", "b").address
    assert busy.put("main", "b", b"2").address != first
    assert contents(busy, "main") == {"a": "1", "b": "2", "before": "0"}


# ---- runs


@pytest.fixture
def swept(database_url, monkeypatch):
    """A repository that runs can sweep, by a clock that stands still."""
    monkeypatch.setattr(locks, "SILENCE", timedelta(seconds=-1))  # whoever lost its lock's answer is this very process
    clock = ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
    database, store = open_database(database_url, create=True), open_store(f"memory://{uuid.uuid4().hex}")
    schema.create(database, storage="")
    store.clock = clock
    yield Lake(database, store, clock=clock).create_repository("demo")
    database.close()


def litter(repo, number):
    """Old garbage, and things that are held."""
    for name in ("x", "y", "z"):
        repo.put("main", name, f"{name}{number}".encode())
        repo.reset("main", path=name)
    repo.put("main", f"kept{number}", b"kept")
    repo.commit("main", "kept")
    repo.put("main", "staged", b"staged")
    repo.core.clock.now += timedelta(days=5)


def test_a_run_that_lost_any_answer_is_gone_on_with_and_takes_nothing_twice(swept, loss):
    seen = set()
    for number in range(100):
        litter(swept, number)
        garbage, everything = oracle.collectable(swept, swept.clock()), set(oracle.stored(swept))
        loss.of(number)
        told = IN_DOUBT  # or nothing at all: that the lock was given back is not waited for
        try:
            run(uncommitted.job, swept, HERE, limits=SURE)
        except StorageFailed as error:
            told = str(error)
        assert IN_DOUBT in told
        if not loss.happened():
            break
        left, gone = set(oracle.stored(swept)), swept.tombstones(sorted(garbage)).keys()
        assert everything - left <= gone  # what is gone was condemned first
        seen.add((bool(unfinished(swept)), gone == garbage, left >= garbage))
        moves.check(swept.core)
        run(uncommitted.job, swept, HERE, limits=SURE)
        assert everything - set(oracle.stored(swept)) == garbage
        assert unfinished(swept) == []
    assert {(True, False, True), (True, True, True), (True, True, False), (False, True, False)} <= seen
    adds_up(swept, removed=3 * (number + 1))
    plan(collection.job, swept, HERE, collecting())
    assert check(swept).sound


def adds_up(repo, *, removed):
    with repo.database.read() as tx:
        runs = ledger.every(tx, repo.uid)
        batches = [row for one in runs for row in ledger.batches(tx, repo.uid, one.id)]
        stones = [stone for one in runs for stone in tombstones.of_run(tx, repo.uid, one.id)]
    assert {one.state for one in runs} == {RunState.SWEPT}
    assert {stone.state for stone in stones} == {State.REMOVED}
    assert sum(row.asked for row in batches) == sum(row.removed for row in batches) == len(stones) == removed


def test_a_lock_taken_without_an_answer_is_kept_until_its_owner_is_silent(swept, loss, monkeypatch):
    litter(swept, 0)
    loss.of(0)
    with pytest.raises(StorageFailed, match=IN_DOUBT):
        run(uncommitted.job, swept, HERE, limits=SURE)
    assert loss.happened()
    with monkeypatch.context() as patch:
        patch.setattr(locks, "SILENCE", timedelta(hours=1))
        with pytest.raises(Locked):
            run(uncommitted.job, swept, HERE, limits=SURE)
    assert run(uncommitted.job, swept, HERE, limits=SURE)[-1].swept.removed == 3
