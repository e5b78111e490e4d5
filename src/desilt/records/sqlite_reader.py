"""A SQLite file that this process may only look at: on a share, of another user, or in a backup."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from desilt.errors import StorageFailed


def may_write(path: Path) -> bool:
    """Whether this process may change a database; one that is not there yet is for whoever makes it."""
    path = path.resolve() if path.is_symlink() else path  # as SQLite does, and has its log there
    return not path.exists() or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK | os.X_OK))


@contextmanager
def looked_at(path: Path, patience: float) -> Iterator[sqlite3.Connection]:
    """A connection for one transaction. Where somebody writes, SQLite reads their log and sees one moment;
    where nobody does, it is told that the file stays as it is, and that it did is checked at the end."""
    path = path.resolve()
    before = _state(path)
    log = log_of(path)
    stays = not (log.exists() and log.stat().st_size)
    uri = f"file:{quote(str(path.absolute()))}?{'immutable=1' if stays else 'mode=ro'}"
    with closing(sqlite3.connect(uri, uri=True, timeout=patience, isolation_level=None)) as connection:
        yield connection
    if stays and _state(path) != before:
        raise StorageFailed(f"{path} was changed while it was read; try again")


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _state(path: Path) -> tuple[object, ...]:
    with suppress(OSError):
        status, log = path.stat(), log_of(path)
        return status.st_ino, status.st_mtime_ns, status.st_size, log.exists() and log.stat().st_size
    return ()
