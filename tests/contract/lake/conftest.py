"""One suite, run on every database: what a lake promises does not depend on where its rows are."""

from datetime import UTC, datetime, timedelta

import pytest

from desilt.lake import Lake, schema
from desilt.lake.fsck import check
from desilt.objects.memory import MemoryStore
from desilt.records.database import open_database


class Ticking:
    """A clock that moves one second each time it is read."""

    def __init__(self):
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self):
        self.now += timedelta(seconds=1)
        return self.now


@pytest.fixture
def clock():
    return Ticking()


@pytest.fixture
def unsound():
    """Asked for by a test that damages its lake: what it leaves behind is not checked."""


@pytest.fixture
def lake(request, database_url, clock):
    database = open_database(database_url, create=True)
    schema.create(database, storage="")
    made = Lake(database, MemoryStore(clock=clock), clock=clock, raggedness=7)
    yield made
    if "unsound" not in request.fixturenames:
        for name in made.repositories():
            found = check(made.repository(name), deep=True)
            assert found.sound, found.findings
    database.close()


@pytest.fixture
def repo(lake):
    return lake.create_repository("demo")
