"""Where new objects go."""

from datetime import UTC, datetime, timedelta

import pytest

from desilt.domain import address
from desilt.lake import schema
from desilt.lake.partitions import Partitions
from desilt.records.database import open_database


@pytest.fixture
def database(tmp_path):
    opened = open_database(f"sqlite://{tmp_path}/lake.db", create=True)
    schema.create(opened, storage="")
    yield opened
    opened.close()


@pytest.fixture
def clock():
    class Clock:
        now = datetime(2026, 1, 1, tzinfo=UTC)

        def __call__(self):
            return self.now

    return Clock()


def opened(database, clock, *, puts=1, branch="b"):
    """The partitions that so many addresses of a new process lie in."""
    partitions = Partitions(database, clock, lambda: None)
    return [partitions.new_address(branch).split("/")[2] for _ in range(puts)]


def test_a_thousand_short_commands_share_a_partition(database, clock):
    assert len({opened(database, clock)[0] for _ in range(1_000)}) == 1


def test_no_partition_holds_more_than_its_size(database, clock, monkeypatch):
    monkeypatch.setattr(address, "PARTITION_OBJECTS", 100)
    names = [name for _ in range(10) for name in opened(database, clock, puts=50)]
    assert all(names.count(name) <= 100 for name in names)
    assert len(set(names)) >= 5


def test_a_partition_closes_after_an_hour(database, clock):
    partitions = Partitions(database, clock, lambda: None)
    first = partitions.new_address("b")
    clock.now += timedelta(minutes=59)
    assert partitions.new_address("b").split("/")[2] == first.split("/")[2]
    clock.now += timedelta(minutes=1)
    second = partitions.new_address("b")
    assert second.split("/")[2] != first.split("/")[2]
    assert second < first  # newer ones list first


def test_every_address_is_new_and_tells_its_time(database, clock):
    partitions = Partitions(database, clock, lambda: None)
    found = [partitions.new_address("b") for _ in range(5_000)]
    assert len(set(found)) == 5_000
    prefix, branch, partition, name = found[0].split("/")
    assert (prefix, branch) == ("branches", "b")
    assert address.partition_time(partition) == address.uid_time(name) == clock.now


def test_branches_have_partitions_of_their_own(database, clock):
    assert opened(database, clock, branch="b") != opened(database, clock, branch="c")


def test_a_clock_that_ran_backwards_is_looked_at_before_it_names_anything(database):
    now, checked = [datetime(2026, 1, 1, tzinfo=UTC)], []
    partitions = Partitions(database, lambda: now[0], lambda: checked.append(now[0]))
    partitions.new_address("b")
    now[0] -= timedelta(days=365)
    partitions.new_address("b")
    assert checked == [datetime(2026, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC)]
