"""What every part of a server's repository works with."""

from dataclasses import dataclass
from datetime import timedelta

from desilt.cache.ranges import RangeDecoder
from desilt.clock import Clock
from desilt.errors import MissingTable, NotFound, StorageFailed
from desilt.lakefs.namespace import Namespace
from desilt.lakefs.server import Server, TableKind
from desilt.objects.store import ObjectStore
from desilt.records.database import Database
from desilt.sstable.ranges import FOLDER as TABLES
from desilt.sstable.ranges import Ranges

PREFIX = ""  # the store begins where the repository does


@dataclass(frozen=True, slots=True)
class LakefsCore:
    """One repository: its server, its place in a store, and what is on record of it."""

    server: Server
    blockstore: str  # s3, gs, azure, local
    place: Namespace
    store: ObjectStore
    ranges: Ranges
    records: Database
    records_name: str  # what tells them from any other's
    clock: Clock
    uid: str
    secret: str
    default_branch: str
    grace: timedelta  # for which an address that was handed out may still be linked

    @property
    def name(self) -> str:
        return self.server.name

    @property
    def decoder(self) -> RangeDecoder:
        return RangeDecoder(self.ranges.folder, self.place)

    def table(self, kind: TableKind, name: str) -> bytes:
        """A table as it lies in the store; by the server, where the store does not let us read it."""
        try:
            return self.store.get(TABLES + name)
        except NotFound:
            raise MissingTable(name) from None
        except StorageFailed:
            return self.server.table(kind, name)
