"""A repository that an executor can open for itself."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from desilt.lake.database import open_database
from desilt.lake.lake import Lake
from desilt.lake.repository import Repository
from desilt.objects import open_store
from desilt.sources.spread import InProcess, Spread


@dataclass(frozen=True, slots=True)
class Place:
    """Where a repository is, in words that can be sent to another process."""

    database: str
    store: str
    name: str

    def __call__(self) -> Repository:
        return _opened(self)


@lru_cache(maxsize=4)
def _opened(place: Place) -> Repository:
    """Opened once for each process: connections are used again from task to task."""
    return Lake(open_database(place.database), open_store(place.store)).repository(place.name)


def opening(repository: Repository, spread: Spread) -> Callable[[], Repository]:
    """How a task gets at the repository: as it is, or opened anew in another process."""
    if isinstance(spread, InProcess):
        return lambda: repository
    return Place(repository.database.url, repository.store.uri, repository.name)
