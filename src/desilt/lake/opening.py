"""A repository of a lake, opened by its URI, or by an executor for itself."""

from functools import lru_cache

from desilt.lake.lake import Lake, locate
from desilt.lake.repository import LakeHandle, LakeRepository
from desilt.objects import open_store
from desilt.records.database import open_database
from desilt.records.passwords import with_password
from desilt.repository.opening import Opened


def open_uri(uri: str, db: str | None) -> Opened:
    """``DIRECTORY#REPO``, ``lake:///DIRECTORY#REPO`` or ``s3://BUCKET/PREFIX#REPO``."""
    location = locate(uri, db=db)
    lake = Lake.open(location)
    try:
        return Opened(lake.repository(location.repository), lake.close)
    except BaseException:
        lake.close()
        raise


@lru_cache(maxsize=4)
def opened(handle: LakeHandle) -> LakeRepository:
    """Opened once for each process: connections are used again from task to task."""
    database = open_database(with_password(handle.database))
    return Lake(database, open_store(handle.store)).repository(handle.name)
