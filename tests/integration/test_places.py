"""Wherever a run is planned and swept, it is the same run: to the byte, and to the last count."""

import json
import pickle
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from desilt.columns import kernel
from desilt.domain.expiry import Expiry
from desilt.domain.policy import parse
from desilt.executors.executor import Here
from desilt.executors.on_spark import OnSpark
from desilt.executors.processes import Processes
from desilt.jobs import registry, runner
from desilt.jobs.pins.pins import pins
from desilt.objects import store_clock
from desilt.records.locks import Lock
from desilt.runs import folder as folders
from desilt.runs import plan as plans
from desilt.runs.folder import Folder
from desilt.runs.steps import RemoveObjects, Section
from desilt.sweep import batches
from desilt.sweep.limits import Limits
from desilt.sweep.sweep import Sweep
from desilt.testing import oracle

START = datetime(2026, 1, 1, tzinfo=UTC)
SURE = Limits(max_share=1.0, confirm=True)
ASKED = {
    "gc": {},
    "lifecycle": {"policy": parse({"old": {"prefix": "data/", "days": 20}, "tmp": {"prefix": "tmp/", "days": 1}})},
    "expire": {"wish": Expiry(before=START + timedelta(days=8))},
    "collect": {"unreached_for": timedelta(0)},
}
VARIES = ("seconds", "place")


@pytest.fixture
def lake(repo):
    """Two branches, a past, garbage: of each some hundred objects, so that there is more than one bucket of them."""
    for day in range(12):
        for number in range(20):
            repo.put("main", f"data/{day:02}/{number}", b"d" * number)
            repo.put("main", f"tmp/{number}", bytes([day, number]))
            repo.put("main", "lost", bytes([day, number]))
        repo.commit("main", f"day {day}")
        if day == 5:
            repo.create_branch("dev", "main")
            repo.put("dev", "data/only-dev", b"x")
            repo.commit("dev", "of dev")
            repo.delete_branch("dev")
        repo.set_clock(repo.clock() + timedelta(days=1))
    repo.put("main", "staged", b"s")
    repo.set_clock(repo.clock() + timedelta(days=15))
    return repo


def test_what_is_sent_to_a_task_does_not_grow_with_the_plan(lake):
    made = runner.plan(registry.find("gc"), lake, Here())
    found = plans.read(Folder(lake.store, lake.prefix, folders.find(lake.store, lake.prefix, made.run)), lake.secret)
    (file,) = found.files
    many = tuple(Section(number, "f" * 64) for number in range(2_000_000 // file.group + 1))  # of two million rows
    large = replace(found, steps=(RemoveObjects((replace(file, rows=2_000_000, sections=many),)),))
    lock = Lock(lake.uid, 1, large.run)
    pieces = batches.pieces(Sweep(lake, large, lock, Here()), large.steps[0], set())
    assert len(pieces) >= 100
    assert max(len(pickle.dumps(one)) for one in pieces) < 50_000


class DoneAgain(OnSpark):
    """All tasks of every stage are done, their answers are lost, and all are given out once more."""

    def __call__(self, work, items, *, rows=0, weigh=None):
        super().__call__(work, items, rows=rows)
        return super().__call__(work, items, rows=rows, weigh=weigh)


@pytest.fixture
def places(request, monkeypatch):
    """All of them; what is judged at once is so little that there are many parts."""
    monkeypatch.setattr(kernel, "ROWS_AT_ONCE", 16)
    two, spark = Processes(2), request.getfixturevalue("spark")
    yield {"here": Here(), "in processes": two, "on Spark": OnSpark(spark), "on Spark, again": DoneAgain(spark)}
    two.close()


def everything(repo, name):
    """Every file that a run of a job left, but for what differs by nature: how long it took, and where."""
    found = {}
    for batch in repo.store.list(f"{repo.prefix}_desilt/"):
        for key in batch["key"].to_pylist():
            if key.endswith("report.html") or "/journal/" in key or ("/runs/" in key and f"/runs/{name}/" not in key):
                continue
            data = repo.store.get(key)
            if key.endswith("report.json"):
                data = {name: value for name, value in json.loads(data).items() if name not in VARIES}
            found[key] = data
    return found


def forget(repo, name):
    """All that runs of a job left, caches too."""
    for folder in (f"runs/{name}", "ranges", "metaranges", "removed"):
        keys = [key for batch in repo.store.list(f"{repo.prefix}_desilt/{folder}/") for key in batch["key"].to_pylist()]
        repo.store.delete_many(keys)


@pytest.mark.parametrize("name", sorted(ASKED))
def test_a_plan_is_the_same_to_the_byte_wherever_it_is_made(name, lake, places, monkeypatch):
    if name == "collect":
        expire(lake)
    monkeypatch.setattr(runner, "os", SimpleNamespace(urandom=bytes))  # one id for all
    monkeypatch.setattr(store_clock, "last_asked", lambda _store: None)  # another plan was the last to ask
    job, left, parts = registry.find(name), {}, set()
    for place, executor in places.items():
        report = runner.plan(job, lake, executor, job.ask(**ASKED[name]))
        assert report.removed.objects or name == "expire"
        assert report.place == executor.place
        left[place] = everything(lake, name)
        parts.add(sum("/plan/part-" in key for key in left[place]))
        forget(lake, name)
    assert left["in processes"] == left["here"]
    assert left["on Spark"] == left["here"]
    assert left["on Spark, again"] == left["here"]
    assert min(parts) > 1 or name == "expire"


@pytest.fixture
def littered(monkeypatch):
    """Processes in which whatever memory is asked for has been used: no byte of it is nought."""
    monkeypatch.setattr(kernel, "ROWS_AT_ONCE", 256)  # numpy keeps small arrays by itself
    monkeypatch.setenv("MALLOC_PERTURB_", "165")
    monkeypatch.setenv("ARROW_DEFAULT_MEMORY_POOL", "system")
    executor = Processes(2)
    yield executor
    executor.close()


@pytest.mark.parametrize("name", ["collect", "gc", "lifecycle"])
def test_a_plan_does_not_depend_on_what_lay_in_memory(name, lake, littered, monkeypatch):
    if name == "collect":
        expire(lake)
    monkeypatch.setattr(runner, "os", SimpleNamespace(urandom=bytes))
    monkeypatch.setattr(store_clock, "last_asked", lambda _store: None)
    job, left = registry.find(name), []
    for executor in (Here(), littered):
        assert runner.plan(job, lake, executor, job.ask(**ASKED[name])).removed.objects
        left.append(everything(lake, name))
        forget(lake, name)
    assert left[0] == left[1]


def expire(repo):
    job = registry.find("expire")
    runner.run(job, repo, Here(), job.ask(**ASKED["expire"]), SURE)


@pytest.mark.parametrize("where", ["in processes", "on Spark", "on Spark, again"])
def test_a_sweep_removes_the_same_and_counts_the_same(where, lake, places):
    expected = oracle.collectable(lake, lake.clock())
    job = registry.find("gc")
    planned = runner.plan(job, lake, places["here"])
    report = runner.sweep(lake, places[where], planned.run, SURE)
    assert report.swept.removed == planned.removed.objects == len(expected)
    assert report.place == f"in one process; swept {places[where].place}"
    assert oracle.collectable(lake, lake.clock()) == set()
    assert expected.isdisjoint(oracle.stored(lake))


def test_pins_are_the_same_everywhere(lake, places):
    assert len({pins(lake, executor).to_json() for executor in places.values()}) == 1
