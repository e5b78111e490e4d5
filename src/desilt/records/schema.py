"""The tables of records; and for every database of desilt, how tables are made, checked and brought up to date.

A lake's database holds the lake's tables and these, under one version number. A
repository elsewhere has its records in a database of these alone
(:data:`RECORDS`). Which of the two a database is, it says in its settings.

Times are microseconds since 1970, UTC. ``repository`` is a repository's uid, never
its name.

To change these tables: change :data:`TABLES`, write one step here that knows the
tables only as they were, and append that same function to two lists, :data:`STEPS`
for databases of records and ``STEPS`` in :mod:`desilt.lake.migrations` for lakes::

    def count_retries(_tx: Transaction, run: Run) -> None:
        run("ALTER TABLE batches ADD COLUMN retries {int} NOT NULL DEFAULT 0")

    STEPS: tuple[Step, ...] = (count_retries,)  # here
    STEPS: tuple[Step, ...] = (to_2, to_3, to_4, records.count_retries)  # there

Each list counts its own versions, so a step has another number in each. What is in
a list is never changed, moved or taken out. A change of the lake's tables is
appended there only.
"""

from collections.abc import Callable
from dataclasses import dataclass

from desilt.errors import InvalidUri, NewerSchema, Unreadable
from desilt.records.database import Database, Transaction

Run = Callable[[str], object]  # one statement, with the types of the database put in
Step = Callable[[Transaction, Run], None]

LAKE_KIND = "lake"  # also of databases that say nothing: they are from before there were others
SETTINGS = "CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL)"

TABLES = (
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
        period {int},             -- microseconds: how long what it released had been kept at least
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
    "CREATE INDEX tombstones_by_run ON tombstones (repository, run, batch)",
    "CREATE INDEX tombstones_unsettled ON tombstones (repository) "
    "WHERE state NOT IN ('removed', 'already gone', 'trashed')",
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
    """CREATE TABLE delete_budgets ( -- where sweeps are told how fast to delete; no row: nobody ever was
        repository TEXT PRIMARY KEY,
        given_out {int} NOT NULL, -- microseconds from then on in which somebody has the right to delete
        as_of {int} NOT NULL      -- by the database's clock
    )""",
)
"""What is remembered of work on repositories, wherever these are."""

ELSEWHERE = (
    """CREATE TABLE repositories (  -- those that are not ours, once somebody has opened them
        uid TEXT PRIMARY KEY,
        uri TEXT NOT NULL,
        secret TEXT NOT NULL,     -- signs plans
        made_at {int} NOT NULL,
        clock_right_at {int},     -- when somebody last said that the clock is
        quiet_since {int},        -- a gap that a clock may have jumped over
        quiet_seen_at {int}
    )""",
    """CREATE TABLE revisions (     -- what refs were seen at, and orders to keep: each is a move
        repository TEXT NOT NULL,
        number {int} NOT NULL,
        mark TEXT NOT NULL,
        refs TEXT NOT NULL,       -- what tells these refs from others
        commits TEXT NOT NULL,    -- where the commits that there were are listed
        seen_at {int} NOT NULL,
        PRIMARY KEY (repository, number)
    )""",
)
"""What a lake knows of its own repositories, and others do not tell."""


def share_deletes(_tx: Transaction, run: Run) -> None:
    """Sweeps share one budget of deletes. An older desilt that is still open knows of no limit, and needs none."""
    run("CREATE TABLE delete_budgets (repository TEXT PRIMARY KEY, given_out {int} NOT NULL, as_of {int} NOT NULL)")


def know_elsewhere(_tx: Transaction, run: Run) -> None:
    """Repositories of others are known by name, with what was seen of their refs."""
    run(
        "CREATE TABLE repositories (uid TEXT PRIMARY KEY, uri TEXT NOT NULL, secret TEXT NOT NULL, "
        "made_at {int} NOT NULL, clock_right_at {int}, quiet_since {int}, quiet_seen_at {int})"
    )
    run(
        "CREATE TABLE revisions (repository TEXT NOT NULL, number {int} NOT NULL, mark TEXT NOT NULL, "
        "refs TEXT NOT NULL, commits TEXT NOT NULL, seen_at {int} NOT NULL, PRIMARY KEY (repository, number))"
    )


STEPS: tuple[Step, ...] = (share_deletes, know_elsewhere)
"""From each version to the next, for databases of records alone."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The tables of one kind of database, and how earlier ones become them."""

    kind: str
    tables: tuple[str, ...]
    steps: tuple[Step, ...]  # the first is from version 1 to 2

    @property
    def version(self) -> int:
        return 1 + len(self.steps)


RECORDS = Schema("records", (SETTINGS, *TABLES, *ELSEWHERE), STEPS)
"""A database for repositories that are not lakes."""

VERSION = RECORDS.version


def create(database: Database, schema: Schema, **settings: str) -> None:
    """The tables of ``schema``, empty, unless they are there; processes may race to it."""
    with database.write() as tx:
        tx.alone()
        if _found(tx, database, schema) is not None:
            return
        for table in schema.tables:
            tx.execute(table.format(**database.types))
        for key, value in {"schema": str(schema.version), "kind": schema.kind, **settings}.items():
            tx.execute("INSERT INTO settings VALUES (?, ?)", key, value)


def check(database: Database, schema: Schema) -> dict[str, str] | None:
    """The database's settings; None where nothing was made; an error where it is no such database.

    One of an earlier desilt is brought up to date first.
    """
    with database.read() as tx:
        found = _found(tx, database, schema)
    if found is None:
        return None
    version = int(found["schema"])
    if version > schema.version:
        raise NewerSchema(version, schema.version)
    if version < schema.version:
        upgrade(database, schema)
        return check(database, schema)
    return found


def upgrade(database: Database, schema: Schema) -> None:
    """From any earlier version, step by step, or not at all; processes may race to it."""
    with database.write() as tx:
        tx.alone()
        found = _found(tx, database, schema)
        if found is None or int(found["schema"]) >= schema.version:
            return
        for step in schema.steps[int(found["schema"]) - 1 :]:
            step(tx, lambda statement: tx.execute(statement.format(**database.types)))
        tx.execute("UPDATE settings SET value = ? WHERE key = 'schema'", str(schema.version))


def _found(tx: Transaction, database: Database, schema: Schema) -> dict[str, str] | None:
    """The settings of a database of this kind, whatever its version; None where there are none."""
    if not tx.has_table("settings"):
        return None
    rows = tx.rows("SELECT * FROM settings")  # not by column: another program's may have others
    found = {str(row[0]): str(row[1]) for row in rows if len(row) == 2}
    version = found.get("schema", "")
    if not version.isdecimal() or int(version) < 1:
        raise Unreadable(f"{database.name} has a table 'settings' that is not desilt's; use another database")
    kind = found.get("kind", LAKE_KIND)
    if kind != schema.kind:
        raise InvalidUri(
            f"{database.name} is a {kind} database, not a {schema.kind} database; name another with --db or DESILT_DB"
        )
    return found
