"""What each step of a flow touched: tables and objects, read or changed.

Two steps that do not meet can be taken in either order, with the same outcome. A
table is one thing, but for that of repositories, whose columns have little to do
with each other. A statement that changed no row has read its table.

    tracks = Tracks()
    lake = Lake(SteppedDatabase(watched(database, tracks), steps), stepped(watched_store(store, tracks), steps))
"""

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from desilt.objects.store import ObjectStore
from desilt.records.database import Database, Row, Transaction

TABLE = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE)\s+(?!SET\b)(\w+)")
CHANGES = ("INSERT", "UPDATE", "DELETE")
WIDE = "repositories"  # one row, and columns of many kinds
ANY_ROWS = "all tables"
KEY = "object "
SHORT = 12  # of a part of a name
READING, WRITING = ("get", "head", "stream"), ("put", "put_new")


class Footprint:
    """What one step read and changed."""

    def __init__(self) -> None:
        self.reads: set[str] = set()
        self.writes: set[str] = set()
        self.lists: set[str] = set()  # beginnings of objects' names

    def meets(self, other: "Footprint") -> bool:
        """Whether it can matter which of the two steps comes first."""
        return not self.writes.isdisjoint(other.writes) or self._seen_by(other) or other._seen_by(self)

    def _seen_by(self, other: "Footprint") -> bool:
        if not self.writes.isdisjoint(other.reads):
            return True
        if ANY_ROWS in other.reads and any(not one.startswith(KEY) for one in self.writes):
            return True
        return bool(other.lists) and any(one.startswith(tuple(other.lists)) for one in self.writes)

    def __str__(self) -> str:
        changed = sorted(one for one in self.writes if not one.startswith((KEY, "(")))
        stored = sorted(map(_short, (one for one in self.writes if one.startswith(KEY))))
        read = sorted(map(_short, self.reads | self.lists))
        parts = [f"changes {', '.join(changed)}"] if changed else []
        parts += [f"writes or removes {', '.join(stored)}"] if stored else []
        return "; ".join(parts) or f"reads {', '.join(read) or 'nothing that matters'}"


def _short(name: str) -> str:
    """Names made by chance, cut to what tells them apart."""
    if not name.startswith(KEY):
        return name
    parts = name.removeprefix(KEY).split("/")
    return KEY + "/".join(one if len(one) <= SHORT else f"…{one[-SHORT:]}" for one in parts)


class Tracks:
    """Whose step touches what: each thread is at one step at a time."""

    def __init__(self, *, without: Iterable[str] = ()) -> None:
        self.without = frozenset(without)  # tables, and objects, that nobody's outcome depends on
        self._steps: dict[str, Footprint] = {}
        self._reading: dict[str, int] = {}

    def turn(self, who: str) -> Footprint:
        """The next step of a thread begins."""
        made = self._steps[who] = Footprint()
        return made

    def pause(self, who: str) -> None:
        """Its step is over: what a snapshot that is still open is read for later counts as read now."""
        if self._reading.get(who):
            self._steps[who].reads.add(ANY_ROWS)

    @property
    def now(self) -> Footprint:
        return self._steps.setdefault(threading.current_thread().name, Footprint())

    @contextmanager
    def reading(self) -> Iterator[Footprint]:
        who = threading.current_thread().name
        self._reading[who] = self._reading.get(who, 0) + 1
        try:
            yield self.now
        finally:
            self._reading[who] -= 1

    def key(self, key: str) -> set[str]:
        return set() if key in self.without else {KEY + key}

    def statement(self, touched: Footprint, sql: str, *, changed: bool) -> None:
        tables = [one for one in TABLE.findall(sql) if one not in self.without]
        if sql.startswith(CHANGES) and changed and tables and TABLE.findall(sql)[0] == tables[0]:
            target, tables = tables[0], tables[1:]
            touched.writes |= _columns(sql.partition(" WHERE ")[0]) if target == WIDE else {target}
        touched.reads |= {one for one in tables if one != WIDE}
        if WIDE in tables:
            touched.reads |= _columns(sql)


def _columns(sql: str) -> set[str]:
    found = re.findall(r"\b(?:generation|edited|\w+_rows|discard_\w+|manual_now|journal_from)\b", sql)
    return {f"{WIDE}.{one}" for one in found}


class WatchedTransaction:
    """Takes down what every statement touches, as part of the step in which the transaction began."""

    def __init__(self, real: Transaction, tracks: Tracks, touched: Footprint) -> None:
        self._real, self._tracks, self._touched = real, tracks, touched

    def execute(self, sql: str, *values: object) -> int:
        changed = self._real.execute(sql, *values)
        self._tracks.statement(self._touched, sql, changed=changed != 0)
        return changed

    def execute_many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        every = list(rows)
        if every:
            self._tracks.statement(self._touched, sql, changed=True)
            self._real.execute_many(sql, every)

    def rows(self, sql: str, *values: object) -> list[Row]:
        return cast("list[Row]", self._asked("rows", sql, *values))

    def each(self, sql: str, *values: object) -> Iterator[Row]:
        return cast("Iterator[Row]", self._asked("each", sql, *values))

    def one(self, sql: str, *values: object) -> Row | None:
        return cast("Row | None", self._asked("one", sql, *values))

    def _asked(self, how: str, sql: str, *values: object) -> object:
        self._tracks.statement(self._touched, sql, changed=False)
        return getattr(self._real, how)(sql, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)  # locks touch nothing


class WatchedDatabase:
    def __init__(self, real: Database, tracks: Tracks) -> None:
        self._real, self._tracks = real, tracks
        self.url, self.name, self.types, self.close = real.url, real.name, real.types, real.close

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        with self._tracks.reading() as touched, self._real.read() as tx:
            tx.one(f"SELECT 1 FROM {WIDE} LIMIT 1")  # the snapshot is of this very moment
            yield WatchedTransaction(tx, self._tracks, touched)

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        with self._real.write() as tx:
            yield WatchedTransaction(tx, self._tracks, self._tracks.now)


class WatchedStore:
    """Takes down what every call touches."""

    def __init__(self, real: ObjectStore, tracks: Tracks) -> None:
        self._real, self._tracks = real, tracks

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._real, name)
        return self._watching(name, real) if callable(real) and name != "clock" else real

    def _watching(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*values: Any, **named: Any) -> Any:
            touched, key = self._tracks.now, self._tracks.key
            if name in READING:
                touched.reads |= key(values[0])
            elif name in WRITING:
                touched.writes |= key(values[0])
            elif name == "copy":
                touched.reads |= key(values[0])
                touched.writes |= key(values[1])
            elif values and not isinstance(values[0], str):  # many at once: they are taken away
                touched.writes |= set().union(*map(key, values[0]))
            else:
                touched.lists.add(KEY + (values[0] if values else ""))
            return real(*values, **named)

        return call


def watched(database: Database, tracks: Tracks) -> Database:
    return WatchedDatabase(database, tracks)


def watched_store(store: ObjectStore, tracks: Tracks) -> ObjectStore:
    return cast("ObjectStore", WatchedStore(store, tracks))
