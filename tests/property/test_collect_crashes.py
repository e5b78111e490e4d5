"""An expiration or a collection killed at every step and started again ends as if never disturbed.

Whoever comes between (another job, a writer) loses nothing that anything reaches.
"""

import itertools
import random
import shutil
import tempfile
import uuid
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pytest

from desilt.clock import ManualClock
from desilt.domain.expiry import Expiry
from desilt.domain.keeping import Keep
from desilt.domain.policy import parse
from desilt.errors import BeingCollected, CommitGone, Conflict, Gone, NotFound
from desilt.jobs import collection, expiration, holding, lifecycle, uncommitted
from desilt.jobs.job import Ask
from desilt.jobs.running import plan, run
from desilt.lake import Lake, commits, ledger, locks, schema, tombstones
from desilt.lake.database import open_database
from desilt.lake.fsck import check
from desilt.lake.holds import Kind
from desilt.lake.ledger import RunState
from desilt.lake.tombstones import State
from desilt.objects import open_store
from desilt.sources.spread import in_process
from desilt.sweep import commits as taking
from desilt.sweep.guard import Limits
from desilt.testing import oracle
from desilt.testing.faults import After, Before, Crash, SteppedDatabase, Steps, stepped

ALL = Limits(max_share=1.0, confirm=True, allow_empty=True)
START = datetime(2026, 1, 1, tzinfo=UTC)
FAST = "/dev/shm" if Path("/dev/shm").is_dir() else None  # a database that need not survive a power cut
KEEP_RUNS = timedelta(days=3)
REFUSALS = (Conflict, NotFound, Gone)  # all that a writer may meet
NONCURRENT = parse({"r": {"prefix": "", "days": 9, "noncurrent_only": True}})


@pytest.fixture(autouse=True)
def _silence_is_death(monkeypatch):
    monkeypatch.setattr(locks, "SILENCE", timedelta(seconds=-1))  # the dead owner is this very process
    monkeypatch.setattr(taking, "PAGE", 3)  # commits go in more than one transaction


class OneByOne:
    """A store that may be cut off in the middle of a batch: each of its objects is a step."""

    delete_batch = 2

    def __init__(self, store):
        self._store = store

    def __getattr__(self, name):
        return getattr(self._store, name)

    def delete_many(self, keys):
        return [outcome for key in keys for outcome in self._store.delete_many([key])]


class Small:
    """A lake with a past, that can be had again as it was: before it is expired, and before it is collected."""

    def __init__(self, directory, raggedness):
        self.file, self.raggedness, self.id = Path(directory) / "lake.db", raggedness, {}
        self.clock = ManualClock(START)
        database = open_database(f"sqlite://{self.file}", create=True)
        schema.create(database, storage="")
        store = open_store(f"memory://{uuid.uuid4().hex}")
        store.clock = self.clock
        repo = Lake(database, store, clock=self.clock, raggedness=raggedness).create_repository("small")
        self.fill(repo)
        self.saved = {"unexpired": self.save(database, store, "unexpired")}
        expire(repo)
        self.days(2)
        self.young(repo)
        self.saved["expired"] = self.save(database, store, "expired")
        database.close()

    def save(self, database, store, name):
        with database.write() as tx:
            tx.execute("SELECT 1")
        shutil.copy(self.file, self.file.with_suffix(f".{name}"))
        for more in ("-wal", "-shm"):
            if (log := Path(f"{self.file}{more}")).exists():
                shutil.copy(log, f"{self.file.with_suffix(f'.{name}')}{more}")
        return self.clock.now, dict(store._objects)

    def days(self, count):
        self.clock.now += timedelta(days=count)

    def commit(self, repo, name, branch, *paths, removing=()):
        for path in paths:
            repo.put(branch, path, f"{path} of {name}".encode())
        for path in removing:
            repo.remove(branch, path)
        self.id[name] = repo.commit(branch, name).id

    def fill(self, repo):
        repo.create_branch("side", "main")
        self.commit(repo, "x1", "side", "x")
        repo.create_tag("v0", "side")
        repo.delete_branch("side")
        self.commit(repo, "c1", "main", "a", "b", "c")
        repo.create_branch("merged", "main")
        self.days(1)
        self.commit(repo, "c2", "main", "a")
        repo.create_branch("short", "main")
        self.commit(repo, "s1", "short", "s", "a")
        self.commit(repo, "s2", "short", "t")
        repo.delete_branch("short")
        self.commit(repo, "m1", "merged", "m")
        self.id["c3"] = repo.merge("merged", "main").id
        repo.delete_branch("merged")
        collect_garbage(repo)  # what it leaves behind is tidied up
        self.days(1)
        self.commit(repo, "c4", "main", removing=["b"])
        repo.put("main", "d", b"d of c5")
        repo.copy("main", "a", "main", "a2")
        self.commit(repo, "c5", "main")
        collect_garbage(repo)
        self.days(5)
        collect_garbage(repo)
        self.commit(repo, "c6", "main", "e")
        repo.create_branch("dev", "main")
        repo.put("dev", "staged", b"staged")
        repo.put("dev", "lost", b"lost")
        repo.reset("dev", path="lost")
        self.days(1)

    def young(self, repo):
        repo.create_branch("young", "main")
        self.commit(repo, "y1", "young", "y")
        repo.delete_branch("young")

    @contextmanager
    def again(self, name="expired"):
        """As it was: the repository, and a function that opens it anew on ``steps``."""
        with tempfile.TemporaryDirectory(dir=FAST) as directory:
            for more in ("", "-wal", "-shm"):
                if (file := Path(f"{self.file.with_suffix(f'.{name}')}{more}")).exists():
                    shutil.copy(file, f"{directory}/lake.db{more}")
            database = open_database(f"sqlite://{directory}/lake.db")
            self.clock.now, objects = self.saved[name]
            store = open_store(f"memory://{uuid.uuid4().hex}")
            store.clock = self.clock
            store._objects.update(objects)

            def opened(steps):
                self.clock.now += timedelta(seconds=1)
                stepping = SteppedDatabase(database, steps), OneByOne(stepped(store, steps))
                return Lake(*stepping, clock=self.clock, raggedness=self.raggedness).repository("small")

            yield opened(Steps()), opened
            database.close()


def expire(repo, **more):
    return run(expiration.job, repo, in_process, Ask(wish=Expiry(START + timedelta(days=6), **more)), ALL)


def collect(repo):
    return run(collection.job, repo, in_process, Ask(keep_runs=KEEP_RUNS), ALL)


def collect_garbage(repo):
    return run(uncommitted.job, repo, in_process, Ask(), ALL)


def expire_objects(repo):
    return run(lifecycle.job, repo, in_process, Ask(policy=NONCURRENT), ALL)


JOBS = {"garbage": collect_garbage, "history": expire, "objects": expire_objects, "nothing": lambda _: None}


@pytest.fixture(scope="module", params=[1, 50_000], ids=["small ranges", "large ranges"])
def small(request, tmp_path_factory):
    return Small(tmp_path_factory.mktemp("small"), request.param)


# ---- what writers do meanwhile


def saving(repo, small):
    repo.create_branch("saved", small.id["s2"])
    repo.copy("saved", "s", "saved", "copied")


EVENTS = {
    "a commit": lambda repo, small: small.commit(repo, "n1", "main", "new"),
    "a commit on an old one": lambda repo, small: (
        repo.create_branch("on", small.id["c5"]),
        small.commit(repo, "n2", "on", "new"),
    ),
    "a merge of a dead commit": lambda repo, small: repo.merge(
        small.id["s2"], "main", base=small.id["c2"], strategy="source-wins"
    ),
    "a branch on a dead commit": lambda repo, small: repo.create_branch("saved", small.id["s1"]),
    "a tag on a dead commit": lambda repo, small: repo.create_tag("saved", small.id["c4"]),
    "a tag on the oldest": lambda repo, small: repo.create_tag("saved", small.id["c1"]),
    "a staged copy on a saved commit": saving,
    "a hold on a commit": lambda repo, small: holding.hold(repo, Kind.REF, small.id["m1"], reason="because"),
    "a hold on a prefix": lambda repo, _: holding.hold(repo, Kind.PREFIX, "b", reason="because"),
    "a hold on another prefix": lambda repo, _: holding.hold(repo, Kind.PREFIX, "t", reason="because"),
    "a hold on an object": lambda repo, small: holding.hold(
        repo, Kind.ADDRESS, repo.stat(small.id["c1"], "b").address, reason="because"
    ),
    "tables that come back": lambda repo, small: small.commit(repo, "n3", "main", removing=["e"]),
    "a file that comes back": lambda repo, small: repo.revert("main", small.id["c4"]),
    "bytes copied from a dead commit": lambda repo, small: repo.copy(small.id["s2"], "t", "main", "t"),
    "a tag deleted": lambda repo, _: repo.delete_tag("v0"),
    "a branch deleted": lambda repo, _: repo.delete_branch("dev", force=True),
    "a branch that comes and goes": lambda repo, small: (
        repo.create_branch("saved", small.id["s1"]),
        repo.delete_branch("saved"),
    ),
    "time passes": lambda _, small: small.days(0.01),
}


class Seen:
    """What anybody could see at some moment, and must see ever after."""

    def __init__(self, repo):
        held = holding.every(repo)
        names = [one.name for one in (*repo.branches(), *repo.tags())]
        names += [one.value for one in held if one.kind is Kind.REF]
        self.refs = {name: shown(repo, name) for name in names}
        self.held = {one.value for one in held if one.kind is Kind.ADDRESS}
        prefixes = tuple(one.value for one in held if one.kind is Kind.PREFIX)
        every = oracle.contents(repo, {commit.metarange for commit in oracle.history(repo).values()})
        self.held |= {one.address for some in every.values() for one in some if one.path.startswith(prefixes)}

    def is_still_there(self, repo):
        for name, files in self.refs.items():
            assert shown(repo, name) == files
        assert self.held <= set(oracle.stored(repo))
        assert repo.tombstones(sorted(self.held)) == {}
        found = check(repo)
        assert found.sound, found.findings


def shown(repo, ref):
    return {one.path: b"".join(repo.get(ref, one.path)) for one in repo.list(ref)}


def whatever(repo, small, event):
    """Do it; whether it was acknowledged."""
    try:
        EVENTS[event](repo, small)
    except REFUSALS:
        return False
    return True


def the_rest_goes(repo, small):
    """What a later collection leaves is what is held; and after that, there is nothing to do."""
    small.days(3)
    wanted = oracle.collectable_commits(repo, oracle.old(repo, repo.clock()))
    made = oracle.history(repo).keys()
    collect(repo)
    gone = made - oracle.history(repo).keys()
    if small.raggedness == 1 or not oracle.held(repo, Kind.PREFIX):
        assert gone == wanted
    collect_garbage(repo)
    assert oracle.collectable(repo, repo.clock()) == set()
    nothing_is_left_to_do(repo)


def nothing_is_left_to_do(repo):
    report = collect(repo)[-1]
    assert (report.removed.objects, report.history) == (0, {"commits collected": 0})
    assert report.swept.asked == 0


# ---- a collection, cut off


def ended(repo):
    """What is there, what is gone: equal for runs that came to the same end."""
    with repo.database.read() as tx:
        gone, runs = set(commits.collected(tx, repo.uid)), ledger.every(tx, repo.uid)
        stones = {stone.address: stone.state for one in runs for stone in tombstones.of_run(tx, repo.uid, one.id)}
        for one in runs:
            total = ledger.total(ledger.batches(tx, repo.uid, one.id))
            assert one.state is RunState.SWEPT
            assert total.asked == total.removed + total.gone + total.failed
            assert total.asked + total.held_again == one.objects
    assert State.CONDEMNED not in stones.values()
    made = {name: commit.parents for name, commit in oracle.history(repo).items()}
    return made, gone, set(oracle.stored(repo)), oracle.tables(repo).keys(), stones.keys()


@cache
def undisturbed(small):
    with small.again() as (repo, opened):
        old = oracle.old(repo, repo.clock())
        wanted = oracle.collectable_commits(repo, old), oracle.collectable_objects(repo, old)
        assert wanted[0] == {small.id[name] for name in ("s1", "s2", "m1", "c1", "c2", "c3", "c4", "c5")}
        assert len(wanted[1]) == 5
        tables, steps = oracle.dead_tables(repo, old), Steps()
        made, there, files = oracle.history(repo).keys(), set(oracle.stored(repo)), oracle.tables(repo).keys()
        assert plan(uncommitted.job, repo, in_process).inputs["known from before"]
        report = collect(opened(steps))[-1]
        assert made - oracle.history(repo).keys() == wanted[0]
        assert there - set(oracle.stored(repo)) == wanted[1]
        assert files - oracle.tables(repo).keys() == tables != set()
        assert report.own["old runs"].objects
        nothing_is_left_to_do(repo)
        assert not collect_garbage(repo)[-1].inputs["known from before"]
        return ended(repo), steps.taken


def crashed(small, crashes, job="nothing", event=None):
    """Die at each of ``crashes`` in turn, let others come between, then go through with it; how that ends."""
    with small.again() as (repo, opened):
        seen = Seen(repo)
        for crash in crashes:
            with suppress(Crash):  # a step that fails by itself has no moment after it
                collect(opened(Steps(crash)))
            seen.is_still_there(repo)
            if event:
                whatever(repo, small, event)
                seen = Seen(repo)
        JOBS[job](opened(Steps()))
        seen.is_still_there(repo)
        collect(opened(Steps()))
        seen.is_still_there(repo)
        nothing_is_left_to_do(repo)
        report = collect_garbage(repo)[-1]
        assert job == "garbage" or not report.inputs["known from before"]
        if event or job == "objects":
            the_rest_goes(repo, small)
            return None
        return ended(repo)


def moments(small, count):
    """Of all steps of a collection, some: few of its plan, more of its sweep."""
    _, steps = undisturbed(small)
    chosen = random.sample(range(steps // 2, steps), count) + random.sample(range(steps // 2), 1)
    return [random.choice((Before, After))(number) for number in chosen]


def test_killed_at_any_step_of_its_sweep_and_started_again_it_ends_the_same(small):
    wanted, _ = undisturbed(small)
    for crash in moments(small, 2):
        assert crashed(small, [crash]) == wanted, crash


def test_killed_and_made_up_for_by_another_job_it_ends_the_same(small):
    wanted, _ = undisturbed(small)
    for job, crash in zip(random.sample(list(JOBS), 2), moments(small, 1), strict=True):
        assert crashed(small, [crash], job) == (None if job == "objects" else wanted), (crash, job)


def test_killed_and_with_writers_between_nothing_is_lost(small):
    for crash, event in zip(moments(small, 2), random.sample(list(EVENTS), 3), strict=True):
        try:
            crashed(small, [crash], event=event)
        except Exception as error:
            raise AssertionError(f"{crash}, {event}") from error


@pytest.mark.slow
@pytest.mark.parametrize("moment", [Before, After])
def test_killed_at_any_step_whatsoever_and_started_again_it_ends_the_same(small, moment):
    wanted, steps = undisturbed(small)
    for number in range(steps):
        for job in JOBS:
            assert crashed(small, [moment(number)], job) == (None if job == "objects" else wanted), (
                moment(number),
                job,
            )


@pytest.mark.slow
@pytest.mark.parametrize("event", EVENTS)
def test_killed_at_any_step_whatsoever_and_with_writers_between_nothing_is_lost(small, event):
    _, steps = undisturbed(small)
    for number in range(steps // 3, steps):
        crashed(small, [random.choice((Before, After))(number)], event=event)


@pytest.mark.slow
def test_killed_again_and_again_it_ends_the_same(small):
    wanted, steps = undisturbed(small)
    for _ in range(150):
        crashes = [random.choice((Before, After))(random.randrange(steps + 20)) for _ in range(3)]
        assert crashed(small, crashes) == wanted, crashes


def given_up(small, crash):
    """Nobody takes it up for days: the next run gives it up, and what its commits had is garbage, or a dead table."""
    with small.again() as (repo, opened):
        seen = Seen(repo)
        with suppress(Crash):
            collect(opened(Steps(crash)))
        small.days(3)
        the_rest_goes(repo, small)
        seen.is_still_there(repo)
        assert oracle.garbage(repo) == {}
        return {name: commit.parents for name, commit in oracle.history(repo).items()}, oracle.tables(repo).keys()


def test_killed_and_left_alone_for_days_it_leaves_nothing_behind(small):
    _, steps = undisturbed(small)
    ends = [given_up(small, After(number)) for number in (10, *random.sample(range(steps // 2, steps), 2))]
    assert ends[0] == ends[1] == ends[2]


@pytest.mark.slow
def test_killed_anywhere_and_left_alone_for_days_it_leaves_nothing_behind(small):
    _, steps = undisturbed(small)
    first = given_up(small, After(10))
    for number in range(steps // 3, steps):
        assert given_up(small, After(number)) == first, number


# ---- an expiration, cut off

WISHES = [{}, {"keep": Keep(last=3), "delete_tags": True, "delete_branches": True}]


def expired_undisturbed(small, wish):
    with small.again("unexpired") as (repo, opened):
        steps = Steps()
        expire(opened(steps), **wish)
        return (ended(repo)[:4], set(Seen(repo).refs)), steps.taken


def expired_crashed(small, crash, wish, event=None):
    with small.again("unexpired") as (repo, opened):
        before = Seen(repo)
        with suppress(Crash):
            expire(opened(Steps(crash)), **wish)
        if event:
            whatever(repo, small, event)
        now = Seen(repo)
        assert all(before.refs[name] == files for name, files in now.refs.items() if name in before.refs and not event)
        expire(opened(Steps()), **wish)
        small.days(0.5)
        if event:
            left = {one.name for one in (*repo.branches(), *repo.tags())}
            assert all(shown(repo, name) == files for name, files in now.refs.items() if name in left)
            the_rest_goes(repo, small)
            assert all(shown(repo, name) == files for name, files in now.refs.items() if name in left)
            return None
        return ended(repo)[:4], set(Seen(repo).refs)


@pytest.mark.parametrize("wish", WISHES, ids=["all", "some"])
def test_an_expiration_killed_at_any_step_and_started_again_ends_the_same(small, wish):
    wanted, steps = expired_undisturbed(small, wish)
    for number in random.sample(range(steps), 1):
        crash = random.choice((Before, After))(number)
        assert expired_crashed(small, crash, wish) == wanted, crash
        expired_crashed(small, crash, wish, random.choice(list(EVENTS)))


@pytest.mark.slow
@pytest.mark.parametrize("wish", WISHES, ids=["all", "some"])
def test_an_expiration_killed_at_any_step_whatsoever_and_started_again_ends_the_same(small, wish):
    wanted, steps = expired_undisturbed(small, wish)
    for number, moment in itertools.product(range(steps), (Before, After)):
        assert expired_crashed(small, moment(number), wish) == wanted, moment(number)
        for event in EVENTS:
            expired_crashed(small, moment(number), wish, event)


def test_a_table_that_comes_back_while_a_dead_run_may_still_remove_it_waits(small):
    """The commit is refused as long as its tables are condemned, and made once that is over."""
    outcomes = []
    _, steps = undisturbed(small)
    for number in range(steps // 2, steps, 20):
        with small.again() as (repo, opened):
            with suppress(Crash):
                collect(opened(Steps(After(number))))
            try:
                EVENTS["tables that come back"](repo, small)
                outcomes.append("made")
            except BeingCollected:
                outcomes.append("refused")
            collect(repo)
            small.days(0.01)
            if outcomes[-1] == "refused":
                small.id["n3"] = repo.commit("main", "again").id
            assert set(shown(repo, "main")) == {"a", "a2", "c", "d", "m"}
            with pytest.raises(CommitGone):
                repo.resolve(small.id["c1"])
            nothing_is_left_to_do(repo)
    assert set(outcomes) == {"made", "refused"}
