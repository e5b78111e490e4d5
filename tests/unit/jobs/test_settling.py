"""From which partition on nothing new appears: the next gc run lists only what is newer."""

from datetime import UTC, datetime, timedelta

import pytest

from desilt.domain.address import PARTITION_AGE, partition
from desilt.domain.times import CLOCK_MARGIN
from desilt.jobs.gc.job import closed, settling
from desilt.jobs.gc.watermark import Saved, nothing
from desilt.lake.layout import LAYOUT
from desilt.repository.source import Uploads

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LIFE = timedelta(hours=24)
MOMENT = timedelta(milliseconds=1)  # names of partitions count these
LAST_OF_ALL = PARTITION_AGE + 2 * LIFE + CLOCK_MARGIN
"""A partition is opened; an hour later it gives out its last address; a ticket's life later an object comes there;
and as much later, that is no longer young. Clocks may differ by the margin."""


def opened(ago):
    return partition(NOW - ago, "i" * 20)


def is_settled(name, until):
    """A run that begins at ``until`` does not list ``name``."""
    return name >= until


@pytest.mark.parametrize("ago", [timedelta(), PARTITION_AGE, LIFE, 2 * LIFE, LAST_OF_ALL - MOMENT])
def test_a_partition_is_listed_again_as_long_as_garbage_may_turn_up_in_it(ago):
    assert not is_settled(opened(ago), closed(LAYOUT, LIFE, NOW))


@pytest.mark.parametrize("ago", [LAST_OF_ALL, LAST_OF_ALL + MOMENT, timedelta(days=900)])
def test_and_no_longer(ago):
    assert is_settled(opened(ago), closed(LAYOUT, LIFE, NOW))


def ticketed(**oldest):
    return Uploads(None, oldest)


def test_an_upload_under_way_keeps_its_partition_and_all_newer_ones_open():
    busy, older = opened(timedelta(days=9)), opened(timedelta(days=9) + MOMENT)
    until = settling(LAYOUT, ["a", "b"], nothing, ticketed(a=busy), closed(LAYOUT, LIFE, NOW))
    assert not is_settled(busy, until["a"])
    assert not is_settled(opened(timedelta(days=8)), until["a"])
    assert is_settled(older, until["a"])
    assert is_settled(busy, until["b"])  # another branch's is another's


def test_what_was_settled_once_stays_so():
    """Though a clock went back; and so does what belongs to branches of which nothing is found."""
    before = Saved("run", {"a": closed(LAYOUT, LIFE, NOW), "gone": "62291000000000"})
    until = settling(LAYOUT, ["a"], before, ticketed(), closed(LAYOUT, LIFE, NOW - timedelta(days=3)))
    assert until == {"a": closed(LAYOUT, LIFE, NOW), "gone": "62291000000000"}
