"""The tables of a lake: a database has these and those of records, under one version number.

Times are microseconds since 1970, UTC. Paths are bytes, so that both databases
sort them alike. ``repository`` is a repository's uid, never its name.
"""

from desilt.lake.migrations import STEPS
from desilt.records import schema as records
from desilt.records.database import Database

TABLES = (
    """CREATE TABLE repositories (
        name TEXT PRIMARY KEY,
        uid TEXT NOT NULL UNIQUE,
        default_branch TEXT NOT NULL,
        created_at {int} NOT NULL,
        generation {int} NOT NULL,  -- counts every move of a ref, and whatever else the journal has
        journal_from {int} NOT NULL DEFAULT 0, -- the first generation that has a record beside the objects
        edited {int} NOT NULL DEFAULT 0, -- the generation at which history was last edited
        commit_rows {int} NOT NULL DEFAULT 0, -- how many there must be: a row that is lost is noticed
        branch_rows {int} NOT NULL DEFAULT 0,
        tag_rows {int} NOT NULL DEFAULT 0,
        hold_rows {int} NOT NULL DEFAULT 0,
        kept_since {int},           -- after a restore: what was uploaded since then and not committed stays
        recovered {int} NOT NULL DEFAULT -1, -- the generation at which the database was last recovered
        ask_again_from {int},       -- what somebody agreed to before then is asked again
        clock_right_at {int},       -- when somebody last said that a clock which had jumped is right
        quiet_since {int},          -- the last trace before a jump that a run was refused for, until that is settled
        quiet_seen_at {int},        -- and where the clock stood then
        secret TEXT NOT NULL,       -- signs tickets, plans and records
        ticket_life {int} NOT NULL, -- microseconds
        discard_after {int},        -- microseconds that hard delete waits; NULL: it is off
        discard_share TEXT NOT NULL DEFAULT '', -- of the lake that it may remove within an hour; '': the usual one
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
        released_at {int},        -- when a ref, a hold or an edit last released it; NULL: never
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
    """CREATE TABLE former_branches ( -- their names, for reports: objects outlive a branch
        repository TEXT NOT NULL,
        uid TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        deleted_at {int} NOT NULL
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
    """CREATE TABLE fresh (         -- uploads that are staged and in no commit, from while hard delete was on
        repository TEXT NOT NULL,
        address TEXT NOT NULL,
        size_bytes {int} NOT NULL,
        PRIMARY KEY (address, repository) -- in this order: no database is tempted to go through all of a repository
    ) {clustered}""",
    """CREATE TABLE discarded (     -- where condemned addresses of hard delete were staged last
        repository TEXT NOT NULL,
        address TEXT NOT NULL,
        path {blob} NOT NULL,
        branch TEXT NOT NULL,     -- its uid
        value {blob} NOT NULL,    -- as it was staged
        head TEXT NOT NULL,       -- of the branch then
        dropped_by TEXT NOT NULL,
        wait_until {int} NOT NULL, -- until then nobody takes it up: grace, lease or pause
        PRIMARY KEY (repository, address, path)
    ) {clustered}""",
    "CREATE INDEX discarded_by_time ON discarded (repository, wait_until)",
    """CREATE TABLE tickets (       -- uploads under way that may outlive what their name allows
        repository TEXT NOT NULL,
        address TEXT NOT NULL,
        branch TEXT NOT NULL,
        path {blob} NOT NULL,
        expires_at {int} NOT NULL,
        PRIMARY KEY (repository, address)
    )""",
    """CREATE TABLE move_marks (       -- every move, each with a mark of its own: a restored database has other marks
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
    """CREATE TABLE partitions (
        branch TEXT NOT NULL,
        name TEXT NOT NULL,
        opened_at {int} NOT NULL,
        objects {int} NOT NULL,   -- how many addresses were handed out
        PRIMARY KEY (branch, name)
    )""",
)

LAKE = records.Schema(records.LAKE_KIND, (records.SETTINGS, *TABLES, *records.TABLES), STEPS)

VERSION = LAKE.version


def create(database: Database, **settings: str) -> None:
    """An empty lake's tables, unless they are there; processes may race to it."""
    records.create(database, LAKE, **settings)


def check(database: Database) -> dict[str, str] | None:
    """The lake's settings; None where no lake was made; an error where this desilt cannot read it.

    A database of an earlier desilt is brought up to date first.
    """
    return records.check(database, LAKE)
