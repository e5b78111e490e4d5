"""A lifecycle plan, and what happens before or while it is swept: what the rules would keep by then is kept.

The oracle is asked at the very moment after the event. What a plan leaves behind
for it, the next run finds again.
"""

import tempfile
import uuid
from contextlib import nullcontext, suppress
from datetime import UTC, datetime, timedelta
from itertools import cycle, product

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from aging import order
from desilt.domain.policy import parse
from desilt.errors import DesiltError
from desilt.executors.executor import HERE
from desilt.jobs import trash
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.runner import plan, run, sweep
from desilt.lake import Lake, schema
from desilt.lake.fsck import check
from desilt.lake.held import LakeHeld
from desilt.objects import open_store
from desilt.records.database import open_database
from desilt.records.holds import HoldKind
from desilt.runs.steps import Action
from desilt.sweep.limits import Limits
from desilt.testing import oracle
from plan_rows import named

ALL = Limits(max_share=1.0, confirm=True, allow_empty=True, max_plan_age=timedelta(days=900))
START = datetime(2026, 1, 1, tzinfo=UTC)
LONG = {"long*": 100}

POLICIES = {
    "all branches": parse({"r": {"prefix": "tmp/", "days": 10, "branch_days": LONG}}),
    "some branches": parse({"r": {"prefix": "tmp/", "branch_days": {"main": 10, "dev*": 10, "old": 10, **LONG}}}),
    "tags ignored": parse({"r": {"prefix": "tmp/", "days": 10, "branch_days": LONG}, "tags": "ignore"}),
    "noncurrent": parse({"r": {"prefix": "tmp/", "days": 10, "branch_days": LONG, "noncurrent_only": True}}),
    "noncurrent on some": parse(
        {
            "old": {"prefix": "tmp/", "branch_days": {"dev*": 10, "old": 10}, "noncurrent_only": True},
            "all": {"prefix": "tmp/", "branch_days": {"main": 10}},
        }
    ),
}


class Eager:
    """A store with batches of one, in which something happens as the first of them is removed."""

    delete_batch = 1

    def __init__(self, store):
        self._store, self.first = store, None

    def __getattr__(self, name):
        return getattr(self._store, name)

    def delete_many(self, keys, **_):
        if first := self.first:
            self.first = None
            first()
        return self._store.delete_many(keys)


class Scene:
    """Old files below tmp/: some in heads, some only in history; branches that reach them, and some that do not."""

    def __init__(self, directory, raggedness):
        self.database = open_database(f"sqlite://{directory}/lake.db", create=True)
        schema.create(self.database, storage="")
        store = open_store(f"memory://{uuid.uuid4().hex}")
        self.repo = repo = Lake(self.database, store, raggedness=raggedness).create_repository("race", clock_at=START)
        repo.store = Eager(repo.store)
        for name in ("long", "free", "old", "dev-other"):
            repo.create_branch(name, "main")
        self.commit("long", "other/x")
        self.first = self.commit("main", "tmp/a", "tmp/b", "tmp/c", "z")
        self.second = self.removing("main", "tmp/b")
        repo.create_branch("dev", "main")
        repo.merge("main", "old")
        for name in ("dev", "old"):
            self.removing(name, "tmp/c")
        self.commit("dev", "tmp/e", "y")
        self.days(20)

    def commit(self, branch, *paths):
        for path in paths:
            self.repo.put(branch, path, path.encode())
        return self.repo.commit(branch, "some", allow_empty=True).id

    def removing(self, branch, path):
        self.repo.remove(branch, path)
        return self.repo.commit(branch, "one less").id

    def copied(self, branch, source, goal):
        self.repo.copy(branch, source, branch, goal)
        self.repo.commit(branch, "a copy")

    def days(self, count):
        self.repo.set_clock(self.repo.clock() + timedelta(days=count))

    def address(self, path):
        return self.repo.stat(self.first, path).address

    def hold(self, kind, value, **more):
        order(self.repo, kind, value, **more)

    def in_short_lived_branch(self, name, source, act=None):
        self.repo.create_branch(name, source)
        if act:
            act(name)
        self.repo.delete_branch(name, force=True)

    def again(self, name, source):
        self.repo.delete_branch(name, force=True)
        self.repo.create_branch(name, source)


def trashed_and_restored(one, policy):
    reports = run(lifecycle.job, one.repo, HERE, lifecycle.job.ask(policy=policy, action=Action.TRASH), ALL)
    if reports[-1].swept.removed:
        trash.bring_back(one.repo, HERE, reports[-1].run)


EVENTS = {
    "nothing": lambda *_: None,
    "a day passes": lambda one, _: one.days(1),
    "an unrelated commit": lambda one, _: one.commit("main", "other/new"),
    "an empty commit": lambda one, _: one.commit("main"),
    "an empty commit elsewhere": lambda one, _: one.commit("free"),
    "a new version": lambda one, _: one.commit("main", "tmp/a"),
    "a copy is staged": lambda one, _: one.repo.copy("main", "tmp/a", "main", "kept/a"),
    "a copy is staged below the prefix": lambda one, _: one.repo.copy("dev", "tmp/a", "dev", "tmp/copy"),
    "a copy is committed": lambda one, _: one.copied("main", "tmp/a", "tmp/a2"),
    "a copy on itself": lambda one, _: one.copied("main", "tmp/a", "tmp/a"),
    "a copy comes and goes": lambda one, _: (one.copied("main", "tmp/c", "x"), one.removing("main", "x")),
    "a move is committed": lambda one, _: (one.repo.move("dev", "tmp/a", "b"), one.repo.commit("dev", "moved")),
    "a copy is staged and reset": lambda one, _: (
        one.repo.copy("main", "tmp/a", "main", "kept/a"),
        one.repo.reset("main"),
    ),
    "a removal": lambda one, _: one.removing("main", "tmp/a"),
    "a tag on an old commit": lambda one, _: one.repo.create_tag("v1", one.first),
    "a tag on a head": lambda one, _: one.repo.create_tag("v1", "main"),
    "a tag comes and goes": lambda one, _: (one.repo.create_tag("v1", one.first), one.repo.delete_tag("v1")),
    "a new branch": lambda one, _: one.repo.create_branch("new", one.first),
    "a new branch that waits longer": lambda one, _: one.repo.create_branch("long-2", one.first),
    "a new branch with the same rules": lambda one, _: one.repo.create_branch("dev-2", one.first),
    "a new branch at a head": lambda one, _: one.repo.create_branch("dev-2", "main"),
    "a new branch at another head": lambda one, _: one.repo.create_branch("dev-2", "dev"),
    "a branch comes and goes": lambda one, _: one.in_short_lived_branch("new", one.first),
    "a branch with a commit comes and goes": lambda one, _: one.in_short_lived_branch(
        "new", one.first, lambda name: one.commit(name, "other/new")
    ),
    "a branch with an empty commit comes and goes": lambda one, _: one.in_short_lived_branch(
        "new", one.first, one.commit
    ),
    "a branch with an empty commit that waits longer": lambda one, _: (
        one.repo.create_branch("long-2", one.first),
        one.commit("long-2"),
    ),
    "a tagged empty commit of a branch that is gone": lambda one, _: one.in_short_lived_branch(
        "new", one.first, lambda name: (one.commit(name), one.repo.create_tag("v1", name))
    ),
    "a merge into a branch that waits longer": lambda one, _: one.repo.merge("main", "long"),
    "a merge of an old commit into one that waits longer": lambda one, _: one.repo.merge(one.first, "long"),
    "a merge into a branch without rules": lambda one, _: one.repo.merge("dev", "free"),
    "a merge into a branch like it": lambda one, _: one.repo.merge("main", "dev-other"),
    "a merge into an old branch": lambda one, _: one.repo.merge("main", "old"),
    "a merge between those that have it": lambda one, _: one.repo.merge("main", "dev"),
    "a merge that brings nothing": lambda one, _: one.repo.merge("long", "main"),
    "a merge undone by a new version": lambda one, _: (
        one.repo.merge(one.first, "free"),
        one.commit("free", "tmp/a", "tmp/b", "tmp/c", "z"),
    ),
    "a branch deleted": lambda one, _: one.repo.delete_branch("dev"),
    "another branch deleted": lambda one, _: one.repo.delete_branch("old"),
    "a branch made anew elsewhere": lambda one, _: one.again("dev", "free"),
    "a branch made anew further back": lambda one, _: one.again("dev", one.first),
    "an empty branch made anew at an old commit": lambda one, _: one.again("free", one.first),
    "a revert": lambda one, _: one.repo.revert("main", one.second),
    "a revert on another that reaches it": lambda one, _: one.repo.revert("old", "old"),
    "a revert on one that never had it": lambda one, _: one.repo.revert("dev-other", one.second),
    "a revert on one that never had it and waits longer": lambda one, _: one.repo.revert("long", one.second),
    "a revert on one that never had it and has no rules": lambda one, _: one.repo.revert("free", one.second),
    "a revert that is reverted": lambda one, _: (one.repo.revert("free", one.second), one.repo.revert("free", "free")),
    "a hold on a prefix": lambda one, _: one.hold(HoldKind.PREFIX, "tmp/b"),
    "a hold on everything": lambda one, _: one.hold(HoldKind.PREFIX, ""),
    "a hold on a commit": lambda one, _: one.hold(HoldKind.REF, one.first),
    "a hold on an object": lambda one, _: one.hold(HoldKind.ADDRESS, one.address("tmp/b")),
    "a hold for a day": lambda one, _: one.hold(HoldKind.PREFIX, "tmp/", until=one.repo.clock() + timedelta(days=1)),
    "a hold that is over": lambda one, _: one.hold(HoldKind.PREFIX, "tmp/", until=one.repo.clock()),
    "garbage is collected": lambda one, _: run(uncommitted.job, one.repo, HERE, uncommitted.job.ask(), ALL),
    "another run": lambda one, policy: run(lifecycle.job, one.repo, HERE, lifecycle.job.ask(policy=policy), ALL),
    "another run, brought back": trashed_and_restored,
}
BETWEEN_ONLY_WRITERS = {"garbage is collected", "another run", "another run, brought back"}  # a sweep has the lock
BEFORE, LOOKED, BATCHES = MOMENTS = "before the sweep", "after it looked again", "between its batches"


def race(policy, events, moment, raggedness):
    """Plan, let it happen, sweep. All that went after it happened is what may go by then; then the next run."""
    with tempfile.TemporaryDirectory() as directory:
        one = Scene(directory, raggedness)
        try:
            _race(one, POLICIES[policy], events, moment)
        finally:
            one.database.close()


def _race(one, policy, events, moment):
    repo = one.repo
    report = plan(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=policy))
    before, planned = set(oracle.stored(repo)), named(repo, report)
    assert planned == oracle.expired(repo, policy, repo.clock()) != set()
    seen = {}

    def happen():
        there, condemned = set(oracle.stored(repo)), set(repo.tombstones(sorted(before)))
        for event in events:
            with suppress(DesiltError) if len(events) > 1 or moment == BATCHES else nullcontext():
                EVENTS[event](one, policy)  # of several, some make no sense after the others
        seen["may"] = oracle.expired(repo, policy, repo.clock()) | condemned
        seen["gone"] = there - set(oracle.stored(repo))

    with pytest.MonkeyPatch.context() as patch:
        if moment == BEFORE:
            happen()
        elif moment == BATCHES:
            repo.store.first = happen
        else:
            patch.setattr(LakeHeld, "catch_up", once_after(LakeHeld.catch_up, happen))
        sweep(repo, HERE, report.run, ALL)
    removed = before - set(oracle.stored(repo)) - seen["gone"]
    assert removed <= seen["may"]
    assert removed <= planned
    assert check(repo).sound
    rest = oracle.expired(repo, policy, repo.clock())
    there = set(oracle.stored(repo))
    run(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=policy), ALL)
    assert there - set(oracle.stored(repo)) == rest


def once_after(act, happen):
    waiting = [happen]

    def acting(self):
        act(self)
        if waiting:
            waiting.pop()()

    return acting


def possible(moment, event):
    return moment == BEFORE or event not in BETWEEN_ONLY_WRITERS


EVERY = list(product(POLICIES, EVENTS))
TOLD_APART = [  # only these rules make a difference here
    ("all branches", "a branch with an empty commit comes and goes"),
    ("all branches", "a revert on one that never had it and waits longer"),
    ("all branches", "a new branch that waits longer"),
    ("some branches", "a new branch"),
    ("some branches", "a revert on one that never had it and has no rules"),
    ("tags ignored", "a tagged empty commit of a branch that is gone"),
    ("noncurrent", "a revert"),
    ("noncurrent", "a new branch with the same rules"),
    ("noncurrent", "a revert on one that never had it"),
    ("noncurrent on some", "a revert on another that reaches it"),
    ("noncurrent on some", "a merge into an old branch"),
]


@pytest.mark.parametrize(("event", "policy"), list(zip(EVENTS, cycle(POLICIES))))
def test_what_happens_before_a_sweep_counts(event, policy):
    race(policy, [event], BEFORE, raggedness=3)


@pytest.mark.parametrize(("policy", "event"), TOLD_APART)
def test_what_only_some_rules_tell_apart_counts(policy, event):
    race(policy, [event], BEFORE, raggedness=1)


@pytest.mark.parametrize(
    ("event", "moment"),
    list(
        zip(
            [
                "an empty commit",
                "a copy is staged",
                "a copy is committed",
                "a tag on an old commit",
                "a new branch that waits longer",
                "a merge into a branch that waits longer",
                "a branch deleted",
                "a hold on a prefix",
                "a hold on a commit",
                "a hold on an object",
            ],
            cycle([LOOKED, BATCHES, BATCHES]),
        )
    ),
)
def test_what_happens_while_it_sweeps_counts(event, moment):
    race("all branches", [event], moment, raggedness=1)


@pytest.mark.slow
@pytest.mark.parametrize("raggedness", [1, 2, 50_000])
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize(("policy", "event"), EVERY)
def test_whatever_happens_at_any_moment_counts(policy, event, moment, raggedness):
    if possible(moment, event):
        race(policy, [event], moment, raggedness)


def several(examples):
    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    @given(
        policy=st.sampled_from(list(POLICIES)),
        events=st.lists(st.sampled_from(list(EVENTS)), min_size=2, max_size=5),
        moment=st.sampled_from(MOMENTS),
        raggedness=st.sampled_from([1, 2, 50_000]),
    )
    def racing(policy, events, moment, raggedness):
        race(policy, [event for event in events if possible(moment, event)] or ["nothing"], moment, raggedness)

    racing()


def test_several_things_that_happen_count():
    several(examples=8)


@pytest.mark.slow
def test_many_things_that_happen_count():
    several(examples=1500)
