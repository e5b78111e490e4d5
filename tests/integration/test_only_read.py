"""A lake that may only be read can be read, and says so when more is asked of it."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from desilt.errors import StorageFailed
from desilt.records import sqlite
from desilt.records.sqlite import SQLite


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "lake.db"
    database = SQLite(f"sqlite://{path}", create=True)
    with database.write() as write:
        write.execute("CREATE TABLE t (n INTEGER)")
    database.close()
    return path


@pytest.fixture
def reader(path, monkeypatch):
    monkeypatch.setattr(sqlite, "may_write", lambda _: False)
    return SQLite(f"sqlite://{path}")


def insert(path, *, stay=False):
    """Somebody else adds a row; whoever stays leaves it in the log."""
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("INSERT INTO t VALUES (1)")
    if not stay:
        writer.close()
    return writer


def rows(database):
    with database.read() as read:
        return len(read.rows("SELECT n FROM t"))


def test_each_look_sees_what_was_written_until_then_in_the_file_or_in_the_log(path, reader):
    assert rows(reader) == 0
    insert(path)
    assert rows(reader) == 1
    with closing(insert(path, stay=True)):
        assert rows(reader) == 2
    assert rows(reader) == 2


def test_a_look_beside_a_writer_is_at_one_moment(path, reader):
    with closing(insert(path, stay=True)), reader.read() as read:
        assert len(read.rows("SELECT n FROM t")) == 1
        insert(path)
        assert len(read.rows("SELECT n FROM t")) == 1
    assert rows(reader) == 2


@pytest.mark.parametrize("stay", [True, False])
def test_a_look_at_a_file_that_was_quiet_and_then_was_not_is_no_answer(path, reader, stay):
    def look():
        with reader.read() as read, closing(read.rows("SELECT n FROM t") or insert(path, stay=stay)):
            pass

    with pytest.raises(StorageFailed, match="was changed while it was read; try again"):
        look()


def test_nothing_is_written(path, reader):
    before = path.read_bytes()
    with pytest.raises(StorageFailed, match="may only be read here"), reader.write():
        raise AssertionError("let in")
    assert path.read_bytes() == before
    assert sorted(found.name for found in path.parent.iterdir()) == ["lake.db"]


def test_a_link_to_a_database_is_the_database(path, reader, tmp_path):
    """Its log is beside the file, not beside the link."""
    link = tmp_path / "elsewhere" / "lake.db"
    link.parent.mkdir()
    link.symlink_to(path)
    with closing(insert(path, stay=True)):
        assert rows(SQLite(f"sqlite://{link}")) == rows(reader) == 1


def test_whether_a_database_may_be_written_is_asked_of_its_own_folder(path, tmp_path, monkeypatch):
    """SQLite has its log there, wherever the link lies; folders on the way to it may be links too."""
    link, way = tmp_path / "elsewhere" / "lake.db", tmp_path / "way"
    link.parent.mkdir()
    link.symlink_to(path)
    way.symlink_to(path.parent)
    refused = {str(path.parent)}
    monkeypatch.setattr(os, "access", lambda name, _: os.path.realpath(name) not in refused)
    assert [sqlite.may_write(one) for one in (path, link, way / "lake.db")] == [False] * 3
    assert sqlite.may_write(path.with_name("new.db"))
    refused = {str(link.parent)}
    assert [sqlite.may_write(one) for one in (path, link, way / "lake.db")] == [True] * 3
    refused = {str(path)}
    assert [sqlite.may_write(one) for one in (path, link, way / "lake.db")] == [False] * 3


SCRIPT = """
    mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" || exit 77
    cd "$1"
    python=$2
    desilt() { "$python" -m desilt "$@"; }
    desilt lake get lake main a
    desilt lake log lake --json
    desilt pins lake --json
    desilt stats lake
    desilt explain lake a
    desilt fsck lake
    echo more | desilt lake put lake main b -
    echo "exit $?"
    desilt gc plan lake
    echo "exit $?"
"""


def test_a_lake_on_a_disk_that_is_mounted_to_be_read(cli, tmp_path):
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("no unshare here to mount a disk to be read only")
    (tmp_path / "file").write_text("hello")
    lake = f"{tmp_path}/lake"
    for words in (
        ("init", f"{lake}#demo"),
        ("put", lake, "main", "a", f"{tmp_path}/file"),
        ("commit", lake, "main", "-m", "one"),
    ):
        assert cli("lake", *words)[0] == 0
    command = [unshare, "-rm", "bash", "-c", SCRIPT, "sh", str(tmp_path), sys.executable]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"cannot mount a disk here: {done.stderr.strip()}")
    assert done.stdout.startswith("hello")
    assert done.stdout.count("exit 1\n") == 2
    errors = done.stderr.splitlines()
    assert len(errors) == 2, done.stderr
    assert all("may only be read" in line or "Read-only file system" in line for line in errors)
