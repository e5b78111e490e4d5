"""A small lake with a past that can be had again as it was, what may happen to it, and what must be seen ever after."""

import shutil
import tempfile
import uuid
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from desilt.clock import ManualClock
from desilt.domain.expiry import Expiry
from desilt.domain.policy import parse
from desilt.errors import Conflict, Gone, NotFound
from desilt.executors.executor import HERE
from desilt.jobs import holds
from desilt.jobs.collect import job as collection
from desilt.jobs.expire import job as expiration
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.runner import run
from desilt.lake import Lake, schema
from desilt.lake.fsck import check
from desilt.objects import open_store
from desilt.records.database import open_database
from desilt.records.holds import HoldKind
from desilt.sweep.limits import Limits
from desilt.testing import oracle
from desilt.testing.faults import SteppedDatabase, Steps, stepped
from words import collecting

ALL = Limits(max_share=1.0, confirm=True, allow_empty=True)
START = datetime(2026, 1, 1, tzinfo=UTC)
KEEP_RUNS = timedelta(days=3)
REFUSALS = (Conflict, NotFound, Gone)  # all that a writer may meet
NONCURRENT = parse({"r": {"prefix": "", "days": 9, "noncurrent_only": True}})


class OneByOne:
    """A store that may be cut off in the middle of a batch: each of its objects is a step."""

    delete_batch = 2

    def __init__(self, store):
        self._store = store

    def __getattr__(self, name):
        return getattr(self._store, name)

    def delete_many(self, keys, **_):
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
        with tempfile.TemporaryDirectory() as directory:
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
    return run(expiration.job, repo, HERE, expiration.job.ask(wish=Expiry(START + timedelta(days=6), **more)), ALL)


def collect(repo):
    return run(collection.job, repo, HERE, collecting(keep_runs=KEEP_RUNS), ALL)


def collect_garbage(repo):
    return run(uncommitted.job, repo, HERE, uncommitted.job.ask(), ALL)


def expire_objects(repo):
    return run(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=NONCURRENT), ALL)


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
    "a hold on a commit": lambda repo, small: holds.hold(repo, HoldKind.REF, small.id["m1"], reason="because"),
    "a hold on a prefix": lambda repo, _: holds.hold(repo, HoldKind.PREFIX, "b", reason="because"),
    "a hold on another prefix": lambda repo, _: holds.hold(repo, HoldKind.PREFIX, "t", reason="because"),
    "a hold on an object": lambda repo, small: holds.hold(
        repo, HoldKind.ADDRESS, repo.stat(small.id["c1"], "b").address, reason="because"
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
        held = holds.every(repo)
        names = [one.name for one in (*repo.branches(), *repo.tags())]
        names += [one.value for one in held if one.kind is HoldKind.REF]
        self.refs = {name: shown(repo, name) for name in names}
        self.held = {one.value for one in held if one.kind is HoldKind.ADDRESS}
        prefixes = tuple(one.value for one in held if one.kind is HoldKind.PREFIX)
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
    if small.raggedness == 1 or not oracle.held(repo, HoldKind.PREFIX):
        assert gone == wanted
    collect_garbage(repo)
    assert oracle.collectable(repo, repo.clock()) == set()
    nothing_is_left_to_do(repo)


def nothing_is_left_to_do(repo):
    report = collect(repo)[-1]
    assert (report.removed.objects, report.history) == (0, {"commits collected": 0})
    assert report.swept.asked == 0
