"""A range or metarange that is missing, cut short or has one bit wrong: what each job does about it.

Whoever needs the table to say what is held stops before anything goes, and names the table. So does a sweep
that needs it for what came after its plan. Once the file is back, everything goes on.
"""

import uuid
from datetime import UTC, datetime, timedelta

import pytest

from desilt.clock import ManualClock
from desilt.domain.expiry import Expiry
from desilt.domain.policy import parse
from desilt.errors import CorruptTable
from desilt.executors.executor import HERE
from desilt.jobs.collect import job as collection
from desilt.jobs.expire import job as expiration
from desilt.jobs.explain.explain import explain
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.lifecycle import kept_policy
from desilt.jobs.pins.pins import pins
from desilt.jobs.runner import plan, run, sweep
from desilt.jobs.unfinished import unfinished
from desilt.lake import Lake, schema
from desilt.lake.fsck import check
from desilt.objects import open_store
from desilt.records import ledger
from desilt.records.database import open_database
from desilt.sweep.limits import Limits
from desilt.testing import oracle
from words import collecting, contents, tables

START = datetime(2026, 1, 1, tzinfo=UTC)
SURE = Limits(max_share=1.0, confirm=True)
POLICY = parse({"r": {"prefix": "logs/", "days": 10}})
REMOVING = {"gc": uncommitted.job, "lifecycle": lifecycle.job, "collect": collection.job}
DAMAGES = {
    "missing": None,
    "a wrong bit": lambda raw: raw[: len(raw) // 2] + bytes([raw[len(raw) // 2] ^ 1]) + raw[len(raw) // 2 + 1 :],
    "cut short": lambda raw: raw[:-20],
}


@pytest.fixture
def repo(tmp_path):
    """With something to go for every job, and something that stays."""
    clock = ManualClock(START)
    database, store = open_database(f"sqlite://{tmp_path}/lake.db", create=True), open_store(f"memory://{uuid.uuid4()}")
    schema.create(database, storage="")
    store.clock = clock
    made = Lake(database, store, clock=clock).create_repository("demo")
    made.create_branch("left", "main")
    committed(made, "left", "data/unreached")  # for collect
    made.delete_branch("left")
    committed(made, "main", "logs/old", "data/old")
    made.create_branch("also", "main")  # whether a rule matches anything is seen here, and main is not looked into
    made.put("main", "garbage", b"x")  # for gc
    made.reset("main")
    kept_policy.keep(made, POLICY)
    clock.now += timedelta(days=20)
    committed(made, "main", "data/new")
    yield made
    database.close()


def committed(repo, branch, *paths):
    for path in paths:
        repo.put(branch, path, path.encode())
    return repo.commit(branch, " ".join(paths))


class Damage:
    """Done to one table of a commit, and taken back."""

    def __init__(self, repo, commit, kind, how):
        self._repo, names = repo, sorted(tables(repo, commit) - {commit.metarange})
        self.name = commit.metarange if kind == "metarange" else names[-1]
        self._key = f"{repo.prefix}_lakefs/{self.name}"
        self._whole = repo.store.get(self._key)
        if DAMAGES[how] is None:
            repo.store.delete_many([self._key])
        else:
            repo.store.put(self._key, [DAMAGES[how](self._whole)])
        self._forget()

    def mend(self):
        self._repo.store.put(self._key, [self._whole])
        self._forget()

    def _forget(self):
        self._repo.ranges.metarange.cache_clear()
        self._repo.ranges.table.cache_clear()


@pytest.fixture(params=DAMAGES)
def how(request):
    return request.param


@pytest.fixture(params=["range", "metarange"])
def kind(request):
    return request.param


def everything(repo):
    """Every key but those of runs and caches, and every tombstone."""
    keys = {key for batch in repo.store.list(repo.prefix) for key in batch["key"].to_pylist()}
    with repo.database.read() as tx:
        stones = tx.rows("SELECT address, state FROM tombstones")
        ids = sorted(tx.rows("SELECT id FROM commits"))
    return {key for key in keys if "/_desilt/" not in key}, stones, ids


@pytest.mark.parametrize("job", REMOVING)
def test_a_run_that_cannot_read_what_is_held_removes_nothing_and_names_the_table(repo, job, kind, how):
    damage, before = Damage(repo, repo.resolve("main").commit, kind, how), everything(repo)
    for act in (plan, run):
        with pytest.raises(CorruptTable, match=damage.name):
            act(REMOVING[job], repo, HERE, REMOVING[job].ask(), *([SURE] if act is run else []))
        assert everything(repo) == before
    with repo.database.read() as tx:
        assert ledger.every(tx, repo.uid) == []
    damage.mend()
    assert run(REMOVING[job], repo, HERE, REMOVING[job].ask(), SURE)[-1].swept.removed > 0
    nothing_held_is_lost(repo)


@pytest.mark.parametrize("job", REMOVING)
def test_a_sweep_that_cannot_read_what_came_after_its_plan_removes_no_object(repo, job, kind, how):
    made = plan(REMOVING[job], repo, HERE)
    damage = Damage(repo, committed(repo, "main", "data/later"), kind, how)
    before = everything(repo)
    for _ in range(2):
        with pytest.raises(CorruptTable, match=damage.name):
            sweep(repo, HERE, made.run, SURE)
        assert everything(repo)[:2] == before[:2]  # collect takes commits first, which nothing reaches
    stored = oracle.stored(repo)
    try:  # the next run gives that one up, and plans anew
        run(REMOVING[job], repo, HERE, REMOVING[job].ask(), SURE)
    except CorruptTable as error:
        stopped = error.name
    else:
        stopped = ""
    reads_it = (job, kind) != ("collect", "range")  # by then no commit is left to go, so no entry is looked at
    assert stopped == (damage.name if reads_it else "")
    assert oracle.stored(repo) == stored
    damage.mend()
    run(REMOVING[job], repo, HERE, REMOVING[job].ask(), SURE)
    assert unfinished(repo) == []
    run(uncommitted.job, repo, HERE, uncommitted.job.ask(), SURE)  # of what a collection gave up, this finds the rest
    nothing_held_is_lost(repo)
    assert oracle.collectable(repo, repo.clock()) == set()


def nothing_held_is_lost(repo):
    shown = {entry.path: entry.address for entry in repo.list("main")}
    gone = repo.tombstones(shown.values()).keys()
    assert gone <= {shown["logs/old"]}  # by lifecycle
    for path, address in shown.items():
        assert address in gone or b"".join(repo.get("main", path)) == path.encode()
    assert check(repo, deep=True).sound


def not_told(repo, kind, how, ask):
    """As long as a table is damaged that the answer may depend on."""
    damage, before = Damage(repo, repo.resolve("main").commit, kind, how), everything(repo)
    with pytest.raises(CorruptTable, match=damage.name):
        ask()
    assert everything(repo) == before
    damage.mend()
    assert ask()


def test_pins_that_cannot_be_told_are_not_told(repo, kind, how):
    not_told(repo, kind, how, lambda: pins(repo, HERE))


@pytest.mark.parametrize("wanted", ["data/old", "its address", "garbage"])
def test_an_explanation_that_cannot_be_given_is_not_given(repo, kind, how, wanted):
    """Above all, nothing is called unreferenced that the damaged table may hold."""
    address = {"its address": repo.stat("main", "data/old").address}.get(wanted, wanted)
    if wanted == "garbage":
        (address,) = oracle.garbage(repo)
    not_told(repo, kind, how, lambda: explain(repo, address))


def test_expiration_reads_no_table_and_removes_none(repo, kind, how):
    """It edits parents in the database. What it lets go can be read by its id, or stops the collection that comes."""
    old = repo.resolve("main~1").commit
    committed(repo, "main", "data/newest")
    before = everything(repo)
    damage = Damage(repo, repo.resolve("main~1").commit, kind, how)
    ask = expiration.job.ask(wish=Expiry(repo.clock() - timedelta(days=5)))
    report = run(expiration.job, repo, HERE, ask, SURE)[-1]
    assert report.history["edited"] == 1
    assert old.id not in {commit.id for commit in repo.log("main")}
    with pytest.raises(CorruptTable, match=damage.name):
        run(collection.job, repo, HERE, collecting(), SURE)
    damage.mend()
    assert everything(repo) == before
    assert contents(repo, old.id) == {path: path for path in ("data/old", "logs/old")}


@pytest.mark.parametrize("job", REMOVING)
def test_a_range_that_was_read_before_is_not_read_again_to_say_what_is_held(repo, job, how):
    """A range never changes: what is kept of it is what it says."""
    plan(REMOVING[job], repo, HERE)
    damage = Damage(repo, repo.resolve("main").commit, "range", how)
    assert run(REMOVING[job], repo, HERE, REMOVING[job].ask(), SURE)[-1].swept.removed > 0
    damage.mend()
    nothing_held_is_lost(repo)
