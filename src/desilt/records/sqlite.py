"""A database as one SQLite file in WAL mode: readers never wait, writers take turns."""

import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from pathlib import Path

import pyarrow as pa

from desilt.clock import system_clock
from desilt.errors import InvalidUri, NotFound, StorageFailed, Unreadable
from desilt.records import forks
from desilt.records.database import Pool, Row, borrowed
from desilt.records.sqlite_reader import looked_at, may_write
from desilt.records.texts import COLUMN, apart

PATIENCE_SECONDS = 60
NEEDS = (3, 35, 0)  # RETURNING, and upserts in today's form


class SQLite:
    types: Mapping[str, str] = {"blob": "BLOB", "int": "INTEGER", "clustered": "WITHOUT ROWID"}

    def __init__(self, url: str, *, create: bool = False) -> None:
        if sqlite3.sqlite_version_info < NEEDS:
            raise StorageFailed(f"SQLite {sqlite3.sqlite_version} is too old; use a Python with SQLite 3.35 or newer")
        self.url = url
        self.path = Path(url.removeprefix("sqlite://"))
        self.name = str(self.path)
        if not url.startswith("sqlite:///"):
            raise InvalidUri(f"{url!r} is not a database; write sqlite:///PATH")
        if not create and not self.path.exists():
            raise NotFound("lake database", self.name, "make one with `desilt lake init`")
        self._pool: Pool[sqlite3.Connection] = Pool()
        forks.watch(self)

    @contextmanager
    def read(self) -> Iterator["SQLiteTransaction"]:
        with self._transaction("BEGIN") as transaction:
            yield transaction

    @contextmanager
    def write(self) -> Iterator["SQLiteTransaction"]:
        if not may_write(self.path):
            raise StorageFailed(f"{self.path} may only be read here; ask whoever owns it, nothing was changed")
        with self._transaction("BEGIN IMMEDIATE") as transaction:
            yield transaction

    @property
    def is_open(self) -> bool:
        """Whether this process has any connection."""
        return self._pool.size > 0

    def close(self) -> None:
        for connection in self._pool.drain():
            connection.close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator["SQLiteTransaction"]:
        with plain_errors(self.path), self._connection() as connection:
            connection.execute(begin)
            yield SQLiteTransaction(connection)
            with doubtful(self.path):
                connection.execute("COMMIT")

    def _connection(self) -> AbstractContextManager[sqlite3.Connection]:
        if may_write(self.path):
            return borrowed(self._pool, self._connect, _discard)
        return looked_at(self.path, PATIENCE_SECONDS)

    def _connect(self) -> sqlite3.Connection:
        forks.check(self.path)
        connection = sqlite3.connect(self.path, timeout=PATIENCE_SECONDS, isolation_level=None, check_same_thread=False)
        _enter_wal(connection)
        connection.execute("PRAGMA synchronous = FULL")  # what was acknowledged survives a power cut
        return connection


class SQLiteTransaction:
    pairs = "json_each(?)"

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, sql: str, *values: object) -> int:
        return self._connection.execute(sql, values).rowcount

    def execute_many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        self._connection.executemany(sql, rows)

    def rows(self, sql: str, *values: object) -> list[Row]:
        return self._connection.execute(sql, values).fetchall()

    def each(self, sql: str, *values: object) -> Iterator[Row]:
        return iter(self._connection.execute(sql, values))

    def texts(self, sql: str, *values: object) -> pa.Array:
        asked = f"SELECT COUNT(*), COUNT({COLUMN}), GROUP_CONCAT({COLUMN}, CHAR(10)) FROM ({sql})"
        ((count, there, joined),) = self.rows(asked, *values)
        return apart(count, there, joined, self.each(sql, *values))

    def one(self, sql: str, *values: object) -> Row | None:
        row: Row | None = self._connection.execute(sql, values).fetchone()
        return row

    def has_table(self, name: str) -> bool:
        return self.one("SELECT 1 FROM sqlite_master WHERE name = ?", name) is not None

    def is_empty(self) -> bool:
        return self.one("SELECT 1 FROM sqlite_master LIMIT 1") is None

    def now(self) -> datetime:
        return system_clock()  # all who open the file are on this machine

    def lock(self, name: str, *, shared: bool = False) -> None:
        """Writers take turns anyway."""

    def lock_rows(self, sql: str, *values: object) -> None:
        """So they do with rows."""

    def alone(self) -> None:
        """Every write transaction is, here."""


def _enter_wal(connection: sqlite3.Connection) -> None:
    """SQLite does not wait here by itself when another process is just making the same database."""
    limit = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > limit:
                connection.close()
                raise
            time.sleep(0.01)


def _discard(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        with suppress(sqlite3.Error):  # closing rolls back as well
            connection.execute("ROLLBACK")
    connection.close()


@contextmanager
def doubtful(path: Path) -> Iterator[None]:
    """What fails at this very moment is left open: a move is on record by now, and whoever comes next may make it."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise StorageFailed(f"{path}: {error}; it may have been done or not: look before you try again") from error


@contextmanager
def plain_errors(path: Path) -> Iterator[None]:
    """What SQLite says, as one line with a way out."""
    try:
        yield
    except sqlite3.OperationalError as error:
        text = str(error)
        if "full" in text or "disk I/O" in text:
            raise StorageFailed(f"{path}: {text}; free some space, nothing was changed") from error
        if "locked" in text or "busy" in text:
            raise StorageFailed(
                f"{path} was busy for {PATIENCE_SECONDS} s; try again when the other writer is done"
            ) from error
        raise StorageFailed(f"{path}: {text}") from error
    except sqlite3.DatabaseError as error:
        raise Unreadable(f"{path} is not a sound SQLite database ({error}); restore it from a copy") from error
