"""How tables are brought up to date, whatever they are; and that every version of records' own becomes today's."""

import itertools
import threading
from pathlib import Path

import pytest

from desilt.errors import InvalidUri, NewerSchema, Unreadable
from desilt.records import schema
from desilt.records.database import open_database
from desilt.records.opening import open_records
from desilt.records.schema import SETTINGS, Schema
from shapes import rows_of, shape

SCHEMAS = Path(__file__).parent / "schemas"


def add_size(_tx, run):
    run("ALTER TABLE things ADD COLUMN size {int} NOT NULL DEFAULT 7")


def rename(tx, run):
    run("ALTER TABLE things RENAME COLUMN size TO weight")
    tx.execute("UPDATE things SET weight = weight * 2")


FIRST = Schema("shelf", (SETTINGS, "CREATE TABLE things (name TEXT PRIMARY KEY)"), ())
SECOND = Schema(
    "shelf", (SETTINGS, "CREATE TABLE things (name TEXT PRIMARY KEY, size {int} NOT NULL DEFAULT 7)"), (add_size,)
)
THIRD = Schema(
    "shelf",
    (SETTINGS, "CREATE TABLE things (name TEXT PRIMARY KEY, weight {int} NOT NULL DEFAULT 7)"),
    (add_size, rename),
)


@pytest.fixture
def database(database_url):
    opened = open_database(database_url, create=True)
    yield opened
    opened.close()


def settings(database):
    return {row["key"]: row["value"] for row in rows_of(database)["settings"]}


def test_a_version_is_one_more_than_the_steps_to_it():
    assert [one.version for one in (FIRST, SECOND, THIRD)] == [1, 2, 3]


def test_nothing_made_is_no_error(database):
    assert schema.check(database, THIRD) is None
    schema.upgrade(database, THIRD)
    assert shape(database) == {}


def test_what_is_made_since_a_look_began_is_not_there_for_it(database, database_url):
    """A table without the rows that came with it would be another program's."""
    other = open_database(database_url, create=True)
    with database.read() as tx:
        assert tx.is_empty()
        schema.create(other, THIRD)
        assert not tx.has_table("settings")
        assert tx.is_empty()
    other.close()
    assert schema.check(database, THIRD) == {"schema": "3", "kind": "shelf"}


def test_what_is_made_has_the_newest_tables_and_says_so(database):
    schema.create(database, THIRD, colour="red")
    assert schema.check(database, THIRD) == {"schema": "3", "kind": "shelf", "colour": "red"}


def test_made_twice_it_is_made_once(database):
    schema.create(database, THIRD, colour="red")
    schema.create(database, THIRD, colour="blue")
    assert settings(database)["colour"] == "red"


@pytest.mark.parametrize(("old", "weight"), [(FIRST, 14), (SECOND, 14), (THIRD, 7)])
def test_each_version_takes_the_steps_it_lacks_in_order(database, new_url, old, weight):
    schema.create(database, old)
    with database.write() as tx:
        tx.execute("INSERT INTO things (name) VALUES ('spade')")
    for _ in range(2):  # and once only
        assert schema.check(database, THIRD)["schema"] == "3"
    assert rows_of(database)["things"] == [{"name": "spade", "weight": weight}]
    fresh = open_database(new_url(), create=True)
    schema.create(fresh, THIRD)
    assert shape(database) == shape(fresh)
    fresh.close()


def test_whoever_makes_what_is_there_in_an_older_version_leaves_it_to_be_checked(database):
    schema.create(database, FIRST)
    schema.create(database, THIRD)
    assert settings(database)["schema"] == "1"
    assert schema.check(database, THIRD)["schema"] == "3"


def test_cut_off_anywhere_no_step_was_taken(database, monkeypatch):
    """Before each statement in turn; the last time, none is left to stop at."""
    schema.create(database, FIRST)
    before = shape(database), rows_of(database)
    with database.read() as tx:
        kind = type(tx)
    real = kind.execute
    for count in itertools.count():
        with monkeypatch.context() as patch:
            left = iter(range(count))

            def execute(self, *values, left=left):
                if values[0].startswith(("ALTER", "UPDATE")) and next(left, None) is None:
                    raise RuntimeError("cut off")
                return real(self, *values)

            patch.setattr(kind, "execute", execute)
            try:
                schema.check(database, THIRD)
                break
            except RuntimeError:
                pass
        assert (shape(database), rows_of(database)) == before
    assert count == 4


def test_threads_at_once_take_each_step_once(database):
    schema.create(database, FIRST)
    with database.write() as tx:
        tx.execute("INSERT INTO things (name) VALUES ('spade')")
    barrier, failed = threading.Barrier(4), []

    def checking():
        barrier.wait()
        try:
            schema.check(database, THIRD)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=checking) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert rows_of(database)["things"] == [{"name": "spade", "weight": 14}]


def test_a_newer_version_is_refused(database):
    schema.create(database, THIRD)
    with pytest.raises(NewerSchema, match="schema 3, this desilt knows up to 2; upgrade desilt"):
        schema.check(database, SECOND)


@pytest.mark.parametrize("act", [schema.create, schema.check, schema.upgrade])
def test_another_kind_is_refused_even_where_it_is_newer(database, act):
    schema.create(database, THIRD)
    with pytest.raises(InvalidUri, match="is a shelf database, not a records database"):
        act(database, schema.RECORDS)


@pytest.mark.parametrize("said", ["", "two", "-1", "0", "1.0"])
@pytest.mark.parametrize("act", [schema.create, schema.check, schema.upgrade])
def test_a_version_that_is_none_is_refused(database, act, said):
    schema.create(database, FIRST)
    with database.write() as tx:
        tx.execute("UPDATE settings SET value = ? WHERE key = 'schema'", said)
    with pytest.raises(Unreadable, match="not desilt's; use another database"):
        act(database, THIRD)


def test_there_is_a_file_for_every_version_there_has_been():
    assert {path.name for path in SCHEMAS.iterdir()} == {f"{n}.sql" for n in range(1, schema.VERSION + 1)}


@pytest.mark.parametrize("version", range(1, schema.VERSION + 1))
def test_every_version_of_records_becomes_todays(database, new_url, version):
    with database.write() as tx:
        for statement in (SCHEMAS / f"{version}.sql").read_text().format(**database.types).split(";\n")[:-1]:
            tx.execute(statement)
        for key, value in (("schema", str(version)), ("kind", "records")):
            tx.execute("INSERT INTO settings VALUES (?, ?)", key, value)
    opened, fresh = open_records(database.url), open_records(new_url())
    assert shape(opened) == shape(fresh)
    assert settings(opened) == settings(fresh)
    opened.close()
    fresh.close()
