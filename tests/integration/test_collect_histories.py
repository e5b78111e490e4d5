"""Histories in which a collection or an expiration once did harm, each told in a few lines."""

import shutil
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from desilt.cache import metaranges as metarange_cache
from desilt.cache import ranges as range_cache
from desilt.domain.expiry import Expiry
from desilt.domain.policy import parse
from desilt.errors import WentBack
from desilt.executors.executor import HERE
from desilt.jobs import execution
from desilt.jobs.collect import job as collection
from desilt.jobs.expire import job as expiration
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.runner import plan, run, sweep
from desilt.lake import Lake, commits, editor, fsck
from desilt.lake.editor import LakeEditor
from desilt.lake.gate import LakeGate
from desilt.lake.lake import locate
from desilt.lake.repository import LakeRepository
from desilt.recovery.recover import recover
from desilt.runs import plan as plans
from desilt.runs.folder import Folder, find
from desilt.sweep import batches as sweeping
from desilt.sweep import delete as removing
from desilt.sweep.limits import Limits
from words import collecting, days

SURE = Limits(max_share=1.0, confirm=True, allow_empty=True)
START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
RULES = parse({"rule": {"prefix": "nothing/", "days": 1}})
EVERY_JOB = {
    "gc": (uncommitted.job, uncommitted.job.ask()),
    "collect": (collection.job, collecting()),
    "lifecycle": (lifecycle.job, lifecycle.job.ask(policy=RULES)),
    "expire": (expiration.job, expiration.job.ask(wish=Expiry(START))),
}


class Killed(BaseException):
    pass


@pytest.fixture
def repo(repo):
    repo.put("main", "a", b"1")
    repo.commit("main", "first")
    return repo


def dead(repo, *messages):
    """Commits of a branch that is deleted, oldest first, five days old."""
    repo.create_branch("gone", "main")
    made = []
    for message in messages:
        repo.put("gone", message, message.encode())
        made.append(repo.commit("gone", message).id)
    repo.delete_branch("gone")
    days(repo, 5)
    return made


def messages(repo):
    with repo.database.read() as tx:
        return {commit.message for commit in commits.every(tx, repo.uid)}


def all_is_well(repo):
    """Nothing is broken, and every job runs."""
    assert fsck.check(repo, deep=True).sound
    for job, ask in EVERY_JOB.values():
        assert run(job, repo, HERE, ask, SURE)[-1].swept.state == "swept"


@pytest.mark.parametrize("how", ["commit", "merge"])
def test_a_commit_on_a_dead_one_whose_branch_goes_again_keeps_its_parents(repo, how):
    """It is reached by nothing, and is not in the plan either."""
    (one,) = dead(repo, "one")
    planned = plan(collection.job, repo, HERE, collecting()).run
    repo.create_branch("short", one if how == "commit" else "main")
    if how == "commit":
        repo.put("short", "two", b"2")
        repo.commit("short", "two")
    else:
        repo.merge(one, "short", message="two")
    repo.delete_branch("short")
    assert sweep(repo, HERE, planned, SURE).history["commits collected"] == 0
    assert messages(repo) >= {"one", "two"}
    all_is_well(repo)
    days(repo, 2)
    assert run(collection.job, repo, HERE, collecting(), SURE)[-1].history["commits collected"] == 2
    all_is_well(repo)


class AfterWrites:
    """A database, and what happens after each transaction that writes."""

    def __init__(self, database, then):
        self._database, self._then = database, then

    def __getattr__(self, name):
        return getattr(self._database, name)

    @contextmanager
    def write(self):
        with self._database.write() as tx:
            yield tx
        self._then()


def test_a_tag_that_comes_and_goes_between_two_pages_leaves_no_commit_without_its_parent(repo, monkeypatch):
    monkeypatch.setattr(editor, "PAGE", 1)
    one, two = dead(repo, "one", "two")
    planned = plan(collection.job, repo, HERE, collecting()).run
    repo.create_tag("look", two)
    real, pages = LakeEditor._take, []

    def take(self, tx, run, ids, mark):
        pages.append(ids)
        real(self, tx, run, ids, mark)

    def then():
        if len(pages) == 1 and repo.tags():
            repo.delete_tag("look")

    monkeypatch.setattr(LakeEditor, "_take", take)
    sweep(LakeRepository(replace(repo.core, database=AfterWrites(repo.database, then))), HERE, planned, SURE)
    assert repo.tags() == []
    assert messages(repo) >= {"one", "two"}
    assert b"".join(repo.get(one, "one")) == b"one"
    all_is_well(repo)


def test_a_tag_made_again_to_save_its_commit_is_not_deleted_by_a_run_that_is_taken_up(repo, monkeypatch):
    (saved,) = dead(repo, "saved")
    repo.create_tag("v1", saved)
    days(repo, 5)
    repo.put("main", "b", b"2")
    repo.commit("main", "second")
    ask = expiration.job.ask(wish=Expiry(repo.clock(), delete_tags=True))
    monkeypatch.setattr(execution, "_audit", killed)
    with pytest.raises(Killed):
        run(expiration.job, repo, HERE, ask, SURE)
    monkeypatch.undo()
    assert repo.tags() == []
    repo.create_tag("v1", saved)
    run(uncommitted.job, repo, HERE, uncommitted.job.ask(), SURE)
    assert [tag.name for tag in repo.tags()] == ["v1"]
    days(repo, 2)
    run(collection.job, repo, HERE, collecting(), SURE)
    assert b"".join(repo.get("v1", "saved")) == b"saved"


def killed(*_values):
    raise Killed


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("_desilt/ranges/.DS_Store", b"x"),
        ("_desilt/ranges/notes-of-anna.txt", b"x"),
        ("_desilt/ranges/old/0123.parquet", b"x"),
        (f"_desilt/ranges/{'0' * 32}.json", b'{"ranges": [1]}'),
        (f"_desilt/ranges/{'0' * 32}.json", b"[]"),
        ("_desilt/metaranges/backup-1.json", b"{}"),
        (f"_desilt/metaranges/{'0' * 64}.json", b'{"of": 1}'),
        ("_desilt/staging/x y", b"x"),
        ("_desilt/runs/gc-2025/62292931200000-00000000/report.json", b"x"),
        ("_desilt/runs/gc-2025/62292931200001-00000000/report.json", b"x"),
    ],
)
def test_a_foreign_file_beside_ours_stops_nobody_and_stays(repo, name, body):
    dead(repo, "one")
    key = repo.prefix + name
    repo.store.put(key, [body])
    days(repo, 200)
    all_is_well(repo)
    if body == b"x":
        assert repo.store.get(key) == body


def test_tables_that_went_are_no_objects_to_the_share_that_may_go(repo):
    for number in range(30):
        repo.put("main", "a", f"{number}".encode())
        repo.commit("main", str(number))
    for number in range(200):
        repo.put("main", f"kept/{number}", b"x")
    for number in range(5):
        repo.put("main", f"never/{number}", b"x")
    repo.reset("main", prefix="never/")
    repo.commit("main", "last")
    days(repo, 5)
    repo.put("main", "a", b"now")
    repo.commit("main", "now")
    run(expiration.job, repo, HERE, expiration.job.ask(wish=Expiry(repo.clock() - DAY)), SURE)
    collected = run(collection.job, repo, HERE, collecting(), Limits(confirm=True))[-1]
    assert collected.remove["ranges and metaranges"]["collected"].objects > 60
    assert run(uncommitted.job, repo, HERE, uncommitted.job.ask(), Limits(confirm=True))[-1].removed.objects == 5


@pytest.mark.parametrize("given_up", [False, True])
def test_a_database_restored_to_before_a_collection_is_healed(repo, place, tmp_path, given_up):
    dead(repo, "one", "two")
    repo.database.close()
    shutil.copy(repo.database.path, tmp_path / "copy")
    run(collection.job, repo, HERE, collecting(), SURE)
    now = repo.clock()
    repo.database.close()
    for file in repo.database.path.parent.glob(f"{repo.database.path.name}-*"):
        file.unlink()
    shutil.copy(tmp_path / "copy", repo.database.path)
    again = Lake.open(locate(str(place / "lake"))).repository("demo")
    again.set_clock(now + DAY)
    limits = Limits(max_share=1.0, confirm=True, allow_empty=True, after_restore=True)
    with pytest.raises(WentBack, match="2 commits collected by run"):
        run(collection.job, again, HERE, collecting(), limits)
    if given_up:
        recover(again, give_up=True)
        assert run(collection.job, again, HERE, collecting(), limits)[-1].history["commits collected"] == 2
    else:
        recover(again)
        assert run(collection.job, again, HERE, collecting(), SURE)[-1].history["commits collected"] == 0
    assert b"".join(again.get("main", "a")) == b"1"
    all_is_well(again)


def test_a_try_that_falls_behind_removes_nothing_that_another_has_settled(repo, monkeypatch):
    """Two tasks on one batch: by the time the slow one gets to its delete, a new commit may have the file again."""
    dead(repo, "one")
    planned = plan(collection.job, repo, HERE, collecting()).run
    real, clock, back = LakeGate.condemn, removing.elapsed, []
    folder = Folder(repo.store, repo.prefix, find(repo.store, repo.prefix, planned))
    made = plans.read(folder, repo.secret)

    def condemn(gate, batch, held, relies_on, lock):
        found = real(gate, batch, held, relies_on, lock)
        monkeypatch.setattr(LakeGate, "condemn", real)
        sweeping.sweep_batch(repo, lock, made, batch, held)  # the other one
        back.extend(repo.prefix + address for address in batch.rows["address"].to_pylist())
        for key in back:
            repo.store.put(key, [b"there again"])
        monkeypatch.setattr(removing, "elapsed", lambda: clock() + 2 * removing.SURE_SECONDS)
        return found

    monkeypatch.setattr(LakeGate, "condemn", condemn)
    swept = sweep(repo, HERE, planned, SURE).swept  # what the other has ended is the other's: this one goes on
    assert (swept.state, swept.failed) == ("swept", 0)
    assert back
    assert {repo.store.get(key) for key in back} == {b"there again"}


@pytest.mark.parametrize("cache", [metarange_cache, range_cache])
def test_a_plan_whose_cache_is_tidied_under_it_reads_what_it_needs_anew(repo, monkeypatch, cache):
    for number in range(60):
        repo.put("main", "a", f"{number}".encode())
        repo.commit("main", str(number))
    first = plan(uncommitted.job, repo, HERE, uncommitted.job.ask()).inputs["committed entries"]
    folder, real = repo.prefix + cache.FOLDER, repo.store.get
    listed = [key for batch in repo.store.list(folder) for key in batch["key"].to_pylist()]
    assert listed
    once = iter([True])

    def get(key, **rest):
        if key in listed and key.endswith(".json") and next(once, False):
            repo.store.delete_many(listed)
        return real(key, **rest)

    monkeypatch.setattr(repo.store, "get", get)
    assert plan(uncommitted.job, repo, HERE, uncommitted.job.ask()).inputs["committed entries"] == first
