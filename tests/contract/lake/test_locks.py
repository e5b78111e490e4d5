"""One run at a time: who is dead or silent is taken over, and whoever was taken over does nothing more."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from desilt.domain.times import microseconds
from desilt.errors import FencedOff, Locked
from desilt.records import locks
from desilt.records.database import open_database
from desilt.records.locks import Lock
from desilt.records.postgres import PostgreSQLTransaction
from desilt.records.sqlite import SQLiteTransaction
from patience import FOR_EVER, until

OTHER_HOST = "process 1 on elsewhere.example abcd"

# a process that takes the lock, says so, and holds it until its input ends
HOLDER = """
import sys
from desilt.errors import Locked
from desilt.records import locks
from desilt.records.database import open_database
database = open_database(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
try:
    with locks.held(database, sys.argv[2], run=sys.argv[3]) as lock:
        print("won", lock.fence, flush=True)
        sys.stdin.readline()
except Locked:
    print("lost", flush=True)
"""


@pytest.fixture
def uid(repo):
    return repo.uid


def taken(lake, uid, run="run-1", owner=OTHER_HOST):
    with lake.database.write() as tx:
        return locks.take(tx, uid, run=run, owner=owner)


def checked(lake, lock):
    with lake.database.write() as tx:
        locks.check(tx, lock)


def holder(lake, uid):
    with lake.database.read() as tx:
        found = locks.holder(tx, uid)
    return found and found[0]


def silent_for(lake, uid, length):
    """As if the owner had last said so that long ago."""
    with lake.database.write() as tx:
        tx.execute("UPDATE locks SET beat_at = ? WHERE repository = ?", microseconds(tx.now() - length), uid)


def silence(lake, uid):
    with lake.database.read() as tx:
        return tx.now() - locks.holder(tx, uid)[1]


@pytest.fixture
def noon(monkeypatch):
    """For both databases, time stands still."""
    for kind in (SQLiteTransaction, PostgreSQLTransaction):
        monkeypatch.setattr(kind, "now", lambda _: datetime(2026, 1, 1, 12, tzinfo=UTC))


@contextmanager
def process(lake, uid, run):
    """Another process that is about to take the lock; it is gone afterwards."""
    command = [sys.executable, "-c", HOLDER, lake.database.url, uid, run]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        try:
            assert started.stdout.readline() == "ready\n"
            yield started
        finally:
            started.kill()


def go(started):
    started.stdin.write("\n")
    started.stdin.flush()


# ---- one owner


def test_the_lock_is_held_for_the_block_and_free_after_it(lake, uid):
    with locks.held(lake.database, uid, run="run-1") as lock:
        assert holder(lake, uid) == "run-1"
        checked(lake, lock)
    assert holder(lake, uid) is None
    with locks.held(lake.database, uid, run="run-2"):
        assert holder(lake, uid) == "run-2"


def test_who_comes_second_is_told_who_has_it(lake, uid):
    with (
        locks.held(lake.database, uid, run="run-1") as lock,
        pytest.raises(Locked) as raised,
        locks.held(lake.database, uid, run="run-2"),
    ):
        pytest.fail("two have it")
    assert raised.value.exit_code == 11
    assert (raised.value.run, raised.value.owner) == ("run-1", f"process {os.getpid()} on {socket.gethostname()}")
    assert re.fullmatch(
        r"run run-1 is at work \(process \d+ on \S+, last heard of \d+ seconds? ago\); .*", str(raised.value)
    )
    assert lock.run == "run-1"


def test_the_first_owner_goes_on_while_others_try(lake, uid):
    with locks.held(lake.database, uid, run="run-1") as lock:
        for _ in range(3):
            with pytest.raises(Locked):
                taken(lake, uid, "run-2")
        checked(lake, lock)


def test_repositories_do_not_share_a_lock(lake, uid):
    other = lake.create_repository("other")
    with locks.held(lake.database, uid, run="run-1") as one, locks.held(lake.database, other.uid, run="run-2") as two:
        checked(lake, one)
        checked(lake, two)


def test_an_error_in_the_block_frees_it(lake, uid):
    with pytest.raises(RuntimeError, match="in the middle"), locks.held(lake.database, uid, run="run-1"):
        raise RuntimeError("in the middle")
    assert holder(lake, uid) is None
    taken(lake, uid, "run-2")


# ---- fences


def test_the_fence_only_grows(lake, uid):
    fences = []
    for number in range(3):
        with locks.held(lake.database, uid, run=f"run-{number}") as lock:
            fences.append(lock.fence)
    fences.append(taken(lake, uid).fence)
    silent_for(lake, uid, timedelta(minutes=2))
    fences.append(taken(lake, uid, "run-9").fence)
    assert fences == sorted(set(fences))


def test_a_released_lock_is_good_for_nothing(lake, uid):
    with locks.held(lake.database, uid, run="run-1") as lock:
        pass
    with pytest.raises(FencedOff) as raised:
        checked(lake, lock)
    assert raised.value.exit_code == 11


def test_a_lock_that_never_was_is_good_for_nothing(lake, uid):
    with pytest.raises(FencedOff):
        checked(lake, Lock(uid, 1, "run-1"))
    lock = taken(lake, uid)
    for fence in (lock.fence - 1, lock.fence + 1):
        with pytest.raises(FencedOff):
            checked(lake, Lock(uid, fence, "run-1"))


def test_an_old_owner_that_wakes_up_finds_the_door_closed_and_does_not_open_it_for_others(lake, uid):
    old = taken(lake, uid)
    silent_for(lake, uid, timedelta(minutes=2))
    new = taken(lake, uid, "run-2")
    with pytest.raises(FencedOff, match=r"run run-1 was silent for too long, and run run-2 took over"):
        checked(lake, old)
    with lake.database.write() as tx:
        assert not locks.beat(tx, old)
        locks.release(tx, old)
    checked(lake, new)
    assert holder(lake, uid) == "run-2"


def test_nobody_takes_over_while_a_transaction_that_checked_is_open(lake, uid):
    """Else a batch could be condemned by somebody who has lost the lock before it is."""
    lock, order = taken(lake, uid), []
    silent_for(lake, uid, timedelta(minutes=2))

    def take_over():
        taken(lake, uid, "run-2")
        order.append("taken over")

    thread = threading.Thread(target=take_over)
    with lake.database.write() as tx:
        locks.check(tx, lock)
        thread.start()
        thread.join(0.3)
        order.append("condemned")
    thread.join(FOR_EVER)
    assert order == ["condemned", "taken over"]


def test_a_leap_passes_over_fences_that_this_database_never_gave_out(lake, uid):
    for _ in range(2):
        with locks.held(lake.database, uid, run="recover", leap=True) as lock:
            assert lock.fence > 1_000_000
    assert taken(lake, uid).fence > 2_000_000


# ---- silence and death


@pytest.mark.usefixtures("noon")
def test_an_owner_on_another_machine_is_believed_for_a_minute(lake, uid):
    taken(lake, uid)
    for length in (0, 30, 60):
        silent_for(lake, uid, timedelta(seconds=length))
        with pytest.raises(Locked):
            taken(lake, uid, "run-2")
    silent_for(lake, uid, timedelta(seconds=60.001))
    assert taken(lake, uid, "run-2").run == "run-2"


def test_a_beat_that_a_faster_clock_wrote_is_believed(lake, uid):
    taken(lake, uid)
    silent_for(lake, uid, timedelta(seconds=-30))
    with pytest.raises(Locked):
        taken(lake, uid, "run-2")


def test_a_heartbeat_keeps_the_lock_of_a_long_run(lake, uid, monkeypatch):
    monkeypatch.setattr(locks, "BEAT_SECONDS", 0.01)
    monkeypatch.setattr(locks, "SILENCE", timedelta(hours=1))
    with locks.held(lake.database, uid, run="run-1") as lock:
        for _ in range(3):
            silent_for(lake, uid, timedelta(hours=2))
            until(lambda: silence(lake, uid) < timedelta(hours=1))  # its heart has beaten since
            with pytest.raises(Locked):
                taken(lake, uid, "run-2")
        checked(lake, lock)


def test_without_a_heartbeat_it_would_be_lost(lake, uid, monkeypatch):
    monkeypatch.setattr(locks, "BEAT_SECONDS", 60)
    monkeypatch.setattr(locks, "SILENCE", timedelta(seconds=0.2))
    with locks.held(lake.database, uid, run="run-1") as lock:
        time.sleep(0.3)
        taken(lake, uid, "run-2")
        with pytest.raises(FencedOff):
            checked(lake, lock)
    assert holder(lake, uid) == "run-2"  # the end of the first does not free the second's


def test_the_heart_stops_beating_with_the_block(lake, uid, monkeypatch):
    monkeypatch.setattr(locks, "BEAT_SECONDS", 0.02)
    before = threading.active_count()
    with locks.held(lake.database, uid, run="run-1"):
        assert threading.active_count() == before + 1
    assert threading.active_count() == before


def test_from_a_process_that_was_killed_it_is_taken_over_at_once(lake, uid):
    with process(lake, uid, "run-1") as other:
        go(other)
        assert other.stdout.readline() == "won 1\n"
        with pytest.raises(Locked) as raised:  # it lives
            taken(lake, uid, "run-2")
        assert raised.value.owner == f"process {other.pid} on {socket.gethostname()}"
        other.send_signal(signal.SIGSTOP)  # it does nothing, but lives
        with pytest.raises(Locked):
            taken(lake, uid, "run-2")
        other.kill()
        other.wait()
        with locks.held(lake.database, uid, run="run-2") as lock:
            assert lock.fence == 2
            checked(lake, lock)
            with pytest.raises(FencedOff):
                checked(lake, Lock(uid, 1, "run-1"))


def test_what_has_the_number_of_a_dead_process_elsewhere_proves_nothing(lake, uid):
    with subprocess.Popen(["true"]) as dead:
        pass
    taken(lake, uid, owner=f"process {dead.pid} on elsewhere.example abcd")
    with pytest.raises(Locked):
        taken(lake, uid, "run-2")


# ---- races


def test_of_threads_that_race_one_wins(lake, uid):
    for _ in range(5):
        barrier, results, over = threading.Barrier(4), [], threading.Event()

        def racing(barrier=barrier, results=results, over=over):
            barrier.wait()
            try:
                with locks.held(lake.database, uid, run="run"):
                    results.append("won")
                    over.wait(FOR_EVER)
            except Locked:
                results.append("lost")

        threads = [threading.Thread(target=racing) for _ in range(4)]
        for thread in threads:
            thread.start()
        until(lambda results=results: len(results) == 4)
        over.set()
        for thread in threads:
            thread.join()
        assert sorted(results) == ["lost"] * 3 + ["won"]


def test_of_those_who_race_to_take_over_one_wins(lake, uid):
    """All of them saw that the owner is silent; the second must see that it is no more."""
    for round_number in range(5):
        with lake.database.write() as tx:
            tx.execute("DELETE FROM locks")
        taken(lake, uid)
        silent_for(lake, uid, timedelta(minutes=2))
        barrier, won = threading.Barrier(4), []

        def racing(number, barrier=barrier, won=won):
            database = open_database(lake.database.url)  # as another process would
            barrier.wait()
            try:
                with database.write() as tx:
                    won.append(locks.take(tx, uid, run=f"run-{number}", owner=OTHER_HOST).run)
            except Locked:
                pass
            database.close()

        threads = [threading.Thread(target=racing, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert won == [holder(lake, uid)], round_number


def test_of_processes_that_race_one_wins(lake, uid):
    with process(lake, uid, "run-1") as one, process(lake, uid, "run-2") as two:
        for started in (one, two):
            go(started)
        said = [started.stdout.readline().split()[0] for started in (one, two)]
        assert sorted(said) == ["lost", "won"]
        winner = (one, two)[said.index("won")]
        assert holder(lake, uid) == f"run-{said.index('won') + 1}"
        go(winner)
        assert winner.wait(FOR_EVER) == 0
    assert holder(lake, uid) is None
