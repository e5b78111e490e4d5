"""Where rows are kept: SQLite or PostgreSQL, behind one small face.

Statements are written once, with ``?`` for parameters. A :meth:`Database.read`
sees one consistent snapshot. A :meth:`Database.write` commits whole or not at
all; what it depends on it locks first (:meth:`Transaction.lock`), a repository
before its branches, so that nobody waits in a circle. SQLite lets one writer in
at a time and ignores the words; PostgreSQL needs them.
"""

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa

from desilt.errors import InvalidUri
from desilt.records.passwords import without_password

Row = tuple[Any, ...]
C = TypeVar("C")
Name = TypeVar("Name", str, bytes)
AT_ONCE = 500  # parameters to a statement


class Transaction(Protocol):
    """Statements that take effect together."""

    def execute(self, sql: str, *values: object) -> int:
        """Run one statement; how many rows it changed."""

    def execute_many(self, sql: str, rows: Iterable[Sequence[object]]) -> None: ...

    def rows(self, sql: str, *values: object) -> list[Row]:
        """All rows at once: for what is few."""

    def each(self, sql: str, *values: object) -> Iterator[Row]:
        """Rows as they come, without loading all of them; it costs a few more questions."""

    def texts(self, sql: str, *values: object) -> pa.Array:
        """The one column ``text`` of a query, all at once and by the column; a null among them is refused."""

    def one(self, sql: str, *values: object) -> Row | None:
        """The first row, if there is one."""

    @property
    def pairs(self) -> str:
        """What has a JSON object, its one parameter, as rows of ``key`` and ``value``; values may be texts."""

    def has_table(self, name: str) -> bool:
        """Whether it is there, of the same moment as all that a reading transaction sees."""

    def is_empty(self) -> bool:
        """Whether there is no table at all, of anybody."""

    def now(self) -> datetime:
        """By the clock that everybody who uses this database shares."""

    def lock(self, name: str, *, shared: bool = False) -> None:
        """Wait for ``name`` until this transaction ends, in the order of asking: no stream of others overtakes."""

    def lock_rows(self, sql: str, *values: object) -> None:
        """Nobody else changes, deletes or locks the rows that a query finds until this transaction ends."""

    def alone(self) -> None:
        """Wait until no other transaction that called this is open."""


class Database(Protocol):
    """A place for :class:`Transaction` s; safe to share between threads, and after a fork."""

    url: str
    name: str  # for messages: no password in it
    types: Mapping[str, str]  # what the schema's {blob}, {int} and {clustered} are called here

    def read(self) -> AbstractContextManager[Transaction]: ...

    def write(self) -> AbstractContextManager[Transaction]: ...

    def close(self) -> None: ...


def open_database(url: str, *, create: bool = False) -> Database:
    """``sqlite:///path`` (the file must be there, unless ``create``) or ``postgresql://…``."""
    scheme = url.split(":", 1)[0]
    if scheme == "sqlite":
        from desilt.records.sqlite import SQLite

        return SQLite(url, create=create)
    if scheme in ("postgresql", "postgres"):
        try:
            from desilt.records.postgres import PostgreSQL
        except ImportError:
            raise InvalidUri("PostgreSQL needs its driver; pip install 'desilt[postgres]'") from None
        return PostgreSQL(url)
    raise InvalidUri(
        f"{without_password(url)!r} is not a database; write sqlite:///PATH or postgresql://USER@HOST/NAME"
    )


def some_of(wanted: Sequence[Name]) -> Iterator[Sequence[Name]]:
    """``wanted``, in parts that a statement can name one by one."""
    return (wanted[at : at + AT_ONCE] for at in range(0, len(wanted), AT_ONCE))


def among(tx: Transaction, sql: str, wanted: Sequence[Name], *values: object) -> Iterator[Row]:
    """Rows of a query that takes ``values``, then some names ``IN ({})``: for any number that is ``wanted``."""
    for some in some_of(wanted):
        yield from tx.rows(sql.format(", ".join("?" * len(some))), *values, *some)


class Pool(Generic[C]):
    """Idle connections, each used by one transaction at a time, none ever shared with a forked child."""

    def __init__(self) -> None:
        self.lent = 0
        self._idle: list[C] = []
        self._lock = threading.Lock()
        self._pid = os.getpid()

    def take(self) -> C | None:
        with self._lock:
            if self._pid != os.getpid():  # a child must not touch its parent's sockets and locks
                self._idle, self.lent, self._pid = [], 0, os.getpid()
            self.lent += 1
            return self._idle.pop() if self._idle else None

    @property
    def size(self) -> int:
        """How many connections there are, lent ones too."""
        return self.lent + len(self._idle)

    def give(self, connection: C | None) -> None:
        """Back into the pool; None: it was of no more use."""
        with self._lock:
            self.lent -= 1
            if connection is not None:
                self._idle.append(connection)

    def drain(self) -> list[C]:
        with self._lock:
            idle, self._idle = self._idle, []
            return idle


@contextmanager
def borrowed(pool: Pool[C], connect: Any, discard: Any) -> Iterator[C]:
    """A connection for one transaction; one that met an error is not used again."""
    connection, sound = pool.take(), False
    try:
        connection = connection or connect()
        yield connection
        sound = True
    finally:
        if connection is not None and not sound:
            discard(connection)
        pool.give(connection if sound else None)
