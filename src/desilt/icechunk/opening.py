"""An Icechunk repository, opened by its URI, or by an executor for itself.

Nothing of the library is needed to read one: the extra is asked for where something really needs it.
"""

import hashlib
import os
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from desilt.clock import Clock, system_clock
from desilt.errors import InvalidUri, NotFound
from desilt.icechunk.core import IcechunkCore
from desilt.icechunk.format.container import AssetKind, opened
from desilt.icechunk.history import refuse_without_refs
from desilt.icechunk.layout import REFS, REPO
from desilt.icechunk.repository import IcechunkHandle, IcechunkRepository
from desilt.objects import open_store
from desilt.objects.local import LocalStore
from desilt.objects.opening import dated
from desilt.objects.store import ObjectStore
from desilt.records import elsewhere
from desilt.records.database import Database
from desilt.records.opening import open_records
from desilt.records.passwords import with_password
from desilt.repository.opening import Opened

SCHEME = "icechunk+"
WRITE = "icechunk+file:///directory, icechunk+s3://bucket/prefix, icechunk+gs://… or icechunk+az://…"
UID_CHARACTERS = 20


def open_uri(uri: str, db: str | None) -> Opened:
    """``icechunk+file:///directory`` or ``icechunk+s3://bucket/prefix``."""
    store = store_of(uri)
    repository = open_repository(store, open_records(db))
    return Opened(repository, repository.records.close)


def store_of(uri: str) -> ObjectStore:
    """Where the repository is said to be."""
    scheme, divided, rest = uri.partition("://")
    kind = scheme.lower().removeprefix(SCHEME)
    if not divided or "#" in rest or kind not in ("file", "s3", "gs", "az"):
        raise InvalidUri(f"{uri!r} is no place for an Icechunk repository; write {WRITE}")
    return open_store(f"{kind}://{rest}")


def open_repository(store: ObjectStore, records: Database, *, clock: Clock = system_clock) -> IcechunkRepository:
    """The repository that fills ``store``; with another clock, what we put into a directory is dated by it too."""
    try:
        if clock is not system_clock and isinstance(store, LocalStore):  # a bucket dates what the library puts itself
            store = dated(store, clock)
        return _opened(store, records, clock)
    except BaseException:
        records.close()
        raise


def _opened(store: ObjectStore, records: Database, clock: Clock) -> IcechunkRepository:
    version = format_of(store)
    place = place_of(store)
    uid = hashlib.sha256(place.encode()).hexdigest()[:UID_CHARACTERS]
    return IcechunkRepository(
        IcechunkCore(
            store,
            version,
            records,
            elsewhere.name_of(records),
            clock,
            uid,
            elsewhere.secret_of(records, uid, place, now=clock()),
        )
    )


def format_of(store: ObjectStore) -> int:
    """1 or 2; an error that says so where there is nothing, something else, or what cannot be read."""
    try:
        data = store.get(REPO)
    except NotFound:
        if not any(batch.num_rows for batch in store.list(REFS)):
            refuse_without_refs(store)
        return 1
    opened(data, AssetKind.REPO, REPO)
    return 2


def place_of(store: ObjectStore) -> str:
    """The same for every way to write it: a directory by the path that leads to it without links."""
    place = store.uri.partition("?")[0].rstrip("/")
    parts = urlsplit(place)
    return f"file://{os.path.realpath(unquote(parts.path))}" if parts.scheme == "file" else place


@lru_cache(maxsize=4)
def opened_there(handle: IcechunkHandle) -> IcechunkRepository:
    """Opened once for each process: connections are used again from task to task."""
    return _opened(open_store(handle.store), open_records(with_password(handle.records)), system_clock)
