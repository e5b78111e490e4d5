"""A restored database and what it has forgotten: each thing a recovery must not leave out, and restores in mid-run."""

import tempfile
import uuid
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial

import pyarrow as pa
import pytest

from copies import backup, cut_off, put_back
from desilt.cli.lake.recover import sentence
from desilt.clock import ManualClock
from desilt.domain.policy import parse
from desilt.errors import Conflict, FencedOff, FirstRun, Locked, StagedLost, WentBack, WrongTime
from desilt.executors.executor import HERE
from desilt.jobs import execution, holds, purge, trash
from desilt.jobs.collect import job as collection
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.lifecycle import kept_policy
from desilt.jobs.runner import plan, run, sweep
from desilt.lake import Lake, journal, moves, restored, schema
from desilt.lake.fsck import check
from desilt.lake.gate import TRACES, LakeGate
from desilt.objects import open_store
from desilt.records import locks, traces, watermarks
from desilt.records.database import open_database
from desilt.records.holds import HoldKind
from desilt.recovery import outcomes
from desilt.recovery import recover as recovery
from desilt.recovery.recover import recover
from desilt.runs.steps import Action
from desilt.sweep import batches as sweeping
from desilt.sweep.limits import Limits
from desilt.sweep.outcome import read_outcome, write_outcome
from words import contents, forget_files, stage, stored, tables

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
ALL = Limits(max_share=1.0, confirm=True, allow_empty=True)
LOGS = parse({"logs": {"prefix": "logs/", "days": 4}})


@pytest.fixture
def repo():
    """One object to a batch."""
    clock = ManualClock(START)
    with tempfile.TemporaryDirectory() as directory:
        database = open_database(f"sqlite://{directory}/lake.db", create=True)
        schema.create(database, storage="")
        store = open_store(f"memory://{uuid.uuid4().hex}")
        store.clock, store.delete_batch = clock, 1
        yield Lake(database, store, clock=clock).create_repository("demo", ticket_life=timedelta(hours=1))
        database.close()


def later(repo, **time):
    repo.clock.now += timedelta(**time)


def moves_on(repo):
    """More than one move: nobody takes a restore for a move that was cut off."""
    number = repo.generation()
    repo.create_tag(f"moved-{number}", "main")
    repo.create_tag(f"moved-{number}-again", "main")


def killed(*_):
    raise KeyboardInterrupt


def gc(repo, **ask):
    return run(uncommitted.job, repo, HERE, uncommitted.job.ask(**ask), ALL)[-1]


def expire_logs(repo):
    return run(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=LOGS, action=Action.TRASH), ALL)[-1]


def committed(repo, *paths):
    for path in paths:
        repo.put("main", path, path.encode())
    repo.commit("main", "some")


def at_call(monkeypatch, where, name, number, act):
    """Do ``act`` just before that call of a function."""
    real, calls = getattr(where, name), []

    def call(*values, **named):
        calls.append(name)
        if len(calls) == number:
            act()
        return real(*values, **named)

    monkeypatch.setattr(where, name, call)


@pytest.fixture
def garbage(repo):
    """Three batches of it."""
    committed(repo, "data/a")
    entries = [repo.put("main", f"lost/{number}", b"x") for number in range(3)]
    repo.reset("main")
    later(repo, days=9)
    return entries


# ---- what runs removed since


def test_what_a_run_moved_to_the_trash_can_be_brought_back_after_a_recovery(repo):
    committed(repo, "logs/a", "data/b")
    copy = backup(repo.database)
    later(repo, days=9)
    expire_logs(repo)
    assert len(stored(repo)) == 1
    put_back(repo.database, copy)
    recover(repo)
    assert trash.bring_back(repo, HERE, "last").restored == 1
    assert contents(repo, "main") == {"logs/a": "logs/a", "data/b": "data/b"}


def test_what_came_back_from_the_trash_is_not_gone_after_a_recovery(repo):
    committed(repo, "logs/a", "data/b")
    later(repo, days=9)
    expire_logs(repo)
    copy = backup(repo.database)
    trash.bring_back(repo, HERE, "last")
    put_back(repo.database, copy)
    with pytest.raises(WentBack, match="brought back from the trash"):
        gc(repo)
    recover(repo)
    assert contents(repo, "main") == {"logs/a": "logs/a", "data/b": "data/b"}


@pytest.mark.parametrize("name", ["00000000", "ffffffff"])
def test_what_one_try_removed_is_gone_whatever_another_try_of_the_same_batch_says(repo, garbage, name):
    """Two tasks had the same batch: each wrote down what it saw, in files whose names are in no order."""
    copy = backup(repo.database)
    done = gc(repo)
    (key,) = [
        key
        for listed in repo.store.list()
        for key in listed["key"].to_pylist()
        if f"{done.run}/" in key and "/outcome/00000000-" in key
    ]
    rows = read_outcome(repo.store, key)
    other = rows.set_column(3, "result", pa.array(["failed"] * len(rows)))
    write_outcome(repo.store, f"{key.rpartition('-')[0]}-{name}.parquet", other)
    put_back(repo.database, copy)
    recover(repo)
    assert len(repo.tombstones([one.address for one in garbage])) == len(garbage)


def test_a_run_of_whose_batches_one_was_tried_often_may_still_be_at_work_on_another(repo, garbage, monkeypatch):
    """As many files as batches, or more: and yet the last batch has none."""
    copy = backup(repo.database)
    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        at_call(patch, sweeping, "sweep_batch", 3, killed)
        gc(repo)
    found = [key for listed in repo.store.list() for key in listed["key"].to_pylist() if "/outcome/" in key]
    assert len(found) == len(garbage) - 1
    write_outcome(repo.store, f"{found[0].rpartition('-')[0]}-ffffffff.parquet", read_outcome(repo.store, found[0]))
    put_back(repo.database, copy)
    with pytest.raises(Conflict, match="was at work"):
        recover(repo)
    later(repo, minutes=11)
    recover(repo)


def test_what_was_condemned_by_the_copy_and_came_back_since_is_not_gone(repo, monkeypatch):
    """The copy was made between a batch's condemnation and its removal."""
    committed(repo, "logs/a", "data/b")
    later(repo, days=9)
    copies = []
    with monkeypatch.context() as patch:
        at_call(patch, sweeping, "remove", 1, lambda: copies.append(backup(repo.database)))
        expire_logs(repo)
    later(repo, hours=1)
    trash.bring_back(repo, HERE, "last")
    put_back(repo.database, copies[0])
    later(repo, hours=1)
    with repo.database.write() as tx:
        tx.execute("UPDATE locks SET owner = ''")  # whoever had it is gone
    with pytest.raises(WentBack):
        expire_logs(repo)
    recover(repo)
    assert contents(repo, "main") == {"logs/a": "logs/a", "data/b": "data/b"}


def test_a_run_whose_plan_is_not_whole_does_not_stand_in_the_way(repo):
    repo.put("main", "lost", b"x")
    committed(repo, "data/a")
    copy = backup(repo.database)
    repo.put("main", "lost", b"y")
    repo.reset("main")
    later(repo, days=9)
    ran = gc(repo).run
    for key in [key for batch in repo.store.list(f"{repo.prefix}_desilt/runs/gc/{ran}/plan/") for key in batch["key"]]:
        repo.store.delete_many([key.as_py()])
    put_back(repo.database, copy)
    assert recovery.survey(repo).unreadable == (ran,)
    recover(repo)
    assert check(repo).sound


def test_a_run_that_was_cut_off_is_not_taken_to_have_removed_what_lies_in_the_trash_of_another(repo, monkeypatch):
    committed(repo, "data/a")
    for number in range(3):
        repo.put("main", f"lost/{number}", b"x")
    repo.reset("main")
    copy = backup(repo.database)
    later(repo, days=9)
    first = plan(uncommitted.job, repo, HERE, uncommitted.job.ask(action=Action.TRASH)).run
    later(repo, minutes=1)
    second = plan(uncommitted.job, repo, HERE).run
    sweep(repo, HERE, first, ALL)
    with monkeypatch.context() as patch:
        patch.setattr(sweeping, "write_outcome", killed)
        with pytest.raises(KeyboardInterrupt):
            sweep(repo, HERE, second, ALL)
    put_back(repo.database, copy)
    with pytest.raises(Conflict, match="try again in 10 minutes"):  # what it has sent may still be on its way
        recover(repo)
    later(repo, minutes=10)
    recover(repo)
    assert trash.bring_back(repo, HERE, first).restored == 3


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
    later(repo, minutes=10)
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


# ---- what nobody can tell, or must be asked again


@pytest.mark.parametrize("told", [False, True], ids=["cut off", "done"])
def test_a_hold_whose_lifting_is_the_last_on_record_stays(repo, told):
    """Whether anybody was told that it is lifted, no journal says."""
    committed(repo, "logs/a", "data/b")
    copy = backup(repo.database)
    repo.create_tag("v1", "main")
    hold = holds.hold(repo, HoldKind.PREFIX, "logs/", reason="a court's order")
    lift = partial(holds.lift, hold_id=hold.id)
    lift(repo) if told else cut_off(repo, lift)
    put_back(repo.database, copy)
    found, made = recovery.survey(repo), recover(repo)
    assert made.moves == 2
    assert f"left the last one out (hold {hold.id} lifted" in sentence(made, found)
    assert [one.id for one in holds.every(repo)] == [hold.id]
    repo.create_tag("v2", "main")
    moves.check(repo.core)


def test_a_commit_that_was_cut_off_and_whose_table_is_gone_since_is_left_out(repo):
    committed(repo, "data/a")
    copy = backup(repo.database)
    repo.create_tag("v1", "main")
    repo.put("main", "data/b", b"b")
    made = cut_off(repo, lambda repo: repo.commit("main", "cut off"))
    (name, *_) = sorted(tables(repo, made) - tables(repo, repo.resolve("main").commit))
    put_back(repo.database, copy)
    forget_files(repo, [name])
    assert recover(repo).moves == 1
    assert contents(repo, "main") == {"data/a": "data/a"}
    committed(repo, "data/c")
    assert check(repo, deep=True).sound


def test_a_policy_that_was_cut_off_is_set_and_whoever_runs_by_it_is_asked(repo):
    """Whoever set it may have seen the other one since."""
    committed(repo, "logs/a", "logs/b", "data/c")
    kept_policy.keep(repo, LOGS)
    later(repo, days=9)
    run(lifecycle.job, repo, HERE, lifecycle.job.ask(), ALL)
    kept_policy.keep(repo, parse({"logs": {"prefix": "logs/", "days": 90}}))
    committed(repo, "logs/d")
    later(repo, days=9)
    cut_off(repo, lambda repo: kept_policy.keep(repo, LOGS))
    with pytest.raises(FirstRun):
        run(lifecycle.job, repo, HERE, lifecycle.job.ask(), Limits(max_share=1.0))
    assert kept_policy.kept(repo).policy == LOGS


def test_what_was_agreed_to_before_a_recovery_is_asked_again(repo):
    """The last policy on record may be one that was cut off: a run by it is looked at first."""
    usual = Limits(max_share=1.0)
    committed(repo, "logs/a", "logs/b", "data/c")
    kept_policy.keep(repo, LOGS)
    later(repo, days=9)
    run(lifecycle.job, repo, HERE, lifecycle.job.ask(), ALL)
    committed(repo, "logs/d")
    copy = backup(repo.database)
    kept_policy.keep(repo, LOGS)
    put_back(repo.database, copy)
    later(repo, hours=1)
    recover(repo)
    later(repo, days=9)
    gc(repo, after_restore=True)
    later(repo, days=1)
    with pytest.raises(FirstRun):
        run(lifecycle.job, repo, HERE, lifecycle.job.ask(), usual)
    assert run(lifecycle.job, repo, HERE, lifecycle.job.ask(), ALL)[-1].swept.removed == 1


def collect_all(repo):
    return run(collection.job, repo, HERE, collection.job.ask(unreached_for=timedelta(0)), ALL)[-1]


@pytest.mark.parametrize("job", [expire_logs, collect_all])
def test_what_a_lost_staged_copy_may_have_kept_stays_until_somebody_says_otherwise(repo, job):
    repo.create_branch("dev", "main")
    repo.put("dev", "logs/a", b"wanted elsewhere")
    repo.commit("dev", "a")
    committed(repo, "data/b")
    copy = backup(repo.database)
    address = repo.copy("dev", "logs/a", "dev", "precious/a").address
    if job is collect_all:
        repo.delete_branch("dev", force=True)
    moves_on(repo)
    put_back(repo.database, copy)
    recover(repo)
    later(repo, days=9)
    with pytest.raises(StagedLost, match="--after-restore"):
        job(repo)
    assert address in stored(repo)
    gc(repo, after_restore=True)
    job(repo)
    assert address not in stored(repo)


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
    repo.create_branch("other", "main")
    gc(repo, after_restore=True, branch="other")  # says nothing of the rest
    gc(repo)
    assert lost in stored(repo)
    assert gc(repo, after_restore=True).swept.removed == 1
    assert restored.kept_since(repo.core) is None


@pytest.mark.parametrize("job", [lambda repo: gc(repo), expire_logs], ids=["gc", "lifecycle"])
def test_objects_in_a_partition_that_the_database_never_opened_are_evidence_enough(repo, job):
    """Nothing has moved since the copy, so the journal has nothing to tell."""
    committed(repo, "data/a", "logs/b")
    copy = backup(repo.database)
    later(repo, hours=3)
    lost = repo.put("main", "staged/since", b"x").address
    put_back(repo.database, copy)
    later(repo, days=9)
    with pytest.raises(WentBack, match="which the database never opened"):
        job(repo)
    recover(repo)
    gc(repo)
    assert lost in stored(repo)


def test_what_a_lost_commit_took_the_place_of_is_left_alone_for_a_day(repo):
    """The database that wrote down when it was dropped is lost."""
    old = repo.put("main", "a", b"staged for weeks").address
    later(repo, days=40)
    repo.create_tag("v1", "main")
    copy = backup(repo.database)
    later(repo, hours=1)
    repo.put("main", "a", b"new")
    repo.commit("main", "a")
    repo.create_tag("v2", "main")
    put_back(repo.database, copy)
    recover(repo)
    assert gc(repo).keep["dropped"].objects == 1
    later(repo, days=1, hours=1)
    gc(repo)
    assert old not in stored(repo)


def test_what_goes_with_a_branch_that_is_deleted_again_is_left_alone_for_a_day(repo):
    repo.create_branch("dev", "main")
    old = repo.put("dev", "a", b"staged for weeks").address
    later(repo, days=40)
    repo.create_tag("v1", "main")
    copy = backup(repo.database)
    repo.delete_branch("dev", force=True)
    repo.create_tag("v2", "main")
    put_back(repo.database, copy)
    later(repo, days=3)
    recover(repo)
    assert gc(repo).keep["dropped"].objects == 1
    assert old in stored(repo)


def test_what_was_put_after_the_restore_by_a_clock_that_is_behind_stays_staged(repo):
    committed(repo, "data/a")
    copy = backup(repo.database)
    later(repo, hours=5)
    committed(repo, "data/b")
    later(repo, hours=1)
    committed(repo, "data/c")
    put_back(repo.database, copy)
    later(repo, minutes=-4)
    repo.put("main", "new", b"after the restore")
    later(repo, minutes=4)
    recover(repo)
    assert "new" in contents(repo, "main")


# ---- restored while a run is at work


def test_a_database_that_is_restored_between_two_batches_stops_a_sweep(repo, garbage, monkeypatch):
    """Somebody has committed what the plan names; the copy does not know."""

    def restore():
        copy = backup(repo.database)
        stage(repo, "main", *(entry for entry in garbage if entry.address in stored(repo)))
        repo.commit("main", "they were wanted after all")
        moves_on(repo)
        put_back(repo.database, copy)

    at_call(monkeypatch, sweeping, "sweep_batch", 2, restore)
    with pytest.raises(WentBack):
        gc(repo)
    assert len(stored(repo)) == 3
    later(repo, minutes=10)
    recover(repo)
    assert len(contents(repo, "main")) == 3


def test_a_database_that_goes_back_within_a_batch_stops_a_sweep(repo, garbage, monkeypatch):
    copies = []

    def move():
        copies.append(backup(repo.database))
        moves_on(repo)

    at_call(monkeypatch, LakeGate, "condemn", 1, move)
    at_call(monkeypatch, LakeGate, "condemn", 2, lambda: put_back(repo.database, copies[0]))
    with pytest.raises(WentBack, match="a moment ago"):
        gc(repo)
    assert len(stored(repo)) == len(garbage)


def test_a_run_that_is_cut_off_as_it_begins_is_finished_by_the_next(repo, garbage, monkeypatch):
    """Its record is there, and the database does not know of it."""
    made = plan(uncommitted.job, repo, HERE).run

    def begin(_):
        with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
            patch.setattr(execution, "let_pass", killed)
            sweep(repo, HERE, made, ALL)

    cut_off(repo, begin)
    with repo.database.write() as tx:
        tx.execute("UPDATE locks SET owner = ''")  # whoever had it is gone
    reports = run(uncommitted.job, repo, HERE, uncommitted.job.ask(), ALL)
    assert reports[0].run == made
    assert [report.swept.removed for report in reports] == [len(garbage), 0]


# ---- two at once


def test_whoever_works_with_the_database_that_was_lost_is_stopped_by_a_recovery(repo, garbage):
    """It is not lost after all: two machines, two databases, one store."""
    copy = backup(repo.database)
    moves_on(repo)
    lost = backup(repo.database)
    put_back(repo.database, copy)
    recover(repo)
    put_back(repo.database, lost)
    for act in (gc, lambda repo: repo.create_tag("v9", "main"), lambda repo: purge.empty(repo, HERE)):
        with pytest.raises(WentBack, match="database recovered"):
            act(repo)
    assert {one.address for one in garbage} <= stored(repo)


def test_a_recovery_of_a_sound_lake_changes_nothing_and_takes_nothing_from_anybody(repo):
    """Somebody's move is under way, and another's run at work."""
    cut_off(repo, lambda repo: repo.create_tag("v1", "main"))
    assert not recovery.survey(repo)
    recover(repo)
    assert restored.kept_since(repo.core) is None
    with locks.held(repo.database, repo.uid, run="another") as lock:
        with pytest.raises(Locked):
            recover(repo)
        with repo.database.write() as tx:
            locks.check(tx, lock)
    repo.create_tag("v2", "main")
    assert {tag.name for tag in repo.tags()} == {"v1", "v2"}


def test_a_recovery_by_a_wrong_clock_is_refused(repo):
    copy = backup(repo.database)
    moves_on(repo)
    put_back(repo.database, copy)
    ahead = Lake(repo.database, repo.store, clock=lambda: START + 365 * DAY).repository("demo")
    with pytest.raises(WrongTime):
        recover(ahead)
    assert restored.kept_since(repo.core) is None


def test_of_two_recoveries_the_one_that_was_overtaken_changes_nothing(repo, monkeypatch):
    copy = backup(repo.database)
    moves_on(repo)
    whole = repo.generation()
    put_back(repo.database, copy)

    def overtaken():
        with repo.database.write() as tx:
            tx.execute("UPDATE locks SET fence = fence + 1")

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
        assert traces.quiet_since(tx, repo.uid, now, [ahead], sources=TRACES) == START
        traces.agree(tx, repo.uid, now)
        assert traces.quiet_since(tx, repo.uid, now, [ahead], sources=TRACES) is None
