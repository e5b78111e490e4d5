"""A lake: one database, one place for objects, any number of repositories.

``lake:///dir#repo`` keeps both in a directory; ``s3://bucket/prefix#repo`` keeps
objects there and says by ``db`` (or DESILT_DB) where its database is.
"""

import os
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from desilt.clock import Clock, ManualClock, system_clock
from desilt.domain import ticket
from desilt.domain.address import repository_prefix
from desilt.domain.history import new_commit
from desilt.domain.names import check_branch, check_repository
from desilt.domain.times import check_date
from desilt.errors import BadRequest, InvalidUri, NotFound, StorageFailed
from desilt.lake import commit_time, repositories, schema
from desilt.lake.changes import RepositoryMade, branch_made, committed
from desilt.lake.core import Core
from desilt.lake.moves import moving_in, new_mark
from desilt.lake.partitions import new_uid
from desilt.lake.refs import LakeBranch
from desilt.lake.repositories import RepositoryRow
from desilt.lake.repository import LakeRepository
from desilt.objects import store_clock
from desilt.objects.only_read import may_write, only_read
from desilt.objects.opening import dated, open_store
from desilt.objects.store import ObjectStore
from desilt.records.database import Database, open_database
from desilt.sstable.ranges import EMPTY, RAGGEDNESS, Ranges

DATABASE_FILE = "desilt.db"


@dataclass(frozen=True, slots=True)
class Location:
    """Where a lake is, and which of its repositories is meant."""

    storage: str  # a directory, or the URI of a bucket
    database: str
    repository: str | None

    @property
    def is_directory(self) -> bool:
        return "://" not in self.storage

    @property
    def binding(self) -> str:
        """What the database must remember of where its objects are; "" if it lies with them and may move along."""
        inside = self.is_directory and self.database == f"sqlite://{Path(self.storage) / DATABASE_FILE}"
        return "" if inside else self.storage


def locate(uri: str, *, db: str | None = None) -> Location:
    """Read a REPO argument: ``lake:///dir#repo``, ``dir#repo`` or ``s3://bucket/prefix#repo``."""
    where, _, repository = uri.partition("#")
    database = db or os.environ.get("DESILT_DB", "")
    scheme, colon, rest = where.partition("://")
    if not where or (colon and scheme not in ("lake", "file", "s3", "gs", "az")):
        raise InvalidUri(
            f"{uri!r} is not a lake; write DIRECTORY#REPO, lake:///DIRECTORY#REPO or s3://BUCKET/PREFIX#REPO"
        )
    if colon and scheme not in ("lake", "file"):
        if not database:
            raise InvalidUri(f"{where} keeps objects only; say where its database is with --db or DESILT_DB")
        return Location(where.rstrip("/"), database, repository or None)
    directory = Path(rest if colon else where).expanduser().absolute()
    return Location(str(directory), database or f"sqlite://{directory / DATABASE_FILE}", repository or None)


def located(where: str | os.PathLike[str] | Location, *, db: str | None = None) -> Location:
    """``where``, read if it is as people write it."""
    if isinstance(where, Location):
        return where
    if not isinstance(where, str | os.PathLike):
        raise BadRequest(f"a lake is named by a text or a path, such as './lake', not by {type(where).__name__}")
    return locate(os.fspath(where), db=db)


class Lake:
    """Repositories, by name."""

    def __init__(
        self, database: Database, store: ObjectStore, *, clock: Clock = system_clock, raggedness: int = RAGGEDNESS
    ) -> None:
        self.database, self.store, self.clock, self._raggedness = database, store, clock, raggedness

    @classmethod
    def create(
        cls, where: str | os.PathLike[str] | Location, *, db: str | None = None, clock: Clock = system_clock
    ) -> "Lake":
        """The lake at ``where``, made if it is not there; a text is what the command line takes."""
        location = located(where, db=db)
        if location.is_directory:
            try:
                Path(location.storage).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StorageFailed(f"cannot make {location.storage}: {error.strerror}") from None
        database = open_database(location.database, create=True)
        schema.create(database, storage=location.binding)
        database.close()
        return cls.open(location, clock=clock)

    @classmethod
    def open(
        cls, where: str | os.PathLike[str] | Location, *, db: str | None = None, clock: Clock = system_clock
    ) -> "Lake":
        """The lake at ``where``; a text is what the command line takes."""
        location = located(where, db=db)
        database = open_database(location.database)
        settings = schema.check(database)
        if settings is None:
            raise NotFound("lake", location.storage, "make one with `desilt lake init`")
        if settings["storage"] != location.binding:
            raise InvalidUri(f"{database.name} is the database of {settings['storage']}, not of {location.storage}")
        if location.is_directory and not may_write(location.storage):
            return cls(database, only_read(location.storage), clock=clock)
        return cls(database, open_store(location.storage), clock=clock)

    def close(self) -> None:
        self.database.close()

    def repositories(self) -> list[str]:
        with self.database.read() as tx:
            return repositories.names(tx)

    def create_repository(
        self,
        name: str,
        *,
        default_branch: str = "main",
        ticket_life: timedelta = ticket.LIFE,
        clock_at: datetime | None = None,
    ) -> LakeRepository:
        """An empty repository: one branch, at a first commit that holds nothing.

        With ``clock_at`` it has a manual clock, which stands there until it is moved.
        """
        check_repository(name)
        check_branch(default_branch)
        now = check_date(clock_at or self.clock())
        row = RepositoryRow(
            name, new_uid(now), default_branch, now, secrets.token_hex(32), ticket_life, manual_now=clock_at
        )
        core = self.core_of(row)
        commit_time.check(now, store_clock.store_time(core.store))
        first = new_commit(
            parents=(), metarange=EMPTY, created_at=now, committer="", message="Repository created", metadata={}
        )
        with self.database.write() as tx:
            repositories.insert(tx, row)
            with moving_in(tx, core, new_mark()) as made:  # whoever is cut off here has made nothing
                made.do(RepositoryMade(name, default_branch))
                made.do(committed(first))
                made.do(branch_made(LakeBranch(default_branch, new_uid(now), first.id, now, new_uid(now))))
        return LakeRepository(core)

    def repository(self, name: str | None = None) -> LakeRepository:
        """The repository ``name``; without a name, the only one there is."""
        if name is None:
            names = self.repositories()
            if len(names) != 1:
                known = ", ".join(names) or "none; make one with `desilt lake init`"
                raise InvalidUri(f"say which repository, as in DIRECTORY#REPO; there are: {known}")
            name = names[0]
        with self.database.read() as tx:
            row = repositories.find(tx, name)
        return LakeRepository(self.core_of(row))

    def core_of(self, row: RepositoryRow) -> Core:
        """What the repository of ``row`` works with, whether it is there yet or not."""
        clock, store = self.clock, self.store
        if row.manual_now is not None:
            clock = ManualClock(row.manual_now, look=lambda: repositories.manual_now(self.database, row.uid))
            store = dated(store, clock)
        return Core(
            self.database,
            store,
            Ranges(store, repository_prefix(row.uid), raggedness=self._raggedness),
            clock,
            row.name,
            row.uid,
            row.default_branch,
            row.secret,
            row.ticket_life,
        )
