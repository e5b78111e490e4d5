"""A database in PostgreSQL: for repositories that many machines work on."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache

import psycopg
import psycopg.conninfo
import pyarrow as pa

from desilt.errors import InvalidUri, StorageFailed
from desilt.records import passwords
from desilt.records.database import Pool, Row, borrowed
from desilt.records.texts import COLUMN, apart

PAGE = 10_000
ADVISORY_LOCK = 0x6465_7369_6C74  # "desilt"
CURSORS = itertools.count()
NO_PASSWORD = "let PGPASSWORD, ~/.pgpass or DESILT_DB tell it on every machine that works, Spark's workers too"
# Each statement sees what others committed before it: after a lock was waited for, that is what matters.
WRITING = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
HAS_TABLE = (
    "SELECT 1 FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace "
    "WHERE relname = ? AND nspname = ANY (current_schemas(false))"
)


class PostgreSQL:
    types: Mapping[str, str] = {"blob": "BYTEA", "int": "BIGINT", "clustered": ""}

    def __init__(self, url: str) -> None:
        self.url = url
        self.name = public_name(url)
        passwords.remember(url)
        self._pool: Pool[psycopg.Connection[Row]] = Pool()

    @contextmanager
    def read(self) -> Iterator["PostgreSQLTransaction"]:
        with self._transaction(SNAPSHOT) as transaction:
            yield transaction

    @contextmanager
    def write(self) -> Iterator["PostgreSQLTransaction"]:
        with self._transaction(WRITING) as transaction:
            yield transaction

    def close(self) -> None:
        for connection in self._pool.drain():
            connection.close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator["PostgreSQLTransaction"]:
        with plain_errors(), borrowed(self._pool, self._connect, _discard) as connection:
            connection.execute(statement(begin))
            yield PostgreSQLTransaction(connection)
            with doubtful():
                connection.execute("COMMIT")

    def _connect(self) -> "psycopg.Connection[Row]":
        connection: psycopg.Connection[Row] = psycopg.connect(self.url, autocommit=True, application_name="desilt")
        row = connection.execute("SHOW synchronous_commit").fetchone()
        if row and row[0] == "off":  # a tombstone must not be lost after its object is gone
            connection.execute("SET synchronous_commit TO on")
        return connection


class PostgreSQLTransaction:
    pairs = "json_each_text(CAST(? AS json))"

    def __init__(self, connection: "psycopg.Connection[Row]") -> None:
        self._connection = connection

    def execute(self, sql: str, *values: object) -> int:
        return self._connection.execute(statement(sql), values).rowcount

    def execute_many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(statement(sql), rows)

    def rows(self, sql: str, *values: object) -> list[Row]:
        return self._connection.execute(statement(sql), values).fetchall()

    def each(self, sql: str, *values: object) -> Iterator[Row]:
        # a cursor on the server: one on the client would load everything
        with self._connection.cursor(name=f"rows{next(CURSORS)}") as cursor:
            cursor.itersize = PAGE
            cursor.execute(statement(sql), values)
            yield from cursor

    def texts(self, sql: str, *values: object) -> pa.Array:
        asked = f"SELECT COUNT(*), COUNT({COLUMN}), STRING_AGG({COLUMN}, CHR(10)) FROM ({sql}) AS found"
        ((count, there, joined),) = self.rows(asked, *values)
        return apart(count, there, joined, self.each(sql, *values))

    def one(self, sql: str, *values: object) -> Row | None:
        return self._connection.execute(statement(sql), values).fetchone()

    def has_table(self, name: str) -> bool:
        # to_regclass() would know what others have just made, whose rows this transaction does not see
        return self.one(HAS_TABLE, name) is not None

    def is_empty(self) -> bool:
        return self.one("SELECT 1 FROM pg_tables WHERE schemaname = ANY (current_schemas(false)) LIMIT 1") is None

    def now(self) -> datetime:
        row = self.one("SELECT clock_timestamp()")
        assert row is not None
        found: datetime = row[0]
        return found.astimezone(UTC)

    def lock(self, name: str, *, shared: bool = False) -> None:
        """An advisory lock: unlike locks on rows, those who share it do not overtake one who waits alone."""
        kind = "_shared" if shared else ""
        self.execute(f"SELECT pg_advisory_xact_lock{kind}(hashtextextended(?, 0))", name)

    def lock_rows(self, sql: str, *values: object) -> None:
        self.execute(f"{sql} FOR UPDATE", *values)

    def alone(self) -> None:
        self.execute("SELECT pg_advisory_xact_lock(?)", ADVISORY_LOCK)


def public_name(url: str) -> str:
    """``url`` without its password."""
    try:
        parts = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error as error:
        raise InvalidUri(f"this is not a PostgreSQL URL ({error}); write postgresql://USER@HOST/NAME") from None
    return f"postgresql://{parts.get('host', '')}/{parts.get('dbname', '')}"


@cache
def statement(sql: str) -> bytes:
    return sql.replace("?", "%s").encode()


def _discard(connection: "psycopg.Connection[Row]") -> None:
    with suppress(psycopg.Error):
        connection.close()  # ends the session, and with it the transaction


@contextmanager
def doubtful() -> Iterator[None]:
    """A connection that breaks at this very moment leaves it open whether the transaction took effect."""
    try:
        yield
    except psycopg.OperationalError as error:
        text = " ".join(str(error).split())
        raise StorageFailed(f"PostgreSQL: {text}; it may have been done or not: look before you try again") from error


@contextmanager
def plain_errors() -> Iterator[None]:
    """What PostgreSQL says, as one line."""
    try:
        yield
    except psycopg.Error as error:
        text = " ".join(str(error).split())
        way_out = NO_PASSWORD if "no password supplied" in text else "nothing was changed"
        raise StorageFailed(f"PostgreSQL: {text}; {way_out}") from error
