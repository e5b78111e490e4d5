"""Writers interleaved step by step, some of them killed: nothing acknowledged is lost, nothing half is seen."""

import copy
import itertools
import tempfile
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from desilt.errors import Gone
from desilt.lake import Lake, refs, repositories, schema, staging, tickets
from desilt.objects.memory import MemoryStore
from desilt.records.database import open_database
from desilt.sstable.values import decode_entry
from desilt.testing import oracle
from desilt.testing.faults import After, Before, Crash, SteppedDatabase, Steps, Turns, stepped
from histories import BRANCHES, Judge, Writer, condemn, some_schedule, still_works
from patience import FOR_EVER, until

OFTEN = {
    "put": 16, "link": 4, "commit": 9, "merge": 6, "copy": 3, "move": 5, "remove": 5, "copy_across": 2,
    "reset_path": 4, "reset": 2, "revert": 3, "branch_off": 2, "delete": 1, "tag": 1, "collect": 4, "expire": 2,
}  # fmt: skip
KINDS, WEIGHTS = zip(*OFTEN.items(), strict=True)


def some_history(random):
    """Two to four writers, each one or two lives: where it ends, and what it does until then."""
    return [[some_life(random) for _ in range(random.choice((1, 2)))] for _ in range(random.choice((2, 3, 4)))]


def some_life(random):
    crash = random.choice((None, Before, After))
    operations = [some_operation(random) for _ in range(random.randint(4, 10))]
    return crash and crash(random.randrange(50)), operations


def some_operation(random):
    branch, other = random.choice(("main", "main", "dev", "dev", "qa")), random.choice(BRANCHES)
    return random.choices(KINDS, WEIGHTS)[0], branch, other, random.randrange(20)


class World:
    """A lake with three branches, and time that passes whenever somebody looks."""

    def __init__(self, url, *, fine=False):
        self.database = open_database(url, create=True)
        schema.create(self.database, storage="")
        self._ticks = itertools.count()
        self.store = MemoryStore(clock=self.clock)
        self.records, self.fine = [], fine
        self.repo = Lake(self.database, self.store, clock=self.clock, raggedness=3).create_repository("many")
        first = Writer("first", self.repo, self.log, lambda: next(self._ticks))
        for kind, branch in [("put", "main"), ("commit", "main"), ("put", "main"), ("commit", "main")]:
            first.do(kind, branch, "", 0)
        for name in BRANCHES[1:]:
            self.repo.create_branch(name, "main")
        self.judge = Judge(self.repo)

    def clock(self):
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(milliseconds=10 * next(self._ticks))

    def log(self, record):
        if record not in self.records:
            self.records.append(record)

    def run(self, history, schedule, *, patience=None):
        turns = Turns(self.chooser(schedule), patience=patience)
        bodies = {f"w{number}": self.lives(f"w{number}", lives, turns) for number, lives in enumerate(history)}
        turns.run(bodies)

    def lives(self, name, lives, turns):
        def body():
            for life, (crash, operations) in enumerate(lives):
                steps = Steps(crash, pause=turns.pause, fine=self.fine)
                try:
                    lake = Lake(
                        SteppedDatabase(self.database, steps),
                        stepped(self.store, steps),
                        clock=self.clock,
                        raggedness=3,
                    )
                    writer = Writer(f"{name}.{life}", lake.repository("many"), self.log, lambda: next(self._ticks))
                    for operation in operations:
                        writer.do(*operation)
                except Crash:
                    pass

        return body

    def chooser(self, schedule):
        turns = iter([number for number, times in schedule for _ in range(times)])

        def choose(waiting):
            if not self.fine:
                self.judge.glance(self.records)
            for number in turns:
                if f"w{number}" in waiting:
                    return f"w{number}"
            return waiting[0]

        return choose


def live(url, history, schedule, **more):
    world = World(url, fine="patience" in more)
    try:
        world.run(history, schedule, **more)
        world.judge.judge(world.records)
        still_works(world.repo)
    finally:
        world.database.close()


def explored(url, *, examples, **more):
    @settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        phases=[Phase.generate],  # random programs are made smaller by `smallest`
    )
    @given(random=st.randoms(use_true_random=True))
    def explore(random):
        history, schedule = some_history(random), some_schedule(random)
        error = failure(url, history, schedule, **more)
        if error is not None:
            history = smallest(history, lambda less: failure(url, less, schedule, **more) is not None)
            raise AssertionError(f"{history!r} by {schedule!r}") from error

    explore()


def failure(url, history, schedule, **more):
    with tempfile.TemporaryDirectory() as directory:
        try:
            live(url(directory), history, schedule, **more)
        except Exception as error:
            return error
    return None


def smallest(history, fails):
    """``history`` without every operation that it fails without."""
    for writer, life in [(w, n) for w, lives in enumerate(history) for n in range(len(lives))]:
        for at in reversed(range(len(history[writer][life][1]))):
            less = copy.deepcopy(history)
            del less[writer][life][1][at]
            if fails(less):
                history = less
    return history


def in_directory(directory):
    return f"sqlite://{directory}/lake.db"


def test_writers_interleaved_at_every_step_lose_nothing():
    explored(in_directory, examples=16)


@pytest.mark.slow
def test_writers_interleaved_at_every_step_lose_nothing_for_long():
    explored(in_directory, examples=4000)


def test_writers_interleaved_on_postgresql_lose_nothing(fresh_postgres_url):
    explored(lambda _: fresh_postgres_url(), examples=4)


def test_writers_interleaved_inside_of_their_transactions_lose_nothing(fresh_postgres_url):
    explored(lambda _: fresh_postgres_url(), examples=4, patience=0.05)


# ---- a collector between any two steps


def link(repo, branch):
    handed = repo.physical_address(branch, "new")
    repo.store.put(repo.prefix + handed.ticket.address, [b"new"])
    return repo.link(branch, "new", handed.token)


@pytest.mark.parametrize(
    "act",
    [
        lambda repo, branch: repo.put(branch, "new", b"new"),
        link,
        lambda repo, branch: repo.copy(branch, "old", branch, "new"),
        lambda repo, branch: repo.move(branch, "old", "new"),
        lambda repo, branch: repo.copy("main", "first/0", branch, "new"),
    ],
    ids=["put", "link", "copy", "move", "copy from elsewhere"],
)
def test_a_write_is_staged_before_its_object_is_condemned_or_never(tmp_path, act):
    world, outcomes = World(in_directory(tmp_path)), []
    for at in itertools.count():
        branch, steps, left = f"b{at}", Steps(), iter(range(at))
        world.repo.create_branch(branch, "main")
        world.repo.put(branch, "old", b"old")
        world.repo.commit(branch, "old")

        def collect_at_last(steps=steps, left=left):
            if next(left, "now") == "now":
                steps.pause = lambda: None
                everything = sorted(oracle.stored(world.repo))
                kept = {world.repo.stat("main", "first/0").address}
                condemn(world.repo, "a run", everything, lambda _: kept, tickets_hold=False)

        lake = Lake(SteppedDatabase(world.database, steps), stepped(world.store, steps), clock=world.clock)
        repo = lake.repository("many")
        steps.pause = collect_at_last
        try:
            entry = act(repo, branch)
            outcomes.append("staged")
            assert world.repo.stat(branch, "new") == entry
        except Gone:
            outcomes.append("gone")
            assert "new" not in {one.path for one in world.repo.list(branch)}
        world.judge.glance(world.records)
        if steps.pause is collect_at_last:
            break
    world.database.close()
    assert at > 2
    assert set(outcomes) == {"staged", "gone"}


# ---- locks: orders of events that random schedules seldom hit


@pytest.fixture
def world(fresh_postgres_url):
    made = World(fresh_postgres_url())
    yield made
    made.database.close()


class Gate:
    """Stops threads by name on their way into, or out of, a function."""

    def __init__(self, monkeypatch, where, name, *, before=(), after=()):
        self._real, self._before, self._after = getattr(where, name), before, after
        self.reached = {thread: threading.Event() for thread in (*before, *after)}
        self.opened = {thread: threading.Event() for thread in self.reached}
        monkeypatch.setattr(where, name, self)

    def __call__(self, *values, **named):
        thread = threading.current_thread().name
        if thread in self._before:
            self._stop(thread)
        result = self._real(*values, **named)
        if thread in self._after:
            self._stop(thread)
        return result

    def _stop(self, thread):
        self.reached[thread].set()
        self.opened[thread].wait(FOR_EVER)


class Together:
    """Threads with names, and what came of each."""

    def __init__(self):
        self._threads, self.outcomes = [], {}

    def start(self, name, act):
        def body():
            try:
                act()
                self.outcomes[name] = "done"
            except Exception as error:
                self.outcomes[name] = repr(error)

        self._threads.append(threading.Thread(target=body, name=name, daemon=True))
        self._threads[-1].start()

    def finish(self):
        for thread in self._threads:
            thread.join(FOR_EVER)
        return self.outcomes


def test_a_put_a_commit_a_tag_and_a_collector_never_wait_for_each_other_in_a_circle(world, monkeypatch):
    moved = Gate(monkeypatch, repositories, "begin_move", before=["commit"], after=["tag"])
    writing = Gate(monkeypatch, repositories, "writing", after=["put"])
    repo, together = world.repo, Together()
    repo.put("dev", "staged", b"staged")
    together.start("put", lambda: repo.put("dev", "later", b"later"))
    writing.reached["put"].wait(1)
    together.start("commit", lambda: repo.commit("dev", "a commit"))
    moved.reached["commit"].wait(1)
    together.start("tag", lambda: repo.create_tag("v1", "main"))
    moved.reached["tag"].wait(1)
    together.start("collector", lambda: condemn(repo, "gc", [], oracle.committed))
    for gate, name in [(moved, "commit"), (writing, "put"), (moved, "tag")]:
        time.sleep(0.3)  # for those before to wait for their locks
        gate.opened[name].set()
    assert together.finish() == dict.fromkeys(["put", "commit", "tag", "collector"], "done")


def test_a_stream_of_puts_does_not_keep_a_commit_waiting(world, monkeypatch):
    """It ends while they go on; if they were let in before it, it would wait until there are no more."""
    inside, committed = threading.Condition(), threading.Event()
    count = 0
    settle = tickets.settle

    def relay(*values, **named):
        """Each put holds its locks until the next one has them too; if none comes, it does not wait long."""
        nonlocal count
        with inside:
            count += 1
            mine = count
            inside.notify_all()
            inside.wait_for(lambda: count > mine, 0.3)
        return settle(*values, **named)

    monkeypatch.setattr(tickets, "settle", relay)
    repo, together, left = world.repo, Together(), iter(range(2000))

    def putting(name):
        while not committed.is_set() and (number := next(left, None)) is not None:
            repo.put("main", f"{name}/{number}", b"")

    for name in ("a", "b", "c"):
        together.start(name, lambda name=name: putting(name))
    until(lambda: count > 10)
    repo.commit("main", "in between")
    committed.set()
    assert set(together.finish().values()) == {"done"}
    assert next(left, None) is not None


def test_while_somebody_condemns_what_is_staged_stays_where_it_is(world):
    kept = world.repo.put("main", "kept", b"kept")
    world.repo.put("main", "reset", b"reset")
    steps = Steps(After(1))
    dying = Lake(SteppedDatabase(world.database, steps), world.store, clock=world.clock)
    with pytest.raises(Crash):
        dying.repository("many").commit("main", "dies once it has sealed what is staged")
    together = Together()
    with world.database.write() as tx:
        repositories.condemning(tx, world.repo.uid)
        tokens = [token for one in refs.branches(tx, world.repo.uid) for token in one.tokens]
        together.start("reset", lambda: world.repo.reset("main", path="reset"))
        time.sleep(0.5)
        staged = [pair for token in tokens for pair in staging.scan(tx, [token])]
    assert together.finish() == {"reset": "done"}
    assert kept.address in {decode_entry(path, value).address for path, value in staged if value}
