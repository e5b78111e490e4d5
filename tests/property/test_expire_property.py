"""Random histories, expired by random dates and rules: refs keep what they show, and reach what the naive answer names.

The naive answer is sets: of what a ref reached, the young commits, the roots, and
those that a keep rule holds. Between plan and sweep life goes on.
"""

import tempfile
import uuid
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from desilt.domain.expiry import Expiry, Omission
from desilt.domain.keep_rules import KeepCounts
from desilt.errors import BadRequest, DesiltError, PlanOutdated
from desilt.executors.executor import HERE
from desilt.jobs import holds
from desilt.jobs.expire import job as expiration
from desilt.jobs.runner import plan, run, sweep
from desilt.lake import Lake, schema
from desilt.lake.fsck import check
from desilt.objects import open_store
from desilt.records.database import open_database
from desilt.records.holds import HoldKind
from desilt.sweep.limits import Limits
from desilt.testing import oracle, pinned
from expirations import KEEPS, Before, answer, below, tips

ALL = Limits(max_share=1.0, confirm=True, allow_empty=True, max_plan_age=timedelta(days=900))
START = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ["main", "dev", "qa"]

PICK = st.integers(0, 1000)
EXPIRE = st.tuples(st.just("expire"), st.integers(0, 12), KEEPS, st.booleans(), st.booleans())
LIFE = st.one_of(
    st.tuples(st.just("commit"), PICK, PICK),
    st.tuples(st.just("commit"), PICK, PICK),
    st.tuples(st.just("commit and wait"), PICK, PICK),
    st.tuples(st.just("commit and wait"), PICK, PICK),
    st.tuples(st.just("wait"), st.sampled_from([1, 7, 24, 60])),
    st.tuples(st.just("branch"), PICK, PICK),
    st.tuples(st.just("branch"), PICK, PICK),
    st.tuples(st.just("unbranch"), PICK),
    st.tuples(st.just("merge"), PICK, PICK),
    st.tuples(st.just("merge"), PICK, PICK),
    st.tuples(st.just("revert"), PICK, PICK),
    st.tuples(st.just("tag"), PICK, PICK),
    st.tuples(st.just("untag"), PICK),
    st.tuples(st.just("hold"), PICK),
    st.tuples(st.just("lift"), PICK),
    st.tuples(st.just("stage"), PICK),
)
OTHERS = st.one_of(LIFE, LIFE, LIFE, EXPIRE, st.tuples(st.just("abandon"), PICK, PICK, PICK))


# ---- the naive answer


# ---- a repository to which things happen


class Scene:
    """A lake without objects to speak of: what is at stake is history."""

    def __init__(self, directory):
        self.database = open_database(f"sqlite://{directory}/lake.db", create=True)
        schema.create(self.database, storage="")
        store = open_store(f"memory://{uuid.uuid4().hex}")
        self.repo = Lake(self.database, store, raggedness=1).create_repository("expiring", clock_at=START)
        self.shown, self.numbers = {}, iter(range(10**6))
        self.record()

    def record(self):
        """What every commit shows, when it is first seen."""
        for name in oracle.history(self.repo).keys() - self.shown.keys():
            self.shown[name] = self.listed(name)

    def listed(self, name):
        return {one.path: b"".join(self.repo.get(name, one.path)) for one in self.repo.list(name)}

    def act(self, step):
        kind, *values = step
        with suppress(*(() if kind == "expire" else (DesiltError,))):  # some make no sense after the others
            getattr(self, kind.replace(" ", "_"))(*values)
        self.record()

    def branch_at(self, pick):
        found = self.repo.branches()
        return found[pick % len(found)].name

    def commit_at(self, pick):
        found = sorted(oracle.history(self.repo).values(), key=lambda one: (one.created_at, one.message))
        return found[pick % len(found)].id

    def commit(self, where, what):
        self.repo.put(self.branch_at(where), "abcd"[what % 4], b"%d" % next(self.numbers))
        self.repo.commit(self.branch_at(where), f"{next(self.numbers):06}")

    def commit_and_wait(self, where, what):
        self.commit(where, what)
        self.wait(24)

    def wait(self, hours):
        self.repo.set_clock(self.repo.clock() + timedelta(hours=hours))

    def branch(self, name, where):
        self.repo.create_branch(NAMES[name % 3], self.commit_at(where))

    def unbranch(self, name):
        self.repo.delete_branch(NAMES[1 + name % 2], force=True)

    def merge(self, source, goal):
        self.repo.merge(self.branch_at(source), self.branch_at(goal), strategy="source-wins")

    def revert(self, where, what):
        self.repo.revert(self.branch_at(where), self.commit_at(what), parent=1)

    def tag(self, name, where):
        self.repo.create_tag(f"v{name % 3}", self.commit_at(where))

    def untag(self, name):
        self.repo.delete_tag(f"v{name % 3}")

    def hold(self, where):
        holds.hold(self.repo, HoldKind.REF, self.commit_at(where), reason="because")

    def lift(self, pick):
        if found := holds.every(self.repo):
            holds.lift(self.repo, found[pick % len(found)].id)

    def stage(self, where):
        self.repo.put(self.branch_at(where), "staged", b"staged")

    def wish(self, days, keep, tags, branches):
        return Expiry(self.repo.clock() - timedelta(days=days), keep, tags, branches)

    def expire(self, *values):
        before, wish, kept = Before(self.repo), self.wish(*values), pinned.pins(self.repo)
        report = run(expiration.job, self.repo, HERE, expiration.job.ask(wish=wish), ALL)[-1]
        self.compare_freed(report.frees, kept)
        before.compare(wish, told=[name for name, fate in report.refs.items() if fate == "deleted"])
        again = plan(expiration.job, self.repo, HERE, expiration.job.ask(wish=wish))
        assert again.history["edited"] == 0  # done once is done

    def compare_freed(self, frees, before):
        """What it said that a collection would free is what nothing keeps any more."""
        now, sizes = pinned.pins(self.repo), oracle.stored(self.repo)
        freed = {address: names for address, names in before.items() if names and not now[address]}
        assert (frees.total.objects, frees.total.bytes) == (len(freed), sum(sizes[address] for address in freed))
        alone = {one.ref: one.alone.objects for one in frees.by}
        for names in freed.values():
            if len(names) == 1:
                (name,) = names
                alone[name.removeprefix("branch ").partition(" (")[0]] -= 1
        assert set(alone.values()) <= {0}

    def abandon(self, where, first, length):
        made, line = oracle.history(self.repo), [self.repo.resolve(self.branch_at(where)).commit]
        while line[-1].parents:
            line.append(made[line[-1].parents[0]])
        line = line[first % len(line) :][: 1 + length % 3]
        wish = Omission(self.branch_at(where), line[0].id, line[-1].id)
        before = Before(self.repo)
        run(expiration.job, self.repo, HERE, expiration.job.ask(wish=wish), ALL)
        before.compare()
        gone = {
            ref: below(before.made, tip) - below(oracle.history(self.repo), tip) for ref, tip in tips(self.repo).items()
        }
        assert set().union(*gone.values()) <= {one.id for one in line}

    def everything_is_readable(self):
        for name in oracle.history(self.repo):
            assert self.listed(name) == self.shown[name]
        found = check(self.repo)
        assert found.sound, found.findings


def scene():
    return tempfile.TemporaryDirectory()


def tried(examples):
    return settings(
        max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate]
    )


def chain(examples):
    @tried(examples)
    @given(steps=st.lists(OTHERS, min_size=10, max_size=40))
    def chained(steps):
        with scene() as directory:
            one = Scene(directory)
            for step in steps:
                one.act(step)
            one.expire(1, None, False, False)
            one.everything_is_readable()
            one.database.close()

    chained()


def test_refs_reach_what_is_young_and_kept_and_show_what_they_showed():
    chain(examples=10)


@pytest.mark.slow
def test_refs_reach_what_is_young_and_kept_and_show_what_they_showed_for_long():
    chain(examples=1500)


# ---- between plan and sweep


def late(examples):
    @tried(examples)
    @given(
        steps=st.lists(LIFE, min_size=10, max_size=30),
        wish=EXPIRE,
        between=st.lists(OTHERS, min_size=1, max_size=4),
    )
    def swept_later(steps, wish, between):
        with scene() as directory:
            one = Scene(directory)
            for step in steps:
                one.act(step)
            wished = one.wish(*wish[1:])
            planned = plan(expiration.job, one.repo, HERE, expiration.job.ask(wish=wished)).run
            for step in between:
                one.act(step)
            swept(one, wished, planned)
            one.everything_is_readable()
            one.database.close()

    swept_later()


def swept(one, wish, planned):
    """No young commit is lost, no ref gains any; what comes out of it is in between nothing and what is right now."""
    before = Before(one.repo)
    try:
        sweep(one.repo, HERE, planned, ALL)
    except PlanOutdated:
        assert oracle.history(one.repo) == before.made
        assert tips(one.repo) == before.refs
        return
    before.compare()
    wanted, made = answer(before.made, before.refs, wish), oracle.history(one.repo)
    for ref, tip in tips(one.repo).items():
        assert below(made, tip) >= (wanted[ref] or set())
    with suppress(BadRequest):
        run(expiration.job, one.repo, HERE, expiration.job.ask(wish=wish), ALL)
        before.compare(wish)


def test_a_plan_that_is_swept_later_loses_nothing_that_came_between():
    late(examples=10)


@pytest.mark.slow
def test_a_plan_that_is_swept_later_loses_nothing_that_came_between_for_long():
    late(examples=1500)


# ---- orders of events that random histories seldom hit


@pytest.fixture
def one(tmp_path):
    made = Scene(tmp_path)
    yield made
    made.database.close()


def made(one, branch, *messages, wait=0):
    """Commits on ``branch``, by message."""
    found = {message: one.repo.commit(branch, message, allow_empty=True).id for message in messages}
    one.wait(wait)
    return found


def test_what_a_rule_keeps_for_a_branch_that_came_after_the_plan_is_kept(one):
    """Neither is it cut out of another history, nor does a ref go that points to it."""
    ids = made(one, "main", "a", "b", "c", wait=240)
    one.repo.create_branch("old", ids["b"])
    made(one, "main", "young", wait=1)
    wish = one.wish(1, KeepCounts(last=2), True, True)
    planned = plan(expiration.job, one.repo, HERE, expiration.job.ask(wish=wish)).run
    one.repo.create_branch("dev", ids["b"])
    made(one, "dev", "later", wait=1)
    before = Before(one.repo)
    sweep(one.repo, HERE, planned, ALL)
    before.compare()
    assert ids["b"] in below(oracle.history(one.repo), tips(one.repo)["branch", "main"])
    assert ("branch", "old") in tips(one.repo)


def test_what_came_in_through_a_merge_that_is_hidden_stays_if_it_is_kept(one):
    ids = made(one, "main", "a")
    one.repo.create_branch("dev", "main")
    ids |= made(one, "dev", "d")
    one.repo.merge("dev", "main")
    one.wait(240)
    made(one, "dev", "young on dev")
    made(one, "main", "young", "younger", wait=1)
    one.expire(1, KeepCounts(last=2), False, False)
    reached = below(oracle.history(one.repo), tips(one.repo)["branch", "main"])
    assert ids["d"] in reached
    assert ids["a"] not in reached


def test_a_commit_that_was_abandoned_is_readable_and_can_be_saved(one):
    for number in range(4):
        one.act(("commit and wait", 0, number))
    third = one.repo.resolve("main~1").commit.id
    one.expire(0, None, False, False)
    one.expire(1, None, False, False)
    assert third not in oracle.reached(one.repo)
    assert one.listed(third) == one.shown[third]
    one.repo.create_tag("saved", third)
    assert third in oracle.reached(one.repo)
