"""Traces of life: which gap between them is taken for a clock that has jumped, and until when that counts."""

from datetime import timedelta

import pytest

from desilt.lake.gate import TRACES
from desilt.records import ledger, traces
from desilt.records.ledger import RunRow, RunState

DAY, TICK, TEN_MINUTES = timedelta(days=1), timedelta(microseconds=1), timedelta(minutes=10)


@pytest.fixture
def start(repo):
    """The last trace of making the repository."""
    with repo.database.read() as tx:
        return traces.quiet_since(tx, repo.uid, repo.clock() + 999 * DAY, (), sources=TRACES)


@pytest.fixture
def quiet(repo):
    def ask(now, *others):
        with repo.database.read() as tx:
            return traces.quiet_since(tx, repo.uid, now, others, sources=TRACES)

    return ask


@pytest.fixture
def say(repo):
    def do(function, *values):
        with repo.database.write() as tx:
            function(tx, repo.uid, *values)

    return do


def began(at, fence=1):
    return RunRow(f"{9e17 - at.timestamp():.0f}", "gc", "old", "delete", at, at, RunState.SWEPT, 0, 0, fence)


def test_thirty_days_are_no_gap_and_a_moment_more_is(quiet, start):
    assert quiet(start + 30 * DAY) is None
    assert quiet(start + 30 * DAY + TICK) == start
    assert quiet(start + 40 * DAY, start + 20 * DAY) is None


def test_without_a_run_a_gap_counts_that_ended_within_seven_days(quiet, start):
    assert quiet(start + 107 * DAY, start + 100 * DAY) == start
    assert quiet(start + 107 * DAY + TICK, start + 100 * DAY) is None


def test_a_gap_since_the_last_run_counts_whenever_it_ended(quiet, say, start):
    say(ledger.begin, began(start + DAY))
    week = [start + (100 + day) * DAY for day in range(20)]
    assert quiet(start + 120 * DAY, *week) == start + DAY
    say(ledger.begin, began(start + 110 * DAY, fence=2))
    assert quiet(start + 120 * DAY, *week) is None


def test_a_run_and_a_trace_from_the_future_say_nothing(quiet, say, start):
    say(ledger.begin, began(start + 365 * DAY))
    assert quiet(start + 20 * DAY) is None
    assert quiet(start + 100 * DAY) == start
    assert quiet(start + 20 * DAY, start + 365 * DAY) is None


def test_the_last_run_is_the_one_that_passed_last(quiet, say, start):
    """By a clock that was wrong, one began in a year from now; the clock was mended, and jumps there again."""
    say(ledger.begin, began(start + 365 * DAY, fence=1))
    say(ledger.begin, began(start + DAY, fence=2))
    assert quiet(start + 380 * DAY) == start + DAY


def test_a_yes_covers_gaps_that_ended_before_it_by_a_clock_that_is_not_behind(quiet, say, start):
    say(traces.agree, start + 100 * DAY)
    assert quiet(start + 101 * DAY, start + 100 * DAY) is None
    assert quiet(start + 101 * DAY, start + 100 * DAY + TICK) == start
    assert quiet(start + 100 * DAY - TICK) == start
    assert quiet(start + 135 * DAY, start + 100 * DAY) == start + 100 * DAY


def test_what_is_remembered_counts_whatever_was_done_since(quiet, say, start):
    say(traces.suspect, start, start + 365 * DAY)
    say(traces.suspect, start + DAY, start + 400 * DAY)  # the first time counts
    say(ledger.begin, began(start + 366 * DAY))
    assert quiet(start + 367 * DAY) == start
    assert quiet(start + 365 * DAY) == start
    say(traces.agree, start + 367 * DAY)
    assert quiet(start + 367 * DAY) is None


def test_a_clock_is_mended_when_it_is_back_within_thirty_days(quiet, say, start):
    say(traces.suspect, start, start + 31 * DAY)
    daily = [start + day * DAY for day in range(40)]
    assert quiet(start + 30 * DAY + TICK, *daily) == start
    assert quiet(start + 30 * DAY, *daily) is None
    say(traces.passed, start + 31 * DAY)  # by a clock that is not: nothing is forgotten
    assert quiet(start + 35 * DAY, *daily) == start
    say(traces.passed, start + DAY)
    assert quiet(start + 35 * DAY, *daily) is None


def test_ten_minutes_back_are_not_mended(quiet, say, start):
    say(traces.suspect, start, start + DAY)
    assert quiet(start + DAY - TEN_MINUTES) == start
    assert quiet(start + DAY - TEN_MINUTES - TICK) is None


def test_what_was_said_of_a_clock_that_was_mended_since_is_forgotten(quiet, say, start):
    say(traces.agree, start + 365 * DAY)
    say(traces.passed, start + 365 * DAY - TEN_MINUTES)
    assert quiet(start + 366 * DAY, start + 364 * DAY) is None
    say(traces.passed, start + DAY)
    assert quiet(start + 366 * DAY, start + 364 * DAY) == start
