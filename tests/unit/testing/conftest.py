"""Lakes to replay scenarios into: one in memory, one in a directory."""

import pytest

from desilt.lake import Lake, schema
from desilt.lake.lake import locate
from desilt.objects.memory import MemoryStore
from desilt.records.database import open_database


@pytest.fixture
def lake(tmp_path):
    """Objects in memory, each test its own."""
    database = open_database(f"sqlite://{tmp_path}/lake.db", create=True)
    schema.create(database, storage="")
    yield Lake(database, MemoryStore())
    database.close()


@pytest.fixture
def directory_lake(tmp_path):
    opened = Lake.create(locate(f"{tmp_path}/lake#demo"))
    yield opened
    opened.close()
