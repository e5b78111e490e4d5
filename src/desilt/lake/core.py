"""What every part of a repository works with."""

from dataclasses import dataclass
from datetime import timedelta

from desilt.cache.ranges import Below, RangeDecoder
from desilt.clock import Clock
from desilt.domain.address import repository_prefix
from desilt.objects.store import ObjectStore
from desilt.records.database import Database
from desilt.sstable.ranges import Ranges


@dataclass(frozen=True, slots=True)
class Core:
    """One repository's rows, objects and clock."""

    database: Database
    store: ObjectStore
    ranges: Ranges
    clock: Clock
    name: str
    uid: str
    default_branch: str
    secret: str
    ticket_life: timedelta

    @property
    def prefix(self) -> str:
        """Of every object of the repository; an entry's address follows it."""
        return repository_prefix(self.uid)

    @property
    def decoder(self) -> RangeDecoder:
        return RangeDecoder(self.ranges.folder, Below(self.prefix))

    @property
    def uri(self) -> str:
        """Where that prefix is, for somebody outside."""
        return f"{self.store.uri.partition('?')[0].rstrip('/')}/{self.prefix}"

    @property
    def argument(self) -> str:
        """What commands call it: a directory or a bucket, and its name."""
        place = self.store.uri.partition("?")[0].rstrip("/")
        return f"{place.removeprefix('file://')}#{self.name}"
