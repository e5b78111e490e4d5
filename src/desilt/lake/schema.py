"""The tables of a lake, and which version of them a database holds.

Times are microseconds since 1970, UTC. Paths are bytes, so that both databases
sort them alike. ``repository`` is a repository's uid, never its name.
"""

from desilt.errors import NewerSchema, Unreadable
from desilt.lake.database import Database, Transaction

VERSION = 1

TABLES = [
    "CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE repositories (
        name TEXT PRIMARY KEY,
        uid TEXT NOT NULL UNIQUE,
        default_branch TEXT NOT NULL,
        created_at {int} NOT NULL,
        generation {int} NOT NULL,  -- counts every move of a ref
        secret TEXT NOT NULL,       -- signs tickets
        ticket_life {int} NOT NULL, -- microseconds
        manual_now {int}            -- where the clock stands; NULL: it is the system's
    )""",
    """CREATE TABLE commits (
        repository TEXT NOT NULL,
        id TEXT NOT NULL,
        parents TEXT NOT NULL,    -- JSON list, the committed-to branch's first
        metarange TEXT NOT NULL,
        created_at {int} NOT NULL,
        committer TEXT NOT NULL,
        message TEXT NOT NULL,
        metadata TEXT NOT NULL,   -- JSON object
        generation {int} NOT NULL,
        PRIMARY KEY (repository, id)
    )""",
    """CREATE TABLE branches (
        repository TEXT NOT NULL,
        name TEXT NOT NULL,
        uid TEXT NOT NULL UNIQUE, -- never used again, not even by a branch of the same name
        head TEXT NOT NULL,
        token TEXT NOT NULL,      -- the staging area that writes go to
        created_at {int} NOT NULL,
        PRIMARY KEY (repository, name)
    )""",
    """CREATE TABLE sealed (        -- staging areas that a commit has taken, or is taking
        branch TEXT NOT NULL,
        position {int} NOT NULL,  -- later ones hide earlier ones
        token TEXT NOT NULL,
        PRIMARY KEY (branch, position)
    )""",
    """CREATE TABLE tags (
        repository TEXT NOT NULL,
        name TEXT NOT NULL,
        target TEXT NOT NULL,
        created_at {int} NOT NULL,
        PRIMARY KEY (repository, name)
    )""",
    """CREATE TABLE staging (
        token TEXT NOT NULL,
        path {blob} NOT NULL,
        value {blob},             -- as in a range; NULL: the path is removed
        PRIMARY KEY (token, path)
    ) {clustered}""",
    """CREATE TABLE tickets (       -- uploads under way that may outlive what their name allows
        repository TEXT NOT NULL,
        address TEXT NOT NULL,
        branch TEXT NOT NULL,
        path {blob} NOT NULL,
        expires_at {int} NOT NULL,
        PRIMARY KEY (repository, address)
    )""",
    """CREATE TABLE tombstones (    -- addresses that a run has removed, or is removing
        repository TEXT NOT NULL,
        address TEXT NOT NULL,
        run TEXT NOT NULL,
        rule TEXT NOT NULL,
        condemned_at {int} NOT NULL,
        PRIMARY KEY (repository, address)
    )""",
    """CREATE TABLE partitions (
        branch TEXT NOT NULL,
        name TEXT NOT NULL,
        opened_at {int} NOT NULL,
        objects {int} NOT NULL,   -- how many addresses were handed out
        PRIMARY KEY (branch, name)
    )""",
]


def create(database: Database, **settings: str) -> None:
    """An empty lake's tables, unless they are there; processes may race to it."""
    with database.write() as tx:
        tx.alone()
        if _version(tx, database) is not None:
            return
        for table in TABLES:
            tx.execute(table.format(**database.types))
        for key, value in {"schema": str(VERSION), **settings}.items():
            tx.execute("INSERT INTO settings VALUES (?, ?)", key, value)


def check(database: Database) -> dict[str, str] | None:
    """The lake's settings; None where no lake was made; an error where this desilt cannot read it."""
    with database.read() as tx:
        version = _version(tx, database)
        if version is None:
            return None
        if version > VERSION:
            raise NewerSchema(version, VERSION)
        return {str(key): str(value) for key, value in tx.rows("SELECT key, value FROM settings")}


def _version(tx: Transaction, database: Database) -> int | None:
    if not tx.has_table("settings"):
        return None
    row = tx.one("SELECT value FROM settings WHERE key = 'schema'")
    if row is None or not str(row[0]).isdigit():
        raise Unreadable(f"{database.name} has a table 'settings' that is not desilt's; use another database")
    return int(row[0])
