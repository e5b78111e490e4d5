"""A database of records alone: where it is, what it holds, and what is refused in its place."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from desilt.errors import InvalidUri, Locked, NewerSchema, StorageFailed, Unreadable
from desilt.lake import Lake
from desilt.lake import schema as lake_schema
from desilt.lake.lake import Location
from desilt.records import budget, elsewhere, holds, ledger, locks, policies, removals, revisions, schema, watermarks
from desilt.records.database import open_database
from desilt.records.opening import open_records
from patience import FOR_EVER
from shapes import rows_of, shape

NOW = datetime(2026, 1, 1, tzinfo=UTC)
REPOSITORY = "lakefs://there/repo"

OPEN = """
import sys
from desilt.records.opening import open_records
from desilt.records import watermarks
print("ready", flush=True)
sys.stdin.readline()
with open_records(sys.argv[1]).write() as tx:
    watermarks.write(tx, sys.argv[2], "gc", "run", {})
"""


@pytest.fixture(autouse=True)
def _at_home(monkeypatch, tmp_path):
    monkeypatch.delenv("DESILT_DB", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def state_of(url):
    """All that a refusal must leave as it was."""
    database = open_database(url)
    found = shape(database), rows_of(database)
    database.close()
    return found


def statements(url, *several):
    database = open_database(url, create=True)
    with database.write() as tx:
        for one in several:
            tx.execute(one)
    database.close()


def make_lake(url):
    database = open_database(url, create=True)
    lake_schema.create(database, storage="")
    database.close()


def test_it_is_made_at_its_first_use_and_found_again(database_url):
    first = open_records(database_url)
    with first.write() as tx:
        watermarks.write(tx, REPOSITORY, "gc", "run-1", {"at": 1})
    first.close()
    again = open_records(database_url)
    with again.read() as tx:
        assert watermarks.find(tx, REPOSITORY, "gc") == ("run-1", {"at": 1})
    again.close()


def test_two_may_share_a_server_each_in_a_schema_of_its_own(fresh_postgres_url):
    server = fresh_postgres_url()
    statements(server, "CREATE SCHEMA one", "CREATE SCHEMA two")
    first, second = (f"{server}&options=-csearch_path%3D{name}" for name in ("one", "two"))
    with open_records(first).write() as tx:
        watermarks.write(tx, REPOSITORY, "gc", "run", {})
    with open_records(second).read() as tx:
        assert watermarks.find(tx, REPOSITORY, "gc") is None
    with open_records(first).read() as tx:
        assert watermarks.find(tx, REPOSITORY, "gc") == ("run", {})


def test_everything_that_is_recorded_has_its_place(database_url):
    database = open_records(database_url)
    stone = removals.Tombstone("data/a", "run-1", "old", NOW, 5, 0)
    run = ledger.RunRow("run-1", "gc", "{}", "delete", NOW, None, ledger.RunState.SWEEPING, 1, 5)
    hold = holds.Hold("h1", holds.HoldKind.PREFIX, "raw/", "audit", NOW, None, 3)
    with locks.held(database, REPOSITORY, run="run-1") as lock:
        with pytest.raises(Locked), locks.held(database, REPOSITORY, run="run-2"):
            pass
        with database.write() as tx:
            locks.check(tx, lock)
            ledger.begin(tx, REPOSITORY, run)
            ledger.write_ahead(tx, REPOSITORY, "run-1", ledger.BatchRow(0, "", asked=1))
            removals.condemn(tx, REPOSITORY, [stone])
            policies.write(tx, REPOSITORY, "lifecycle", {"rules": []}, ["much"], at=NOW)
            holds.add(tx, REPOSITORY, hold)
            watermarks.write(tx, REPOSITORY, "gc", "run-1", {})
            assert budget.lease(tx, REPOSITORY, 1.0) == 0.0
            seen = revisions.see(tx, REPOSITORY, "refs", "commits", now=NOW)
        with database.write() as tx:
            removals.settle(tx, REPOSITORY, "run-1", 0, removals.State.REMOVED)
            assert ledger.write_result(tx, REPOSITORY, "run-1", ledger.BatchRow(0, "0.parquet", 1, 1), at=NOW)
    secret = elsewhere.secret_of(database, REPOSITORY, "lakefs://repo", now=NOW)
    assert elsewhere.secret_of(database, REPOSITORY, "lakefs://repo", now=NOW) == secret
    with database.read() as tx:
        assert revisions.newest(tx, REPOSITORY) == seen
        assert ledger.find(tx, REPOSITORY, "run-1") == run
        assert ledger.removed_since(tx, REPOSITORY, NOW) == (1, 0)
        assert removals.find(tx, REPOSITORY, "data/a").state is removals.State.REMOVED
        assert policies.find(tx, REPOSITORY, "lifecycle").agreed == {"much"}
        assert holds.every(tx, REPOSITORY) == [hold]
    with database.write() as tx:
        assert holds.remove(tx, REPOSITORY, "h1") == hold
        assert holds.every(tx, REPOSITORY) == []
    assert all(rows_of(database)[table] for table in shape(database).keys() - {"holds"})
    database.close()


def test_tables_are_those_a_lake_has_for_its_records_and_two_that_it_needs_not(new_url):
    urls = new_url(), new_url()
    make_lake(urls[0])
    open_records(urls[1]).close()
    of_lake, of_records = (state_of(url)[0] for url in urls)
    of_others = {"repositories": of_records.pop("repositories"), "revisions": of_records.pop("revisions")}
    assert of_lake["repositories"] != of_others["repositories"]  # its own, which are another thing
    assert "revisions" not in of_lake
    assert of_records == {table: of_lake[table] for table in of_records}
    assert set(of_records) == {
        "settings", "locks", "runs", "batches", "tombstones", "policies", "holds", "watermarks", "delete_budgets",
    }  # fmt: skip


@pytest.mark.parametrize("said", [None, "state", "not/absolute"])
def test_unless_named_it_is_in_the_users_state_directory(said, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    if said is not None:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / said) if said == "state" else said)
    open_records().close()
    expected = tmp_path / "state" if said == "state" else tmp_path / "home/.local/state"
    assert [path.parent for path in tmp_path.rglob("records.db")] == [expected / "desilt"]
    assert (expected / "desilt").stat().st_mode & 0o777 == 0o700


def test_a_name_counts_before_the_variable_and_that_before_the_directory(new_url, monkeypatch, tmp_path):
    variable, argument = new_url(), new_url()
    monkeypatch.setenv("DESILT_DB", variable)
    for url, opened in ((variable, open_records()), (argument, open_records(argument))):
        assert opened.url == url
        opened.close()
    assert not (tmp_path / "home").exists()
    monkeypatch.setenv("DESILT_DB", "")
    open_records().close()
    assert (tmp_path / "home").exists()


def test_a_state_directory_that_cannot_be_made_is_told(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(StorageFailed, match=r"cannot make .*--db"):
        open_records()


@pytest.mark.parametrize("from_before", [False, True])
def test_a_lakes_database_is_refused_and_left_alone(database_url, from_before):
    make_lake(database_url)
    if from_before:
        statements(database_url, "DELETE FROM settings WHERE key = 'kind'")
    before = state_of(database_url)
    with pytest.raises(InvalidUri, match="is a lake database, not a records database; name another"):
        open_records(database_url)
    assert state_of(database_url) == before


def test_a_lake_from_before_is_not_brought_up_to_date_in_passing(database_url):
    text = (Path(__file__).parents[1] / "lake/schemas/1.sql").read_text()
    types = open_database(database_url, create=True).types
    statements(database_url, *text.format(**types).split(";\n")[:-1], "INSERT INTO settings VALUES ('schema', '1')")
    before = state_of(database_url)
    with pytest.raises(InvalidUri, match="is a lake database"):
        open_records(database_url)
    assert state_of(database_url) == before


def test_it_is_refused_in_place_of_a_lake_and_left_alone(database_url, tmp_path):
    open_records(database_url).close()
    before = state_of(database_url)
    for way_in in (Lake.open, Lake.create):
        with pytest.raises(InvalidUri, match="is a records database, not a lake database; name another"):
            way_in(Location(str(tmp_path / "lake"), database_url, None))
    assert state_of(database_url) == before


def test_a_lake_says_that_it_is_one(database_url, tmp_path):
    Lake.create(Location(str(tmp_path / "lake"), database_url, None)).close()
    assert {"key": "kind", "value": "lake"} in state_of(database_url)[1]["settings"]


@pytest.mark.parametrize(
    ("table", "error", "words"),
    [
        ("CREATE TABLE bookmarks (id INTEGER)", InvalidUri, "has tables that are not desilt's; name another"),
        ("CREATE TABLE runs (id INTEGER)", InvalidUri, "has tables that are not desilt's; name another"),
        ("CREATE TABLE settings (name TEXT, value TEXT)", Unreadable, "'settings' that is not desilt's"),
        ("CREATE TABLE settings (volume INTEGER)", Unreadable, "'settings' that is not desilt's"),
    ],
)
def test_a_database_of_another_program_is_refused_and_left_alone(database_url, table, error, words):
    name = table.split()[2]
    columns = table.count(",") + 1
    statements(database_url, table, f"INSERT INTO {name} VALUES ({', '.join(['1'] * columns)})")
    before = state_of(database_url)
    with pytest.raises(error, match=words):
        open_records(database_url)
    assert state_of(database_url) == before


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path):
    (tmp_path / "letter.txt").write_text("Dear all, " * 100)
    with pytest.raises(Unreadable):
        open_records(f"sqlite://{tmp_path}/letter.txt")
    assert (tmp_path / "letter.txt").read_text() == "Dear all, " * 100


def test_one_of_a_later_desilt_is_refused_and_left_alone(database_url):
    open_records(database_url).close()
    statements(database_url, f"UPDATE settings SET value = '{schema.VERSION + 1}' WHERE key = 'schema'")
    before = state_of(database_url)
    with pytest.raises(NewerSchema):
        open_records(database_url)
    assert state_of(database_url) == before


def test_processes_that_open_it_at_once_make_it_once(database_url):
    command = [sys.executable, "-c", OPEN, database_url]
    running = [
        subprocess.Popen([*command, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for number in range(3)
    ]
    for one in running:
        assert one.stdout.readline() == "ready\n"
    for one in running:
        one.stdin.write("\n")
        one.stdin.flush()
    for one in running:
        one.communicate(timeout=FOR_EVER)
    assert [one.returncode for one in running] == [0] * 3
    assert [row["repository"] for row in state_of(database_url)[1]["watermarks"]] == ["0", "1", "2"]
