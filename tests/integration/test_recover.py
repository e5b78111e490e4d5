"""A restored database and what it has forgotten: each thing a recovery must not leave out, and restores in mid-run."""

import tempfile
import uuid
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from copies import backup, cut_off, put_back
from desilt.clock import ManualClock
from desilt.domain.policy import parse
from desilt.errors import FencedOff, WentBack
from desilt.jobs import lifecycle, outcomes, recovery, running, trash, uncommitted
from desilt.jobs.job import Ask
from desilt.jobs.recovery import recover
from desilt.jobs.running import plan, run, sweep
from desilt.lake import Lake, journal, locks, restored, schema, traces, watermarks
from desilt.lake.database import open_database
from desilt.lake.fsck import check
from desilt.objects import open_store
from desilt.runs.plan import Action
from desilt.sources.spread import in_process
from desilt.sweep import sweeping
from desilt.sweep.guard import Limits
from desilt.testing import oracle
from words import contents, stage

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
ALL = Limits(max_share=1.0, confirm=True, allow_empty=True)
LOGS = parse({"logs": {"prefix": "logs/", "days": 4}})
FAST = "/dev/shm" if Path("/dev/shm").is_dir() else None


@pytest.fixture
def repo():
    """One object to a batch."""
    clock = ManualClock(START)
    with tempfile.TemporaryDirectory(dir=FAST) as directory:
        database = open_database(f"sqlite://{directory}/lake.db", create=True)
        schema.create(database, storage="")
        store = open_store(f"memory://{uuid.uuid4().hex}")
        store.clock, store.delete_batch = clock, 1
        yield Lake(database, store, clock=clock).create_repository("demo", ticket_life=timedelta(hours=1))
        database.close()


def later(repo, **time):
    repo.clock.now += timedelta(**time)


def stored(repo):
    return set(oracle.stored(repo))


def moves_on(repo):
    """More than one move: nobody takes a restore for a move that was cut off."""
    number = repo.generation()
    repo.create_tag(f"moved-{number}", "main")
    repo.create_tag(f"moved-{number}-again", "main")


def killed(*_):
    raise KeyboardInterrupt


def gc(repo, **ask):
    return run(uncommitted.job, repo, in_process, Ask(**ask), ALL)[-1]


def expire_logs(repo):
    return run(lifecycle.job, repo, in_process, Ask(policy=LOGS, action=Action.TRASH), ALL)[-1]


def committed(repo, *paths):
    for path in paths:
        repo.put("main", path, path.encode())
    repo.commit("main", "some")


# ---- what runs removed since


def test_what_a_run_moved_to_the_trash_can_be_brought_back_after_a_recovery(repo):
    committed(repo, "logs/a", "data/b")
    copy = backup(repo.database)
    later(repo, days=9)
    expire_logs(repo)
    assert len(stored(repo)) == 1
    put_back(repo.database, copy)
    recover(repo)
    assert trash.bring_back(repo, in_process, "last").restored == 1
    assert contents(repo, "main") == {"logs/a": "logs/a", "data/b": "data/b"}


def test_what_came_back_from_the_trash_is_not_gone_after_a_recovery(repo):
    committed(repo, "logs/a", "data/b")
    later(repo, days=9)
    expire_logs(repo)
    copy = backup(repo.database)
    trash.bring_back(repo, in_process, "last")
    moves_on(repo)
    put_back(repo.database, copy)
    recover(repo)
    assert contents(repo, "main") == {"logs/a": "logs/a", "data/b": "data/b"}


@pytest.mark.parametrize("cut", [False, True], ids=["", "cut off before it wrote down what it did"])
def test_what_is_staged_by_the_copy_and_was_removed_since_is_dropped(repo, monkeypatch, cut):
    committed(repo, "data/a")
    repo.put("main", "staged", b"staged when the copy was made")
    copy = backup(repo.database)
    repo.reset("main")
    later(repo, days=9)

    with monkeypatch.context() as patch:
        if cut:
            patch.setattr(sweeping, "write_outcome", killed)
            with pytest.raises(KeyboardInterrupt):
                gc(repo)
        else:
            gc(repo)
    assert len(stored(repo)) == 1
    moves_on(repo)
    put_back(repo.database, copy)
    assert "staged" in {entry.path for entry in repo.list("main")}
    assert recover(repo).dropped == 1
    assert contents(repo, "main") == {"data/a": "data/a"}
    assert check(repo, deep=True).sound


def test_the_next_run_looks_at_everything_again(repo):
    committed(repo, "data/a")
    later(repo, days=9)
    gc(repo)
    copy = backup(repo.database)
    moves_on(repo)
    put_back(repo.database, copy)
    with repo.database.read() as tx:
        assert any(saved for _, saved in watermarks.every(tx, repo.uid))
    recover(repo)
    with repo.database.read() as tx:
        assert all(not saved for _, saved in watermarks.every(tx, repo.uid))


# ---- what was staged since


def test_uploads_since_the_copy_stay_through_every_run_until_somebody_says_otherwise(repo):
    committed(repo, "data/a")
    copy = backup(repo.database)
    later(repo, hours=3)
    lost = repo.put("main", "staged/since", b"x").address
    moves_on(repo)
    put_back(repo.database, copy)
    recover(repo)
    for _ in range(3):
        later(repo, days=9)
        assert gc(repo).keep["since the copy"].objects == 1
    assert lost in stored(repo)
    assert gc(repo, after_restore=True).swept.removed == 1
    assert restored.kept_since(repo.core) is None


def test_objects_in_a_partition_that_the_database_never_opened_are_evidence_enough(repo):
    """Nothing has moved since the copy, so the journal has nothing to tell."""
    committed(repo, "data/a")
    copy = backup(repo.database)
    later(repo, hours=3)
    lost = repo.put("main", "staged/since", b"x").address
    put_back(repo.database, copy)
    later(repo, days=9)
    with pytest.raises(WentBack, match="which the database never opened"):
        gc(repo)
    recover(repo)
    gc(repo)
    assert lost in stored(repo)


# ---- restored while a run is at work


@pytest.fixture
def garbage(repo):
    """Three batches of it."""
    committed(repo, "data/a")
    entries = [repo.put("main", f"lost/{number}", b"x") for number in range(3)]
    repo.reset("main")
    later(repo, days=9)
    return entries


def at_call(monkeypatch, where, name, number, act):
    """Do ``act`` just before that call of a function."""
    real, calls = getattr(where, name), []

    def call(*values, **named):
        calls.append(name)
        if len(calls) == number:
            act()
        return real(*values, **named)

    monkeypatch.setattr(where, name, call)


def test_a_database_that_is_restored_between_two_pieces_of_a_sweep_stops_it(repo, garbage, monkeypatch):
    """Somebody has committed what the plan names; the copy does not know."""
    monkeypatch.setattr(sweeping, "BATCHES_TO_A_PIECE", 1)

    def restore():
        copy = backup(repo.database)
        stage(repo, "main", *(entry for entry in garbage if entry.address in stored(repo)))
        repo.commit("main", "they were wanted after all")
        moves_on(repo)
        put_back(repo.database, copy)

    at_call(monkeypatch, running, "sweep_piece", 2, restore)
    with pytest.raises(WentBack):
        gc(repo)
    assert len(stored(repo)) == 3
    recover(repo)
    assert len(contents(repo, "main")) == 3


def test_a_database_that_is_restored_between_two_batches_of_a_piece_stops_it(repo, garbage, monkeypatch):
    copies = []

    def move():
        copies.append(backup(repo.database))
        moves_on(repo)

    at_call(monkeypatch, sweeping, "condemn", 1, move)
    at_call(monkeypatch, sweeping, "condemn", 2, lambda: put_back(repo.database, copies[0]))
    with pytest.raises(WentBack, match="a moment ago"):
        gc(repo)
    assert len(stored(repo)) == len(garbage)


def test_a_run_that_is_cut_off_as_it_begins_is_finished_by_the_next(repo, garbage, monkeypatch):
    """Its record is there, and the database does not know of it."""
    made = plan(uncommitted.job, repo, in_process).run

    def begin(_):
        with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
            patch.setattr(running, "let_pass", killed)
            sweep(repo, in_process, made, ALL)

    cut_off(repo, begin)
    with repo.database.write() as tx:
        tx.execute("UPDATE locks SET owner = ''")  # whoever had it is gone
    reports = run(uncommitted.job, repo, in_process, Ask(), ALL)
    assert reports[0].run == made
    assert [report.swept.removed for report in reports] == [len(garbage), 0]


# ---- two at once


def test_of_two_recoveries_the_one_that_was_overtaken_changes_nothing(repo, monkeypatch):
    copy = backup(repo.database)
    moves_on(repo)
    whole = repo.generation()
    put_back(repo.database, copy)

    def overtaken():
        with repo.database.write() as tx:
            locks.leap(tx, repo.uid)

    at_call(monkeypatch, recovery.outcomes, "remember", 1, lambda: None)
    at_call(monkeypatch, recovery.staging, "drop_gone", 1, lambda: pytest.fail("it went on"))
    real = outcomes.revise
    monkeypatch.setattr(outcomes, "revise", lambda *values: (real(*values), overtaken()))
    with pytest.raises(FencedOff):
        recover(repo)
    assert repo.generation() < whole


def test_moves_that_others_make_while_the_journal_is_listed_are_no_restore(repo, monkeypatch):
    at_call(monkeypatch, journal, "after", 1, lambda: moves_on(repo))
    assert journal.newer(repo.core)[1] == []


# ---- clocks


def test_a_trace_from_the_future_is_none(repo):
    """Somebody's clock was ahead; that is no reason to doubt one that was called right."""
    later(repo, days=90)
    now = repo.clock()
    ahead = now + DAY
    with repo.database.write() as tx:
        assert traces.quiet_since(tx, repo.core, now, [ahead]) == START
        traces.agree(tx, repo.uid, now)
        assert traces.quiet_since(tx, repo.core, now, [ahead]) is None
