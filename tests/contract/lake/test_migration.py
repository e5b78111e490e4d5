"""A lake of an earlier desilt, opened by today's: nothing is lost, and whoever is not up to date cannot write."""

import itertools
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from desilt.errors import CommitGone, DesiltError, Gone, NewerSchema, Unreadable
from desilt.lake import Lake, commits, intents, journal, migrations, moves, repositories, schema, staging
from desilt.lake.changes import PolicySet
from desilt.lake.fsck import check
from desilt.lake.lake import Location
from desilt.lake.moves import moving
from desilt.records import budget, ledger, locks, watermarks
from desilt.records import removals as tombstones
from desilt.records.database import open_database
from desilt.records.holds import Hold, HoldKind
from desilt.records.removals import State, Tombstone
from desilt.records.schema import upgrade
from desilt.repository.hard_delete import HardDeleteSetting
from desilt.testing import oracle
from patience import FOR_EVER
from shapes import rows_of, shape
from words import add_hold, collect, committed, read, reparent, seal, write

SCHEMAS = Path(__file__).parent / "schemas"
"""The tables of every version, as the desilt of that time made them."""

RENAMED = {("commits", "inserted"): "added", ("commits", "let_go_at"): "released_at"}  # by versions 3 and 5
RENAMED_TABLES = {"moves": "move_marks", "journal": "move_marks", "moves_made": "move_marks"}  # by versions 4 to 6

UNKNOWN = {
    "repositories": {
        "edited": 0, "kept_since": None, "recovered": -1, "ask_again_from": None, "clock_right_at": None,
        "quiet_since": None, "quiet_seen_at": None, "discard_after": None, "discard_share": "",
    },
    "commits": {"added": 0, "released_at": None, "was": None},
    "tombstones": {"size_bytes": 0, "batch": -1, "state": "condemned", "restored_at": None},
    "runs": {"edits": 0, "measure": "", "stored_objects": 0, "stored_bytes": 0, "period": None, "agreed": 0},
    "batches": {"tables": 0},
    "policies": {"agreed": "[]"},
}  # fmt: skip
"""What is in a column that an older desilt did not have."""

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
        self.rows_staged = 5 + (schema_version >= 6)
        newer = Lake.create(Location(place, f"sqlite://{place}/newer.db", None))
        repo = newer.create_repository("demo")
        committed(repo, "main", a="1", b="2", gone="3")
        repo.create_branch("dev", "main")
        repo.create_tag("v1", "main")
        if schema_version >= 3:
            edit_history(repo)
        if schema_version >= 6:
            discard(repo)
        write(repo, "dev", sealed="4")
        seal(repo, "dev")
        write(repo, "dev", staged="5", sealed="6")  # one hides the other: both are held
        repo.remove("dev", "a")
        repo.copy("dev", "b", "dev", "copy")
        self.handed = repo.physical_address("main", "handed")
        self.address = repo.stat("main", "gone").address
        leave_records(repo, self.address)
        self.staged = oracle.staged(repo)
        self.committed = oracle.committed(repo)
        self.log = [commit.id for commit in repo.log("main", "dev")]
        self.contents = self.readable(repo)
        self.generation = repo.generation()
        self.newest = rows_of(newer.database)
        database = open_database(url, create=True)
        with database.write() as here:
            for statement in tables_of(schema_version, database):
                here.execute(statement)
        with database.write() as here:
            for table, about in shape(database).items():
                names = sorted(about["columns"])
                today = [RENAMED.get((table, name), name) for name in names]
                rows = [[row[name] for name in today] for row in self.newest[RENAMED_TABLES.get(table, table)]]
                marks = ", ".join("?" * len(names))
                here.execute_many(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", rows)
            here.execute("UPDATE settings SET value = ? WHERE key = 'schema'", str(schema_version))
            here.execute("UPDATE settings SET value = ? WHERE key = 'storage'", place)
            here.execute("DELETE FROM settings WHERE key = 'kind'")
        self.rows = rows_of(database)
        database.close()
        newer.close()

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

    def state(self):
        """Every table and every row."""
        database = open_database(self.url)
        found = shape(database), rows_of(database)
        database.close()
        return found


def tables_of(schema_version, database):
    return (SCHEMAS / f"{schema_version}.sql").read_text().format(**database.types).split(";\n")[:-1]


def edit_history(repo):
    """A commit whose parents were edited, one that was collected, one that was let go of, and what a branch dropped."""
    repo.create_branch("side", "main~1")
    before, middle, last = (repo.commit("side", name, allow_empty=True) for name in ("before", "middle", "last"))
    reparent(repo, last, before)
    collect(repo, middle)
    repo.create_tag("lost", before.id)
    repo.delete_tag("lost")
    repo.create_branch("away", "main")
    write(repo, "away", dropped="7")
    repo.delete_branch("away", force=True)


def discard(repo):
    """What hard delete condemned, and what it watches."""
    repo.hard_delete.switch(HardDeleteSetting(timedelta(days=9), 0.25))
    write(repo, "dev", over="8")
    write(repo, "dev", over="9")


def leave_records(repo, address):
    """A row, with values of its own in every column, wherever a run or a person leaves one."""
    at = repo.clock()
    add_hold(repo, Hold("hold-1", HoldKind.PREFIX, "raw/", "audit", at, at + timedelta(days=9)))
    with moving(repo.core) as move:
        move.do(PolicySet("lifecycle", {"rules": []}, ("much",)))
    run = ledger.RunRow("run-1", "gc", "all", "delete", at, at, ledger.RunState.PARTLY, 4, 50, 3, 4, 5, 6)
    run = replace(run, measure="objects", stored_objects=70, stored_bytes=800, period=9, agreed=1)
    done = ledger.BatchRow(0, "", asked=3, held_again=1, tables=1)
    with repo.database.write() as tx:
        tombstones.condemn(tx, repo.uid, [Tombstone(address, "run-1", "old", at, 5, 0, State.TRASHED)])
        tombstones.lift(tx, repo.uid, "run-1", [address], State.RESTORING, at=at)
        ledger.begin(tx, repo.uid, run)
        ledger.write_ahead(tx, repo.uid, "run-1", done)
        ledger.write_result(tx, repo.uid, "run-1", replace(done, file="0", removed=1, gone=1, removed_bytes=5), at=at)
        watermarks.write(tx, repo.uid, "gc", "run-1", {"seen": 1})
        budget.lease(tx, repo.uid, 6.0)
        intents.write(tx, repo.uid, "ab" * 16)
        locks.take(tx, repo.uid, run="run-1", owner="process 1 on nowhere aaaa")
        tx.execute("UPDATE locks SET owner = ''")
        tx.execute("UPDATE repositories SET clock_right_at = 1, quiet_since = 2, quiet_seen_at = 3")
        tx.execute("UPDATE repositories SET kept_since = 4, ask_again_from = 5, recovered = 1")


@pytest.fixture(params=range(1, schema.VERSION + 1))
def old(request, tmp_path, database_url):
    return Old(str(tmp_path / "lake"), database_url, request.param)


def version(database):
    with database.read() as tx:
        return tx.one("SELECT value FROM settings WHERE key = 'schema'")[0]


def test_there_is_a_file_for_every_version_there_has_been():
    assert {path.name for path in SCHEMAS.iterdir()} == {f"{n}.sql" for n in range(1, schema.VERSION + 1)}


def test_no_table_is_empty_and_no_column_the_same_as_if_it_had_been_unknown(old):
    """Else the tests below would prove nothing of it."""
    assert [table for table, rows in old.rows.items() if not rows] == []
    for table, unknown in UNKNOWN.items():
        for column, value in unknown.items():
            found = {row[column] for row in old.rows.get(table, []) if column in row}
            assert found != {value}, (table, column)


def test_everything_is_as_it_was(old):
    lake = old.open()
    repo = lake.repository("demo")
    assert version(lake.database) == str(schema.VERSION)
    assert [commit.id for commit in repo.log("main", "dev")] == old.log
    assert old.readable(repo) == old.contents
    assert oracle.staged(repo) == old.staged
    assert oracle.committed(repo) == old.committed
    assert repo.generation() == old.generation
    found = check(repo, deep=True)
    assert found.sound, found.findings
    lake.close()


def test_every_row_says_what_it_said(old):
    """Each is there with what it had; what it did not have is what that meant; and there are no others."""
    lake = old.open()
    found = rows_of(lake.database)
    expected = {
        RENAMED_TABLES.get(table, table): sorted((brought_over(table, row, old) for row in rows), key=repr)
        for table, rows in old.rows.items()
    }
    assert found == {table: [] for table in found} | expected
    lake.close()


def brought_over(table, row, old):
    """A row of an older version as it must be today."""
    known = {RENAMED.get((table, name), name): value for name, value in row.items()}
    if table == "repositories" and "journal_from" not in known:
        known["journal_from"] = known["generation"] + 1
    if table == "repositories" and "commit_rows" not in known:
        for what, rows in (("commit", "commits"), ("branch", "branches"), ("tag", "tags"), ("hold", "holds")):
            known[f"{what}_rows"] = len(old.rows.get(rows, []))
    if table == "staging":
        (known["address"],) = (one["address"] for one in old.newest["staging"] if known.items() <= one.items())
    if row == {"key": "schema", "value": str(old.version)}:
        known["value"] = str(schema.VERSION)
    return dict(sorted((UNKNOWN.get(table, {}) | known).items()))


def test_tables_are_those_of_a_new_lake(old, tmp_path, new_url):
    """A lake that was brought up to date and one made today differ in nothing that a statement could notice."""
    lake = old.open()
    fresh = Lake.create(Location(str(tmp_path / "fresh"), new_url(), None))
    assert shape(lake.database) == shape(fresh.database)
    for made in (lake, fresh):
        made.close()


def test_what_was_staged_is_found_by_its_address(old):
    lake = old.open()
    assert len(old.staged) == 4 + (old.version >= 6)  # staged, two under one path, and a copy; and what is watched
    with lake.database.read() as tx:
        assert staging.holders(tx, [*old.staged, *old.committed, "nosuch"]) == old.staged
        rows = tx.rows("SELECT value, address FROM staging")
    assert len(rows) == old.rows_staged
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
        edits = [run.edits for run in ledger.every(tx, repo.uid)]
    assert edits == {1: [], 2: [0]}.get(old.version, [6])  # the first kept no runs, the second counted no edits
    lake.close()


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
    # where one notes it that keeps no journal, that does not count rows, or that knows nothing of fresh uploads
    for table in ("moves", "journal", "moves_made"):
        noted = f"INSERT INTO {table} (repository, generation, mark) SELECT uid, generation + 1, ? FROM repositories"
        with pytest.raises(DesiltError), lake.database.write() as tx:
            tx.execute(noted, "a mark")
    assert repo.generation() == old.generation
    lake.close()


@pytest.mark.parametrize("old", [1, 2, 3], indirect=True)
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

    def again(_tx, _run):
        raise AssertionError("a step was taken twice")

    monkeypatch.setattr(schema, "LAKE", replace(schema.LAKE, steps=(again,) * len(schema.LAKE.steps)))
    old.open().close()  # nothing is left to do
    database = open_database(old.url)
    upgrade(database, schema.LAKE)  # nor for whoever asks for it by name
    database.close()


def test_a_newer_database_is_refused_and_left_alone(old):
    lake = old.open()
    with lake.database.write() as tx:
        tx.execute("UPDATE settings SET value = ? WHERE key = 'schema'", str(schema.VERSION + 1))
    lake.close()
    before = old.state()
    with pytest.raises(NewerSchema, match=f"schema {schema.VERSION + 1}.* upgrade desilt"):
        old.open()
    assert old.state() == before


@pytest.mark.parametrize("old", [schema.VERSION], indirect=True)
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
    before = old.state()
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
                assert old.state() == before
            finally:
                database.close()
    assert statements > {1: 30, 2: 20, 3: 15, 4: 12, 5: 5, 6: 1, 7: -1}[old.version]
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
    before = old.state()
    with pytest.raises(DesiltError):
        old.open()
    assert old.state() == before


@pytest.mark.parametrize("old", [1, schema.VERSION - 1], indirect=True)  # the most steps, and the fewest
def test_processes_that_open_it_at_once_bring_it_up_to_date_once(old):
    command = [sys.executable, "-c", OPEN, old.place, old.url]
    branches = len(old.rows["branches"])
    running = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for one in running:
        assert one.stdout.readline() == "ready\n"
    for one in running:
        one.stdin.write("\n")
        one.stdin.flush()
    assert [one.communicate(timeout=FOR_EVER)[0] for one in running] == [f"{branches}\n"] * 3
    assert [one.returncode for one in running] == [0] * 3
    lake = old.open()
    assert oracle.staged(lake.repository("demo")) == old.staged
    lake.close()


@pytest.mark.parametrize("old", [1, schema.VERSION - 1], indirect=True)
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
        assert tx.one("SELECT count(*) FROM staging")[0] == old.rows_staged
    old.open().close()
    with database.read() as tx:
        assert len(tx.rows("SELECT token, path, value FROM staging")) == old.rows_staged
    database.close()
