"""A repository of a lakeFS server, opened by its URI, or by an executor for itself."""

import hashlib
from functools import lru_cache

from desilt.clock import Clock, system_clock
from desilt.lakefs.core import PREFIX, LakefsCore
from desilt.lakefs.namespace import Namespace
from desilt.lakefs.repository import LakefsHandle, LakefsRepository
from desilt.lakefs.server import Described, Server
from desilt.lakefs.settings import Settings, find
from desilt.lakefs.site import also, find_site
from desilt.lakefs.tables import ranges_of
from desilt.objects import open_store
from desilt.objects.store import ObjectStore
from desilt.records import elsewhere
from desilt.records.database import Database
from desilt.records.opening import open_records
from desilt.records.passwords import with_password
from desilt.repository.opening import Opened

UID_CHARACTERS = 20


def open_uri(uri: str, db: str | None) -> Opened:
    """``lakefs://REPOSITORY`` or ``lakefs+https://HOST/REPOSITORY``."""
    repository = open_repository(find(uri), open_records(db))
    return Opened(repository, repository.records.close)


def open_repository(settings: Settings, records: Database, *, clock: Clock = system_clock) -> LakefsRepository:
    """The repository that ``settings`` name; with another clock, objects in a directory are dated by it too."""
    try:
        site = find_site(settings, clock=clock)
        return _opened(settings, site.server, site.described, site.blockstore, site.store, records, clock)
    except BaseException:
        records.close()
        raise


def _opened(
    settings: Settings,
    server: Server,
    described: Described,
    blockstore: str,
    store: ObjectStore,
    records: Database,
    clock: Clock,
) -> LakefsRepository:
    uid = hashlib.sha256(described.namespace.rstrip("/").encode()).hexdigest()[:UID_CHARACTERS]
    core = LakefsCore(
        server,
        blockstore,
        Namespace(described.namespace, also(store)),
        store,
        ranges_of(store, PREFIX, server),
        records,
        elsewhere.name_of(records),
        clock,
        uid,
        elsewhere.secret_of(records, uid, described.namespace, now=clock()),
        described.default_branch,
        server.grace_period(),
    )
    return LakefsRepository(core, settings)


@lru_cache(maxsize=4)
def opened(handle: LakefsHandle) -> LakefsRepository:
    """Opened once for each process: connections are used again from task to task."""
    server = Server(handle.settings)
    described = server.repository()
    blockstore = server.blockstore(described.storage_id)
    records = open_records(with_password(handle.records))
    return _opened(handle.settings, server, described, blockstore, open_store(handle.store), records, system_clock)
