"""SQLite and fork(): a child must never carry on with what its parent had open.

An inherited connection believes in file locks that the child does not hold, and
the parent's last close takes the log away under it: writes that were acknowledged
would be lost. So idle connections are closed before every fork, and a child that
was made while one was in use is refused that database.
"""

import os
import weakref
from pathlib import Path
from typing import Protocol

from desilt.errors import StorageFailed


class Forkable(Protocol):
    """A database with connections."""

    path: Path

    @property
    def is_open(self) -> bool: ...

    def close(self) -> None: ...


_OPEN: "weakref.WeakSet[Forkable]" = weakref.WeakSet()
_INHERITED: set[Path] = set()


def watch(database: Forkable) -> None:
    """Close ``database`` before every fork from now on."""
    _OPEN.add(database)


def check(path: Path) -> None:
    """Refuse a database that this process inherited in use."""
    if path in _INHERITED:
        raise StorageFailed(
            f"{path} was in use when this process was forked from another; "
            "start processes with the 'spawn' method, or before the database is used"
        )


def _before() -> None:
    for database in list(_OPEN):
        database.close()


def _in_child() -> None:
    _INHERITED.update(database.path for database in list(_OPEN) if database.is_open)


os.register_at_fork(before=_before, after_in_child=_in_child)
