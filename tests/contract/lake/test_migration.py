"""A lake of an earlier desilt, opened by today's: nothing is lost, and whoever is not up to date cannot write."""

import itertools
import shutil
import subprocess
import sys
import threading

import pytest

from desilt.errors import CommitGone, DesiltError, Gone, NewerSchema, Unreadable
from desilt.lake import (
    Lake,
    commits,
    journal,
    ledger,
    locks,
    migrations,
    moves,
    repositories,
    schema,
    staging,
    tombstones,
    watermarks,
)
from desilt.lake.database import open_database
from desilt.lake.fsck import check
from desilt.lake.lake import Location
from desilt.lake.tombstones import State, Tombstone
from desilt.testing import oracle
from editing import collect, reparent
from patience import FOR_EVER
from words import committed, read, seal, write

VERSION_1 = {
    "settings": "key TEXT PRIMARY KEY, value TEXT NOT NULL",
    "repositories": """name TEXT PRIMARY KEY, uid TEXT NOT NULL UNIQUE, default_branch TEXT NOT NULL,
        created_at {int} NOT NULL, generation {int} NOT NULL, secret TEXT NOT NULL, ticket_life {int} NOT NULL,
        manual_now {int}""",
    "commits": """repository TEXT NOT NULL, id TEXT NOT NULL, parents TEXT NOT NULL, metarange TEXT NOT NULL,
        created_at {int} NOT NULL, committer TEXT NOT NULL, message TEXT NOT NULL, metadata TEXT NOT NULL,
        generation {int} NOT NULL, PRIMARY KEY (repository, id)""",
    "branches": """repository TEXT NOT NULL, name TEXT NOT NULL, uid TEXT NOT NULL UNIQUE, head TEXT NOT NULL,
        token TEXT NOT NULL, created_at {int} NOT NULL, PRIMARY KEY (repository, name)""",
    "sealed": """branch TEXT NOT NULL, position {int} NOT NULL, token TEXT NOT NULL, PRIMARY KEY (branch, position)""",
    "tags": """repository TEXT NOT NULL, name TEXT NOT NULL, target TEXT NOT NULL, created_at {int} NOT NULL,
        PRIMARY KEY (repository, name)""",
    "staging": "token TEXT NOT NULL, path {blob} NOT NULL, value {blob}, PRIMARY KEY (token, path)",
    "tickets": """repository TEXT NOT NULL, address TEXT NOT NULL, branch TEXT NOT NULL, path {blob} NOT NULL,
        expires_at {int} NOT NULL, PRIMARY KEY (repository, address)""",
    "tombstones": """repository TEXT NOT NULL, address TEXT NOT NULL, run TEXT NOT NULL, rule TEXT NOT NULL,
        condemned_at {int} NOT NULL, PRIMARY KEY (repository, address)""",
    "partitions": """branch TEXT NOT NULL, name TEXT NOT NULL, opened_at {int} NOT NULL, objects {int} NOT NULL,
        PRIMARY KEY (branch, name)""",
}
"""The tables as the first desilt made them."""

VERSION_2 = VERSION_1 | {
    "commits": VERSION_1["commits"].replace("PRIMARY KEY", "inserted {int} NOT NULL DEFAULT 0, PRIMARY KEY"),
    "staging": """token TEXT NOT NULL, path {blob} NOT NULL, value {blob}, address TEXT, PRIMARY KEY (token, path),
        CHECK (value IS NULL OR address IS NOT NULL)""",
    "tombstones": VERSION_1["tombstones"].replace(
        "PRIMARY KEY",
        "size_bytes {int} NOT NULL DEFAULT 0, batch {int} NOT NULL DEFAULT -1, "
        "state TEXT NOT NULL DEFAULT 'condemned', restored_at {int}, PRIMARY KEY",
    ),
    "moves": """repository TEXT NOT NULL, generation {int} NOT NULL, mark TEXT NOT NULL,
        PRIMARY KEY (repository, generation)""",
    "locks": """repository TEXT PRIMARY KEY, fence {int} NOT NULL, owner TEXT NOT NULL, run TEXT NOT NULL,
        beat_at {int} NOT NULL""",
    "runs": """repository TEXT NOT NULL, id TEXT NOT NULL, job TEXT NOT NULL, policy TEXT NOT NULL,
        action TEXT NOT NULL, started_at {int} NOT NULL, ended_at {int}, state TEXT NOT NULL, fence {int} NOT NULL,
        ended_fence {int}, refs {int} NOT NULL DEFAULT 0, objects {int} NOT NULL, bytes {int} NOT NULL,
        PRIMARY KEY (repository, id)""",
    "batches": """repository TEXT NOT NULL, run TEXT NOT NULL, number {int} NOT NULL, file TEXT NOT NULL,
        asked {int} NOT NULL, removed {int} NOT NULL DEFAULT 0, gone {int} NOT NULL DEFAULT 0,
        failed {int} NOT NULL DEFAULT 0, held_again {int} NOT NULL, removed_bytes {int} NOT NULL DEFAULT 0,
        recorded_at {int}, PRIMARY KEY (repository, run, number)""",
    "policies": """repository TEXT NOT NULL, job TEXT NOT NULL, document TEXT NOT NULL, set_at {int} NOT NULL,
        PRIMARY KEY (repository, job)""",
    "holds": """repository TEXT NOT NULL, id TEXT NOT NULL, kind TEXT NOT NULL, value TEXT NOT NULL,
        reason TEXT NOT NULL, made_at {int} NOT NULL, until {int}, inserted {int} NOT NULL,
        PRIMARY KEY (repository, id)""",
    "watermarks": """repository TEXT NOT NULL, job TEXT NOT NULL, run TEXT NOT NULL, value TEXT NOT NULL,
        PRIMARY KEY (repository, job)""",
}
"""And as the second did."""

VERSION_3 = VERSION_2 | {
    "repositories": f"{VERSION_2['repositories']}, edited {{int}} NOT NULL DEFAULT 0",
    "commits": VERSION_2["commits"]
    .replace("inserted", "added")
    .replace("PRIMARY KEY", "let_go_at {int}, was TEXT, PRIMARY KEY"),
    "runs": VERSION_2["runs"].replace("PRIMARY KEY", "edits {int} NOT NULL DEFAULT 0, PRIMARY KEY"),
    "batches": VERSION_2["batches"].replace("PRIMARY KEY", "tables {int} NOT NULL DEFAULT 0, PRIMARY KEY"),
    "collected": """repository TEXT NOT NULL, id TEXT NOT NULL, parents TEXT NOT NULL, created_at {int} NOT NULL,
        generation {int} NOT NULL, run TEXT NOT NULL, collected_at {int} NOT NULL, PRIMARY KEY (repository, id)""",
}
"""And as the third did."""

TABLES = {1: VERSION_1, 2: VERSION_2, 3: VERSION_3}

INDEXES_2 = (
    "CREATE INDEX commits_inserted ON commits (repository, inserted)",
    "CREATE INDEX staging_addresses ON staging (address)",
    "CREATE INDEX tombstones_by_run ON tombstones (repository, run, batch)",
    "CREATE INDEX tombstones_unsettled ON tombstones (repository) "
    "WHERE state NOT IN ('removed', 'already gone', 'trashed')",
)

INDEXES = {1: (), 2: INDEXES_2, 3: tuple(index.replace("inserted)", "added)") for index in INDEXES_2)}

RENAMED = {("commits", "inserted"): "added"}  # by version 3
RENAMED_TABLES = {"moves": "journal"}  # by version 4
NEW = {
    1: {"locks", "runs", "batches", "watermarks", "collected", "dropped"},
    2: {"collected", "dropped"},
    3: {"dropped"},
}

OPEN = """
import sys
from desilt.lake import Lake
from desilt.lake.lake import Location
print("ready", flush=True)
sys.stdin.readline()
print(len(Lake.open(Location(sys.argv[1], sys.argv[2], None)).repository("demo").branches()))
"""


class Old:
    """A lake with some history, as an earlier version; and what its repository held."""

    def __init__(self, place, url, schema_version=1):
        self.place, self.url, self.version = place, url, schema_version
        self.tables = TABLES[schema_version]
        newer = Lake.create(Location(place, f"sqlite://{place}/newer.db", None))
        repo = newer.create_repository("demo")
        committed(repo, "main", a="1", b="2", gone="3")
        repo.create_branch("dev", "main")
        repo.create_tag("v1", "main")
        write(repo, "dev", sealed="4")
        seal(repo, "dev")
        write(repo, "dev", staged="5", sealed="6")  # one hides the other: both are held
        repo.remove("dev", "a")
        repo.copy("dev", "b", "dev", "copy")
        self.handed = repo.physical_address("main", "handed")
        self.address = repo.stat("main", "gone").address
        with repo.database.write() as tx:
            tombstones.condemn(tx, repo.uid, [Tombstone(self.address, "run-1", "old", repo.clock())])
            ledger.begin(
                tx,
                repo.uid,
                ledger.RunRow("run-1", "gc", "", "delete", repo.clock(), None, ledger.RunState.SWEEPING, 1, 1),
            )
        self.staged = oracle.staged(repo)
        self.committed = oracle.committed(repo)
        self.log = [commit.id for commit in repo.log("main", "dev")]
        self.contents = self.readable(repo)
        self.generation = repo.generation()
        database = open_database(url, create=True)
        with newer.database.read() as there, database.write() as here:
            for table, columns in self.tables.items():
                clustered = "{clustered}" if table == "staging" else ""
                here.execute(f"CREATE TABLE {table} ({columns}) {clustered}".format(**database.types))
                names = self.columns(columns)
                marks = ", ".join("?" * len(names))
                today = RENAMED_TABLES.get(table, table)
                rows = there.rows(f"SELECT {', '.join(self.today(table, names))} FROM {today}")
                here.execute_many(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", rows)
            for index in INDEXES[schema_version]:
                here.execute(index)
            here.execute("UPDATE settings SET value = ? WHERE key = 'schema'", str(schema_version))
            here.execute("UPDATE settings SET value = ? WHERE key = 'storage'", place)
        database.close()
        newer.close()

    @staticmethod
    def columns(text):
        text = text.partition("PRIMARY KEY (")[0]
        return [one.split()[0] for one in text.split(",") if one.strip()]

    @staticmethod
    def today(table, names):
        return [RENAMED.get((table, name), name) for name in names]

    def readable(self, repo):
        """What every path reads as; what is gone says by which run."""
        found = {}
        for ref in ("main", "dev", "v1"):
            for entry in repo.list(ref):
                try:
                    found[ref, entry.path] = read(repo, ref, entry.path)
                except Gone as gone:
                    found[ref, entry.path] = gone.run
        return found

    def open(self):
        return Lake.open(Location(self.place, self.url, None))

    def dump(self):
        """Every row of every table it had, and which tables of later versions there are."""
        database = open_database(self.url)
        up_to_date = int(version(database)) >= schema.VERSION
        with database.read() as tx:
            found = {}
            for table, columns in self.tables.items():
                names = self.columns(columns)
                wanted = ", ".join(self.today(table, names) if up_to_date else names)
                name = RENAMED_TABLES.get(table, table) if up_to_date else table
                found[table] = sorted(map(repr, tx.rows(f"SELECT {wanted} FROM {name}")))
            tables = {name for name in (*NEW[self.version], "staging_1") if tx.has_table(name)}
        database.close()
        return found, tables


@pytest.fixture(params=[1, 2, 3])
def old(request, tmp_path, database_url):
    return Old(str(tmp_path / "lake"), database_url, request.param)


def version(database):
    with database.read() as tx:
        return tx.one("SELECT value FROM settings WHERE key = 'schema'")[0]


def test_everything_is_as_it_was(old):
    before = old.dump()[0]
    lake = old.open()
    repo = lake.repository("demo")
    assert version(lake.database) == str(schema.VERSION)
    assert [commit.id for commit in repo.log("main", "dev")] == old.log
    assert old.readable(repo) == old.contents
    assert oracle.staged(repo) == old.staged
    assert oracle.committed(repo) == old.committed
    assert repo.generation() == old.generation
    (stone,) = repo.tombstones([old.address]).values()
    assert (stone.state, stone.batch, stone.size) == (State.CONDEMNED, -1, 0)
    found = check(repo, deep=True)
    assert found.sound, found.findings
    after, tables = old.dump()
    del before["settings"], after["settings"]
    assert after == before
    assert tables == NEW[old.version]
    lake.close()


def test_what_was_staged_is_found_by_its_address(old):
    lake = old.open()
    assert len(old.staged) == 4  # staged, two under one path, and a copy
    with lake.database.read() as tx:
        assert staging.holders(tx, [*old.staged, *old.committed, "nosuch"]) == old.staged
        rows = list(tx.rows("SELECT value, address FROM staging"))
    assert len(rows) == 5
    assert all((value is None) == (address is None) for value, address in rows)
    lake.close()


def test_more_than_a_page_of_staged_entries_is_carried_over(old, monkeypatch):
    monkeypatch.setattr(migrations, "PAGE", 2)
    lake = old.open()
    assert oracle.staged(lake.repository("demo")) == old.staged
    with lake.database.read() as tx:
        assert staging.holders(tx, list(old.staged)) == old.staged
    lake.close()


def test_life_goes_on(old):
    lake = old.open()
    repo = lake.repository("demo")
    with lake.database.read() as tx:
        assert bool(commits.metaranges_since(tx, repo.uid, 0)) == (old.version > 1)  # the first did not write it down
    made = repo.commit("dev", "what was staged by an older desilt")
    assert old.readable(repo) == old.contents
    with lake.database.read() as tx:
        assert commits.metaranges_since(tx, repo.uid, old.generation) == {made.metarange}
        assert staging.holders(tx, list(old.staged)) == set()
    repo.store.put(repo.prefix + old.handed.ticket.address, [b"handed"])
    repo.link("main", "handed", old.handed.token)
    with lake.database.read() as tx:
        assert staging.holders(tx, [old.handed.ticket.address]) == {old.handed.ticket.address}
    with locks.held(lake.database, repo.uid, run="run") as lock, lake.database.write() as tx:
        locks.check(tx, lock)
        watermarks.write(tx, repo.uid, "gc", "run", {})
        assert [(run.id, run.edits) for run in ledger.every(tx, repo.uid)] == [("run-1", 0)] * (old.version > 1)
    lake.close()


def test_tables_are_those_of_a_new_lake(old, tmp_path):
    """A lake that was brought up to date and one made today differ in nothing that a statement could notice."""
    lake = old.open()
    fresh = Lake.create(Location(str(tmp_path / "fresh"), f"sqlite://{tmp_path}/fresh.db", None))
    with fresh.database.read() as tx:
        tables = [row[0] for row in tx.rows("SELECT name FROM sqlite_master WHERE type = 'table'")]
    assert {*VERSION_1, "locks", "runs", "batches", "watermarks"} <= set(tables)
    for table in tables:
        shapes = []
        for database in (lake.database, fresh.database):
            with database.read() as tx:
                if database.url.startswith("sqlite"):
                    found = tx.rows(f"SELECT name FROM pragma_table_info('{table}')")
                else:
                    found = tx.rows(
                        "SELECT column_name FROM information_schema.columns "
                        "WHERE table_name = ? AND table_schema = ANY (current_schemas(false))",
                        table,
                    )
                shapes.append({row[0] for row in found})
        assert shapes[0] == shapes[1] != set(), table
    for made in (lake, fresh):
        made.close()


def test_an_older_desilt_cannot_stage_what_no_sweep_would_find(old):
    lake = old.open()
    token = lake.repository("demo").branches()[0].token
    with pytest.raises(DesiltError), lake.database.write() as tx:
        tx.execute("INSERT INTO staging (token, path, value) VALUES (?, ?, ?)", token, b"late", b"value")
    with pytest.raises(DesiltError), lake.database.write() as tx:  # as it does when it gathers sealed areas
        tx.execute("INSERT INTO staging (token, path, value) SELECT 'new', path, value FROM staging")
    with pytest.raises(DesiltError), lake.database.write() as tx:  # and as it does over an entry that is there
        tx.execute("UPDATE staging SET address = NULL WHERE value IS NOT NULL")
    with lake.database.write() as tx:  # a removal holds nothing, and may be staged
        tx.execute("INSERT INTO staging (token, path, value) VALUES (?, ?, ?)", token, b"removed", None)
    lake.close()


def test_an_older_desilt_cannot_write_over_what_is_staged(old):
    """Its upsert would leave the address of the old value beside the new one."""
    lake = old.open()
    with lake.database.read() as tx:
        token, path, value = tx.one("SELECT token, path, value FROM staging WHERE value IS NOT NULL")
    upsert = (
        "INSERT INTO staging (token, path, value) VALUES (?, ?, ?) "
        "ON CONFLICT (token, path) DO UPDATE SET value = excluded.value"
    )
    with pytest.raises(DesiltError), lake.database.write() as tx:
        tx.execute(upsert, token, bytes(path), b"another value")
    with lake.database.read() as tx:
        assert bytes(tx.one("SELECT value FROM staging WHERE token = ? AND path = ?", token, path)[0]) == bytes(value)
    lake.close()


def test_an_older_desilt_that_is_still_open_cannot_commit_over_edited_history(old):
    """It knows neither of tables that are being collected, nor where edited histories met."""
    lake = old.open()
    with lake.database.read() as tx:
        row = tx.one(f"SELECT repository, {commits.COLUMNS} FROM commits")
    marks = ", ".join("?" * (len(row) + 1))
    with pytest.raises(DesiltError), lake.database.write() as tx:
        tx.execute(
            f"INSERT INTO commits (repository, {commits.COLUMNS}, inserted) VALUES ({marks})", row[0], "f", *row[2:], 9
        )
    lake.close()


def test_an_older_desilt_that_is_still_open_cannot_move_a_ref_without_a_record(old):
    lake = old.open()
    repo = lake.repository("demo")
    noted = "INSERT INTO moves (repository, generation, mark) SELECT uid, generation + 1, ? FROM repositories"
    with pytest.raises(DesiltError), lake.database.write() as tx:
        tx.execute(noted, "a mark")
    assert repo.generation() == old.generation
    lake.close()


def test_its_journal_begins_with_the_next_move(old):
    lake = old.open()
    repo = lake.repository("demo")
    shutil.rmtree(f"{old.place}/{repo.prefix}_desilt/journal")  # which the older one did not keep
    moves.check(repo.core)
    repo.create_tag("v2", "main")
    moves.check(repo.core)
    assert journal.after(repo.core, 0) == [old.generation + 1]
    assert check(repo).sound
    lake.close()


def test_history_can_be_edited_and_commits_collected(old):
    lake = old.open()
    repo = lake.repository("demo")
    first, second = repo.resolve("main~1").commit, repo.resolve("main").commit
    assert second.was is None
    last = repo.commit("main", "empty", allow_empty=True)
    repo.create_tag("v2", second.id)
    reparent(repo, last, first)
    assert repo.resolve("main").commit.was == (second.id,)
    for name in ("v1", "v2"):
        repo.delete_tag(name)
    repo.delete_branch("dev", force=True)
    collect(repo, second)
    with pytest.raises(CommitGone):
        repo.resolve(second.id)
    with lake.database.read() as tx:
        assert repositories.edited(tx, repo.uid) == repo.generation()
    assert check(repo).sound
    lake.close()


def test_it_happens_once(old, monkeypatch):
    old.open().close()
    monkeypatch.setattr(schema, "STEPS", {})
    old.open().close()  # nothing is left to do
    schema.upgrade(open_database(old.url))  # nor for whoever asks for it by name


def test_a_newer_database_is_refused_and_left_alone(old):
    lake = old.open()
    with lake.database.write() as tx:
        tx.execute("UPDATE settings SET value = ? WHERE key = 'schema'", str(schema.VERSION + 1))
    lake.close()
    before = old.dump()
    with pytest.raises(NewerSchema, match=f"schema {schema.VERSION + 1}.* upgrade desilt"):
        old.open()
    assert old.dump() == before


@pytest.mark.parametrize("said", ["", "two", "-1", "1.0"])
def test_a_version_that_is_none_is_refused(old, said):
    database = open_database(old.url)
    with database.write() as tx:
        tx.execute("UPDATE settings SET value = ? WHERE key = 'schema'", said)
    database.close()
    with pytest.raises(Unreadable):
        old.open()


def test_cut_off_anywhere_it_did_not_happen(old, monkeypatch):
    """Before each of its statements in turn; the last time, none is left to stop at."""
    before = old.dump()
    assert before[1] == set()
    with open_database(old.url).read() as tx:
        kind = type(tx)
    real = {name: getattr(kind, name) for name in ("execute", "execute_many")}

    def counting(name, left):
        def execute(self, *values):
            if next(left, None) is None:
                raise RuntimeError("cut off")
            return real[name](self, *values)

        return execute

    for statements in itertools.count():
        with monkeypatch.context() as patch:
            left = iter(range(statements))
            for name in real:
                patch.setattr(kind, name, counting(name, left))
            database = open_database(old.url)
            try:
                schema.check(database)
                break
            except RuntimeError:
                assert old.dump() == before
            finally:
                database.close()
    assert statements > {1: 25, 2: 15, 3: 10}[old.version]
    lake = old.open()
    assert oracle.staged(lake.repository("demo")) == old.staged
    lake.close()


@pytest.mark.parametrize("old", [1], indirect=True)
def test_an_unreadable_entry_stops_it_and_nothing_is_changed(old):
    """To leave it out would make garbage of what it holds."""
    database = open_database(old.url)
    with database.write() as tx:
        tx.execute("INSERT INTO staging (token, path, value) VALUES (?, ?, ?)", "token", b"odd", b"\xff\xff no entry")
    database.close()
    before = old.dump()
    with pytest.raises(DesiltError):
        old.open()
    assert old.dump() == before
    assert old.dump()[1] == set()


def test_processes_that_open_it_at_once_bring_it_up_to_date_once(old):
    command = [sys.executable, "-c", OPEN, old.place, old.url]
    running = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for one in running:
        assert one.stdout.readline() == "ready\n"
    for one in running:
        one.stdin.write("\n")
        one.stdin.flush()
    assert [one.communicate(timeout=FOR_EVER)[0] for one in running] == ["2\n"] * 3
    assert [one.returncode for one in running] == [0] * 3
    lake = old.open()
    assert oracle.staged(lake.repository("demo")) == old.staged
    lake.close()


def test_threads_that_open_it_at_once_bring_it_up_to_date_once(old):
    barrier, failed = threading.Barrier(6), []

    def opening():
        barrier.wait()
        try:
            old.open().close()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=opening) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert version(open_database(old.url)) == str(schema.VERSION)


def test_a_reader_that_is_at_work_sees_its_lake_to_the_end(old):
    """What was opened by an older desilt goes on reading, beside and after."""
    database = open_database(old.url)
    with database.read() as tx:
        assert tx.one("SELECT count(*) FROM staging")[0] == 5
    old.open().close()
    with database.read() as tx:
        assert len(list(tx.rows("SELECT token, path, value FROM staging"))) == 5
    database.close()
