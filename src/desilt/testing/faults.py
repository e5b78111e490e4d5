"""Crashes at a chosen step, and several writers interleaved step by step.

A *step* is one transaction as a whole, or one call to the object store. A lake
is built on the proxies here in place of the real things, one pair for each writer:

    steps = Steps(crash=After(3))           # dies once its fourth step has taken effect
    lake = Lake(SteppedDatabase(database, steps), stepped(store, steps))

    turns = Turns(choose)                   # each writer is a thread; who takes the next step is chosen
    turns.run({"a": ..., "b": ...})         # functions whose steps are Steps(pause=turns.pause)
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple, cast

from desilt.objects.store import ObjectStore
from desilt.records.database import Database, Transaction

HANGS = 30 * 60.0  # seconds; on the busiest machine a step takes less


class Crash(BaseException):
    """The process is gone. Not an Exception: nothing may catch it and go on."""


class Before(NamedTuple):
    """Step ``number``, the first being 0, never happens."""

    number: int


class After(NamedTuple):
    """Step ``number`` has taken effect, and its caller never learns of it."""

    number: int


class Hung(Exception):
    """A writer neither came to its next step nor ended."""


def die() -> None:
    raise Crash


class Steps:
    """The steps of one writer: counted, waited for, and cut off by a crash."""

    def __init__(
        self,
        crash: Before | After | None = None,
        *,
        pause: Callable[[], None] = lambda: None,  # returns when the next step may be taken
        end: Callable[[], None] = die,
        fine: bool = False,  # statements inside of a write transaction wait for their turn too
    ) -> None:
        self.taken, self.pause, self.fine = 0, pause, fine
        self._crash, self._end = crash, end
        self._writing = self._dead = False

    @contextmanager
    def step(self, *, writing: bool = False) -> Iterator[None]:
        if self._dead:
            raise Crash  # a dead process does nothing more, not even to clean up
        if self._writing:
            raise AssertionError("a step inside of a write transaction: something slow would hold its locks")
        self.pause()
        number, self.taken = self.taken, self.taken + 1
        self._die_at(Before, number)
        self._writing = writing
        try:
            yield
        finally:
            self._writing = False
        self._die_at(After, number)

    @contextmanager
    def record(self) -> Iterator[None]:
        """A call to the store that a write transaction makes, for its journal: nobody else has a turn in it."""
        if self._dead:
            raise Crash
        number, self.taken = self.taken, self.taken + 1
        self._die_at(Before, number)
        yield
        self._die_at(After, number)

    @contextmanager
    def look(self) -> Iterator[None]:
        """A look at one object: a step like any other, or part of the write transaction that it is made in."""
        with self.record() if self._writing else self.step():
            yield

    @contextmanager
    def statement(self) -> Iterator[None]:
        self.pause()
        yield

    def _die_at(self, moment: type[Before | After], number: int) -> None:
        if isinstance(self._crash, moment) and self._crash.number == number:
            self._dead = True
            self._end()


class SteppedDatabase:
    """A database whose every transaction is a step."""

    def __init__(self, database: Database, steps: Steps) -> None:
        self._database, self._steps = database, steps
        self.url, self.name, self.types, self.close = database.url, database.name, database.types, database.close

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        with self._steps.step():
            pass  # what is done with the snapshot at hand are steps of their own
        with self._database.read() as tx:
            yield tx

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        with self._steps.step(writing=True), self._database.write() as tx:
            if self._steps.fine:
                yield cast("Transaction", Proxy(tx, self._steps.statement))
                self._steps.pause()  # before it commits
            else:
                yield tx


def stepped(store: ObjectStore, steps: Steps) -> ObjectStore:
    """``store``, every call of which is a step."""
    return cast("ObjectStore", Proxy(store, steps.step, put_new=steps.record, head=steps.look))


class Proxy:
    """Makes every method call inside of ``around()``, or of what is given for that method."""

    def __init__(
        self,
        real: object,
        around: Callable[[], AbstractContextManager[None]],
        **special: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._real, self._around, self._special = real, around, special

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._real, name)
        if not callable(real):
            return real

        def call(*values: Any, **named: Any) -> Any:
            with self._special.get(name, self._around)():
                return real(*values, **named)

        return call


class Turns:
    """Threads of which one runs at a time, up to its next step.

    ``choose`` is given the names of those that wait, sorted, while nobody runs. With
    ``patience``, one that is silent for so long is taken to wait for a lock, and
    another goes on; without, that is :class:`Hung` after ``limit`` seconds.
    """

    def __init__(
        self, choose: Callable[[Sequence[str]], str], *, patience: float | None = None, limit: float = HANGS
    ) -> None:
        self._choose, self._patience, self._limit = choose, patience, limit
        self._changed = threading.Condition()
        self._waiting: set[str] = set()
        self._running: set[str] = set()
        self._failed: list[BaseException] = []
        self._over = False

    def pause(self) -> None:
        """Called by a writer's thread: wait to be chosen."""
        name = threading.current_thread().name
        with self._changed:
            self._running.discard(name)
            self._waiting.add(name)
            self._changed.notify_all()
            self._changed.wait_for(lambda: name in self._running or self._over)
            if self._over:
                raise Crash

    def run(self, writers: Mapping[str, Callable[[], None]]) -> None:
        """Until every writer has ended; what one of them raised, this raises."""
        self._running |= set(writers)
        for name, body in writers.items():
            threading.Thread(target=self._whole, args=(name, body), name=name, daemon=True).start()
        with self._changed:
            try:
                while self._settle():
                    chosen = self._choose(sorted(self._waiting))
                    self._waiting.remove(chosen)
                    self._running.add(chosen)
                    self._changed.notify_all()
            finally:
                self._over = True  # whoever still waits is not left behind
                self._changed.notify_all()
        if self._failed:
            raise self._failed[0]

    def _settle(self) -> bool:
        """Wait until somebody can be chosen; False when all have ended."""
        if not self._changed.wait_for(lambda: not self._running, self._patience or self._limit):
            some = self._patience and self._changed.wait_for(lambda: self._waiting or not self._running, self._limit)
            if not some:
                raise Hung(f"{sorted(self._running)} did not go on within {self._limit} s")
        return bool(self._waiting)

    def _whole(self, name: str, body: Callable[[], None]) -> None:
        try:
            body()
        except BaseException as error:
            self._failed.append(error)
        with self._changed:
            self._running.discard(name)
            self._changed.notify_all()
