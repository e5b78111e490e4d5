"""The trash: what a run moved there comes back whole, or goes for good, and nothing else is touched."""

import itertools
import os
import shutil
import uuid
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from desilt.columns.schemas import MOMENT
from desilt.domain.policy import parse
from desilt.domain.run import new_run
from desilt.errors import BadRequest, Conflict, FencedOff, Gone, Locked, NotFound, WrongTime
from desilt.executors.executor import HERE
from desilt.executors.on_spark import OnSpark
from desilt.jobs import holds, trash
from desilt.jobs import purge as purging
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.runner import plan, run, sweep
from desilt.lake import Lake, repositories, schema
from desilt.lake.lake import locate
from desilt.lake.repository import LakeRepository
from desilt.objects import open_store
from desilt.objects.local import LocalStore
from desilt.objects.memory import MemoryStore
from desilt.objects.store import Outcome, Result
from desilt.records import ledger, locks, watermarks
from desilt.records import removals as tombstones
from desilt.records.database import open_database
from desilt.records.holds import HoldKind
from desilt.records.ledger import RunRow, RunState
from desilt.records.removals import State
from desilt.repository.gate import Batch, Safety
from desilt.repository.sealed import Sealed
from desilt.repository.snapshot import Revision
from desilt.runs import folder as folders
from desilt.runs import plan as plans
from desilt.runs import plan_files
from desilt.runs.folder import Folder
from desilt.runs.plan import Evidence, Plan
from desilt.runs.report import Amount
from desilt.runs.steps import Action
from desilt.sweep import batches as sweeping
from desilt.sweep import delete as removing
from desilt.sweep.limits import Limits
from desilt.sweep.purge import Purged
from desilt.testing import oracle
from desilt.testing.faults import After, Before, Crash, SteppedDatabase, Steps, stepped
from words import contents, days, put, read, stored

START = datetime(2026, 1, 1, tzinfo=UTC)
SURE = Limits(max_share=1.0, confirm=True)
TRASH = Action.TRASH


@pytest.fixture(autouse=True)
def _small_and_quick(monkeypatch):
    monkeypatch.setattr(MemoryStore, "delete_batch", 2)
    monkeypatch.setattr(removing, "PAUSES", (0.0,))


@pytest.fixture
def repo(memory_repo):
    return memory_repo


# ---- words


def collect(repo, **ask):
    """Run it; the report of the last run."""
    return run(uncommitted.job, repo, ask.pop("executor", HERE), uncommitted.job.ask(**ask), SURE)[-1]


def planned(repo, **ask):
    """The addresses that a plan names now, and its id."""
    made = plan(uncommitted.job, repo, HERE, uncommitted.job.ask(**ask)).run
    found = plans.read(Folder(repo.store, repo.prefix, folders.find(repo.store, repo.prefix, made)), repo.secret)
    rows = [plan_files.read(repo.store, file) for file in found.files]
    return {address for table in rows for address in table["address"].to_pylist()}, made


def with_garbage(repo, count=5):
    """``count`` objects that nothing holds, beside a committed and a staged one."""
    put(repo, "main", "kept")
    repo.commit("main", "kept")
    lost = {put(repo, "main", f"lost{number}", "x" * number) for number in range(count)}
    repo.reset("main")
    put(repo, "main", "staged")
    days(repo, 5)
    return lost


def in_trash(repo, run_id=""):
    """What lies in the trash, by address."""
    prefix = f"{repo.prefix}_desilt/trash/{run_id}"
    return {"branches" + key.partition("/branches")[2] for key in keys(repo, prefix)}


def keys(repo, prefix=""):
    return {key for batch in repo.store.list(prefix) for key in batch["key"].to_pylist()}


def objects(repo):
    return {key for key in keys(repo) if "/_desilt/journal/" not in key}


def bytes_of(repo):
    """Every object that is not a run's own, as it is."""
    return {key: repo.store.get(key) for key in keys(repo, repo.prefix) if "/_desilt/" not in key}


def states(repo, addresses):
    with repo.database.read() as tx:
        return {stone.state for stone in tombstones.recorded(tx, repo.uid, sorted(addresses)).values()}


def restore(repo, run_id="last", **more):
    return trash.bring_back(repo, more.pop("executor", HERE), run_id, **more)


def purge(repo, **more):
    return purging.empty(repo, HERE, **more)


def removed_by_rule(repo, *paths, action=TRASH, ref="main"):
    """What a lifecycle run does: committed objects are condemned and moved; the run's id."""
    opened = new_run("lifecycle", now=repo.clock(), started_at=repo.clock(), entropy=uuid.uuid4().bytes)
    entries = [repo.stat(ref, path) for path in paths]
    with repo.database.read() as tx:
        mark = repositories.mark_at(tx, repo.uid, repositories.generation(tx, repo.uid))
    made = Plan(
        run=opened.id,
        job="lifecycle",
        now=repo.clock(),
        repository=repo.uid,
        safety=Safety.ATOMIC,
        action=action,
        batch=1000,
        evidence=Evidence(
            "all",
            Revision(repo.generation(), mark),
            commits=1,
            held=1,
            stored=Amount(),
            measure="",
            judged=Sealed("", ""),
        ),
        steps=(),
    )
    columns = {
        "address": pa.array([entry.address for entry in entries]),
        "size_bytes": pa.array([entry.size for entry in entries]),
        "modified_at": pa.array([repo.clock()] * len(entries), MOMENT),
        "reason": pa.array(["expired"] * len(entries)),
        "detail": pa.array([f"a rule\0{path}" for path in paths]),
    }
    row = RunRow(opened.id, "lifecycle", "all", action, repo.clock(), None, RunState.SWEEPING, len(paths), 0)
    with locks.held(repo.database, repo.uid, run=opened.id) as lock:
        with repo.database.write() as tx:
            ledger.begin(tx, repo.uid, row)
        since = made.evidence.revision
        held = repo.gate.held(made.run, since, made.relies_on)
        sweeping.sweep_batch(repo, lock, made, Batch(made.run, 0, pa.table(columns), since), held)
        with repo.database.write() as tx:
            ledger.end(tx, repo.uid, opened.id, RunState.SWEPT, at=repo.clock(), fence=0)
    return opened.id


# ---- restore


def test_a_restore_brings_everything_back_byte_by_byte(repo):
    lost = with_garbage(repo)
    before = bytes_of(repo)
    report = collect(repo, action=TRASH)
    assert in_trash(repo, report.run) == lost
    back = restore(repo, report.run)
    assert (back.restored, back.bytes, back.missing, back.failed) == (5, 10, 0, 0)
    assert bytes_of(repo) == before
    assert in_trash(repo) == set()
    assert states(repo, lost) == {State.RESTORED}
    assert repo.tombstones(lost) == {}


def test_a_part_of_it_comes_back_by_prefix_and_the_rest_later(repo):
    repo.create_branch("dev", "main")
    theirs = {put(repo, "dev", f"dev{number}") for number in range(3)}
    repo.reset("dev")
    ours = with_garbage(repo)
    report = collect(repo, action=TRASH)
    dev = next(branch.uid for branch in repo.branches() if branch.name == "dev")
    assert restore(repo, report.run, prefix=f"branches/{dev}/").restored == 3
    assert in_trash(repo) == ours
    assert theirs <= set(oracle.stored(repo))
    assert restore(repo, report.run, prefix="branches/nosuch").restored == 0
    assert restore(repo, report.run).restored == 5
    assert in_trash(repo) == set()


def test_one_address_is_a_prefix_too(repo):
    lost = with_garbage(repo)
    collect(repo, action=TRASH)
    one = min(lost)
    assert restore(repo, prefix=one).restored == 1
    assert in_trash(repo) == lost - {one}
    assert states(repo, lost - {one}) == {State.TRASHED}


def test_committed_entries_are_gone_while_in_the_trash_and_read_again_after_a_restore(repo):
    put(repo, "main", "a", "1")
    put(repo, "main", "b", "2")
    repo.commit("main", "both")
    repo.create_tag("v1", "main")
    removed_by_rule(repo, "a")
    for ref in ("main", "v1"):
        with pytest.raises(Gone):
            read(repo, ref, "a")
    assert restore(repo).restored == 1
    for ref in ("main", "v1"):
        assert contents(repo, ref) == {"a": "1", "b": "2"}
    days(repo, 30)
    assert planned(repo, full=True)[0] == set()
    assert repo.copy("main", "a", "main", "again").address == repo.stat("main", "a").address


def test_restored_twice_is_restored_once(repo):
    with_garbage(repo)
    report = collect(repo, action=TRASH)
    restore(repo, report.run)
    before = bytes_of(repo)
    assert restore(repo, report.run).restored == 0
    assert bytes_of(repo) == before


def test_what_was_restored_is_kept_for_a_tickets_life_and_goes_again_later(repo):
    lost = with_garbage(repo)
    collect(repo, action=TRASH)
    restore(repo)
    margin = timedelta(minutes=10)
    for wait in (timedelta(0), timedelta(hours=24) + margin):
        repo.set_clock(repo.clock() + wait)
        for full in (False, True):
            report = plan(uncommitted.job, repo, HERE, uncommitted.job.ask(full=full))
            assert report.removed.objects == 0
            assert report.keep["restored"].objects == 5
    repo.set_clock(repo.clock() + timedelta(microseconds=1))
    assert collect(repo).swept.removed == 5
    assert not lost & set(oracle.stored(repo))
    assert states(repo, lost) == {State.REMOVED}


@pytest.mark.parametrize("back", [0, 1])
def test_looking_back_does_not_make_restored_objects_older(repo, back):
    with_garbage(repo)
    collect(repo, action=TRASH)
    restore(repo)
    assert planned(repo, now=repo.clock() - timedelta(days=back))[0] == set()


def test_a_plan_made_before_the_restore_does_not_remove_what_came_back(repo):
    lost = with_garbage(repo)
    names, early = planned(repo)
    assert names == lost
    repo.set_clock(repo.clock() + timedelta(minutes=1))
    collect(repo, action=TRASH)
    repo.set_clock(repo.clock() + timedelta(minutes=1))
    restore(repo)
    report = sweep(repo, HERE, early, SURE)
    assert (report.swept.asked, report.swept.held_again) == (0, 5)
    assert lost <= set(oracle.stored(repo))
    assert states(repo, lost) == {State.RESTORED}


def test_nor_when_all_of_it_happens_at_one_moment(repo):
    lost = with_garbage(repo)
    planned(repo)
    early = planned(repo)[1]  # its id says a millisecond later than the clock
    collect(repo, action=TRASH)
    restore(repo)
    sweep(repo, HERE, early, SURE)
    assert lost <= set(oracle.stored(repo))


def test_what_came_back_to_settled_partitions_is_found_again(repo):
    """No listing looks there; the next runs remove what a clean one would."""
    lost = with_garbage(repo)
    collect(repo, action=TRASH)
    restore(repo, prefix=min(lost))
    restore(repo)
    report = plan(uncommitted.job, repo, HERE)
    assert report.inputs["listed"] == 0  # it was an optimised run that kept them
    assert report.keep["restored"].objects == 5
    days(repo, 2)
    assert planned(repo)[0] == planned(repo, full=True)[0] == lost
    assert (
        plan(uncommitted.job, repo, HERE).stored
        == plan(uncommitted.job, repo, HERE, uncommitted.job.ask(full=True)).stored
    )
    assert collect(repo).swept.removed == 5
    assert planned(repo)[0] == planned(repo, full=True)[0] == set()


def test_a_plan_made_before_a_restore_does_not_make_later_runs_blind(repo):
    """Its watermark knows nothing of what came back."""
    with_garbage(repo)
    collect(repo, action=TRASH)
    put(repo, "main", "more")
    repo.reset("main", path="more")
    days(repo, 1.5)
    early = planned(repo)[1]
    restore(repo)
    assert sweep(repo, HERE, early, SURE).swept.removed == 1
    days(repo, 2)
    clean = planned(repo, full=True)[0]
    assert len(clean) == 5
    assert planned(repo)[0] == clean


def test_a_run_that_deleted_cannot_be_restored(repo):
    with_garbage(repo)
    collect(repo)
    with pytest.raises(Conflict, match="only runs with --to trash"):
        restore(repo)


def test_a_run_that_was_cut_off_is_finished_first(repo, monkeypatch):
    lost = with_garbage(repo)
    run_id = cut_off(repo, monkeypatch, batches=1)
    assert len(in_trash(repo, run_id)) == 2
    with pytest.raises(Conflict, match="was cut off; finish it first, with `desilt sweep`"):
        restore(repo, run_id)
    sweep(repo, HERE, run_id, SURE)
    with pytest.raises(Conflict, match="taken over"):  # whoever was cut off may only be asleep
        restore(repo, run_id)
    repo.set_clock(repo.clock() + timedelta(minutes=10))
    assert restore(repo, run_id).restored == 5
    assert lost <= set(oracle.stored(repo))


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_run_that_was_cut_off_and_given_up_can_be_restored(repo, monkeypatch, where):
    """Whether its last batch was moved or only condemned."""
    lost = with_garbage(repo)
    run_id = cut_off(repo, monkeypatch, batches=1, where=where)
    with repo.database.write() as tx:
        ledger.end(tx, repo.uid, run_id, RunState.ABANDONED, at=repo.clock(), fence=0)
    repo.set_clock(repo.clock() + timedelta(minutes=10))
    assert repo.tombstones(lost).keys() < lost  # the last batch was never condemned
    assert restore(repo, run_id).missing == 0
    assert lost <= set(oracle.stored(repo))
    assert repo.tombstones(lost) == {}
    assert in_trash(repo) == set()


def cut_off(repo, monkeypatch, *, batches, where="before"):
    """A run to the trash that dies before, or after, it moves batch number ``batches``; its id."""
    run_id, left, real = planned(repo, action=TRASH)[1], iter(range(batches)), repo.store.move_many

    def dying(pairs, **_):
        last = next(left, None) is None
        if last and where == "before":
            raise KeyboardInterrupt
        outcomes = real(pairs)
        if last:
            raise KeyboardInterrupt
        return outcomes

    with monkeypatch.context() as patch:
        patch.setattr(repo.store, "move_many", dying)
        with pytest.raises(KeyboardInterrupt):
            sweep(repo, HERE, run_id, SURE)
    return run_id


def test_runs_are_named_by_their_id_its_beginning_or_as_the_last(repo):
    with_garbage(repo)
    report = collect(repo, action=TRASH)
    days(repo, 1)
    later = collect(repo, action=TRASH)
    assert later.swept.removed == 0
    assert restore(repo).restored == 0  # the last one moved nothing
    with pytest.raises(BadRequest, match="2 runs begin with"):
        restore(repo, report.run[:3])
    with pytest.raises(NotFound, match="'nosuch'"):
        restore(repo, "nosuch")
    assert restore(repo, report.run[:-1]).restored == 5


def test_an_object_that_vanished_from_the_trash_is_told_as_missing(repo):
    lost = with_garbage(repo)
    report = collect(repo, action=TRASH)
    one = min(lost)
    repo.store.delete_many([f"{repo.prefix}_desilt/trash/{report.run}/{one}"])
    back = restore(repo)
    assert (back.restored, back.missing, back.failed) == (4, 1, 0)
    assert set(repo.tombstones(lost)) == {one}


def test_what_the_store_fails_at_stays_in_the_trash_for_another_try(repo, monkeypatch):
    lost = with_garbage(repo)
    collect(repo, action=TRASH)
    one, real = min(lost), repo.store.move_many

    def failing(pairs, **_):
        free = iter(real([pair for pair in pairs if not pair[1].endswith(one)]))
        return [Outcome(k, Result.FAILED, "no") if to.endswith(one) else next(free) for k, to in pairs]

    with monkeypatch.context() as patch:
        patch.setattr(repo.store, "move_many", failing)
        back = restore(repo)
    assert (back.restored, back.missing, back.failed) == (4, 0, 1)
    assert set(repo.tombstones(lost)) == {one}
    assert restore(repo).restored == 1
    assert repo.tombstones(lost) == {}


def test_what_a_run_failed_to_move_is_readable_again_after_a_restore(repo, monkeypatch):
    put(repo, "main", "a", "1")
    repo.commit("main", "a")
    with monkeypatch.context() as patch:
        patch.setattr(
            repo.store, "move_many", lambda pairs, **_: [Outcome(key, Result.FAILED, "no") for key, _ in pairs]
        )
        removed_by_rule(repo, "a")
    restore(repo)
    assert contents(repo, "main") == {"a": "1"}


def test_a_restore_needs_the_lock(repo):
    with_garbage(repo)
    collect(repo, action=TRASH)
    with locks.held(repo.database, repo.uid, run="another"):
        for act in (restore, purge):
            with pytest.raises(Locked):
                act(repo)
    assert restore(repo).restored == 5


@pytest.mark.parametrize("act", ["restore", "purge"])
def test_whoever_has_lost_the_lock_restores_and_purges_no_more(repo, monkeypatch, act):
    """It slept between taking the lock and the work itself."""
    with_garbage(repo)
    collect(repo, action=TRASH)
    days(repo, 30)
    module = {"restore": trash, "purge": purging}[act]
    before, real = objects(repo), getattr(module, act)

    def late(item):
        with repo.database.write() as tx:
            tx.execute("UPDATE locks SET beat_at = 0")
            locks.take(tx, repo.uid, run="another", owner="process 1 on elsewhere.example abcd")
        return real(item)

    monkeypatch.setattr(module, act, late)
    with pytest.raises(FencedOff):
        {"restore": restore, "purge": purge}[act](repo)
    assert objects(repo) == before


def test_on_spark_the_same_comes_back(spark, tmp_path):
    lake = Lake.create(locate(str(tmp_path / "lake")))
    repo = lake.create_repository("demo", clock_at=START)
    lost = with_garbage(repo)
    before = bytes_of(repo)
    collect(repo, action=TRASH, executor=OnSpark(spark))
    assert restore(repo, executor=OnSpark(spark)).restored == 5
    assert bytes_of(repo) == before
    days(repo, 3)
    collect(repo, action=TRASH, executor=OnSpark(spark))
    (gone,) = purging.empty(repo, OnSpark(spark), older_than=timedelta(0)).values()
    assert (gone.objects, gone.bytes, gone.failed) == (5, 10, 0)
    assert states(repo, lost) == {State.REMOVED}
    lake.close()


# ---- purge


def test_the_trash_is_emptied_after_its_days(repo):
    lost = with_garbage(repo)
    report = collect(repo, action=TRASH)
    repo.set_clock(repo.clock() + timedelta(days=7) - timedelta(seconds=1))
    assert purge(repo) == {}
    assert in_trash(repo) == lost
    before = bytes_of(repo)
    repo.set_clock(repo.clock() + timedelta(seconds=1))
    gone = purge(repo)
    assert {name: (one.objects, one.bytes, one.failed) for name, one in gone.items()} == {report.run: (5, 10, 0)}
    assert in_trash(repo) == set()
    assert bytes_of(repo) == before
    assert states(repo, lost) == {State.REMOVED}
    assert purge(repo) == {}


def test_the_days_count_from_when_a_run_ended(repo):
    with_garbage(repo)
    run_id = planned(repo, action=TRASH)[1]
    repo.set_clock(repo.clock() + timedelta(hours=20))
    sweep(repo, HERE, run_id, SURE)
    repo.set_clock(repo.clock() + timedelta(days=7) - timedelta(hours=1))
    assert purge(repo) == {}
    repo.set_clock(repo.clock() + timedelta(hours=1))
    assert set(purge(repo)) == {run_id}


def test_of_one_run_only_its_own_is_purged(repo):
    first = with_garbage(repo)
    early = collect(repo, action=TRASH).run
    second = {put(repo, "main", "more")}
    repo.reset("main", path="more")
    days(repo, 5)
    late = collect(repo, action=TRASH).run
    days(repo, 10)
    assert set(purge(repo, run_id=late)) == {late}
    assert in_trash(repo) == first
    assert (states(repo, first), states(repo, second)) == ({State.TRASHED}, {State.REMOVED})
    assert set(purge(repo, run_id=early[:-2])) == {early}
    assert in_trash(repo) == set()


def test_a_run_named_for_the_purge_still_has_its_days(repo):
    lost = with_garbage(repo)
    report = collect(repo, action=TRASH)
    assert purge(repo, run_id=report.run) == {}
    assert in_trash(repo) == lost
    assert set(purge(repo, run_id=report.run, older_than=timedelta(0))) == {report.run}


def test_a_run_that_is_not_known_purges_nothing(repo):
    lost = with_garbage(repo)
    collect(repo, action=TRASH)
    days(repo, 30)
    with pytest.raises(NotFound):
        purge(repo, run_id="nosuch")
    assert in_trash(repo) == lost


def test_an_empty_name_of_a_run_is_no_run(repo):
    """As `desilt purge --run "$RUN"` gives it where the variable is not set."""
    lost = with_garbage(repo)
    collect(repo, action=TRASH)
    days(repo, 30)
    with pytest.raises((BadRequest, NotFound)):
        purge(repo, run_id="")
    assert in_trash(repo) == lost


def test_a_purge_touches_nothing_outside_of_the_trash(repo):
    """Not what lies beside it under a name like it, nor another repository's."""
    with_garbage(repo)
    report = collect(repo, action=TRASH)
    beside = [
        f"{repo.prefix}_desilt/trash2/{report.run}/branches/x/y",
        f"{repo.prefix}_desilt/trashes",
        "repos/other/x",
    ]
    for key in beside:
        repo.store.put(key, [b"not ours"])
    before = keys(repo)
    inside = keys(repo, f"{repo.prefix}_desilt/trash/")
    days(repo, 30)
    purge(repo)
    assert before - keys(repo) == inside
    assert set(beside) <= keys(repo)


def test_what_was_restored_is_not_purged(repo):
    lost = with_garbage(repo)
    collect(repo, action=TRASH)
    one = min(lost)
    restore(repo, prefix=one)
    days(repo, 30)
    (gone,) = purge(repo).values()
    assert gone.objects == 4
    assert one in oracle.stored(repo)
    assert states(repo, [one]) == {State.RESTORED}


def test_what_was_purged_cannot_be_restored(repo):
    lost = with_garbage(repo)
    report = collect(repo, action=TRASH)
    days(repo, 30)
    purge(repo)
    assert restore(repo, report.run).restored == 0
    assert repo.tombstones(lost).keys() == lost
    assert not lost & set(oracle.stored(repo))


def test_what_was_purged_is_told_as_missing(repo):
    with_garbage(repo)
    collect(repo, action=TRASH)
    days(repo, 30)
    purge(repo)
    assert restore(repo).missing == 5


def test_what_the_store_fails_to_purge_is_counted_and_tried_again(repo, monkeypatch):
    with_garbage(repo)
    collect(repo, action=TRASH)
    days(repo, 30)
    with monkeypatch.context() as patch:
        patch.setattr(repo.store, "delete_many", lambda keys, **_: [Outcome(key, Result.FAILED, "no") for key in keys])
        (gone,) = purge(repo).values()
    assert (gone.objects, gone.bytes, gone.failed) == (0, 0, 5)
    (gone,) = purge(repo).values()
    assert (gone.objects, gone.failed) == (5, 0)
    assert in_trash(repo) == set()


def test_a_purge_holds_nobody_up_and_moves_no_watermark(repo):
    with_garbage(repo)
    collect(repo, action=TRASH)
    days(repo, 30)

    def mark():
        with repo.database.read() as tx:
            return watermarks.find(tx, repo.uid, uncommitted.JOB)

    before = mark()
    assert before is not None
    purge(repo)
    assert mark() == before


def test_a_clock_that_jumped_ahead_does_not_empty_the_trash(place):
    database = open_database(f"sqlite://{place}/lake.db", create=True)
    schema.create(database, storage="")
    store = open_store(f"memory://{uuid.uuid4().hex}")
    repo = Lake(database, store).create_repository("demo")
    put(repo, "main", "a")
    repo.commit("main", "a")
    removed_by_rule(repo, "a")
    ahead = Lake(database, store, clock=lambda: datetime.now(UTC) + timedelta(days=30)).repository("demo")
    with pytest.raises(WrongTime):
        run(uncommitted.job, ahead, HERE, uncommitted.job.ask(), SURE)
    with pytest.raises(WrongTime):
        purge(ahead)
    assert len(in_trash(repo)) == 1
    database.close()


@pytest.mark.parametrize("copied", [False, True], ids=["nothing was moved", "copies are in their places"])
def test_what_is_on_its_way_back_is_not_purged(repo, monkeypatch, copied):
    """A restore that failed, maybe after it had copied everything, as on S3: what is left is for another try."""
    lost = with_garbage(repo)
    before = bytes_of(repo)
    run_id = collect(repo, action=TRASH).run
    days(repo, 30)

    def failing(pairs, **_):
        for here, there in pairs if copied else ():
            repo.store.copy(here, there)
        return [Outcome(key, Result.FAILED, "503") for key, _ in pairs]

    with monkeypatch.context() as patch:
        patch.setattr(repo.store, "move_many", failing)
        assert restore(repo, run_id).failed == 5
    (gone,) = purge(repo).values()
    assert (gone.objects, gone.left) == (0, 5)
    assert in_trash(repo) == lost
    restore(repo, run_id)
    assert states(repo, lost) == {State.RESTORED}
    assert bytes_of(repo) == before


def test_of_what_came_back_a_copy_in_the_trash_goes_only_while_the_object_is_in_its_place(repo):
    lost = with_garbage(repo)
    run_id = collect(repo, action=TRASH).run
    restore(repo, run_id)
    there, moved = sorted(lost)[:2]
    folder = f"{repo.prefix}_desilt/trash/{run_id}/"
    repo.store.copy(repo.prefix + there, folder + there)
    repo.store.move_many([(repo.prefix + moved, folder + moved)])  # somebody who had lost the lock, and did not know
    days(repo, 30)
    (gone,) = purge(repo).values()
    assert (gone.objects, gone.left) == (1, 1)
    assert in_trash(repo) == {moved}


def test_what_lies_in_the_trash_unknown_is_left_there(repo):
    with_garbage(repo)
    run_id = collect(repo, action=TRASH).run
    stray = f"{repo.prefix}_desilt/trash/{run_id}/branches/b/p/stray"
    repo.store.put(stray, [b"whose?"])
    days(repo, 30)
    found = purge(repo)[run_id]
    assert (found.objects, found.left) == (5, 1)
    assert repo.store.get(stray) == b"whose?"


def test_the_trash_of_a_run_that_is_not_over_is_left_alone(repo, monkeypatch):
    lost = with_garbage(repo)
    run_id = cut_off(repo, monkeypatch, batches=1)
    assert in_trash(repo)
    days(repo, 30)
    assert purge(repo) == {}
    assert in_trash(repo) <= lost
    assert purge(repo, run_id=run_id) == {}


@pytest.mark.parametrize("by", [HoldKind.REF, HoldKind.PREFIX])
def test_what_people_order_to_be_kept_is_not_purged(repo, by):
    """Even if they do after it was moved to the trash; nothing of that run goes until they lift it."""
    for path in ("logs/1", "logs/2", "other"):
        put(repo, "main", path, path)
    commit = repo.commit("main", "logs")
    run_id = removed_by_rule(repo, "logs/1", "logs/2")
    another = removed_by_rule(repo, "other")
    days(repo, 30)
    repo.create_branch("old", "main")
    for path in ("logs/1", "logs/2"):
        repo.remove("main", path)
    repo.commit("main", "no logs")
    named = {HoldKind.REF: commit.id, HoldKind.PREFIX: "logs/"}[by]
    made = holds.hold(repo, by, named, reason="the court wants it")
    found = purge(repo)
    assert found[run_id] == Purged(held=2)
    assert found[another] == (Purged(held=1) if by is HoldKind.REF else Purged(1, len("other")))
    assert restore(repo, run_id).restored == 2
    assert read(repo, commit.id, "logs/1") == "logs/1"
    holds.lift(repo, made.id)
    assert purge(repo) == ({another: Purged(1, len("other"))} if by is HoldKind.REF else {})


def test_an_order_that_comes_while_the_trash_is_emptied_stops_it(repo, monkeypatch):
    put(repo, "main", "logs/1")
    repo.commit("main", "logs")
    run_id = removed_by_rule(repo, "logs/1")
    days(repo, 30)
    real = purging.purge

    def late(heap):
        holds.hold(repo, HoldKind.PREFIX, "logs/", reason="at the last moment")
        return real(heap)

    monkeypatch.setattr(purging, "purge", late)
    with pytest.raises(Conflict, match="while the trash was emptied"):
        purge(repo)
    assert restore(repo, run_id).restored == 1


@pytest.mark.parametrize("act", ["delete", "trash"])
def test_a_sweeper_that_sleeps_inside_of_a_batch_and_was_taken_over_removes_nothing_more(tmp_path, monkeypatch, act):
    """It slept between two objects, for a quarter of an hour; others have its lock."""
    lake = Lake.create(locate(str(tmp_path / "lake")))
    repo = lake.create_repository("demo", clock_at=START)
    for number in range(4):
        put(repo, "main", f"logs/{number}")
    put(repo, "main", "other", "x" * 1000)
    repo.commit("main", "logs")
    days(repo, 10)
    policy = parse({"logs": {"prefix": "logs/", "days": 4}})
    made = plan(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=policy, action=act)).run
    where, name = {"delete": (os, "unlink"), "trash": (LocalStore, "_move")}[act]
    real, asked, slept, now = getattr(where, name), [], [0.0], removing.elapsed
    monkeypatch.setattr(removing, "elapsed", lambda: now() + slept[0])

    def sleeping(*values, **more):
        if act == "delete" and "dir_fd" not in more:  # no object
            return real(*values, **more)
        asked.append(values)
        found = real(*values, **more)
        if len(asked) == 1:
            with repo.database.write() as tx:
                tx.execute("UPDATE locks SET beat_at = 0")
                locks.take(tx, repo.uid, run="another", owner="process 1 on elsewhere.example abcd")
            slept[0] = 900.0
        return found

    monkeypatch.setattr(where, name, sleeping)
    with pytest.raises(FencedOff):
        sweep(repo, HERE, made, SURE)
    assert len(asked) == 1
    assert len(stored(repo)) == 4
    lake.close()


# ---- crashes


def test_an_owner_that_was_taken_over_meanwhile_does_not_take_a_restore_back(repo, monkeypatch):
    """It slept while it moved a batch; a day later its run was given up and restored; then it goes on."""
    put(repo, "main", "a", "1")
    repo.commit("main", "a")
    real = repo.store.move_many

    def sleeping(pairs, **_):
        outcomes = real(pairs)
        monkeypatch.setattr(repo.store, "move_many", real)
        with repo.database.write() as tx:
            tx.execute("UPDATE locks SET beat_at = 0")
            (row,) = ledger.every(tx, repo.uid)
            ledger.end(tx, repo.uid, row.id, RunState.ABANDONED, at=repo.clock(), fence=0)
        assert restore(repo, row.id).restored == 1
        assert contents(repo, "main") == {"a": "1"}
        return outcomes

    monkeypatch.setattr(repo.store, "move_many", sleeping)
    with suppress(FencedOff):
        removed_by_rule(repo, "a")
    assert contents(repo, "main") == {"a": "1"}


class World:
    """A repository with something in the trash, of which copies can be made."""

    def __init__(self, folder):
        self.folder, self.numbers = folder, itertools.count()
        repo = self.open("first", {})
        self.lost = with_garbage(repo)
        self.before = bytes_of(repo)
        self.run = collect(repo, action=TRASH).run
        self.objects = repo.store._objects
        repo.database.close()

    def open(self, name, objects):
        url = f"sqlite://{self.folder}/{name}.db"
        new = not (self.folder / f"{name}.db").exists()
        database = open_database(url, create=True)
        store = open_store(f"memory://{uuid.uuid4().hex}")
        store._objects.update(objects)
        if new:
            schema.create(database, storage="")
            return Lake(database, store).create_repository("demo", clock_at=START)
        return Lake(database, store).repository("demo")

    def copy(self):
        name = f"copy{next(self.numbers)}"
        shutil.copy(self.folder / "first.db", self.folder / f"{name}.db")
        return self.open(name, self.objects)


@pytest.fixture
def world(place):
    return World(place)


def cut_off_everywhere(world, act, after_crash, *, prepare=lambda _: None):
    """``act`` dies before and after each of its steps in turn, each time in a copy of the world."""
    for kind in (Before, After):
        for number in itertools.count():
            repo = world.copy()
            prepare(repo)
            steps = Steps(kind(number))
            database, store = SteppedDatabase(repo.database, steps), stepped(repo.store, steps)
            dying = LakeRepository(replace(repo.core, database=database, store=store))
            try:
                act(dying)
                crashed = False
            except Crash:
                crashed = True
            with repo.database.write() as tx:
                tx.execute("UPDATE locks SET beat_at = 0")  # a minute later
            after_crash(repo)
            repo.database.close()
            if not crashed:
                break
        assert number > 8


def test_a_restore_that_is_cut_off_and_done_again_ends_the_same(world):
    def check(repo):
        restore(repo, world.run)
        assert bytes_of(repo) == world.before
        assert in_trash(repo) == set()
        assert states(repo, world.lost) == {State.RESTORED}
        days(repo, 2)
        assert planned(repo)[0] == world.lost

    cut_off_everywhere(world, lambda repo: restore(repo, world.run), check)


def test_between_a_restore_that_was_cut_off_and_its_end_nothing_is_lost(world):
    """Each object is in its place or in the trash, whole; and what is readable is there."""

    def check(repo):
        there, aside = set(oracle.stored(repo)), in_trash(repo)
        assert world.lost <= there | aside
        assert not world.lost & there & aside
        assert world.lost - repo.tombstones(world.lost).keys() <= there
        assert contents(repo, "main") == {"kept": "x", "staged": "x"}

    cut_off_everywhere(world, lambda repo: restore(repo, world.run), check)


def test_a_run_that_comes_after_a_restore_that_was_cut_off_moves_things_aside_at_most(world):
    def check(repo):
        later = collect(repo, action=TRASH).run
        for run_id in (world.run, later):
            restore(repo, run_id)
        assert bytes_of(repo) == world.before
        assert in_trash(repo) == set()

    cut_off_everywhere(world, lambda repo: restore(repo, world.run), check)


def test_a_run_after_a_restore_that_was_cut_off_deletes_nothing_that_was_safe_in_the_trash(world):
    def check(repo):
        collect(repo)
        assert world.lost <= set(oracle.stored(repo)) | in_trash(repo)

    cut_off_everywhere(world, lambda repo: restore(repo, world.run), check)


def test_a_purge_that_is_cut_off_and_done_again_ends_the_same(world):
    def check(repo):
        purge(repo)
        assert in_trash(repo) == set()
        assert states(repo, world.lost) == {State.REMOVED}
        assert {key: body for key, body in world.before.items() if key.removeprefix(repo.prefix) not in world.lost} == (
            bytes_of(repo)
        )
        assert contents(repo, "main") == {"kept": "x", "staged": "x"}

    cut_off_everywhere(world, purge, check, prepare=lambda repo: days(repo, 30))


def test_what_a_purge_that_was_cut_off_has_not_said_gone_can_still_be_restored(world):
    def check(repo):
        promised = {one for one in world.lost if states(repo, [one]) == {State.TRASHED}}
        back = restore(repo, world.run)
        assert (back.restored, back.missing) == (len(promised), len(world.lost - promised))
        assert promised <= set(oracle.stored(repo))

    cut_off_everywhere(world, purge, check, prepare=lambda repo: days(repo, 30))
