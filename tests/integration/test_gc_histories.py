"""Histories that once lost something, or stopped every later run. None does now."""

import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from desilt.domain.run import Run, started
from desilt.errors import (
    Conflict,
    FencedOff,
    HistoryLost,
    TooMuch,
    Unreadable,
    WentBack,
    WrongClock,
    WrongTime,
)
from desilt.executors.executor import HERE, Here
from desilt.jobs import trash
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.runner import plan, run, sweep
from desilt.lake import Lake, staging
from desilt.lake.gate import LakeGate
from desilt.lake.lake import locate
from desilt.lake.repository import LakeRepository
from desilt.lake.writes import Writer
from desilt.objects import open_store
from desilt.objects.cloud import CloudStore
from desilt.objects.local import LocalStore
from desilt.objects.store import Outcome, Result
from desilt.records import ledger, locks, watermarks
from desilt.records import removals as tombstones
from desilt.records.database import open_database
from desilt.records.ledger import RunState
from desilt.records.removals import State
from desilt.recovery.recover import recover
from desilt.runs import plan as plans
from desilt.runs.folder import Folder
from desilt.runs.steps import Action
from desilt.sweep import batches as sweeping
from desilt.sweep import delete as removing
from desilt.sweep.limits import Limits
from desilt.testing import oracle
from words import contents, read, stored

START = datetime(2026, 1, 1, tzinfo=UTC)
SURE = Limits(max_share=1.0, confirm=True)
TRASH = Action.TRASH
MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr(removing, "PAUSES", (0.0, 0.0))


# ---- words


def put(repo, branch, path):
    return repo.put(branch, path, b"x").address


def later(repo, wait=timedelta(0), **more):
    repo.set_clock(repo.clock() + wait + timedelta(**more))


def with_garbage(repo):
    """A committed object, and the address of one that nothing holds."""
    put(repo, "main", "kept")
    repo.commit("main", "kept")
    lost = put(repo, "main", "lost")
    repo.reset("main")
    later(repo, days=5)
    return lost


def planned(repo, **ask):
    return plan(uncommitted.job, repo, HERE, uncommitted.job.ask(**ask)).run


def swept(repo, run_id, *, executor=HERE, limits=SURE):
    return sweep(repo, executor, run_id, limits).swept


def collect(repo, *, limits=SURE, **ask):
    """What the last run came to."""
    return run(uncommitted.job, repo, HERE, uncommitted.job.ask(**ask), limits)[-1].swept


def restore(repo, run_id="last", *, executor=HERE):
    return trash.bring_back(repo, executor, run_id).restored


def in_trash(repo):
    return [key for batch in repo.store.list(f"{repo.prefix}_desilt/trash/") for key in batch["key"].to_pylist()]


def state(repo, address):
    with repo.database.read() as tx:
        return tombstones.recorded(tx, repo.uid, [address])[address].state


def batches(repo, run_id):
    with repo.database.read() as tx:
        return ledger.batches(tx, repo.uid, run_id)


def is_readable(repo, address):
    """Its bytes are where they were, and no tombstone says otherwise."""
    assert repo.store.get(repo.prefix + address) == b"x"
    assert repo.tombstones([address]) == {}


def file_of(repo, run_id, name):
    return f"{repo.prefix}_desilt/runs/gc/{run_id}/{name}"


def damage(repo, run_id, name, change):
    key = file_of(repo, run_id, name)
    repo.store.put(key, [change(repo.store.get(key))])


def flipped(body, place, bit=1):
    return body[:place] + bytes([body[place] ^ bit]) + body[place + 1 :]


def cut_off(repo, monkeypatch, run_id):
    """The sweep of this plan dies when it has condemned its batch, and removed nothing."""

    def dying(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(sweeping, "remove", dying)
        with pytest.raises(KeyboardInterrupt):
            swept(repo, run_id)


def backup(repo):
    repo.database.close()
    return repo.database.path.read_bytes()


def from_backup(repo, copy):
    """The repository after a disaster: its database is an older one, its objects are as they were."""
    repo.database.close()
    path = repo.database.path
    for file in path.parent.glob(path.name + "*"):
        file.unlink()
    path.write_bytes(copy)
    return Lake(repo.database, open_store(repo.store.uri)).repository(repo.name)


def put_late(repo, monkeypatch, path, meanwhile):
    """An upload whose object is stored; only after ``meanwhile`` it is staged."""
    real = Writer._stage_upload

    def stage(self, *values):
        meanwhile()
        return real(self, *values)

    with monkeypatch.context() as patch:
        patch.setattr(Writer, "_stage_upload", stage)
        return put(repo, "main", path)


def planned_in_flight(repo, monkeypatch, path):
    """An upload that a plan took for garbage before it was staged: its address, and the plan."""
    runs = []
    ahead = repo.clock() + timedelta(days=30)
    return put_late(repo, monkeypatch, path, lambda: runs.append(planned(repo, now=ahead))), runs[0]


# ---- a database from a backup


def test_a_plan_is_not_swept_after_the_database_was_restored(repo):
    """Refs have moved on since, further than the plan had seen them."""
    with_garbage(repo)
    precious = put(repo, "main", "precious")
    copy = backup(repo)
    repo.reset("main")
    for number in range(5):
        repo.create_tag(f"then{number}", "main")
    later(repo, days=2)
    made = planned(repo)
    repo = from_backup(repo, copy)
    later(repo, days=2)
    with pytest.raises(WentBack):
        repo.commit("main", "precious")
    with pytest.raises(WentBack):
        swept(repo, made)
    recover(repo, give_up=True)
    repo.commit("main", "precious")
    for number in range(8):
        repo.create_tag(f"now{number}", "main")
    for limits in (SURE, replace(SURE, after_restore=True)):
        with pytest.raises(HistoryLost, match="a history that the database no longer has"):
            swept(repo, made, limits=limits)
    is_readable(repo, precious)
    assert contents(repo, "main") == {"kept": "x", "precious": "x"}


@pytest.mark.parametrize("last", [planned, collect])
def test_what_a_restored_database_has_forgotten_is_kept_until_somebody_says_that_it_may_go(repo, last):
    put(repo, "main", "kept")
    repo.commit("main", "kept")
    later(repo, days=1)
    copy = backup(repo)
    forgotten = {put(repo, "main", f"work{number}") for number in range(4)}
    repo.commit("main", "work")
    repo.create_tag("worked", "main")
    later(repo, days=3)
    last(repo)
    repo = from_backup(repo, copy)
    later(repo, days=4)
    for act in (collect, lambda repo: repo.create_tag("now", "main")):
        with pytest.raises(WentBack, match="desilt lake recover"):
            act(repo)
    recover(repo, give_up=True)
    with pytest.raises(WentBack, match="--after-restore"):
        collect(repo)  # what earlier plans saw, it does not know
    assert forgotten < stored(repo)
    assert collect(repo, limits=replace(SURE, after_restore=True)).removed == 0  # the plan leaves them alone
    assert collect(repo, after_restore=True, limits=replace(SURE, after_restore=True)).removed == 4
    assert collect(repo).removed == 0  # said once is enough
    assert contents(repo, "main") == {"kept": "x"}


def test_a_database_that_lacks_one_move_is_given_it_back(repo):
    put(repo, "main", "kept")
    repo.commit("main", "kept")
    later(repo, days=1)
    copy = backup(repo)
    forgotten = put(repo, "main", "work")
    made = repo.commit("main", "work")
    later(repo, days=3)
    repo = from_backup(repo, copy)
    later(repo, days=4)
    with pytest.raises(WentBack, match="the journal has a move after"):
        collect(repo)
    recover(repo)
    assert collect(repo).removed == 0
    assert forgotten in stored(repo)
    assert repo.resolve("main").commit == made
    assert contents(repo, "main") == {"kept": "x", "work": "x"}


def test_what_a_commit_held_is_kept_when_its_row_is_lost(repo):
    """Nothing names it, and the database is a copy from before it was made: only what an earlier plan saw tells."""
    with_garbage(repo)
    repo.create_branch("dev", "main")
    held = put(repo, "dev", "work")
    commit = repo.commit("dev", "work").id
    repo.delete_branch("dev", force=True)
    later(repo, days=3)
    collect(repo)
    with repo.database.write() as tx:
        assert tx.execute("DELETE FROM commits WHERE id = ?", commit)
        tx.execute("UPDATE repositories SET commit_rows = commit_rows - 1")
    later(repo, days=1)
    with pytest.raises(WentBack, match=r"there are 2 commits, plan .* saw 3"):
        collect(repo)
    is_readable(repo, held)
    assert collect(repo, full=True, limits=replace(SURE, after_restore=True)).removed == 1


def test_nothing_is_planned_when_a_commit_is_lost_that_something_names(repo):
    with_garbage(repo)
    put(repo, "main", "more")
    commit = repo.commit("main", "more").id
    with repo.database.write() as tx:
        assert tx.execute("DELETE FROM commits WHERE id = ?", commit)
    with pytest.raises(Unreadable, match=f"commit {commit} is missing"):
        planned(repo)


# ---- sleepers


def silence(repo, monkeypatch):
    """A machine sleeps for 61 seconds: its lock may be taken over, and its clock tells when it wakes up."""
    with repo.database.write() as tx:
        tx.execute("UPDATE locks SET beat_at = beat_at - 61000000")
    real = removing.elapsed
    for module in (removing, sweeping):
        monkeypatch.setattr(module, "elapsed", lambda: real() + 61)


def falls_asleep(monkeypatch, where, meanwhile):
    """The first sweep to come sleeps when it has condemned a batch, or when it has removed one and not said so."""
    name = {"condemned": "condemn", "moved": "settle"}[where]
    real = getattr(LakeGate, name)

    def sleeping(*values):
        monkeypatch.setattr(LakeGate, name, real)
        if where == "moved":
            meanwhile()
            return real(*values)
        found = real(*values)
        meanwhile()
        return found

    monkeypatch.setattr(LakeGate, name, sleeping)


def finished(repo, run_id):
    assert swept(repo, run_id).state == RunState.SWEPT


def given_up(repo, run_id):
    later(repo, days=2)
    collect(repo)
    with repo.database.read() as tx:
        assert ledger.find(tx, repo.uid, run_id).state is RunState.ABANDONED


@pytest.mark.parametrize(("where", "taken_over"), [("condemned", finished), ("moved", finished), ("moved", given_up)])
def test_what_was_restored_stays_when_a_sleeper_wakes_up(repo, monkeypatch, where, taken_over):
    """Not at once: a delete that it had sent may be under way for ten minutes."""
    lost = with_garbage(repo)
    made = planned(repo, action=TRASH)

    def meanwhile():
        silence(repo, monkeypatch)
        taken_over(repo, made)
        later(repo, 9 * MINUTE)
        with pytest.raises(Conflict, match="taken over"):
            restore(repo, made)
        later(repo, MINUTE)
        assert restore(repo, made) == 1
        known.extend(batches(repo, made))

    known = []
    falls_asleep(monkeypatch, where, meanwhile)
    with pytest.raises(FencedOff):
        swept(repo, made)
    is_readable(repo, lost)
    assert state(repo, lost) is State.RESTORED
    assert batches(repo, made) == known  # nor does it write down what it did


@pytest.mark.parametrize(
    "restored_first",
    [
        pytest.param(False, id="it wakes up within ten minutes"),
        pytest.param(True, id="it sleeps longer, and all is restored"),
    ],
)
def test_what_a_sleeper_copied_to_the_trash_of_a_bucket_comes_back(s3_server, place, monkeypatch, restored_first):
    """It sleeps between the copy and the delete that make a move."""
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(uncommitted, "CLOCK_MARGIN", -120 * MINUTE)  # what was just put is old
    bucket = s3_server.create_bucket(f"sleepers-{uuid.uuid4().hex[:8]}")
    lake = Lake.create(locate(f"{bucket}/lake", db=f"sqlite://{place}/lake.db"))
    repo = lake.create_repository("demo", ticket_life=60 * MINUTE)
    put(repo, "main", "kept")
    repo.commit("main", "kept")
    lost = put(repo, "main", "lost")
    repo.reset("main")
    made, real = planned(repo, action=TRASH, dropped_for=timedelta(0)), CloudStore.copy
    monkeypatch.setattr(removing, "SURE_SECONDS", -1)  # so long it slept

    def restore_later():
        with pytest.raises(Conflict, match="taken over"):
            restore(repo, made)
        with repo.database.write() as tx:
            tx.execute("UPDATE runs SET ended_at = ended_at - 600000000")  # ten minutes later
        assert restore(repo, made) == 1
        is_readable(repo, lost)

    def sleeping(self, source, destination):
        monkeypatch.setattr(CloudStore, "copy", real)
        real(self, source, destination)
        silence(repo, monkeypatch)
        finished(repo, made)
        if restored_first:
            restore_later()

    monkeypatch.setattr(CloudStore, "copy", sleeping)
    with pytest.raises(FencedOff):
        swept(repo, made)
    if not restored_first:
        restore_later()
    is_readable(repo, lost)
    lake.close()


OTHER_CONTAINER = """
import sys
from desilt.errors import Locked
from desilt.lake import Lake
from desilt.records import locks
from desilt.lake.lake import locate
repo = Lake.open(locate(sys.argv[1])).repository("demo")
try:
    with locks.held(repo.database, repo.uid, run="theirs"):
        print("taken")
except Locked:
    print("locked")
"""


def test_a_lock_is_kept_from_a_container_that_cannot_see_its_owner(repo):
    """It has the same host name, and processes of its own."""
    apart = ["unshare", "--pid", "--fork", "--mount-proc"]
    try:
        subprocess.run([*apart, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no namespaces of processes here")
    with locks.held(repo.database, repo.uid, run="ours"):
        command = [*apart, sys.executable, "-c", OTHER_CONTAINER, str(repo.database.path.parent)]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "locked\n"


# ---- restores


def test_what_a_killed_restore_had_moved_back_is_kept_by_the_next_run(repo, monkeypatch):
    lost = with_garbage(repo)
    collect(repo, action=TRASH)
    real = tombstones.lift

    def killed(tx, repository, run_id, addresses, to, *, at):
        if to is State.RESTORED:
            raise KeyboardInterrupt
        real(tx, repository, run_id, addresses, to, at=at)

    with monkeypatch.context() as patch:
        patch.setattr(tombstones, "lift", killed)
        with pytest.raises(KeyboardInterrupt):
            restore(repo)
    first = trash.swept_run(repo, "last").id
    assert lost in stored(repo)
    assert repo.tombstones([lost])  # moved back, and nobody may read it yet
    later(repo, hours=1)
    assert collect(repo).asked == 0
    assert restore(repo, first) == 1
    is_readable(repo, lost)


def test_what_two_plans_moved_to_the_trash_comes_back_from_the_one_that_did(repo):
    lost = with_garbage(repo)
    first, second = planned(repo, action=TRASH), planned(repo, action=TRASH)
    assert swept(repo, first).removed == 1
    assert (swept(repo, second).asked, swept(repo, second).held_again) == (0, 1)
    assert (restore(repo, second), restore(repo, first)) == (0, 1)
    is_readable(repo, lost)
    assert in_trash(repo) == []


def test_what_was_restored_is_kept_by_a_plan_of_the_same_moment(repo):
    lost = with_garbage(repo)
    planned(repo)
    early = planned(repo)  # its id is from a millisecond after the clock, which stands still
    collect(repo, action=TRASH)
    assert restore(repo) == 1
    assert (swept(repo, early).asked, swept(repo, early).held_again) == (0, 1)
    is_readable(repo, lost)


def test_what_one_of_two_attempts_moved_comes_back_though_the_other_wrote_that_it_failed(repo, monkeypatch):
    lost = with_garbage(repo)
    made, real, pieces = planned(repo, action=TRASH), LakeGate.settle, []

    class Noting(Here):
        def __call__(self, work, items, **more):
            pieces.extend(items if work is sweeping.sweep_piece else ())
            return super().__call__(work, items, **more)

    def without_network(_store, keys, **_):
        return [Outcome(key, Result.FAILED, "no route to host") for key in keys]

    def second(*values):
        """All is moved; before that is written down, the same piece ends on another executor."""
        monkeypatch.setattr(LakeGate, "settle", real)
        with monkeypatch.context() as patch:
            patch.setattr(sweeping, "delete", without_network)
            sweeping.sweep_piece(pieces[0])
        real(*values)

    monkeypatch.setattr(LakeGate, "settle", second)
    told = swept(repo, made, executor=Noting())
    assert (told.state, told.failed) == (RunState.PARTLY, 1)
    assert len(in_trash(repo)) == 1
    assert restore(repo, made) == 1
    is_readable(repo, lost)
    assert collect(repo, action=TRASH).asked == 0


def test_what_was_moved_by_a_last_try_without_an_answer_comes_back(repo, monkeypatch):
    lost = with_garbage(repo)
    real, tries = LocalStore.move_many, []

    def unanswered(self, pairs, **_):
        tries.append(pairs)
        if len(tries) == len(removing.PAUSES) + 1:
            real(self, pairs)
        return [Outcome(key, Result.FAILED, "no answer") for key, _ in pairs]

    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "move_many", unanswered)
        assert collect(repo, action=TRASH).removed == 1
    assert restore(repo) == 1
    is_readable(repo, lost)


def test_what_a_restore_brought_back_in_two_attempts_is_kept_and_found_by_later_runs(repo):
    """The answer of the first was lost with its executor."""
    lost = with_garbage(repo)
    collect(repo, action=TRASH)

    class Twice(Here):
        def __call__(self, work, items, **more):
            super().__call__(work, items, **more)
            return super().__call__(work, items, **more)

    assert restore(repo, executor=Twice()) == 1
    is_readable(repo, lost)
    later(repo, days=10)
    assert collect(repo).removed == 1
    assert lost not in stored(repo)


def test_what_came_back_between_a_plan_and_its_sweep_is_kept_and_found_by_later_runs(repo):
    """No watermark stood when the plan was made, and none stands when it is swept: but not the same none."""
    lost = with_garbage(repo)
    collect(repo, action=TRASH)
    moved = trash.swept_run(repo, "last").id
    for run_id in [planned(repo), planned(repo)][::-1]:
        swept(repo, run_id)
    with repo.database.read() as tx:
        assert watermarks.find(tx, repo.uid, "gc")[1] == {}
    made = planned(repo)
    assert restore(repo, moved) == 1
    swept(repo, made)
    is_readable(repo, lost)
    later(repo, days=10)
    assert lost in oracle.collectable(repo, repo.clock())
    assert collect(repo).removed == 1


# ---- runs that were cut off, and files that were damaged


def test_a_plan_like_one_that_was_cut_off_finishes_it_and_keeps_later_runs_going(repo, monkeypatch):
    lost = with_garbage(repo)
    first, second = planned(repo), planned(repo)
    cut_off(repo, monkeypatch, first)
    assert swept(repo, second).held_again == 1
    assert lost not in stored(repo)
    assert swept(repo, first).removed == 1
    for _ in range(2):
        assert collect(repo).asked == 0
    with repo.database.read() as tx:
        assert {row.state for row in ledger.every(tx, repo.uid)} == {RunState.SWEPT}
    assert contents(repo, "main") == {"kept": "x"}


DAMAGE = {
    "another version": lambda body: body.replace(b'"version": 1', b'"version": 0'),
    "cut short": lambda body: body[: len(body) // 2],
    "a list": lambda _: b"[]",
    "one bit": lambda body: flipped(body, body.index(b'"run": "') + 10),
}
NOT_TEXT = pytest.param(lambda body: flipped(body, 3, 0x80), id="not text")


@pytest.mark.parametrize("change", [*(pytest.param(how, id=name) for name, how in DAMAGE.items()), NOT_TEXT])
def test_a_damaged_plan_is_kept_from_sweeping_and_stops_no_other(repo, monkeypatch, change):
    for act in (lambda _: None, lambda run_id: cut_off(repo, monkeypatch, run_id)):
        lost = with_garbage(repo)
        made = planned(repo)
        act(made)
        damage(repo, made, "plan.json", change)
        with pytest.raises(Unreadable):
            swept(repo, made)
        assert lost in stored(repo)
        assert collect(repo).removed == 1
        assert lost not in stored(repo)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(DAMAGE["cut short"], id="cut short"),
        pytest.param(DAMAGE["a list"], id="a list"),
        pytest.param(
            *NOT_TEXT.values,
            id="not text",
        ),
    ],
)
def test_a_damaged_report_of_a_run_that_was_cut_off_stops_no_other(repo, monkeypatch, change):
    lost = with_garbage(repo)
    made = planned(repo)
    cut_off(repo, monkeypatch, made)
    damage(repo, made, "report.json", change)
    assert collect(repo).removed == 1
    assert lost not in stored(repo)
    with repo.database.read() as tx:
        assert ledger.find(tx, repo.uid, made).state is RunState.ABANDONED


def test_a_damaged_marker_of_a_run_that_was_swept_stops_no_other(repo):
    with_garbage(repo)
    collect(repo)
    damage(repo, trash.swept_run(repo, "last").id, "swept.json", *NOT_TEXT.values)
    assert collect(repo).state == RunState.SWEPT


def test_what_was_committed_since_is_kept_when_a_bit_of_the_plan_flips(repo, monkeypatch):
    """The generation it saw would be a later one, and what came before that not looked at."""
    with_garbage(repo)
    repo.create_tag("v1", "main")
    precious, made = planned_in_flight(repo, monkeypatch, "precious")
    repo.commit("main", "precious")
    damage(repo, made, "plan.json", lambda body: flipped(body, body.index(b'"number": ') + 10))
    with pytest.raises(Unreadable, match="not what was written; plan again"):
        swept(repo, made)
    is_readable(repo, precious)
    assert read(repo, "main", "precious") == "x"


def test_no_bit_of_a_plan_can_flip_unseen(repo, monkeypatch):
    with_garbage(repo)
    made = planned(repo)
    folder = Folder(repo.store, repo.prefix, Run(made, "gc", started(made)))
    whole = repo.store.get(file_of(repo, made, "plan.json"))
    assert plans.read(folder, repo.secret).run == made
    for place in range(len(whole) - 1):  # after it comes the end of the line
        damaged = flipped(whole, place, 1 << place % 8)
        monkeypatch.setattr(Folder, "get_text", lambda *_, damaged=damaged: damaged.decode())
        with pytest.raises(Unreadable):
            plans.read(folder, repo.secret)


# ---- shares and clocks


def test_what_went_within_a_day_counts_from_when_it_went(repo):
    """Not from when its plan was made."""
    for number in range(10):
        put(repo, "main", f"kept{number}")
    repo.commit("main", "kept")

    def four_lost():
        for number in range(4):
            put(repo, "main", f"lost{number}")
        repo.reset("main")

    four_lost()
    later(repo, days=5)
    usual = Limits(confirm=True)
    made = planned(repo)
    later(repo, hours=23, minutes=50)
    assert swept(repo, made, limits=usual).removed == 4
    four_lost()
    later(repo, minutes=20)
    with pytest.raises(TooMuch, match="4 went in the last day: 44%"):
        collect(repo, now=repo.clock() + timedelta(days=3), dropped_for=timedelta(0), limits=usual)
    assert len(stored(repo)) == 14


def test_a_run_that_looked_ahead_leaves_open_partitions_to_later_runs(repo):
    put(repo, "main", "kept")
    repo.commit("main", "kept")
    later(repo, days=5)
    collect(repo, now=repo.clock() + timedelta(days=60))
    lost = put(repo, "main", "lost")
    repo.reset("main")
    later(repo, days=20)
    assert collect(repo).removed == 1
    assert lost not in stored(repo)


def test_a_writer_whose_clock_is_days_behind_opens_no_partition(repo):
    """Its objects would lie where runs no longer look."""
    with_garbage(repo)
    later(repo, days=10)
    collect(repo)
    before = stored(repo)
    behind = LakeRepository(replace(repo.core, clock=lambda: repo.clock() - timedelta(days=4)))
    with pytest.raises(WrongClock):
        put(behind, "main", "new")
    assert stored(repo) == before


def test_after_a_run_with_a_clock_a_year_ahead_others_may_pass_again(place):
    off = [timedelta(0)]

    def clock():  # one machine: its files are dated by the same clock
        return datetime.now(UTC) + off[0]

    Lake.create(locate(str(place / "lake"))).close()
    database = open_database(f"sqlite://{place}/lake/desilt.db")
    repo = Lake(database, LocalStore(place / "lake", clock=clock), clock=clock).create_repository("demo")

    def one_lost():
        put(repo, "main", "lost")
        repo.reset("main")

    put(repo, "main", "kept")
    repo.commit("main", "kept")
    one_lost()
    off[0] = timedelta(days=365)
    for _ in range(2):
        with pytest.raises(WrongTime, match="--clock-is-right"):
            collect(repo)
    assert collect(repo, limits=replace(SURE, clock_is_right=True)).removed == 1
    off[0] = timedelta(days=3)
    one_lost()
    off[0] = timedelta(days=30)
    with pytest.raises(WrongTime, match="--clock-is-right"):
        collect(repo)
    assert len(stored(repo)) == 2
    assert collect(repo, limits=replace(SURE, clock_is_right=True)).removed == 1
    assert contents(repo, "main") == {"kept": "x"}
    database.close()


# ---- a database that shows each transaction only the past


def test_what_a_writer_commits_while_a_sweep_waits_for_it_is_kept(place, fresh_postgres_url, monkeypatch):
    """PostgreSQL may be told to begin every transaction with a snapshot of its own."""
    url = fresh_postgres_url() + "&options=-cdefault_transaction_isolation%3Drepeatable%5C%20read"
    lake = Lake.create(locate(str(place / "lake"), db=url))
    repo = lake.create_repository("demo", clock_at=START)
    with_garbage(repo)
    runs, results, real = [], [], staging.stage

    def stage(tx, *values):
        real(tx, *values)
        results.append(sweeper.submit(swept, repo, runs[0]))
        waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        while tx.one(waiting) is None:
            assert not results[0].done()

    ahead = repo.clock() + timedelta(days=30)
    with ThreadPoolExecutor(1) as sweeper, monkeypatch.context() as patch:
        patch.setattr(staging, "stage", stage)
        precious = put_late(repo, monkeypatch, "precious", lambda: runs.append(planned(repo, now=ahead)))
        assert (results[0].result().removed, results[0].result().held_again) == (1, 1)
    is_readable(repo, precious)
    assert read(repo, "main", "precious") == "x"
    lake.close()
