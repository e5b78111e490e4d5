"""Which earlier runs count for when a step is due."""

from datetime import UTC, datetime, timedelta

import pytest

from desilt.records.ledger import RunRow, RunState
from desilt.runs.plan import ONE_BRANCH
from desilt.upkeep.document import StepWish
from desilt.upkeep.due import counts

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("measure", "ahead", "words", "does"),
    [
        ("stored objects", -5, {}, True),
        ("stored objects", 9, {}, True),  # clocks differ a little
        ("stored objects", 11, {}, False),  # it was by a clock that was ahead
        (f"{ONE_BRANCH}uid", -5, {}, False),
        (f"{ONE_BRANCH}uid", -5, {"branch": "dev"}, True),
        ("stored objects", -5, {"branch": "dev"}, False),
    ],
)
def test_a_run_counts_if_it_was_by_this_clock_and_of_the_same(measure, ahead, words, does):
    at = NOW + timedelta(minutes=ahead)
    row = RunRow("run", "gc", "policy", "delete", at, at, RunState.SWEPT, 1, 1, measure=measure)
    assert counts(row, StepWish("gc", words), NOW) is does
