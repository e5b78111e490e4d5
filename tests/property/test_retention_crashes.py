"""A retention run, or a restore, killed at every step and started again ends as if never disturbed.

At no point is anything lost that is visible, nor does anything visible carry the tag.
"""

import random
import shutil
import tempfile
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path

import pytest

from desilt.clock import ManualClock
from desilt.domain.retention import parse
from desilt.executors.executor import HERE
from desilt.inventory import present
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.retention import job as retention
from desilt.jobs.retention.restore import restore
from desilt.jobs.runner import plan, run
from desilt.lake import Lake, schema
from desilt.lake.fsck import check
from desilt.objects import open_store
from desilt.records import ledger, locks
from desilt.records.database import open_database
from desilt.records.ledger import RunState
from desilt.records.removals import State
from desilt.sweep.limits import Limits
from desilt.testing import oracle, retained
from desilt.testing.faults import After, Before, Crash, Proxy, SteppedDatabase, Steps, stepped
from retaining import Tags, marks

ALL = Limits(max_share=1.0, confirm=True, allow_empty=True)
START = datetime(2026, 1, 1, tzinfo=UTC)
DOCUMENT = parse(
    {
        "rules": [
            {"status": "enabled", "filter": {}, "expiration": {"noncurrent": {"days": 2}}},
            {"status": "enabled", "filter": {"prefix": "dev/"}, "expiration": {"uncommitted": {"days": 2}}},
        ]
    }
)


@pytest.fixture(autouse=True)
def _one_at_a_time(monkeypatch):
    monkeypatch.setattr(locks, "SILENCE", timedelta(seconds=-1))  # the dead owner is this very process
    monkeypatch.setattr(present, "AT_ONCE", 1)  # so that steps come in the same order each time


class OneByOne:
    """A store that may be cut off in the middle of a batch: each of its objects is a step."""

    delete_batch = 3

    def __init__(self, store, tagging):
        self._store, self.tagging = store, tagging

    def __getattr__(self, name):
        return getattr(self._store, name)

    def delete_many(self, keys, **_):
        return [outcome for key in keys for outcome in self._store.delete_many([key])]


class SteppedTags:
    """Tags, each of which is a step."""

    def __init__(self, tags, steps):
        self._tags, self._steps = tags, steps

    def tag_many(self, keys, tag, **_):
        return self._each(partial(self._tags.tag_many, tag=tag), keys)

    def untag_many(self, keys, tag, **_):
        return self._each(partial(self._tags.untag_many, tag=tag), keys)

    def _each(self, act, keys):
        found = []
        for key in keys:
            with self._steps.step():
                found += act([key])
        return found


class Small:
    """A lake with something of everything, that can be had again as it was."""

    def __init__(self, directory):
        self.file, self.clock = Path(directory) / "lake.db", ManualClock(START)
        database = open_database(f"sqlite://{self.file}", create=True)
        schema.create(database, storage="")
        store = open_store(f"memory://{uuid.uuid4().hex}")
        store.clock = self.clock
        repo = Lake(database, store, clock=self.clock).create_repository("small")
        self.fill(repo)
        self.now, self.objects = self.clock.now, dict(store._objects)
        database.close()

    def fill(self, repo):
        for text in ("older", "old", "new"):
            for path in ("a", "b", "c"):
                repo.put("main", path, f"{path}, {text}".encode())
            repo.commit("main", text)
        repo.put("main", "kept", b"in a head")
        repo.put("main", "tagged", b"tagged")
        repo.commit("main", "kept")
        repo.create_tag("v1", "main")
        repo.remove("main", "tagged")
        repo.commit("main", "removed")
        repo.create_branch("dev", "main")
        repo.put("dev", "a", b"staged")
        repo.put("dev", "staged", b"staged")
        repo.put("main", "staged", b"staged, and no rule is about it")
        self.clock.now += timedelta(days=9)
        repo.put("dev", "young", b"young")

    @contextmanager
    def again(self, tagged):
        """As it was: the scene, on a store with tags or without."""
        with tempfile.TemporaryDirectory() as directory:
            shutil.copy(self.file, f"{directory}/lake.db")
            database = open_database(f"sqlite://{directory}/lake.db")
            self.clock.now = self.now
            store = open_store(f"memory://{uuid.uuid4().hex}")
            store.clock = self.clock
            store._objects.update(self.objects)
            yield Scene(database, store, self.clock, Tags(store) if tagged else None)
            database.close()


@dataclass
class Scene:
    """A lake, opened anew by whoever does something to it."""

    database: object
    store: object
    clock: ManualClock
    tags: Tags | None

    def opened(self, steps):
        self.clock.now += timedelta(seconds=1)
        tagging = self.tags and SteppedTags(self.tags, steps)
        store = Proxy(self.store, steps.step, put_new=steps.record, head=steps.look, get=steps.look)
        lake = Lake(SteppedDatabase(self.database, steps), OneByOne(store, tagging), clock=self.clock)
        return lake.repository("small")

    def later(self, **time):
        self.clock.now += timedelta(**time)

    @property
    def repo(self):
        return self.opened(Steps())

    def retain(self, steps=None, wait=1):
        ask = retention.job.ask(document=DOCUMENT, wait=timedelta(days=wait))
        return run(retention.job, self.opened(steps or Steps()), HERE, ask, ALL)

    def restore(self, steps=None, **which):
        return restore(self.opened(steps or Steps()), HERE, **(which or {"prefix": ""}))

    def carrying(self):
        return {key.removeprefix(self.repo.prefix) for key in self.tags.carrying()} if self.tags else set()

    def bytes_of(self, address):
        return self.store._objects[self.repo.prefix + address][0]

    def nothing_visible_is_lost(self, texts):
        """Nor does it carry the tag."""
        repo = self.repo
        held = oracle.committed(repo) | oracle.staged(repo)
        visible = held - set(repo.tombstones(sorted(held)))
        assert visible <= set(oracle.stored(repo))
        assert all(self.bytes_of(one) == texts[one] for one in visible)
        assert not visible & self.carrying()
        found = check(repo)
        assert found.sound, found.findings

    def ended(self):
        """Equal for runs that came to the same end."""
        repo = self.repo
        with repo.database.read() as tx:
            for one in ledger.every(tx, repo.uid):
                total = ledger.total(ledger.batches(tx, repo.uid, one.id))
                assert one.state is RunState.SWEPT
                assert total.asked == total.removed + total.gone + total.failed
                assert total.asked + total.held_again == one.objects
        states = {one: stone.state for one, stone in marks(repo).items()}
        return states, set(oracle.stored(repo)), self.carrying()


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return Small(tmp_path_factory.mktemp("small"))


# ---- what is done, in parts that may be cut off


def marking(scene, steps=None):
    scene.retain(steps)


def removing(scene, steps=None):
    scene.retain(steps, wait=1)


def marking_and_removing(scene, steps=None):
    scene.retain(steps, wait=0)


def nothing_yet(scene):
    pass


def marked_a_day_ago(scene):
    scene.retain()
    scene.later(days=1, minutes=1)


def marked(scene):
    scene.retain()
    scene.later(minutes=11)


def marked_and_some_are_gone(scene):
    marked(scene)
    if scene.tags:
        for key in sorted(scene.tags.carrying())[::3]:
            scene.store._objects.pop(key)


def restoring(scene, steps=None):
    scene.restore(steps)


def restoring_a_run(scene, steps=None):
    row = next(iter(marks(scene.repo).values()))
    scene.restore(steps, run=row.run)


def restoring_addresses(scene, steps=None):
    scene.restore(steps, addresses=tuple(sorted(marks(scene.repo))[::2]))


CASES = {
    "mark, no tags": (False, nothing_yet, marking),
    "mark and tag": (True, nothing_yet, marking),
    "mark and remove at once": (False, nothing_yet, marking_and_removing),
    "remove after a day": (False, marked_a_day_ago, removing),
    "look for what is gone": (True, marked_and_some_are_gone, marking),
    "restore, no tags": (False, marked, restoring),
    "restore": (True, marked_and_some_are_gone, restoring),
    "restore a run": (True, marked, restoring_a_run),
    "restore addresses": (True, marked, restoring_addresses),
}


@cache
def undisturbed(small, case):
    tagged, before, act = CASES[case]
    with small.again(tagged) as scene:
        wanted = retained.marked(scene.repo, DOCUMENT, scene.clock.now)
        assert len(wanted) == 8
        before(scene)
        steps = Steps()
        act(scene, steps)
        states, stored, carrying = scene.ended()
        assert states.keys() == wanted
        if "restore" in case:
            assert State.RESTORED in states.values()
            assert (set(states.values()) == {State.RESTORED}) == (case in ("restore, no tags", "restore a run"))
            assert all(one in stored for one, state in states.items() if state is State.RESTORED)
            assert carrying == {one for one, state in states.items() if state is State.TAGGED}
        elif tagged:
            assert set(states.values()) == {State.TAGGED} | ({State.REMOVED} if "gone" in case else set())
            assert carrying == {one for one, state in states.items() if state is State.TAGGED}
        else:
            assert set(states.values()) == {State.REMOVED if "remove" in case else State.MARKED}
            assert stored.isdisjoint(wanted) == ("remove" in case)
        return (states, stored, carrying), steps.taken


def crashed(small, case, crashes, between=None):
    """Die at each of ``crashes`` in turn, then go through with it; how that ends."""
    tagged, before, act = CASES[case]
    with small.again(tagged) as scene:
        texts = {one: scene.bytes_of(one) for one in oracle.stored(scene.repo)}
        before(scene)
        scene.nothing_visible_is_lost(texts)
        for crash in crashes:
            with suppress(Crash):  # a step that fails by itself has no moment after it
                act(scene, Steps(crash))
            scene.nothing_visible_is_lost(texts)
            if between:
                between(scene)
                scene.nothing_visible_is_lost(texts)
        scene.later(minutes=11)
        act(scene)
        scene.nothing_visible_is_lost(texts)
        return scene.ended()


def some_moments(small, case, count):
    """Of all steps, some: few of the plan, more of what is done by it."""
    _, steps = undisturbed(small, case)
    first = 0 if "restore" in case else steps // 2
    chosen = random.sample(range(first, steps), count)
    return [random.choice((Before, After))(number) for number in chosen]


@pytest.mark.parametrize("case", CASES)
def test_killed_at_some_step_and_started_again_it_ends_the_same(small, case):
    wanted, _ = undisturbed(small, case)
    for crash in some_moments(small, case, 1):
        assert crashed(small, case, [crash]) == wanted, crash


@pytest.mark.slow
@pytest.mark.parametrize("moment", [Before, After])
@pytest.mark.parametrize("case", CASES)
def test_killed_at_any_step_whatsoever_and_started_again_it_ends_the_same(small, case, moment):
    wanted, steps = undisturbed(small, case)
    for number in range(steps):
        assert crashed(small, case, [moment(number)]) == wanted, moment(number)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_killed_again_and_again_it_ends_the_same(small, case):
    wanted, steps = undisturbed(small, case)
    for _ in range(60):
        crashes = [random.choice((Before, After))(random.randrange(steps + 20)) for _ in range(random.choice((2, 3)))]
        assert crashed(small, case, crashes) == wanted, crashes


# ---- others come between


def collect_garbage(scene):
    run(uncommitted.job, scene.repo, HERE, uncommitted.job.ask(), ALL)


def another_plan(scene):
    ask = retention.job.ask(document=DOCUMENT)
    plan(retention.job, scene.repo, HERE, ask)


def another_run(scene):
    scene.later(minutes=11)
    scene.retain()


OTHERS = {"garbage": collect_garbage, "a plan": another_plan, "a run": another_run}


def test_killed_with_another_job_in_between_it_ends_the_same(small):
    cases = random.sample(["mark, no tags", "mark and tag", "restore", "restore a run"], 3)
    for case, other in zip(cases, OTHERS, strict=True):
        wanted, _ = undisturbed(small, case)
        for crash in some_moments(small, case, 1):
            assert crashed(small, case, [crash], OTHERS[other]) == wanted, (case, crash, other)


@pytest.mark.slow
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("case", ["mark, no tags", "mark and tag", "restore", "restore, no tags", "restore a run"])
def test_killed_anywhere_with_another_job_in_between_it_ends_the_same(small, case, other):
    wanted, steps = undisturbed(small, case)
    for number in range(steps):
        crash = random.choice((Before, After))(number)
        assert crashed(small, case, [crash], OTHERS[other]) == wanted, crash


def test_nobody_waits_for_the_store_while_marks_are_taken_back(small):
    with small.again(tagged=False) as scene:
        marked(scene)
        steps = Steps()
        strict = Lake(SteppedDatabase(scene.database, steps), stepped(scene.store, steps), clock=scene.clock)
        restore(strict.repository("small"), HERE, prefix="main/")
