"""Collectors among writers, interleaved step by step: no entry that is staged or committed ever loses its object.

A collector here plans and sweeps. Time jumps by hours between any two steps, or
the collector itself lives days ahead of everybody: then whatever nobody holds is
old, and only what the sweep checks when it condemns keeps the others safe.
"""

import itertools
import random
import tempfile
import threading
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from desilt.clock import ManualClock
from desilt.errors import DesiltError, FencedOff, Gone, Locked
from desilt.executors.executor import HERE
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.runner import plan, run, sweep
from desilt.lake import Lake, schema
from desilt.objects import open_store
from desilt.records import ledger, locks
from desilt.records import removals as tombstones
from desilt.records.database import open_database
from desilt.records.ledger import RunState
from desilt.runs.steps import CHOICES, Action
from desilt.sweep.limits import Limits
from desilt.testing import oracle
from desilt.testing.faults import SteppedDatabase, Steps, Turns, stepped
from histories import BRANCHES, Judge, Writer, some_schedule, staged_addresses, still_works

ALL = Limits(max_share=1.0, confirm=True, allow_empty=True, max_plan_age=timedelta(days=900))
START = datetime(2026, 1, 1, tzinfo=UTC)
LIFE = timedelta(hours=1)  # of a ticket
AHEAD = timedelta(days=3)
OFTEN = {
    "put": 8, "slow_put": 4, "hand_out": 5, "link_late": 6, "commit": 7, "merge": 4, "copy": 3, "move": 3, "remove": 2,
    "copy_across": 2, "reset_path": 3, "reset": 3, "branch_off": 2, "delete": 2, "tag": 1,
}  # fmt: skip
KINDS, WEIGHTS = zip(*OFTEN.items(), strict=True)


@pytest.fixture(autouse=True)
def _no_heartbeat(monkeypatch):
    monkeypatch.setattr(locks, "BEAT_SECONDS", 1e6)  # it would be one more thread that waits for its turn


@pytest.fixture
def silence_is_death(monkeypatch):
    monkeypatch.setattr(locks, "SILENCE", timedelta(seconds=-1))


class Racer(Writer):
    """A writer whose uploads take their time: through us, chunk by chunk, or directly, linked after other things."""

    def __init__(self, *values, pause=lambda: None):
        super().__init__(*values)
        self._pause, self._handed = pause, []

    def slow_put(self, branch, _other, _pick):
        def chunks(text):
            for character in (text[:1], text[1:2], text[2:]):
                self._pause()
                yield character.encode()

        with self._writing("put", branch) as record:
            record.result = self.repo.put(branch, record.path, chunks(record.text)).address

    def hand_out(self, branch, _other, pick):
        with self._recorded("hand_out", branch):
            path = f"{self.name}/direct{next(self._numbers)}"
            text, handed = f"the text of {path}", self.repo.physical_address(branch, path)
            self._handed.append((branch, path, text, handed))
            if pick % 2:
                self.repo.store.put(self.repo.prefix + handed.ticket.address, [text.encode()])

    def link_late(self, _branch, _other, pick):
        if self._handed:
            branch, path, text, handed = self._handed.pop(pick % len(self._handed))
            with self._recorded("link", branch, path=path, text=text) as record:
                if pick % 2 == 0:
                    self.repo.store.put(self.repo.prefix + handed.ticket.address, [text.encode()])
                record.result = self.repo.link(branch, path, handed.token).address
            if record.acknowledged:
                self._own.append((branch, path, text))


class Watch(Judge):
    """Sees at every step that what is staged is there, and at the end that all commits are whole."""

    def glance(self, records):
        super().glance(records)
        with self.repo.database.read() as tx:
            staged = staged_addresses(tx)
        assert staged <= set(oracle.stored(self.repo)), "what is staged is not there any more"

    def judge(self, records):
        super().judge(records)
        with self.repo.database.read() as tx:
            gone = set(tombstones.every(tx, self.repo.uid).to_pylist())
        held = oracle.committed(self.repo) | oracle.staged(self.repo)
        assert not held & gone
        assert held <= set(oracle.stored(self.repo))


class Sea:
    """A lake with three branches and much that is old, and a clock that all of them share."""

    def __init__(self, directory):
        self.database = open_database(f"sqlite://{directory}/lake.db", create=True)
        schema.create(self.database, storage="")
        self.clock = ManualClock(START)
        self.store = open_store(f"memory://{uuid.uuid4().hex}")
        self.store.clock, self.store.delete_batch = self.clock, 2
        self.records, self.reports, self.refused = [], [], []
        self._ticks = itertools.count()
        self.repo = self._lake(self.database, self.store).create_repository("many", ticket_life=LIFE)
        first = self.writer("first", self.repo)
        for _ in range(3):
            first.do("put", "main", "", 0)
        first.do("commit", "main", "", 0)
        for name in BRANCHES[1:]:
            self.repo.create_branch(name, "main")
        for branch in BRANCHES:
            for _ in range(2):
                first.do("put", branch, "", 0)
            first.do("reset", branch, "", 0)  # garbage
            first.do("put", branch, "", 0)
        self.clock.now += timedelta(days=1)
        self.watch = Watch(self.repo)

    def _lake(self, database, store):
        return Lake(database, store, clock=self.clock, raggedness=3)

    def opened(self, steps):
        return self._lake(SteppedDatabase(self.database, steps), stepped(self.store, steps)).repository("many")

    def writer(self, name, repo, **more):
        return Racer(name, repo, self.log, lambda: next(self._ticks), **more)

    def log(self, record):
        if record not in self.records:
            self.records.append(record)

    def writing(self, name, operations, turns):
        def body():
            writer = self.writer(name, self.opened(Steps(pause=turns.pause)), pause=turns.pause)
            for operation in operations:
                writer.do(*operation)

        return body

    def collecting(self, asks, turns):
        """Runs, one after the other; what refuses is as good as what sweeps, if it says so."""

        def body():
            for ahead, action, later in asks:
                repo = self.opened(Steps(pause=own_turns(turns)))
                try:
                    self.reports += collect(repo, self.clock.now + ahead, action, later=later)
                except DesiltError as error:
                    self.refused.append(error)

        return body

    def choosing(self, chance, schedule, jumps):
        """Who goes on is as in the ``schedule``; time jumps at some of the steps."""
        order = iter([number for number, times in schedule for _ in range(times)])
        names = ["c0", "w0", "w1", "w2", "c1"]

        def choose(waiting):
            self.watch.glance(self.records)
            if chance.random() < jumps:
                self.clock.now += timedelta(minutes=chance.choice((5, 31, 65, 80, 600)))
            for number in order:
                if names[number] in waiting:
                    return names[number]
            return chance.choice(waiting)

        return choose


def own_turns(turns):
    """Steps of this thread wait for their turn; what Arrow reads in threads of its own does not."""
    mine = threading.current_thread()
    return lambda: turns.pause() if threading.current_thread() is mine else None


def collect(repo, now, action=Action.DELETE, *, later=False):
    ask = uncommitted.job.ask(now=now, action=action, dropped_for=timedelta(0))  # whatever nobody holds is at stake
    if later:
        return [sweep(repo, HERE, plan(uncommitted.job, repo, HERE, ask).run, ALL)]
    return run(uncommitted.job, repo, HERE, ask, ALL)


def some_operations(chance):
    return [
        (chance.choices(KINDS, WEIGHTS)[0], chance.choice(("main", "main", "dev", "qa")), chance.choice(BRANCHES),
         chance.randrange(20))
        for _ in range(chance.randint(4, 9))
    ]  # fmt: skip


def race(seed, *, collectors):
    """One interleaving, told by its seed; the sea as it is afterwards."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as directory:
        sea = Sea(directory)
        try:
            schedule = [(min(number, 4), times) for number, times in some_schedule(chance)]
            schedule = [(chance.choice((0, 0, number)), times) for number, times in schedule]
            if collectors > 1:
                schedule = [(chance.choice((number, 4)), times) for number, times in schedule]
            ahead = chance.choice((timedelta(), AHEAD))
            turns = Turns(sea.choosing(chance, schedule, 0 if ahead else chance.choice((0.02, 0.1))))
            bodies = {
                f"w{n}": sea.writing(f"w{n}", some_operations(chance), turns) for n in range(chance.randint(1, 3))
            }
            for number in range(collectors):
                asks = [(ahead, chance.choice(list(CHOICES)), chance.random() < 0.4) for _ in range(2)]
                bodies[f"c{number}"] = sea.collecting(asks, turns)
            turns.run(bodies)
            sea.watch.judge(sea.records)
            finish(sea)
            still_works(sea.repo)
        finally:
            sea.database.close()
        return sea


def finish(sea):
    """After all, one more run: what is left over goes, figures add up, and nothing that is held was touched.

    A clean one: uploads that took longer than two tickets live, and runs that looked ahead, are beyond the others.
    """
    sea.clock.now += timedelta(days=30)
    run(uncommitted.job, sea.repo, HERE, uncommitted.job.ask(full=True), ALL)
    assert oracle.collectable(sea.repo, sea.clock.now) == set()
    sea.watch.judge(sea.records)
    with sea.database.read() as tx:
        for row in ledger.every(tx, sea.repo.uid):
            total = ledger.total(ledger.batches(tx, sea.repo.uid, row.id))
            assert row.state in (RunState.SWEPT, RunState.PARTLY)
            assert total.asked == total.removed + total.gone + total.failed


def raced(times, *, collectors):
    seas = []
    for _ in range(times):
        seed = random.randrange(2**40)
        try:
            seas.append(race(seed, collectors=collectors))
        except Exception as error:
            raise AssertionError(f"race({seed}, collectors={collectors})") from error
    assert sum(report.swept.removed for sea in seas for report in sea.reports) > times  # or nothing was at stake
    return seas


def test_what_writers_hold_outlives_a_collector_among_them():
    raced(8, collectors=1)


@pytest.mark.slow
def test_what_writers_hold_outlives_a_collector_among_them_for_long():
    raced(3000, collectors=1)


def test_of_two_collectors_among_writers_one_is_locked_out():
    seas = raced(3, collectors=2)
    assert any(isinstance(error, Locked) for sea in seas for error in sea.refused)


@pytest.mark.usefixtures("silence_is_death")
def test_collectors_that_take_over_from_each_other_remove_nothing_that_is_held():
    seas = raced(5, collectors=2)
    assert any(isinstance(error, FencedOff) for sea in seas for error in sea.refused)


@pytest.mark.slow
@pytest.mark.usefixtures("silence_is_death")
def test_collectors_that_take_over_from_each_other_remove_nothing_that_is_held_for_long():
    raced(1500, collectors=2)


# ---- one event between any two steps


@pytest.fixture
def sea():
    with tempfile.TemporaryDirectory() as directory:
        made = Sea(directory)
        yield made
        made.database.close()


def between(number, act):
    """Steps of which the one with this number waits until ``act`` is done."""
    count = itertools.count()
    return Steps(pause=lambda: act() if next(count) == number else None)


def put_planned_in_flight(sea, path):
    """An upload whose object was there, and staged by nobody yet, when a collector that lives ahead made its plan."""
    plans = []

    def planned():
        plans.append(plan(uncommitted.job, sea.repo, HERE, uncommitted.job.ask(now=sea.clock.now + AHEAD, full=True)))

    sea.opened(Steps()).put("main", f"{path} first", b"text")  # opens a partition, which takes steps of its own
    before = Steps()
    sea.opened(before).put("main", f"{path} before", b"text")
    return sea.opened(between(before.taken - 1, planned)).put("main", path, b"text"), plans[0].run


def is_kept(sea, entry):
    assert entry.address in oracle.stored(sea.repo)
    assert sea.repo.tombstones([entry.address]) == {}
    assert b"".join(sea.repo.get("main", entry.path)) == b"text"


def test_what_is_staged_after_it_was_planned_is_kept(sea):
    entry, planned = put_planned_in_flight(sea, "new")
    assert sweep(sea.repo, HERE, planned, ALL).swept.held_again == 1
    is_kept(sea, entry)


def test_what_is_committed_after_it_was_planned_is_kept(sea):
    entry, planned = put_planned_in_flight(sea, "new")
    sea.repo.commit("main", "just in time")
    assert sweep(sea.repo, HERE, planned, ALL).swept.held_again == 1
    is_kept(sea, entry)


def test_what_is_held_again_is_looked_at_again(sea):
    entry, planned = put_planned_in_flight(sea, "new")
    sweep(sea.repo, HERE, planned, ALL)
    sea.repo.reset("main")
    sea.clock.now += timedelta(days=30)
    run(uncommitted.job, sea.repo, HERE, uncommitted.job.ask(), ALL)
    assert entry.address not in oracle.stored(sea.repo)


def test_what_is_committed_at_any_step_of_the_sweep_is_kept(sea):
    for number in range(8, 22):
        entry, planned = put_planned_in_flight(sea, f"new{number}")
        steps = between(number, lambda: sea.repo.commit("main", "just in time"))
        sweep(sea.opened(steps), HERE, planned, ALL)
        is_kept(sea, entry)


def test_an_upload_that_is_condemned_at_any_step_fails_or_its_object_lives(sea):
    outcomes = []
    for number in itertools.count():
        steps = between(
            number,
            lambda: run(
                uncommitted.job, sea.repo, HERE, uncommitted.job.ask(now=sea.clock.now + AHEAD, full=True), ALL
            ),
        )
        try:
            is_kept(sea, sea.opened(steps).put("main", f"new{number}", b"text"))
            outcomes.append("kept")
        except Gone:
            outcomes.append("refused")
        if steps.taken <= number:
            break
    assert set(outcomes) == {"kept", "refused"}


@pytest.mark.usefixtures("silence_is_death")
@pytest.mark.parametrize("action", CHOICES)
def test_a_collector_that_wakes_up_after_another_took_over_removes_nothing_more(sea, action):
    """Whatever it lost between, it has no fence any more; what it still deletes was condemned, by it or with it."""
    fenced = 0
    for number in range(34, 90, 11):
        for branch in BRANCHES:
            sea.repo.put(branch, "lost", b"lost")
            sea.repo.reset(branch, path="lost")
        sea.clock.now += timedelta(days=1)
        held = oracle.committed(sea.repo) | oracle.staged(sea.repo)
        taking_over = lambda: collect(sea.repo, sea.clock.now)  # noqa: E731
        try:
            collect(sea.opened(between(number, taking_over)), sea.clock.now, action)
        except FencedOff:
            fenced += 1
        assert held <= set(oracle.stored(sea.repo))
        assert sea.repo.tombstones(sorted(held)) == {}
    finish(sea)
    assert fenced
