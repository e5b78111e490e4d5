"""Repositories that are not ours, as these records know them."""

import secrets
from datetime import datetime

from desilt.domain.times import microseconds
from desilt.records.database import Database

SECRET_BYTES = 32
LINKS = "links of "  # the settings, by repository, that tell these records from a copy
LINKS_KEPT = 100
RECORDS = "records"  # the setting that tells this database from any other


def secret_of(database: Database, uid: str, uri: str, *, now: datetime) -> str:
    """What signs the plans of a repository; made when it is first opened."""
    with database.read() as tx:
        row = tx.one("SELECT secret FROM repositories WHERE uid = ?", uid)
    if row is not None:
        return str(row[0])
    with database.write() as tx:
        tx.execute(
            "INSERT INTO repositories (uid, uri, secret, made_at) VALUES (?, ?, ?, ?) ON CONFLICT (uid) DO NOTHING",
            *(uid, uri, secrets.token_hex(SECRET_BYTES), microseconds(now)),
        )
        row = tx.one("SELECT secret FROM repositories WHERE uid = ?", uid)
    assert row is not None
    return str(row[0])


def name_of(database: Database) -> str:
    """What tells this database from any other, wherever it is moved to."""
    with database.read() as tx:
        row = tx.one("SELECT value FROM settings WHERE key = ?", RECORDS)
    if row is not None:
        return str(row[0])
    with database.write() as tx:
        tx.execute(
            "INSERT INTO settings (key, value) VALUES (?, ?) ON CONFLICT (key) DO NOTHING",
            *(RECORDS, secrets.token_hex(8)),
        )
        row = tx.one("SELECT value FROM settings WHERE key = ?", RECORDS)
    assert row is not None
    return str(row[0])


def links_of(database: Database, uid: str) -> list[str]:
    """What tells the last links that these records have made of a repository's chain, or meant to."""
    with database.read() as tx:
        row = tx.one("SELECT value FROM settings WHERE key = ?", LINKS + uid)
    return str(row[0]).split() if row else []


def link(database: Database, uid: str, token: str) -> None:
    """One more is about to be made."""
    with database.write() as tx:
        tx.lock(LINKS + uid)
        row = tx.one("SELECT value FROM settings WHERE key = ?", LINKS + uid)
        known = [*(str(row[0]).split() if row else []), token][-LINKS_KEPT:]
        tx.execute(
            "INSERT INTO settings (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            *(LINKS + uid, " ".join(known)),
        )
