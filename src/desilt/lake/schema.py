"""The tables of a lake, and which version of them a database holds.

Times are microseconds since 1970, UTC. Paths are bytes, so that both databases
sort them alike. ``repository`` is a repository's uid, never its name.
"""

from desilt.errors import NewerSchema, Unreadable
from desilt.lake.database import Database, Transaction
from desilt.lake.migrations import STEPS

VERSION = 4

TABLES = [
    "CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE repositories (
        name TEXT PRIMARY KEY,
        uid TEXT NOT NULL UNIQUE,
        default_branch TEXT NOT NULL,
        created_at {int} NOT NULL,
        generation {int} NOT NULL,  -- counts every move of a ref, and whatever else the journal has
        journal_from {int} NOT NULL DEFAULT 0, -- the first generation that has a record beside the objects
        edited {int} NOT NULL DEFAULT 0, -- the generation at which history was last edited
        kept_since {int},           -- after a restore: what was uploaded since then and not committed stays
        recovered {int} NOT NULL DEFAULT -1, -- the generation at which the database was last recovered
        ask_again_from {int},       -- what somebody agreed to before then is asked again
        clock_right_at {int},       -- when somebody last said that a clock which had jumped is right
        quiet_since {int},          -- the last trace before a jump that a run was refused for, until that is settled
        quiet_seen_at {int},        -- and where the clock stood then
        secret TEXT NOT NULL,       -- signs tickets, plans and records
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
        added {int} NOT NULL DEFAULT 0, -- the repository's generation then: what came after a plan is found by it
        let_go_at {int},          -- when a ref or a hold last let go of it, or an edit did; NULL: never
        was TEXT,                 -- JSON list: the parents it was made with; NULL: those it has
        PRIMARY KEY (repository, id)
    )""",
    "CREATE INDEX commits_inserted ON commits (repository, added)",
    """CREATE TABLE collected (     -- commits that a run removed: gone for readers, but known to merges
        repository TEXT NOT NULL,
        id TEXT NOT NULL,
        parents TEXT NOT NULL,    -- JSON list, as the commit was made
        created_at {int} NOT NULL,
        generation {int} NOT NULL,
        run TEXT NOT NULL,
        collected_at {int} NOT NULL,
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
        address TEXT,             -- of the value
        PRIMARY KEY (token, path),
        CHECK (value IS NULL OR address IS NOT NULL) -- whoever knows nothing of addresses must not stage
    ) {clustered}""",
    "CREATE INDEX staging_addresses ON staging (address)",
    """CREATE TABLE dropped (       -- what a staging area pointed to and does no longer; forgotten after a while
        repository TEXT NOT NULL,
        address TEXT NOT NULL,
        branch TEXT NOT NULL,     -- its uid
        path {blob} NOT NULL,
        dropped_at {int} NOT NULL,
        PRIMARY KEY (repository, address, branch, path)
    ) {clustered}""",
    "CREATE INDEX dropped_by_time ON dropped (repository, dropped_at)",
    """CREATE TABLE tickets (       -- uploads under way that may outlive what their name allows
        repository TEXT NOT NULL,
        address TEXT NOT NULL,
        branch TEXT NOT NULL,
        path {blob} NOT NULL,
        expires_at {int} NOT NULL,
        PRIMARY KEY (repository, address)
    )""",
    """CREATE TABLE tombstones (    -- the ledger: addresses that a run has removed, or is removing
        repository TEXT NOT NULL,
        address TEXT NOT NULL,
        run TEXT NOT NULL,
        rule TEXT NOT NULL,
        condemned_at {int} NOT NULL,
        size_bytes {int} NOT NULL DEFAULT 0,
        batch {int} NOT NULL DEFAULT -1,
        state TEXT NOT NULL DEFAULT 'condemned', -- what became of the object; 'restored' is no tombstone any more
        restored_at {int},
        PRIMARY KEY (repository, address)
    )""",
    """CREATE TABLE journal (       -- every move, each with a mark of its own: a restored database has other marks
        repository TEXT NOT NULL,
        generation {int} NOT NULL,
        mark TEXT NOT NULL,
        PRIMARY KEY (repository, generation)
    )""",
    """CREATE TABLE intents (       -- marks of moves that are about to be made, or were cut off
        repository TEXT NOT NULL,
        mark TEXT NOT NULL,
        made_at {int} NOT NULL,
        PRIMARY KEY (repository, mark)
    )""",
    "CREATE INDEX tombstones_by_run ON tombstones (repository, run, batch)",
    "CREATE INDEX tombstones_unsettled ON tombstones (repository) "
    "WHERE state NOT IN ('removed', 'already gone', 'trashed')",
    """CREATE TABLE locks (         -- one run at a time; rows stay, so that fences only ever grow
        repository TEXT PRIMARY KEY,
        fence {int} NOT NULL,
        owner TEXT NOT NULL,      -- "" when nobody holds it
        run TEXT NOT NULL,
        beat_at {int} NOT NULL    -- when the owner last said that it lives, by the database's clock
    )""",
    """CREATE TABLE runs (          -- every run that began to sweep
        repository TEXT NOT NULL,
        id TEXT NOT NULL,
        job TEXT NOT NULL,
        policy TEXT NOT NULL,
        action TEXT NOT NULL,
        started_at {int} NOT NULL,
        ended_at {int},
        state TEXT NOT NULL,
        fence {int} NOT NULL,     -- of the lock, when it began; another at its end tells that it was taken over
        ended_fence {int},
        refs {int} NOT NULL DEFAULT 0, -- planned to go
        edits {int} NOT NULL DEFAULT 0, -- of history: commits planned to be edited, or to go
        objects {int} NOT NULL,   -- planned
        bytes {int} NOT NULL,
        measure TEXT NOT NULL DEFAULT '', -- of what there was so much when it was planned
        stored_objects {int} NOT NULL DEFAULT 0,
        stored_bytes {int} NOT NULL DEFAULT 0,
        period {int},             -- microseconds: how long what it let go had been kept at least
        agreed {int} NOT NULL DEFAULT 0, -- 1: somebody raised a limit for it, and it needed that
        PRIMARY KEY (repository, id)
    )""",
    """CREATE TABLE batches (       -- of runs: written with its tombstones, and again when every object has a result
        repository TEXT NOT NULL,
        run TEXT NOT NULL,
        number {int} NOT NULL,
        file TEXT NOT NULL,       -- the results, object by object; "" until they are known
        asked {int} NOT NULL,
        removed {int} NOT NULL DEFAULT 0,
        gone {int} NOT NULL DEFAULT 0,
        failed {int} NOT NULL DEFAULT 0,
        held_again {int} NOT NULL,
        removed_bytes {int} NOT NULL DEFAULT 0,
        recorded_at {int},
        tables {int} NOT NULL DEFAULT 0, -- 1: of ranges and metaranges, not objects
        PRIMARY KEY (repository, run, number)
    )""",
    """CREATE TABLE policies (      -- what the owner of a repository told a job to do
        repository TEXT NOT NULL,
        job TEXT NOT NULL,
        document TEXT NOT NULL,   -- JSON
        set_at {int} NOT NULL,
        agreed TEXT NOT NULL DEFAULT '[]', -- JSON list: what lint wanted a yes to, and got
        PRIMARY KEY (repository, job)
    )""",
    """CREATE TABLE holds (         -- orders to keep, by people
        repository TEXT NOT NULL,
        id TEXT NOT NULL,
        kind TEXT NOT NULL,
        value TEXT NOT NULL,
        reason TEXT NOT NULL,
        made_at {int} NOT NULL,
        until {int},              -- NULL: until it is taken away
        inserted {int} NOT NULL,  -- the repository's generation then
        PRIMARY KEY (repository, id)
    )""",
    """CREATE TABLE watermarks (    -- where the next run of a job begins
        repository TEXT NOT NULL,
        job TEXT NOT NULL,
        run TEXT NOT NULL,
        value TEXT NOT NULL,      -- JSON
        PRIMARY KEY (repository, job)
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
    """The lake's settings; None where no lake was made; an error where this desilt cannot read it.

    A database of an earlier desilt is brought up to date first.
    """
    with database.read() as tx:
        version = _version(tx, database)
        if version is None:
            return None
        if version > VERSION:
            raise NewerSchema(version, VERSION)
    if version < VERSION:
        upgrade(database)
    with database.read() as tx:
        return {str(key): str(value) for key, value in tx.rows("SELECT key, value FROM settings")}


def upgrade(database: Database) -> None:
    """From any earlier version, step by step; processes may race to it."""
    with database.write() as tx:
        tx.alone()
        version = _version(tx, database)
        for step in range(version or VERSION, VERSION):
            STEPS[step](tx, lambda statement: tx.execute(statement.format(**database.types)))
        if version is not None and version < VERSION:
            tx.execute("UPDATE settings SET value = ? WHERE key = 'schema'", str(VERSION))


def _version(tx: Transaction, database: Database) -> int | None:
    if not tx.has_table("settings"):
        return None
    row = tx.one("SELECT value FROM settings WHERE key = 'schema'")
    if row is None or not str(row[0]).isdigit():
        raise Unreadable(f"{database.name} has a table 'settings' that is not desilt's; use another database")
    return int(row[0])
