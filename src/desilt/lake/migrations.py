"""How the tables of a lake came to be what they are: one step for each version, and none is ever changed.

A step knows the tables only as they were: it never reads today's schema, which may
have other columns by the time a database that old is opened. How a change of the
tables of records gets here, :mod:`desilt.records.schema` tells.
"""

from itertools import islice

from desilt.records import schema as records
from desilt.records.database import Transaction
from desilt.records.schema import Run, Step
from desilt.sstable.values import decode_entry

PAGE = 10_000


def to_2(tx: Transaction, run: Run) -> None:
    """Staged entries, commits and tombstones learn what a sweep asks them; runs get their tables."""
    run("ALTER TABLE commits ADD COLUMN inserted {int} NOT NULL DEFAULT 0")
    run("CREATE INDEX commits_inserted ON commits (repository, inserted)")
    run("ALTER TABLE tombstones ADD COLUMN size_bytes {int} NOT NULL DEFAULT 0")
    run("ALTER TABLE tombstones ADD COLUMN batch {int} NOT NULL DEFAULT -1")
    run("ALTER TABLE tombstones ADD COLUMN state TEXT NOT NULL DEFAULT 'condemned'")
    run("ALTER TABLE tombstones ADD COLUMN restored_at {int}")
    run("CREATE INDEX tombstones_by_run ON tombstones (repository, run, batch)")
    run(
        "CREATE INDEX tombstones_unsettled ON tombstones (repository) "
        "WHERE state NOT IN ('removed', 'already gone', 'trashed')"
    )
    run(
        "CREATE TABLE moves (repository TEXT NOT NULL, generation {int} NOT NULL, mark TEXT NOT NULL, "
        "PRIMARY KEY (repository, generation))"
    )
    run(
        "CREATE TABLE locks (repository TEXT PRIMARY KEY, fence {int} NOT NULL, owner TEXT NOT NULL, "
        "run TEXT NOT NULL, beat_at {int} NOT NULL)"
    )
    run(
        "CREATE TABLE runs (repository TEXT NOT NULL, id TEXT NOT NULL, job TEXT NOT NULL, policy TEXT NOT NULL, "
        "action TEXT NOT NULL, started_at {int} NOT NULL, ended_at {int}, state TEXT NOT NULL, fence {int} NOT NULL, "
        "ended_fence {int}, refs {int} NOT NULL DEFAULT 0, objects {int} NOT NULL, bytes {int} NOT NULL, "
        "PRIMARY KEY (repository, id))"
    )
    run(
        "CREATE TABLE batches (repository TEXT NOT NULL, run TEXT NOT NULL, number {int} NOT NULL, "
        "file TEXT NOT NULL, asked {int} NOT NULL, removed {int} NOT NULL DEFAULT 0, gone {int} NOT NULL DEFAULT 0, "
        "failed {int} NOT NULL DEFAULT 0, held_again {int} NOT NULL, removed_bytes {int} NOT NULL DEFAULT 0, "
        "recorded_at {int}, PRIMARY KEY (repository, run, number))"
    )
    run(
        "CREATE TABLE policies (repository TEXT NOT NULL, job TEXT NOT NULL, document TEXT NOT NULL, "
        "set_at {int} NOT NULL, PRIMARY KEY (repository, job))"
    )
    run(
        "CREATE TABLE holds (repository TEXT NOT NULL, id TEXT NOT NULL, kind TEXT NOT NULL, value TEXT NOT NULL, "
        "reason TEXT NOT NULL, made_at {int} NOT NULL, until {int}, inserted {int} NOT NULL, "
        "PRIMARY KEY (repository, id))"
    )
    run(
        "CREATE TABLE watermarks (repository TEXT NOT NULL, job TEXT NOT NULL, run TEXT NOT NULL, "
        "value TEXT NOT NULL, PRIMARY KEY (repository, job))"
    )
    run("ALTER TABLE staging RENAME TO staging_1")
    run(
        "CREATE TABLE staging (token TEXT NOT NULL, path {blob} NOT NULL, value {blob}, address TEXT, "
        "PRIMARY KEY (token, path), CHECK (value IS NULL OR address IS NOT NULL)) {clustered}"
    )
    run("CREATE INDEX staging_addresses ON staging (address)")
    old = ((token, bytes(path), value) for token, path, value in tx.each("SELECT token, path, value FROM staging_1"))
    while page := list(islice(old, PAGE)):
        tx.execute_many(
            "INSERT INTO staging (token, path, value, address) VALUES (?, ?, ?, ?)",
            (
                (token, path, value, None if value is None else decode_entry(path, bytes(value)).address)
                for token, path, value in page
            ),
        )
    run("DROP TABLE staging_1")


def to_3(_tx: Transaction, run: Run) -> None:
    """History can be edited, and commits can go.

    An older desilt that is still open knows nothing of that; without ``inserted`` it can no longer commit.
    """
    run("ALTER TABLE runs ADD COLUMN edits {int} NOT NULL DEFAULT 0")
    run("ALTER TABLE batches ADD COLUMN tables {int} NOT NULL DEFAULT 0")
    run("ALTER TABLE commits RENAME COLUMN inserted TO added")
    run("ALTER TABLE repositories ADD COLUMN edited {int} NOT NULL DEFAULT 0")
    run("ALTER TABLE commits ADD COLUMN let_go_at {int}")
    run("ALTER TABLE commits ADD COLUMN was TEXT")
    run(
        "CREATE TABLE collected (repository TEXT NOT NULL, id TEXT NOT NULL, parents TEXT NOT NULL, "
        "created_at {int} NOT NULL, generation {int} NOT NULL, run TEXT NOT NULL, collected_at {int} NOT NULL, "
        "PRIMARY KEY (repository, id))"
    )


def to_4(_tx: Transaction, run: Run) -> None:
    """Every move is in a journal beside the objects; what a staging area dropped is written down.

    An older desilt that is still open would move refs without a record; without ``moves`` it can no longer.
    """
    run("ALTER TABLE moves RENAME TO journal")
    run("ALTER TABLE repositories ADD COLUMN journal_from {int} NOT NULL DEFAULT 0")
    run("UPDATE repositories SET journal_from = generation + 1")
    run("ALTER TABLE repositories ADD COLUMN kept_since {int}")
    run("ALTER TABLE repositories ADD COLUMN recovered {int} NOT NULL DEFAULT -1")
    run("ALTER TABLE repositories ADD COLUMN ask_again_from {int}")
    run("ALTER TABLE repositories ADD COLUMN clock_right_at {int}")
    run("ALTER TABLE repositories ADD COLUMN quiet_since {int}")
    run("ALTER TABLE repositories ADD COLUMN quiet_seen_at {int}")
    run(
        "CREATE TABLE intents (repository TEXT NOT NULL, mark TEXT NOT NULL, made_at {int} NOT NULL, "
        "PRIMARY KEY (repository, mark))"
    )
    run("ALTER TABLE policies ADD COLUMN agreed TEXT NOT NULL DEFAULT '[]'")
    run("ALTER TABLE runs ADD COLUMN measure TEXT NOT NULL DEFAULT ''")
    run("ALTER TABLE runs ADD COLUMN stored_objects {int} NOT NULL DEFAULT 0")
    run("ALTER TABLE runs ADD COLUMN stored_bytes {int} NOT NULL DEFAULT 0")
    run("ALTER TABLE runs ADD COLUMN period {int}")
    run("ALTER TABLE runs ADD COLUMN agreed {int} NOT NULL DEFAULT 0")
    run(
        "CREATE TABLE dropped (repository TEXT NOT NULL, address TEXT NOT NULL, branch TEXT NOT NULL, "
        "path {blob} NOT NULL, dropped_at {int} NOT NULL, PRIMARY KEY (repository, address, branch, path)) {clustered}"
    )
    run("CREATE INDEX dropped_by_time ON dropped (repository, dropped_at)")


def to_5(_tx: Transaction, run: Run) -> None:
    """It is known how many commits, branches, tags and holds there are.

    An older desilt that is still open would not count what it makes; without ``journal`` it can make nothing.
    """
    run("ALTER TABLE journal RENAME TO moves_made")
    run("ALTER TABLE commits RENAME COLUMN let_go_at TO released_at")
    run(
        "CREATE TABLE former_branches (repository TEXT NOT NULL, uid TEXT PRIMARY KEY, name TEXT NOT NULL, "
        "deleted_at {int} NOT NULL)"
    )
    for what in ("commit", "branch", "tag", "hold"):
        table = "branches" if what == "branch" else f"{what}s"
        run(f"ALTER TABLE repositories ADD COLUMN {what}_rows {{int}} NOT NULL DEFAULT 0")
        run(
            f"UPDATE repositories SET {what}_rows = "
            f"(SELECT COUNT(*) FROM {table} WHERE {table}.repository = repositories.uid)"
        )


def to_6(_tx: Transaction, run: Run) -> None:
    """Hard delete knows what was uploaded and never committed.

    An older desilt that is still open would commit and leave that as it is; without ``moves_made`` it cannot.
    """
    run("ALTER TABLE moves_made RENAME TO move_marks")
    run("ALTER TABLE repositories ADD COLUMN discard_after {int}")
    run("ALTER TABLE repositories ADD COLUMN discard_share TEXT NOT NULL DEFAULT ''")
    run(
        "CREATE TABLE fresh (repository TEXT NOT NULL, address TEXT NOT NULL, size_bytes {int} NOT NULL, "
        "PRIMARY KEY (address, repository)) {clustered}"
    )
    run(
        "CREATE TABLE discarded (repository TEXT NOT NULL, address TEXT NOT NULL, path {blob} NOT NULL, "
        "branch TEXT NOT NULL, value {blob} NOT NULL, head TEXT NOT NULL, dropped_by TEXT NOT NULL, "
        "wait_until {int} NOT NULL, "
        "PRIMARY KEY (repository, address, path)) {clustered}"
    )
    run("CREATE INDEX discarded_by_time ON discarded (repository, wait_until)")


STEPS: tuple[Step, ...] = (to_2, to_3, to_4, to_5, to_6, records.share_deletes)
"""From each version to the next; new ones are appended."""
