"""A repository of a lakeFS server, opened by its URI, or by an executor for itself."""

import hashlib
import os
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from desilt.clock import Clock, system_clock
from desilt.errors import BadRequest
from desilt.lakefs.core import PREFIX, LakefsCore
from desilt.lakefs.namespace import AZURE, Namespace
from desilt.lakefs.repository import LakefsHandle, LakefsRepository
from desilt.lakefs.server import Described, Server
from desilt.lakefs.settings import Settings, find
from desilt.lakefs.tables import ranges_of
from desilt.objects import open_store
from desilt.objects.opening import dated
from desilt.objects.store import ObjectStore
from desilt.records import elsewhere
from desilt.records.database import Database
from desilt.records.opening import open_records
from desilt.records.passwords import with_password
from desilt.repository.opening import Opened
from desilt.sstable.ranges import FOLDER as TABLES

LOCAL_PATH = "LAKEFS_BLOCKSTORE_LOCAL_PATH"  # as the server itself is told
USUAL_LOCAL_PATH = "~/lakefs/data/block"
UID_CHARACTERS = 20


def open_uri(uri: str, db: str | None) -> Opened:
    """``lakefs://REPOSITORY`` or ``lakefs+https://HOST/REPOSITORY``."""
    repository = open_repository(find(uri), open_records(db))
    return Opened(repository, repository.records.close)


def open_repository(settings: Settings, records: Database, *, clock: Clock = system_clock) -> LakefsRepository:
    """The repository that ``settings`` name; with another clock, objects in a directory are dated by it too."""
    try:
        server = Server(settings)
        described = server.repository()
        blockstore = server.blockstore(described.storage_id)
        store = _store(described, blockstore)
        if clock is not system_clock:
            store = dated(store, clock)
        return _opened(settings, server, described, blockstore, store, records, clock)
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
        Namespace(described.namespace, _also(store)),
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


def _store(described: Described, blockstore: str) -> ObjectStore:
    """Where the server keeps the objects of a repository, opened with our own rights."""
    uri = described.namespace.rstrip("/")
    scheme, _, rest = uri.partition("://")
    if scheme == "local":
        return open_store(str(_local(described.name, rest)))
    if azure := AZURE.fullmatch(uri + "/"):
        _, container, path = azure.groups()
        return open_store(f"az://{container}/{path}".rstrip("/"))
    if scheme in ("s3", "gs"):
        return open_store(uri)
    raise BadRequest(
        f"objects of {described.name!r} are in {uri}, a {blockstore} blockstore, which is not known here; "
        "s3, gs, azure and local are"
    )


def _local(name: str, below: str) -> Path:
    """The directory of a local blockstore: it must be on this machine, and be the very one."""
    said = os.environ.get(LOCAL_PATH)
    root = Path(said or USUAL_LOCAL_PATH).expanduser()
    found = root / below
    if not (found / TABLES).is_dir():
        raise BadRequest(
            f"objects of {name!r} are in a directory of the server's own machine, and {found} is not it; "
            f"run there, and set {LOCAL_PATH} to the server's blockstore.local.path"
        )
    return found


def _also(store: ObjectStore) -> tuple[str, ...]:
    """The same place by the path of its files, which a local blockstore's addresses have."""
    parts = urlsplit(store.uri.partition("?")[0])
    return (f"local://{unquote(parts.path)}", f"file://{unquote(parts.path)}") if parts.scheme == "file" else ()
