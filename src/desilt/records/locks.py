"""One run at a time for each repository, and none that was taken over goes on.

Whoever takes the lock gets a *fence*, a number that only grows, and says now and
then that it lives. From one that is silent for a minute, or whose process is
known to be dead, the lock is taken over. Every transaction that condemns checks
its fence: an old owner that wakes up finds that it has none.
"""

import hashlib
import os
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from desilt.domain.times import microseconds, moment
from desilt.errors import FencedOff, Locked, StorageFailed
from desilt.records.database import Database, Transaction

SILENCE = timedelta(seconds=60)  # after which an owner is taken for dead
BEAT_SECONDS = 10.0
LEAP = 1_000_000  # more often than anybody takes a lock between two copies of a database


@dataclass(frozen=True, slots=True)
class Lock:
    """The right to sweep a repository, as long as nobody took it over."""

    repository: str
    fence: int
    run: str


def take(tx: Transaction, repository: str, *, run: str, owner: str, leap: bool = False) -> Lock:
    """The lock, from now on; :class:`Locked` if a living owner has it.

    With a ``leap``, past fences that a database which was lost may have given out.
    """
    tx.lock(f"{repository}/run")
    now = tx.now()
    row = tx.one("SELECT fence, owner, run, beat_at FROM locks WHERE repository = ?", repository)
    fence = LEAP + 1 if leap else 1
    if row is not None:
        fence += int(row[0])
        if row[1] and not _dead(str(row[1]), silent=now - moment(row[3])):
            raise Locked(str(row[2]), str(row[1]).partition("#")[0], now - moment(row[3]))
    tx.execute(
        "INSERT INTO locks (repository, fence, owner, run, beat_at) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (repository) DO UPDATE SET fence = excluded.fence, owner = excluded.owner, "
        "run = excluded.run, beat_at = excluded.beat_at",
        *(repository, fence, owner, run, microseconds(now)),
    )
    return Lock(repository, fence, run)


def check(tx: Transaction, lock: Lock) -> None:
    """Refuse to go on if somebody else has the lock; nobody takes it before this transaction ends."""
    tx.lock(f"{lock.repository}/run", shared=True)
    row = tx.one("SELECT fence, owner, run FROM locks WHERE repository = ?", lock.repository)
    if row is None or int(row[0]) != lock.fence or not row[1]:
        raise FencedOff(lock.run, str(row[2]) if row else "")


def beat(tx: Transaction, lock: Lock) -> bool:
    """Say that the owner lives; False if it is the owner no longer."""
    return bool(
        tx.execute(
            "UPDATE locks SET beat_at = ? WHERE repository = ? AND fence = ? AND owner <> ''",
            *(microseconds(tx.now()), lock.repository, lock.fence),
        )
    )


def release(tx: Transaction, lock: Lock) -> None:
    tx.execute("UPDATE locks SET owner = '' WHERE repository = ? AND fence = ?", lock.repository, lock.fence)


def holder(tx: Transaction, repository: str) -> tuple[str, datetime] | None:
    """The run that has the lock, and when it last said so."""
    row = tx.one("SELECT run, beat_at FROM locks WHERE repository = ? AND owner <> ''", repository)
    return (str(row[0]), moment(row[1])) if row else None


def last(tx: Transaction, repository: str) -> tuple[int, str]:
    """The last fence that was given out, and the run that got it; 0 and "" if none ever was."""
    row = tx.one("SELECT fence, run FROM locks WHERE repository = ?", repository)
    return (int(row[0]), str(row[1])) if row else (0, "")


@contextmanager
def held(database: Database, repository: str, *, run: str, leap: bool = False) -> Iterator[Lock]:
    """The lock for as long as the block runs, kept alive by a thread."""
    with database.write() as tx:
        owner = f"process {os.getpid()} on {_machine()} {secrets.token_hex(4)}"
        lock = take(tx, repository, run=run, owner=owner, leap=leap)
    ended = threading.Event()

    def beating() -> None:
        while not ended.wait(BEAT_SECONDS):
            try:
                with database.write() as tx:
                    if not beat(tx, lock):
                        return  # taken over: the next transaction that condemns will say so
            except StorageFailed:
                continue  # a database that is away for a moment may be back at the next beat

    thread = threading.Thread(target=beating, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield lock
    finally:
        ended.set()
        thread.join()
        with suppress(StorageFailed), database.write() as tx:  # if that fails, it falls silent and is taken over
            release(tx, lock)


def _machine() -> str:
    """Where process numbers mean the same: a host since it was started, and a container on it."""
    facts = []
    for path in (Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")):
        with suppress(OSError):
            facts.append(str(path.readlink()) if path.is_symlink() else path.read_text())
    return f"{socket.gethostname()}#{hashlib.sha256(''.join(facts).encode()).hexdigest()[:8]}"


def _dead(owner: str, *, silent: timedelta) -> bool:
    if silent > SILENCE:
        return True
    words = owner.split()
    number, host = int(words[1]), words[3]
    if host != _machine() or number == os.getpid():
        return False
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
