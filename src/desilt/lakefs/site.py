"""Where a repository of a server is: its server, its namespace, and the store behind that."""

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from desilt.clock import Clock, system_clock
from desilt.errors import BadRequest
from desilt.lakefs.namespace import AZURE, Namespace
from desilt.lakefs.server import Described, Server
from desilt.lakefs.settings import Settings
from desilt.objects import open_store
from desilt.objects.local import LocalStore
from desilt.objects.opening import dated
from desilt.objects.store import ObjectStore
from desilt.sstable.ranges import FOLDER as TABLES

LOCAL_PATH = "LAKEFS_BLOCKSTORE_LOCAL_PATH"  # as the server itself is told
USUAL_LOCAL_PATH = "~/lakefs/data/block"


@dataclass(frozen=True, slots=True)
class Site:
    """One repository, without anything that is on record of it here."""

    server: Server
    described: Described
    blockstore: str  # s3, gs, azure, local
    store: ObjectStore
    place: Namespace


def find_site(settings: Settings, *, clock: Clock = system_clock, bare: bool = False) -> Site:
    """The site that ``settings`` name; with another clock, objects in a directory are dated by it too.

    Of a repository that is ``bare`` there may be nothing in the store yet.
    """
    server = Server(settings)
    described = server.repository()
    blockstore = server.blockstore(described.storage_id)
    store = store_of(described, blockstore, bare=bare)
    if bare and isinstance(store, LocalStore):
        Path(store.root).mkdir(parents=True, exist_ok=True)  # as the server will, when it comes to write there
    if clock is not system_clock and isinstance(store, LocalStore):  # a bucket dates what the server puts itself
        store = dated(store, clock)
    return Site(server, described, blockstore, store, Namespace(described.namespace, also(store)))


def store_of(described: Described, blockstore: str, *, bare: bool = False) -> ObjectStore:
    """Where the server keeps the objects of a repository, opened with our own rights."""
    uri = described.namespace.rstrip("/")
    scheme, _, rest = uri.partition("://")
    if scheme == "local":
        return open_store(str(_local(described.name, rest, bare=bare)))
    if azure := AZURE.fullmatch(uri + "/"):
        _, container, path = azure.groups()
        return open_store(f"az://{container}/{path}".rstrip("/"))
    if scheme in ("s3", "gs"):
        return open_store(uri)
    raise BadRequest(
        f"objects of {described.name!r} are in {uri}, a {blockstore} blockstore, which is not known here; "
        "s3, gs, azure and local are"
    )


def _local(name: str, below: str, *, bare: bool) -> Path:
    """The directory of a local blockstore: it must be on this machine, and be the very one."""
    said = os.environ.get(LOCAL_PATH)
    root = Path(said or USUAL_LOCAL_PATH).expanduser()
    found = root / below
    if not (root if bare else found / TABLES).is_dir():
        raise BadRequest(
            f"objects of {name!r} are in a directory of the server's own machine, and {found} is not it; "
            f"run there, and set {LOCAL_PATH} to the server's blockstore.local.path"
        )
    return found


def also(store: ObjectStore) -> tuple[str, ...]:
    """The same place by the path of its files, which a local blockstore's addresses have."""
    parts = urlsplit(store.uri.partition("?")[0])
    return (f"local://{unquote(parts.path)}", f"file://{unquote(parts.path)}") if parts.scheme == "file" else ()
