"""What every part of an Icechunk repository works with."""

from dataclasses import dataclass
from datetime import timedelta

from desilt.clock import Clock
from desilt.objects.store import ObjectStore
from desilt.records.database import Database

PREFIX = ""  # the store begins where the repository does
SESSION = timedelta(days=7)  # for which somebody may write chunks until the commit that has them


@dataclass(frozen=True, slots=True)
class IcechunkCore:
    """One repository: its place in a store, and what is on record of it."""

    store: ObjectStore
    format: int  # 1 or 2, as it was when it was opened
    records: Database
    records_name: str  # what tells them from any other's
    clock: Clock
    uid: str
    secret: str
    grace: timedelta = SESSION
