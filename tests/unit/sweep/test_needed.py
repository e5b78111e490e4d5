"""Which folders of old runs a collection leaves alone: each of these reasons is enough."""

import pytest

from desilt.records import removals as tombstones
from desilt.records import watermarks
from desilt.records.ledger import RunState
from desilt.records.removals import State, Tombstone
from desilt.sweep.tidy import KEPT_FOR, needed
from past_runs import PastRuns


@pytest.fixture
def past(memory_repo):
    """Four runs that are over, of two jobs; and everything that they removed is gone."""
    past = PastRuns(memory_repo)
    for job in ("collect", "gc", "collect", "gc"):
        past.add(1, job=job)
    return past


def asked(past):
    return needed(past.repo, list(past.known))


def test_of_runs_that_are_over_the_last_of_each_job_is_needed(past):
    assert asked(past) == set(list(past.known)[2:])


def test_of_others_than_those_that_are_asked_about_nothing_is_said(past):
    first, *_, last = past.known
    assert needed(past.repo, [first]) == set()
    assert needed(past.repo, [last]) == {last}


def test_one_that_was_cut_off_is_needed_though_all_it_condemned_is_settled(past):
    """It goes on by its plan, which is in its folder."""
    first, second, *_ = past.known
    past.resume(first)
    assert first in asked(past)
    assert second not in asked(past)
    with past.repo.database.write() as tx:
        assert tombstones.runs_in(tx, past.repo.uid, *KEPT_FOR) == set()
    past.end(first)
    assert first not in asked(past)
    assert past.add(state=RunState.SWEEPING) in asked(past)


@pytest.mark.parametrize("state", KEPT_FOR)
def test_one_with_an_object_that_may_come_back_or_is_still_to_go_is_needed(past, state):
    first, second, *_ = past.known
    stone = Tombstone("branches/b/0_x/more", first, "r", past.repo.clock(), 1, 0, State(state))
    with past.repo.database.write() as tx:
        tombstones.condemn(tx, past.repo.uid, [stone])
    assert first in asked(past)
    assert second not in asked(past)


@pytest.mark.parametrize("where", ["by its name", "in what it says"])
def test_one_that_a_watermark_names_is_needed(past, where):
    first, second, *_ = past.known
    name, value = (first, {}) if where == "by its name" else ("later", {"file": f"_desilt/runs/gc/{first}/a.parquet"})
    with past.repo.database.write() as tx:
        watermarks.write(tx, past.repo.uid, "gc", name, value)
    assert first in asked(past)
    assert second not in asked(past)
