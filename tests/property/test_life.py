"""Life goes on before any step of any job, from its first look to its last: what it condemns was free just before.

Races between pieces leave out what a job reads while it marks. Here somebody acts
before every single transaction and store call, in plan and sweep alike.
"""

import itertools
import pkgutil
import random
import shutil
import tempfile
import uuid
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pytest

from desilt.clock import ManualClock
from desilt.domain.expiry import Expiry
from desilt.domain.policy import parse
from desilt.errors import DesiltError
from desilt.executors.executor import HERE
from desilt.jobs import holds, trash
from desilt.jobs.collect import job as collection
from desilt.jobs.expire import job as expiration
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.lifecycle import kept_policy
from desilt.jobs.runner import run
from desilt.lake import Lake, schema
from desilt.objects import open_store
from desilt.records import locks
from desilt.records.database import open_database
from desilt.records.holds import HoldKind
from desilt.runs.steps import Action
from desilt.sweep.limits import Limits
from desilt.testing import oracle
from desilt.testing.judges import Histories, Removals, Takings
from desilt.testing.life import Life

ALL = Limits(max_share=1.0, confirm=True, allow_empty=True, max_plan_age=timedelta(days=900))
START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
POLICY = parse({"logs": {"prefix": "logs/", "days": 10, "branch_days": {"long": 60}}})
LOOSER = parse({"logs": {"prefix": "logs/", "days": 40}})


@pytest.fixture(autouse=True)
def _no_heartbeat(monkeypatch):
    monkeypatch.setattr(locks, "BEAT_SECONDS", 1e6)


class Pond:
    """A small lake with something for every job, made once; each run gets a copy of it."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.clock = ManualClock(START)
        self.store = open_store(f"memory://{uuid.uuid4().hex}")
        self.store.clock, self.store.delete_batch = self.clock, 2
        self.database = open_database(f"sqlite://{directory}/lake.db", create=True)
        schema.create(self.database, storage="")
        repo = self._lake(self.database, self.store).create_repository("pond", ticket_life=timedelta(hours=1))
        for name in ("long", "dev", "gone"):
            repo.create_branch(name, "main")
        for number in range(4):  # committed, and of age by a rule
            repo.put("main", f"logs/{number}", b"log")
            repo.put("main", f"data/{number}", b"data")
            repo.commit("main", f"day {number}")
            self.clock.now += DAY
        repo.put("long", "logs/0", b"kept for longer")
        repo.commit("long", "longer")
        repo.create_tag("v1", "main~3")
        repo.put("gone", "only/here", b"dead soon")  # on commits that nothing reaches
        repo.put("gone", "logs/there", b"dead soon")
        repo.commit("gone", "one")
        self.dead = repo.commit("gone", "two", allow_empty=True).id
        repo.delete_branch("gone")
        for number in range(3):  # never committed
            repo.put("dev", f"lost/{number}", b"garbage")
        repo.reset("dev")
        repo.put("dev", "staged", b"staged")
        repo.put("dev", "logs/staged", b"staged")
        self.clock.now += 30 * DAY
        repo.put("main", "data/new", b"young")
        repo.commit("main", "young")
        self.clock.now += DAY
        self.later = self.clock.now
        kept_policy.keep(repo, POLICY)
        self.uid = repo.uid

    def _lake(self, database, store):
        return Lake(database, store, clock=self.clock, raggedness=2)

    def again(self, directory):
        """A copy: the repository, and how to open it for a job at work."""
        self.clock.now = self.later
        shutil.copytree(self.directory, directory, dirs_exist_ok=True)
        database = open_database(f"sqlite://{directory}/lake.db")
        store = open_store(f"memory://{uuid.uuid4().hex}")
        store.clock, store.delete_batch = self.clock, 2
        store._objects.update(self.store._objects)
        repo = self._lake(database, store).repository("pond")
        return repo, lambda life: self._lake(*life.around(database, store)).repository("pond")


@pytest.fixture(scope="module")
def pond():
    with tempfile.TemporaryDirectory() as directory:
        made = Pond(directory)
        made.database.close()
        yield made


def judged(name, repo):
    """The job, what it is asked, and who judges its steps."""
    now = repo.clock()
    if name == "gc":
        return uncommitted.job, uncommitted.job.ask(), Removals(repo, lambda: oracle.collectable(repo, repo.clock()))
    if name == "lifecycle":
        return lifecycle.job, lifecycle.job.ask(action=Action.TRASH), Removals(repo, lambda: expired(repo, now))
    if name == "collect":
        before = now - timedelta(hours=1, minutes=10)
        return collection.job, collection.job.ask(unreached_for=timedelta(0)), Takings(repo, before)
    before = now - 20 * DAY
    return expiration.job, expiration.job.ask(wish=Expiry(before)), Histories(repo, before)


def expired(repo, now):
    """By the policy that is set by then."""
    return oracle.expired(repo, kept_policy.kept(repo).policy, now)


JOBS = ("gc", "lifecycle", "collect", "expire")


# ---- what others do


def any_of(found, number):
    return sorted(found)[number % len(found)]


def hold_an_address(repo, number, _pond):
    holds.hold(repo, HoldKind.ADDRESS, any_of(oracle.stored(repo), number), reason="a court's order")


def hold_a_prefix(repo, number, _pond):
    holds.hold(repo, HoldKind.PREFIX, ("logs/", "only/", "logs/2")[number % 3], reason="a court's order")


def hold_a_commit(repo, number, _pond):
    holds.hold(repo, HoldKind.REF, any_of(oracle.history(repo), number), reason="a court's order")


def branch_off(repo, number, _pond):
    repo.create_branch(f"new{number}", any_of(oracle.history(repo), number))


def tag_a_commit(repo, number, _pond):
    repo.create_tag(f"tag{number}", any_of(oracle.history(repo), number))


def commit_what_is_staged(repo, number, _pond):
    repo.commit("dev", f"life {number}", allow_empty=True)


def upload(repo, number, _pond):
    repo.put("main", f"logs/new{number}", b"new")


def copy_an_old_one(repo, number, _pond):
    repo.copy("main", f"logs/{number % 4}", "main", f"elsewhere/{number}")


def copy_and_commit(repo, number, pond):
    copy_an_old_one(repo, number, pond)
    repo.commit("main", f"copied {number}")


def merge(repo, number, _pond):
    repo.commit("dev", "first", allow_empty=True)
    repo.merge("dev", "main", message=f"merge {number}")


def merge_what_is_dead(repo, number, pond):
    repo.reset("main")
    repo.merge(pond.dead, "main", message=f"merge {number}")


def reset(repo, number, _pond):
    repo.reset(("dev", "main")[number % 2])


def delete_a_branch(repo, number, _pond):
    repo.delete_branch(("dev", "long")[number % 2], force=True)


def change_the_policy(repo, _number, _pond):
    kept_policy.keep(repo, LOOSER)


def restore(repo, _number, _pond):
    trash.bring_back(repo, HERE, "last")


EVENTS = {
    act.__name__: act
    for act in (
        *(hold_an_address, hold_a_prefix, hold_a_commit, branch_off, tag_a_commit, commit_what_is_staged, upload),
        *(copy_an_old_one, copy_and_commit, merge, merge_what_is_dead, reset, delete_a_branch, change_the_policy),
        restore,
    )
}


def lived(pond, name, events):
    """One run of a job with these events, by the number of the step; its life, its judge, and the repository."""
    with tempfile.TemporaryDirectory() as directory:
        repo, opened = pond.again(directory)
        job, ask, judge = judged(name, repo)
        acts = {
            step: (lambda other, act=act, number=number: EVENTS[act](other, number, pond))
            for step, (act, number) in events.items()
        }
        life = Life(repo, judge, acts)
        with suppress(DesiltError):  # whatever is refused removes nothing
            run(job, opened(life), HERE, ask, ALL)
        life.end()
        held = oracle.staged(repo) | oracle.committed(repo)
        assert name == "lifecycle" or held <= set(oracle.stored(repo))
        repo.database.close()
        return life, judge


@cache
def steps_of(pond, name):
    """How many steps a job takes that nobody disturbs."""
    life, judge = lived(pond, name, {})
    assert next(iter(vars(judge).values())), "nothing was at stake"
    return life.steps


def tell(pond, name, events):
    try:
        return lived(pond, name, events)
    except Exception as error:
        raise AssertionError(f"lived(pond, {name!r}, {events})") from error


@pytest.mark.parametrize("name", JOBS)
def test_an_order_to_keep_counts_from_whatever_moment_of_a_job_it_is_made(pond, name):
    """Every object in turn: an order between two looks is an order like any other."""
    kinds, numbers = itertools.cycle(("hold_an_address", "hold_a_prefix", "hold_a_commit")), itertools.count()
    for step in range(random.randrange(24), steps_of(pond, name), 24):
        tell(pond, name, {step: (next(kinds), next(numbers))})


def test_an_order_to_keep_an_object_counts_from_any_moment_of_gc(pond):
    with tempfile.TemporaryDirectory() as directory:
        repo, _ = pond.again(directory)
        stored = sorted(oracle.stored(repo))
        (number, *_) = [stored.index(one) for one in oracle.collectable(repo, repo.clock())]
        address = stored[number]
        repo.database.close()
    kept = set()
    for step in (*range(random.randrange(24), steps_of(pond, "gc"), 24), steps_of(pond, "gc") - 1):
        _, judge = tell(pond, "gc", {step: ("hold_an_address", number)})
        kept.add(address not in judge.condemned)
    assert kept == {True, False}  # until it is condemned, and not afterwards


@pytest.mark.parametrize("name", JOBS)
def test_whatever_others_do_at_some_moment_of_a_job_counts(pond, name):
    count = steps_of(pond, name)
    for act in EVENTS:
        tell(pond, name, {random.randrange(count): (act, random.randrange(20))})


@pytest.mark.parametrize("name", JOBS)
def test_several_things_that_others_do_count_together(pond, name):
    count = steps_of(pond, name)
    for _ in range(4):
        chosen = random.sample(range(count), 4)
        tell(pond, name, {step: (random.choice(list(EVENTS)), random.randrange(20)) for step in chosen})


@pytest.mark.parametrize(("name", "looks"), [("gc", "desilt.lake.source.LakeSource.staged"),
                                             ("collect", "desilt.lake.source.LakeSource.staged"),
                                             ("lifecycle", "desilt.jobs.sets.Recorded.unsettled")])  # fmt: skip
def test_an_order_made_while_a_job_looks_at_what_is_staged_is_kept_to(pond, name, looks, monkeypatch):
    """After it has begun to look, and before the moment from which its sweep looks for later orders."""
    with tempfile.TemporaryDirectory() as directory:
        repo, opened = pond.again(directory)
        job, ask, judge = judged(name, repo)
        life = Life(repo, judge)
        real, orders = (
            pkgutil.resolve_name(":".join(looks.rsplit(".", 2)[:1]) + ":" + ".".join(looks.rsplit(".", 2)[1:])),
            [],
        )

        def look(source, *values):
            found = real(source, *values)
            for address in sorted(oracle.stored(repo)):
                orders.append(holds.hold(repo, HoldKind.ADDRESS, address, reason="a court's order"))
            return found

        monkeypatch.setattr(looks, look)
        before = set(oracle.stored(repo))
        run(job, opened(life), HERE, ask, ALL)
        life.end()
        assert orders
        assert set(oracle.stored(repo)) == before
        repo.database.close()


def test_a_policy_that_is_replaced_while_its_run_sweeps_stops_it(pond):
    """What the longer period keeps is not removed by the shorter one, at whatever batch that was."""
    begun = set()
    for step in range(steps_of(pond, "lifecycle") // 2, steps_of(pond, "lifecycle"), 4):
        _, judge = tell(pond, "lifecycle", {step: ("change_the_policy", 0)})
        begun.add(len(judge.condemned))
    assert len(begun) > 2  # before the first batch, between two, after the last


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
@pytest.mark.parametrize("act", EVENTS)
def test_whatever_others_do_at_any_moment_of_a_job_counts(pond, name, act):
    for step in range(steps_of(pond, name)):
        for number in range(3):
            tell(pond, name, {step: (act, number * 7 + step)})


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_many_things_that_others_do_count_together(pond, name):
    count = steps_of(pond, name)
    for _ in range(400):
        chosen = random.sample(range(count), random.randint(2, 8))
        tell(pond, name, {step: (random.choice(list(EVENTS)), random.randrange(20)) for step in chosen})
