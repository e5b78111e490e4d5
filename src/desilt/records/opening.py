"""The database of records for repositories that are not lakes: one for each user, unless another is named."""

import os
from pathlib import Path

from desilt.errors import InvalidUri, StorageFailed
from desilt.records import schema
from desilt.records.database import Database, open_database

FILE = "desilt/records.db"


def open_records(url: str | None = None) -> Database:
    """The database at ``url``, else at DESILT_DB, else in the user's state directory; made at its first use.

    A lake's database, or one with tables of another program, is refused: nothing is written to it.
    """
    named = url or os.environ.get("DESILT_DB")
    database = open_database(named or _default(), create=True)
    try:
        if schema.check(database, schema.RECORDS) is None:
            _refuse_foreign(database)
            schema.create(database, schema.RECORDS)
            schema.check(database, schema.RECORDS)  # somebody else may have been faster, with a later desilt
    except BaseException:
        database.close()
        raise
    return database


def _default() -> str:
    said = Path(os.environ.get("XDG_STATE_HOME", ""))
    path = (said if said.is_absolute() else Path.home() / ".local/state") / FILE  # a relative one must not count
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StorageFailed(f"cannot make {path.parent}: {error.strerror}; name a database with --db") from None
    return f"sqlite://{path}"


def _refuse_foreign(database: Database) -> None:
    with database.read() as tx:
        if not tx.is_empty() and not tx.has_table("settings"):
            raise InvalidUri(f"{database.name} has tables that are not desilt's; name another with --db or DESILT_DB")
