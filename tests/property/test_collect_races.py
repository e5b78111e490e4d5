"""One event between any two steps of a collection, or between its plan and its sweep.

Whatever a writer was told is done stays readable; or the writer was refused. What
refs, holds and staging areas have at that moment is compared, byte by byte, with
what they have when the run is over, and once more after a later one.
"""

import itertools
import random
from contextlib import suppress
from datetime import timedelta
from functools import cache

import pytest

from desilt.errors import CommitGone, EditedSince, HeldSince, PlanOutdated, WrongTime
from desilt.executors.executor import HERE
from desilt.jobs import holds
from desilt.jobs.collect import job as collection
from desilt.jobs.runner import plan, sweep
from desilt.lake import editor
from desilt.lake.fsck import check
from desilt.lake.heads import Signature
from desilt.records import locks
from desilt.records.holds import HoldKind
from desilt.testing import oracle
from desilt.testing.faults import Steps
from small_lake import (
    ALL,
    EVENTS,
    KEEP_RUNS,
    REFUSALS,
    Seen,
    Small,
    collect,
    the_rest_goes,
    whatever,
)
from words import collecting


@pytest.fixture(autouse=True)
def _no_heartbeat(monkeypatch):
    monkeypatch.setattr(locks, "BEAT_SECONDS", 1e6)  # it would be one more thread that takes steps
    monkeypatch.setattr(editor, "PAGE", 3)  # commits go in more than one transaction


@pytest.fixture(scope="module", params=[1, 50_000], ids=["small ranges", "large ranges"])
def small(request, tmp_path_factory):
    return Small(tmp_path_factory.mktemp("small"), request.param)


def between(number, act):
    """Steps of which the one with this number waits until ``act`` is done."""
    count = itertools.count()
    return Steps(pause=lambda: act() if next(count) == number else None)


def race(small, events, number):
    """Plan; then, before step ``number`` of the sweep, let it happen. Whether that step came, and who was refused."""
    with small.again() as (repo, opened):
        planned = plan(collection.job, repo, HERE, collecting(keep_runs=KEEP_RUNS)).run
        seen, told = [Seen(repo)], []

        def happen():
            told.extend(whatever(repo, small, event) for event in events)
            seen.append(Seen(repo))

        steps = between(number, happen)
        with suppress(PlanOutdated, WrongTime):  # a hold on a prefix stops it, or time that passes between two clocks
            sweep(opened(steps), HERE, planned, ALL)
        seen[-1].is_still_there(repo)
        if told:
            the_rest_goes(repo, small)
            seen[-1].is_still_there(repo)
        return told


@cache
def steps_of(small):
    with small.again() as (repo, opened):
        planned, steps = plan(collection.job, repo, HERE, collecting()).run, Steps()
        sweep(opened(steps), HERE, planned, ALL)
        return steps.taken


def raced(small, events, number):
    try:
        return race(small, events, number)
    except Exception as error:
        raise AssertionError(f"race({events}, {number}), {small.raggedness} entries to a range") from error


def test_what_happens_at_some_step_of_a_sweep_counts(small):
    for event in random.sample(list(EVENTS), 3):
        raced(small, [event], random.randrange(steps_of(small)))


def test_several_things_that_happen_at_some_step_of_a_sweep_count(small):
    raced(small, random.sample(list(EVENTS), 4), random.randrange(steps_of(small)))


@pytest.mark.slow
@pytest.mark.parametrize("event", EVENTS)
def test_whatever_happens_at_any_step_of_a_sweep_counts(small, event):
    for number in range(steps_of(small) + 1):
        raced(small, [event], number)


@pytest.mark.slow
def test_many_things_that_happen_at_any_step_of_a_sweep_count(small):
    for _ in range(300):
        raced(small, random.sample(list(EVENTS), random.choice((2, 3, 4))), random.randrange(steps_of(small)))


def test_commits_are_saved_until_they_go_and_refused_from_then_on(small):
    """Nowhere in between: a branch on a dead commit is either made and whole, or told that the commit is gone."""
    count = steps_of(small)
    told = [raced(small, ["a branch on a dead commit"], number) for number in (8, count // 2, count - 5)]
    flat = [one for some in told for one in some]
    assert flat == sorted(flat, reverse=True)
    assert set(flat) == {True, False}


def test_at_no_step_is_a_commit_without_its_parents_or_an_object_gone_that_a_commit_has(small):
    counts = []
    with small.again() as (repo, opened):

        def look():
            now = len(oracle.history(repo)), len(oracle.stored(repo)), len(oracle.tables(repo))
            if now not in counts:
                counts.append(now)
                assert check(repo).sound

        collect(opened(Steps(pause=look)))
    commits, objects, tables = map(set, zip(*counts, strict=True))
    assert len(commits) > 2  # taken page by page
    assert len(objects) > 2
    assert len(tables) > 2


# ---- between plan and sweep


def plan_then(small, repo, *events):
    planned = plan(collection.job, repo, HERE, collecting()).run
    for event in events:
        EVENTS[event](repo, small)
    return planned, Seen(repo)


def gone_by(repo, planned):
    made = oracle.history(repo).keys()
    sweep(repo, HERE, planned, ALL)
    return made - oracle.history(repo).keys()


def test_a_commit_saved_after_the_plan_stays_with_all_that_it_descends_from(small):
    with small.again() as (repo, _):
        planned, seen = plan_then(small, repo, "a branch on a dead commit")
        gone = gone_by(repo, planned)
        assert gone == {small.id[name] for name in ("s2", "m1", "c3", "c4", "c5")}
        seen.is_still_there(repo)
        the_rest_goes(repo, small)


def test_a_commit_held_after_the_plan_stays_with_all_that_it_descends_from(small):
    with small.again() as (repo, _):
        planned, seen = plan_then(small, repo, "a hold on a commit")
        assert gone_by(repo, planned) == {small.id[name] for name in ("s1", "s2", "c2", "c3", "c4", "c5")}
        seen.is_still_there(repo)


def test_a_file_that_comes_back_after_the_plan_stays_though_its_commits_go(small):
    with small.again() as (repo, _):
        planned, seen = plan_then(small, repo, "a file that comes back")
        assert small.id["c1"] in gone_by(repo, planned)
        assert "b" in seen.refs["main"]
        seen.is_still_there(repo)


def test_an_object_held_after_the_plan_stays_though_its_commits_go(small):
    with small.again() as (repo, _):
        planned, seen = plan_then(small, repo, "a hold on an object")
        assert small.id["c1"] in gone_by(repo, planned)
        assert len(seen.held) == 1
        seen.is_still_there(repo)
        the_rest_goes(repo, small)
        seen.is_still_there(repo)


def test_a_prefix_held_after_the_plan_stops_it(small):
    with small.again() as (repo, _):
        planned, seen = plan_then(small, repo, "a hold on a prefix")
        made = oracle.history(repo).keys()
        with pytest.raises(HeldSince):
            sweep(repo, HERE, planned, ALL)
        assert oracle.history(repo).keys() == made
        seen.is_still_there(repo)
        collect(repo)
        assert small.id["c1"] in oracle.history(repo)
        seen.is_still_there(repo)


def test_tables_that_come_back_after_the_plan_stay(small):
    with small.again() as (repo, _):
        planned, seen = plan_then(small, repo, "tables that come back")
        assert small.id["c5"] in gone_by(repo, planned)
        seen.is_still_there(repo)
        the_rest_goes(repo, small)
        seen.is_still_there(repo)


def test_a_plan_from_before_history_was_edited_is_refused(small):
    with small.again() as (repo, _):
        planned = plan(collection.job, repo, HERE, collecting()).run
        collect(repo)
        with pytest.raises(EditedSince):
            sweep(repo, HERE, planned, ALL)


# ---- writers that are slower than a whole collection


SLOW = {
    "a commit": lambda repo, _: repo.commit("dev", "slow"),
    "a merge": lambda repo, small: repo.merge(small.id["s2"], "main", base=small.id["c2"], strategy="source-wins"),
    "a revert": lambda repo, small: repo.revert("main", small.id["c4"]),
    "a branch": lambda repo, small: repo.create_branch("saved", small.id["s2"]),
    "a tag": lambda repo, small: repo.create_tag("saved", small.id["s2"]),
    "a hold": lambda repo, small: holds.hold(repo, HoldKind.REF, small.id["s2"], reason="because"),
    "a hold on an object": EVENTS["a hold on an object"],
    "a copy of bytes": lambda repo, small: repo.copy(small.id["s2"], "t", "main", "t"),
    "tables that come back": lambda repo, _: (repo.remove("main", "e"), repo.commit("main", "one less")),
    "a read": lambda repo, small: [b"".join(repo.get(small.id["s2"], one.path)) for one in repo.list(small.id["s2"])],
}


def overtaken(small, name, number):
    """A whole collection between two steps of a writer: it is refused, or what it did is whole."""
    with small.again() as (repo, opened):
        before = Seen(repo)
        steps = between(number, lambda: collect(repo))
        try:
            SLOW[name](opened(steps), small)
            outcome = "done"
        except REFUSALS as error:
            outcome = type(error).__name__
        for moved in ("main", "dev"):  # by the writer
            del before.refs[moved]
        before.is_still_there(repo)
        seen = Seen(repo)
        the_rest_goes(repo, small)
        seen.is_still_there(repo)
        return outcome, steps.taken > number


def test_a_writer_that_a_collection_overtakes_is_refused_or_has_all_it_was_promised(small):
    for name, number in zip(random.sample(list(SLOW), 2), random.sample(range(10), 2), strict=True):
        try:
            overtaken(small, name, number)
        except Exception as error:
            raise AssertionError(f"overtaken({name!r}, {number}), {small.raggedness} entries to a range") from error


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_a_writer_that_a_collection_overtakes_anywhere_is_refused_or_has_all_it_was_promised(small, name):
    outcomes = []
    for number in itertools.count():
        outcome, happened = overtaken(small, name, number)
        outcomes.append(outcome)
        if not happened:
            break
    assert outcomes[-1] == "done"  # nothing came between


def test_a_merge_resolved_before_its_source_was_collected_is_refused(small):
    with small.again() as (repo, _):
        committer = repo._committer
        source, base = (repo.resolve(small.id[name]).commit for name in ("s2", "c2"))
        collect(repo)
        repo.ranges.metarange.cache_clear()
        head = repo.resolve("main").commit.id
        signed = Signature("late", "", {})
        with pytest.raises(CommitGone):
            committer.merge(source, "main", ("s2", "main"), signed, "source-wins", base=base)
        assert repo.resolve("main").commit.id == head


def test_a_clock_that_stands_still_makes_no_commit_that_was_collected(small):
    """The same content at the same instant would be the same commit."""
    with small.again() as (repo, _):
        repo.create_branch("again", "main")
        first = repo.commit("again", "the same", allow_empty=True).id
        repo.delete_branch("again")
        now = small.clock.now
        small.clock.now += timedelta(days=3)
        collect(repo)
        with pytest.raises(CommitGone):
            repo.resolve(first)
        small.clock.now = now
        repo.create_branch("again", "main")
        assert repo.commit("again", "the same", allow_empty=True).id != first
