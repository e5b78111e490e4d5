import pytest

from desilt.lakefs.server import Server
from desilt.lakefs.settings import Settings
from lakefs_replay import KEY, SECRET, Replay


@pytest.fixture
def replay():
    """A server that answers as the real one did; a request that it was not told of fails the test."""
    found = Replay()
    yield found
    found.close()
    assert found.unexpected == []


@pytest.fixture
def pauses():
    return []


@pytest.fixture
def server(replay, pauses):
    return Server(Settings(replay.endpoint, "capture", KEY, SECRET), pause=pauses.append)
