"""Of a past of years a guard reads few runs, and says what it would say of all of them."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from desilt.domain.run import new_run
from desilt.records import ledger
from desilt.records.ledger import RunRow, RunState
from desilt.repository.gate import Safety
from desilt.repository.snapshot import Revision
from desilt.runs.plan import ONE_BRANCH, Evidence, Plan
from desilt.runs.report import Amount
from desilt.runs.steps import Action, PlanFile, RemoveObjects
from desilt.sweep.guard import LONG_WINDOW, Situation, objections, row
from desilt.sweep.limits import Limits

NOW = datetime(2030, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
SINCE = NOW - LONG_WINDOW
PERIOD = int(DAY / timedelta(microseconds=1))
ROW = RunRow("", "gc", "one", Action.DELETE, NOW, NOW, RunState.SWEPT, 3, 30, measure="all", period=PERIOD)


@pytest.fixture
def past(lake, repo):
    """``past(rows)``: these are the runs of the repository; what the ledger says of all, and of those alike."""

    def write(rows, **wanted):
        with lake.database.write() as tx:
            tx.execute("DELETE FROM runs")
            for one in rows:
                ledger.begin(tx, repo.uid, one)
        with lake.database.read() as tx:
            wanted = {"job": "gc", "policy": "one", "since": SINCE, **wanted}
            return ledger.every(tx, repo.uid), ledger.alike(tx, repo.uid, **wanted)

    return write


def daily(count, **more):
    """A run a day, the newest first."""
    days = ((number, NOW - (number + 1) * DAY) for number in range(count))
    return [replace(ROW, id=f"{number:04d}", started_at=at, ended_at=at, **more) for number, at in days]


def test_years_of_daily_runs_are_a_month_and_one(past):
    rows = daily(1_000)
    assert past(rows)[1] == rows[:31]  # 30 of the month, and the newest from before it


def test_a_yes_of_years_ago_counts_though_all_since_removed_nothing(past):
    rows = [*daily(400, objects=0), replace(ROW, id="9", started_at=NOW - 500 * DAY, ended_at=NOW - 500 * DAY)]
    assert past(rows)[1][-1] == rows[-1]


@pytest.mark.parametrize(
    "differing",
    [
        {"action": Action.TRASH},
        {"measure": f"{ONE_BRANCH}b"},
        {"period": None},
        {"period": PERIOD - 1},
        {"objects": 0},
        {"objects": 0, "refs": 1},
        {"objects": 0, "edits": 1},
    ],
    ids=str,
)
def test_the_newest_of_every_kind_is_told_whatever_came_after(past, differing):
    """One that did something is never hidden by one that did less, or by another's branch, action or period."""
    before = replace(ROW, id="0900", started_at=NOW - 900 * DAY, ended_at=NOW - 900 * DAY)
    nothing = {"objects": 0, "refs": 0, "edits": 0} if "objects" in differing and len(differing) > 1 else {}
    after = [replace(one, **nothing) for one in daily(100)]
    assert past([*after, replace(before, **differing)])[1] == [*after[:31], replace(before, **differing)]


def test_a_run_that_ended_by_a_clock_ahead_is_among_them_however_long_ago_it_began(past):
    odd = replace(ROW, id="0500", job="lifecycle", started_at=NOW - 500 * DAY, ended_at=NOW + DAY)
    assert odd in past([*daily(400), odd])[1]


def test_of_another_job_or_policy_only_the_last_month_is_told(past):
    rows = daily(100, policy="another")
    assert past(rows)[1] == rows[:30]
    assert past(rows, job="collect", policy="another")[1] == rows[:30]


def test_another_repository_has_no_say(past, lake, repo):
    other = lake.create_repository("other").uid
    past(mine := [*daily(1), replace(ROW, id="0500", started_at=NOW - 500 * DAY, ended_at=None)])
    with lake.database.write() as tx:
        ledger.begin(tx, other, theirs := replace(mine[1], id="0400"))
        ledger.begin(tx, other, replace(mine[0], id="0300"))
    with lake.database.read() as tx:
        assert ledger.alike(tx, repo.uid, job="gc", policy="one", since=SINCE) == mine
        assert ledger.alike(tx, other, job="gc", policy="one", since=SINCE)[1:] == [theirs]


@pytest.mark.parametrize("seed", range(40))
def test_a_guard_says_the_same_of_those_alike_as_of_all(past, seed):
    chance = random.Random(seed)
    some = [drawn(chance, number) for number in range(chance.randrange(60))]
    every, alike = past(some, job="gc", policy="one")
    assert len(alike) <= len(every) == len(some)
    for made in (plan(chance) for _ in range(20)):
        ask_again_from = chance.choice([None, NOW - chance.randrange(90) * DAY])
        said = [
            verdict(made, limits, situation(runs, ask_again_from))
            for limits in (Limits(), Limits(confirm=True))
            for runs in (every, alike)
        ]
        assert said[0] == said[1]
        assert said[2] == said[3]


def drawn(chance, number):
    """A run of long ago or lately; ids are in the order in which runs began."""
    at = NOW - (2 * number + 1) * DAY
    does = chance.choice([(0, 0, 0), (3, 0, 0), (0, 1, 0), (0, 0, 1)])
    return replace(
        ROW,
        id=f"{number:04d}",
        started_at=at,
        ended_at=chance.choice([None, at, at, at, NOW + DAY]) if chance.random() < 0.3 else at,
        job=chance.choice(["gc", "gc", "gc", "collect"]),
        policy=chance.choice(["one", "one", "another"]),
        action=chance.choice([Action.DELETE, Action.TRASH, Action.PURGE_VERSIONS]),
        **dict(zip(("objects", "refs", "edits"), does, strict=True)),
        measure=chance.choice(["all", "all", f"{ONE_BRANCH}b"]),
        stored_objects=chance.choice([10, 20, 40]),
        stored_bytes=chance.choice([10, 20, 40]),
        period=chance.choice([None, PERIOD, PERIOD - 1_000_000, 7 * PERIOD]),
        agreed=int(chance.random() < 0.1),
    )


def plan(chance):
    return Plan(
        run=new_run("gc", now=NOW, started_at=NOW, entropy=b"test").id,
        job="gc",
        now=NOW,
        repository="uid",
        safety=Safety.ATOMIC,
        action=chance.choice([Action.DELETE, Action.TRASH]),
        batch=1_000,
        evidence=Evidence(
            policy="one",
            revision=Revision(7, "mark"),
            commits=2,
            held=5,
            stored=Amount(20, 20),
            measure=chance.choice(["all", f"{ONE_BRANCH}b"]),
            period=chance.choice([None, DAY, 7 * DAY]),
        ),
        steps=(RemoveObjects((PlanFile("plan/0.parquet", chance.choice([1, 5]), 1, 1_000, ()),)),),
    )


def situation(runs, ask_again_from):
    return Situation(NOW, NOW, "uid", "demo", "one", runs, Amount(), True, "", ask_again_from=ask_again_from)


def verdict(made, limits, seen):
    """What it says, and what it would put on record."""
    return [str(one) for one in objections(made, limits, seen, resuming=False)], row(made, limits, seen, 1)
