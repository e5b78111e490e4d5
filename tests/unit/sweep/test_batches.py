"""A batch told in rows and in figures."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from desilt.columns.schemas import MOMENT, PLAN
from desilt.objects.store import Outcome, Result
from desilt.sweep.batches import counted, results
from desilt.sweep.outcome import HELD_AGAIN

REMOVED, GONE, FAILED = Result
BACK = {"b": "it is staged"}
OUTCOMES = [Outcome("x/a", REMOVED), Outcome("x/c", FAILED, "the disk is full"), Outcome("x/d", GONE)]


@pytest.fixture
def rows():
    times = pa.array([datetime(2026, 1, 1, tzinfo=UTC)] * 4, MOMENT)
    return pa.table([["a", "b", "c", "d"], [1, 10, 100, 1000], times, *[[""] * 4] * 3], schema=PLAN)


def test_each_row_is_told_by_its_own_outcome_or_by_what_holds_it(rows):
    told = results(rows, BACK, OUTCOMES, "marked")
    assert told["address"].to_pylist() == ["a", "b", "c", "d"]
    assert told["result"].to_pylist() == ["marked", HELD_AGAIN, "failed", "already gone"]
    assert told["detail"].to_pylist() == ["", "it is staged", "the disk is full", ""]


def test_only_what_was_removed_counts_by_its_bytes(rows):
    found = counted(7, "file", rows, BACK, OUTCOMES)
    assert (found.number, found.asked, found.removed, found.gone, found.failed) == (7, 3, 1, 1, 1)
    assert (found.held_again, found.removed_bytes) == (1, 1)


@pytest.mark.parametrize("outcomes", [OUTCOMES[:2], [*OUTCOMES, Outcome("x/e", REMOVED)]])
def test_an_outcome_too_few_or_too_many_is_not_counted(rows, outcomes):
    with pytest.raises((IndexError, ValueError)):
        counted(7, "file", rows, BACK, outcomes)
