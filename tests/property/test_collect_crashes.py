"""An expiration or a collection killed at every step and started again ends as if never disturbed.

Whoever comes between (another job, a writer) loses nothing that anything reaches.
"""

import itertools
import random
from contextlib import suppress
from datetime import timedelta
from functools import cache

import pytest

from desilt.domain.keep_rules import KeepCounts
from desilt.errors import BeingCollected, CommitGone
from desilt.executors.executor import HERE
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.runner import plan
from desilt.lake import commits, editor
from desilt.records import ledger, locks
from desilt.records import removals as tombstones
from desilt.records.ledger import RunState
from desilt.records.removals import State
from desilt.testing import oracle
from desilt.testing.faults import After, Before, Crash, Steps
from small_lake import (
    EVENTS,
    Seen,
    Small,
    collect,
    collect_garbage,
    expire,
    expire_objects,
    nothing_is_left_to_do,
    shown,
    the_rest_goes,
    whatever,
)


@pytest.fixture(autouse=True)
def _silence_is_death(monkeypatch):
    monkeypatch.setattr(locks, "SILENCE", timedelta(seconds=-1))  # the dead owner is this very process
    monkeypatch.setattr(editor, "PAGE", 3)  # commits go in more than one transaction


JOBS = {"garbage": collect_garbage, "history": expire, "objects": expire_objects, "nothing": lambda _: None}


@pytest.fixture(scope="module", params=[1, 50_000], ids=["small ranges", "large ranges"])
def small(request, tmp_path_factory):
    return Small(tmp_path_factory.mktemp("small"), request.param)


# ---- what writers do meanwhile


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
        assert plan(uncommitted.job, repo, HERE).inputs["known from before"]
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

WISHES = [{}, {"keep": KeepCounts(last=3), "delete_tags": True, "delete_branches": True}]


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
