"""A collection killed at every step and started again loses nothing that is held, and ends as if never disturbed."""

import itertools
import random
import shutil
import tempfile
import uuid
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from desilt.clock import ManualClock
from desilt.executors.executor import HERE
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.runner import plan, run, sweep
from desilt.lake import Lake, schema
from desilt.lake.fsck import check
from desilt.objects import open_store
from desilt.records import ledger, locks
from desilt.records import removals as tombstones
from desilt.records.database import open_database
from desilt.records.ledger import RunState
from desilt.records.removals import State
from desilt.runs.steps import CHOICES, Action
from desilt.sweep.limits import Limits
from desilt.testing import oracle
from desilt.testing.faults import After, Before, Crash, SteppedDatabase, Steps, stepped

ALL = Limits(max_share=1.0, confirm=True, allow_empty=True)
START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _silence_is_death(monkeypatch):
    monkeypatch.setattr(locks, "SILENCE", timedelta(seconds=-1))  # the dead owner is this very process


class OneByOne:
    """A store that may be cut off in the middle of a batch: each of its objects is a step."""

    delete_batch = 3

    def __init__(self, store):
        self._store = store

    def __getattr__(self, name):
        return getattr(self._store, name)

    def delete_many(self, keys, **_):
        return [outcome for key in keys for outcome in self._store.delete_many([key])]

    def move_many(self, pairs, **_):
        return [outcome for pair in pairs for outcome in self._store.move_many([pair])]


class Small:
    """A lake with something of everything, that can be had again as it was."""

    def __init__(self, directory):
        self.file = Path(directory) / "lake.db"
        self.clock = ManualClock(START)
        database = open_database(f"sqlite://{self.file}", create=True)
        schema.create(database, storage="")
        store = open_store(f"memory://{uuid.uuid4().hex}")
        store.clock = self.clock
        repo = Lake(database, store, clock=self.clock).create_repository("small")
        self.fill(repo)
        self.now, self.objects = self.clock.now, dict(store._objects)
        database.close()

    def fill(self, repo):
        for number in range(3):
            repo.put("main", f"kept{number}", b"kept")
        repo.commit("main", "kept")
        for number in range(4):
            repo.put("main", f"lost{number}", b"lost")
        repo.reset("main")
        repo.create_branch("deleted", "main")
        for text in (b"overwritten", b"merged"):
            repo.put("deleted", "merged", text)
        repo.commit("deleted", "merged")
        repo.merge("deleted", "main")
        repo.put("deleted", "lost", b"lost with its branch")
        repo.delete_branch("deleted", force=True)
        self.unlinked(repo, "never linked")
        repo.put("main", "staged", b"staged")
        repo.move("main", "kept0", "moved")
        self.clock.now += timedelta(days=5)
        repo.put("main", "young", b"young")
        repo.put("main", "young", b"young, and overwritten")
        self.unlinked(repo, "under way")

    def unlinked(self, repo, path):
        handed = repo.physical_address("main", path)
        repo.store.put(repo.prefix + handed.ticket.address, [b"direct"])

    @contextmanager
    def again(self):
        """As it was: the repository, and a function that opens it anew on ``steps``."""
        with tempfile.TemporaryDirectory() as directory:
            shutil.copy(self.file, f"{directory}/lake.db")
            database = open_database(f"sqlite://{directory}/lake.db")
            self.clock.now = self.now
            store = open_store(f"memory://{uuid.uuid4().hex}")
            store.clock = self.clock
            store._objects.update(self.objects)

            def opened(steps):
                self.clock.now += timedelta(seconds=1)
                lake = Lake(SteppedDatabase(database, steps), OneByOne(stepped(store, steps)), clock=self.clock)
                return lake.repository("small")

            yield opened(Steps()), opened
            database.close()


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return Small(tmp_path_factory.mktemp("small"))


def held(repo):
    return oracle.committed(repo) | oracle.staged(repo) | oracle.ticketed(repo, repo.clock())


def nothing_held_is_lost(repo, was_held):
    assert held(repo) == was_held <= set(oracle.stored(repo))
    assert repo.tombstones(sorted(was_held)) == {}


def nothing_goes_that_is_not_on_record(repo, before):
    """Every object that is not there any more was condemned first, and says by which run."""
    gone = before - set(oracle.stored(repo))
    assert repo.tombstones(sorted(gone)).keys() == gone


def ended(repo):
    """What is stored, what is condemned: equal for runs that came to the same end."""
    with repo.database.read() as tx:
        stones = {
            stone.address: stone.state
            for one in ledger.every(tx, repo.uid)
            for stone in tombstones.of_run(tx, repo.uid, one.id)
        }
        for one in ledger.every(tx, repo.uid):
            total = ledger.total(ledger.batches(tx, repo.uid, one.id))
            assert one.state is RunState.SWEPT
            assert total.asked == total.removed + total.gone + total.failed
            assert total.asked + total.held_again == one.objects
    assert State.CONDEMNED not in stones.values()
    return set(oracle.stored(repo)), stones.keys(), trashed(repo)


def trashed(repo):
    found = [key for batch in repo.store.list(f"{repo.prefix}_desilt/trash/") for key in batch["key"].to_pylist()]
    return {key[key.index("branches/") :] for key in found}


def later_runs_go_on(repo):
    """What was staged while it was cut off is found when it is reset, by a run that does not look everywhere."""
    repo.core.clock.now += timedelta(days=9)
    repo.reset("main")
    wanted = oracle.collectable(repo, repo.clock())
    before = set(oracle.stored(repo))
    collect(repo)
    assert before - set(oracle.stored(repo)) == wanted
    assert plan(uncommitted.job, repo, HERE, uncommitted.job.ask(full=True)).removed.objects == 0
    assert check(repo).sound


def collect(repo, action=Action.DELETE):
    return run(uncommitted.job, repo, HERE, uncommitted.job.ask(action=action), ALL)


def undisturbed(small, action):
    with small.again() as (repo, opened):
        wanted = oracle.collectable(repo, repo.clock())
        assert len(wanted) == 7
        before, steps = set(oracle.stored(repo)), Steps()
        collect(opened(steps), action)
        assert before - set(oracle.stored(repo)) == wanted
        end = ended(repo)
        assert end[2] == (wanted if action is Action.TRASH else set())
        return end, steps.taken


def crashed(small, crashes, action, *, go_on=True):
    """Die at each of ``crashes`` in turn, then go through with it; how that ends."""
    with small.again() as (repo, opened):
        before, was_held = set(oracle.stored(repo)), held(repo)
        for crash in crashes:
            with suppress(Crash):  # a step that fails by itself has no moment after it
                collect(opened(Steps(crash)), action)
            nothing_held_is_lost(repo, was_held)
            nothing_goes_that_is_not_on_record(repo, before)
        collect(opened(Steps()), action)
        nothing_held_is_lost(repo, was_held)
        end = ended(repo)
        if go_on:
            later_runs_go_on(repo)
        return end


@pytest.mark.parametrize(("moment", "action", "stride"), [(Before, Action.DELETE, 6), (After, Action.TRASH, 8)])
def test_killed_at_any_step_of_its_sweep_and_started_again_it_ends_the_same(small, moment, action, stride):
    wanted, steps = undisturbed(small, action)
    half = steps // 2  # before that it only plans
    for number in [*random.sample(range(half), 3), *range(half + random.randrange(stride), steps, stride)]:
        assert crashed(small, [moment(number)], action, go_on=number % 6 == 0) == wanted, moment(number)


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "action"), list(itertools.product((Before, After), CHOICES)))
def test_killed_at_any_step_whatsoever_and_started_again_it_ends_the_same(small, moment, action):
    wanted, steps = undisturbed(small, action)
    for number in range(steps):
        assert crashed(small, [moment(number)], action) == wanted, moment(number)


def killed_again(small, action, chooser, times):
    wanted, steps = undisturbed(small, action)
    for _ in range(times):
        crashes = [
            chooser.choice((Before, After))(chooser.randrange(longest))
            for longest in (steps, steps + 20, steps)[: chooser.choice((2, 2, 3))]
        ]
        assert crashed(small, crashes, action) == wanted, crashes


@pytest.mark.parametrize("action", CHOICES)
def test_killed_again_while_it_makes_up_it_ends_the_same(small, action):
    killed_again(small, action, random.Random(random.random()), 3)


@pytest.mark.slow
@pytest.mark.parametrize("action", CHOICES)
def test_killed_again_and_again_while_it_makes_up_it_ends_the_same(small, action):
    killed_again(small, action, random.Random(random.random()), 600)


def test_a_plan_swept_before_a_run_that_was_cut_off_is_finished_takes_nothing_twice(small):
    """Whoever condemns first removes; the other finds that out, and its figures still add up."""
    wanted, steps = undisturbed(small, Action.DELETE)
    for number in range(steps // 2 + random.randrange(11), steps, 11):
        with small.again() as (repo, opened):
            was_held = held(repo)
            planned = plan(uncommitted.job, repo, HERE)
            with suppress(Crash):  # with the ranges decoded by the plan, it may be over by that step
                collect(opened(Steps(After(number))))
            sweep(opened(Steps()), HERE, planned.run, ALL)
            nothing_held_is_lost(repo, was_held)
            collect(opened(Steps()))
            nothing_held_is_lost(repo, was_held)
            assert ended(repo) == wanted
            later_runs_go_on(repo)
