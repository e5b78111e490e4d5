"""Where refs, commits and staging are kept: SQLite or PostgreSQL, behind one small face.

Statements are written once, with ``?`` for parameters. A :meth:`Database.read`
sees one consistent snapshot. A :meth:`Database.write` commits whole or not at
all; what it depends on it must lock first (:attr:`Transaction.for_update`,
:attr:`Transaction.for_share` and its weaker sister): SQLite lets one writer in at a time and ignores
the words, PostgreSQL needs them.
"""

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Generic, Protocol, TypeVar

from desilt.errors import InvalidUri

Row = tuple[Any, ...]
C = TypeVar("C")


class Transaction(Protocol):
    """Statements that take effect together."""

    for_update: str  # ends a SELECT: nobody else may change or share-lock these rows until I am done
    for_share: str  # ends a SELECT: nobody may change these rows until I am done
    for_key_share: str  # the same, but only against ``for_update``

    def execute(self, sql: str, *values: object) -> int:
        """Run one statement; how many rows it changed."""

    def execute_many(self, sql: str, rows: Iterable[Sequence[object]]) -> None: ...

    def rows(self, sql: str, *values: object) -> Iterator[Row]:
        """Rows as they come, without loading all of them."""

    def one(self, sql: str, *values: object) -> Row | None:
        """The first row, if there is one."""

    def has_table(self, name: str) -> bool: ...

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
        from desilt.lake.sqlite import SQLite

        return SQLite(url, create=create)
    if scheme in ("postgresql", "postgres"):
        try:
            from desilt.lake.postgres import PostgreSQL
        except ImportError:
            raise InvalidUri("PostgreSQL needs its driver; pip install 'desilt[postgres]'") from None
        return PostgreSQL(url)
    raise InvalidUri(f"{url!r} is not a database; write sqlite:///PATH or postgresql://USER@HOST/NAME")


class Pool(Generic[C]):
    """Idle connections, each used by one transaction at a time, none ever shared with a forked child."""

    def __init__(self) -> None:
        self._idle: list[C] = []
        self._lock = threading.Lock()
        self._pid = os.getpid()

    def take(self) -> C | None:
        with self._lock:
            if self._pid != os.getpid():  # a child must not touch its parent's sockets and locks
                self._idle, self._pid = [], os.getpid()
            return self._idle.pop() if self._idle else None

    def give(self, connection: C) -> None:
        with self._lock:
            self._idle.append(connection)

    def drain(self) -> list[C]:
        with self._lock:
            idle, self._idle = self._idle, []
            return idle


@contextmanager
def borrowed(pool: Pool[C], connect: Any, discard: Any) -> Iterator[C]:
    """A connection for one transaction; one that met an error is not used again."""
    connection = pool.take() or connect()
    try:
        yield connection
    except BaseException:
        discard(connection)
        raise
    pool.give(connection)
