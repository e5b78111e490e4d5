"""The command line as people meet it: what it prints, what it refuses, what it leaves alone."""

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def repo(cli, tmp_path):
    name = f"{tmp_path}/lake#demo"
    assert cli("lake", "init", name)[0] == 0
    return name


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "file"
    path.write_text("hello")
    return path


def snapshot(repo):
    """Every byte of a lake: its database, logically, and its files."""
    directory = Path(repo.split("#")[0])
    with sqlite3.connect(directory / "desilt.db") as connection:
        rows = list(connection.iterdump())
    return rows, sorted((str(path), path.read_bytes()) for path in (directory / "repos").rglob("*") if path.is_file())


def test_a_day_with_a_lake(cli, repo, file):
    assert cli("lake", "put", repo, "main", "a/b", file)[0] == 0
    assert cli("lake", "commit", repo, "main", "-m", "first")[0] == 0
    assert cli("lake", "branch", repo, "dev")[0] == 0
    assert cli("lake", "mv", repo, "dev", "a/b", "a/c")[0] == 0
    assert cli("lake", "diff", repo, "dev")[1] == "- a/b\n+ a/c\n"
    assert cli("lake", "commit", repo, "dev", "-m", "second")[0] == 0
    assert cli("lake", "merge", repo, "dev", "main")[0] == 0
    assert cli("lake", "get", repo, "main", "a/c")[1] == "hello"
    assert cli("lake", "get", repo, "main", "a/c", "--range", "1-2")[1] == "el"
    assert "a/" in cli("lake", "ls", repo, "main")[1]
    assert cli("lake", "log", repo, "--graph")[1].count("●") == 4


def test_json_is_one_object_a_line_and_exact(cli, repo, file):
    cli("lake", "put", repo, "main", "a\tb", file, "--json")
    (row,) = map(json.loads, cli("lake", "ls", repo, "main", "--json")[1].splitlines())
    assert (row["path"], row["size"]) == ("a\tb", 5)
    (branch,) = map(json.loads, cli("lake", "branches", repo, "--json")[1].splitlines())
    assert branch["branch"] == "main"


def test_a_path_that_ends_in_a_slash_is_where_a_file_goes_under_its_name(cli, repo, file):
    assert cli("lake", "put", repo, "main", "a/b/", file)[0] == 0
    assert cli("lake", "get", repo, "main", "a/b/file")[1] == "hello"
    assert cli("lake", "get", repo, "main", "a/b/")[0] == 1


def test_a_range_begins_within_the_object(cli, repo, file):
    cli("lake", "put", repo, "main", "a", file)
    assert cli("lake", "get", repo, "main", "a", "--range", "4-9")[1] == "o"
    code, out, err = cli("lake", "get", repo, "main", "a", "--range", "5-9")
    assert (code, out) == (2, "")
    assert "begins at byte 5, and the object has 5" in err


def test_a_terminal_is_never_sent_what_a_path_says(cli, repo, file):
    cli("lake", "put", repo, "main", "\x1b[31mred", file)
    assert "\x1b" not in cli("lake", "ls", repo, "main")[1]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["put", "REPO", "main", "", "FILE"], 2, "empty"),
        (["put", "REPO", "main", "x" * 1025, "FILE"], 2, "1,025 bytes"),
        (["put", "REPO", "main", "\udce9", "FILE"], 2, "UTF-8"),
        (["put", "REPO", "nosuch", "a", "FILE"], 1, "'nosuch'"),
        (["put", "REPO", "main", "a", "/no/such/file"], 2, "/no/such/file"),
        (["get", "REPO", "main", "nosuch"], 1, "'nosuch'"),
        (["get", "REPO", "main", "a", "--range", "5-1"], 2, "5-1"),
        (["put", "REPO", "main", "a/", "-"], 2, "stdin has no name"),
        (["ls", "REPO", "nosuch"], 1, "'nosuch'"),
        (["ls", "REPO", "main~7"], 1, "main~7"),
        (["rm", "REPO", "main", "nosuch"], 1, "'nosuch'"),
        (["rm", "REPO", "main", "nosuch", "-r"], 1, "'nosuch'"),
        (["mv", "REPO", "main", "nosuch", "b"], 1, "'nosuch'"),
        (["cp", "REPO", "main", "nosuch", "main", "b"], 1, "'nosuch'"),
        (["commit", "REPO", "main", "-m", "x"], 1, "nothing to commit"),
        (["commit", "REPO", "main"], 2, "--message"),
        (["branch", "REPO", "a/b"], 2, "'a/b'"),
        (["branch", "REPO", "main"], 1, "exists"),
        (["delete-branch", "REPO", "main"], 2, "default branch"),
        (["tag", "REPO", "a b", "main"], 2, "'a b'"),
        (["delete-tag", "REPO", "nosuch"], 1, "'nosuch'"),
        (["merge", "REPO", "main", "nosuch"], 1, "'nosuch'"),
        (["merge", "REPO", "main", "main", "--strategy", "best"], 2, "best"),
        (["revert", "REPO", "main", "main"], 2, "first commit"),
        (["reset", "REPO", "main"], 2, "--all"),
        (["reset", "REPO", "main", "--path", "nosuch"], 1, "'nosuch'"),
        (["diff", "REPO", "main", "nosuch"], 1, "'nosuch'"),
        (["init", "REPO"], 1, "exists"),
        (["init", "LAKE#Bad Name"], 2, "'Bad Name'"),
        (["ls", "LAKE#nosuch", "main"], 1, "'nosuch'"),
        (["ls", "LAKE-nosuch#demo", "main"], 1, "lake init"),
        (["ls", "ftp://host#demo", "main"], 2, "ftp://host#demo"),
        (["ls", "s3://bucket#demo", "main"], 2, "--db"),
        (["ls", "REPO", "main", "--db", "mysql://host"], 2, "mysql://host"),
        (["nosuch"], 2, "nosuch"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_changes_nothing(cli, repo, file, arguments, code, says):
    before = snapshot(repo)
    real = {"REPO": repo, "LAKE": repo.split("#")[0], "FILE": str(file)}
    filled = [
        argument.replace("LAKE", real["LAKE"]) if "LAKE" in argument else real.get(argument, argument)
        for argument in arguments
    ]
    found, out, err = cli("lake", *filled)
    assert (found, out) == (code, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert says in err
    assert snapshot(repo) == before
    assert not Path(f"{real['LAKE']}-nosuch").exists()


def test_a_database_of_a_newer_desilt_is_left_alone(cli, repo):
    with sqlite3.connect(f"{repo.split('#')[0]}/desilt.db") as connection:
        connection.execute("UPDATE settings SET value = '999' WHERE key = 'schema'")
    before = snapshot(repo)
    code, _, err = cli("lake", "ls", repo, "main")
    assert code == 1
    assert "upgrade desilt" in err
    assert cli("lake", "init", repo.replace("#demo", "#other"))[0] == 1
    assert snapshot(repo) == before


def test_a_file_that_is_no_database_is_named(cli, repo):
    database = Path(repo.split("#")[0]) / "desilt.db"
    for leftover in database.parent.glob("desilt.db-*"):
        leftover.unlink()
    database.write_bytes(b"not a database at all" * 100)
    code, _, err = cli("lake", "ls", repo, "main")
    assert (code, err.count("\n")) == (1, 1)
    assert "desilt.db" in err


@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_damaged_committed_metadata_is_one_line(cli, repo, file, damage):
    cli("lake", "put", repo, "main", "a", file)
    cli("lake", "commit", repo, "main", "-m", "x")
    for path in Path(repo.split("#")[0]).glob("repos/*/_lakefs/*"):
        raw = bytearray(path.read_bytes())
        if damage == "remove":
            path.unlink()
            continue
        raw[10] ^= 0xFF
        path.write_bytes(raw if damage == "flip" else raw[:-20])
    code, out, err = cli("lake", "ls", repo, "main")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "corrupt" in err


def test_a_full_disk_is_one_line_and_changes_nothing(tmp_path):
    """A lake on a disk of 2 MB: an upload, then the database, find no room; the lake is whole afterwards."""
    script = f"""
        mount -t tmpfs -o size=2m none "$1" || exit 77
        cd "$1"
        desilt() {{ {sys.executable} -m desilt "$@"; }}
        desilt lake init lake#demo
        echo hello | desilt lake put lake main kept -
        head -c 4000000 /dev/urandom | desilt lake put lake main big - ; echo "exit $?"
        head -c 2000000 /dev/zero > filler
        seq 1000 | while read n; do echo more | desilt lake put lake main small-$n - || break; done; echo "exit $?"
        rm filler
        desilt lake commit lake main -m fine
        desilt lake get lake main kept
    """
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("no unshare here to mount a small disk with")
    done = subprocess.run([unshare, "-rm", "bash", "-c", script, "sh", str(tmp_path)], capture_output=True, text=True)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"cannot mount a small disk here: {done.stderr.strip()}")
    errors = [line for line in done.stderr.splitlines() if not line.startswith("head:")]
    assert len(errors) == 2, done.stderr
    assert all(line.startswith("error: ") and "space" in line for line in errors)
    assert "exit 1\n" in done.stdout
    assert done.stdout.endswith("hello\n")


def test_the_lake_may_be_moved_with_its_directory(cli, repo, file, tmp_path):
    cli("lake", "put", repo, "main", "a", file)
    shutil.move(repo.split("#")[0], tmp_path / "elsewhere")
    assert cli("lake", "get", f"{tmp_path}/elsewhere", "main", "a")[1] == "hello"


def test_a_database_elsewhere_belongs_to_one_place(cli, tmp_path):
    database = f"sqlite://{tmp_path}/my.db"
    assert cli("lake", "init", f"{tmp_path}/one#demo", "--db", database)[0] == 0
    code, _, err = cli("lake", "ls", f"{tmp_path}/two#demo", "main", "--db", database)
    assert code == 2
    assert "one" in err


def test_a_reader_that_goes_away_is_no_error(cli, repo, file):
    for number in range(3):
        assert cli("lake", "put", repo, "main", f"f{number}", file)[0] == 0
    command = f"{sys.executable} -m desilt lake ls '{repo}' main | head -1"
    result = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.usefixtures("spark")
def test_the_demo_shows_and_cleans_up(cli, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    code, out, _ = cli("demo")
    assert code == 0
    assert "garbage" in out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("spark")
def test_the_demo_keeps_its_lake_on_request(cli, tmp_path):
    assert cli("demo", "--keep", tmp_path / "kept")[0] == 0
    assert "models/" in cli("lake", "ls", f"{tmp_path}/kept", "main")[1]
    code, _, err = cli("demo", "--keep", tmp_path / "kept")
    assert code == 1
    assert "empty or a new one" in err
    figures = json.loads(cli("demo", "--json")[1])
    assert figures["garbage"]["objects"] == 14
    assert [row["objects"] for row in figures["garbage_by_branch"]] == [8, 5, 1]


def test_a_scenario_becomes_a_repository(cli, tmp_path):
    story, repo = tmp_path / "story.jsonl", f"{tmp_path}/lake#story"
    story.write_text(
        '{"do": "put", "branch": "main", "path": "a", "bytes": 7, "at": "2026-01-05", "say": "it begins"}\n'
        '{"do": "commit", "branch": "main", "message": "first", "at": "+30d"}\n'
    )
    code, out, _ = cli("lake", "replay", story, repo)
    assert (code, out.splitlines()[0]) == (0, "2026-01-05 00:00:00  it begins")
    assert "2 operations" in out
    assert "2026-02-04 00:00:00" in cli("lake", "log", repo, "--graph")[1]
    before = snapshot(repo)
    code, out, err = cli("lake", "replay", story, repo)
    assert (code, out) == (1, "")
    assert "exists already" in err
    assert snapshot(repo) == before
    row = json.loads(cli("lake", "replay", story, f"{tmp_path}/lake#other", "--json")[1])
    assert (row["operations"], row["commits"], row["objects"], row["bytes"]) == (2, 2, 1, 7)
    assert (row["from"], row["to"]) == ("2026-01-05T00:00:00.000000Z", "2026-02-04T00:00:00.000000Z")


@pytest.mark.parametrize(
    ("line", "code", "says", "made"),
    [
        (b'{"do": "putt"}', 2, "story.jsonl:2: there is no operation 'putt'", False),
        (b'{"say": "\xff"}', 2, "story.jsonl:2: this is not UTF-8", False),
        (b'{"do": "delete", "branch": "main", "path": "b"}', 1, "story.jsonl:2: delete: there is no object 'b'", True),
        (b'{"do": "put", "branch": "main", "path": ""}', 2, "story.jsonl:2: put: path '' is empty", True),
    ],
)
def test_a_scenario_stops_at_the_line_that_is_wrong(cli, tmp_path, line, code, says, made):
    story, repo = tmp_path / "story.jsonl", f"{tmp_path}/lake#story"
    story.write_bytes(b'{"do": "put", "branch": "main", "path": "a"}\n' + line)
    found, out, err = cli("lake", "replay", story, repo)
    assert (found, out, err.count("\n")) == (code, "", 1)
    assert says in err
    assert Path(tmp_path, "lake").exists() == made
    assert not made or "a\n" in cli("lake", "ls", repo, "main")[1]


@pytest.mark.parametrize("repo", ["lake", "lake#A B", "s3://bucket/lake#story"])
def test_a_scenario_needs_a_new_repository_in_a_directory(cli, tmp_path, monkeypatch, repo):
    monkeypatch.chdir(tmp_path)
    Path("story.jsonl").write_text('{"say": "hello"}')
    assert cli("lake", "replay", "story.jsonl", repo, "--db", f"sqlite://{tmp_path}/new.db")[0] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["story.jsonl"]


def test_a_lake_on_s3_with_postgresql(cli, s3_server, fresh_postgres_url, file, monkeypatch):
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("DESILT_DB", fresh_postgres_url())
    repo = f"{s3_server.create_bucket('walk')}/lake#demo"
    assert cli("lake", "init", repo)[0] == 0
    for path in ("a/b", "a//b", "a%20b", "é"):
        assert cli("lake", "put", repo, "main", path, file)[0] == 0
    assert cli("lake", "commit", repo, "main", "-m", "first")[0] == 0
    assert cli("lake", "branch", repo, "dev")[0] == 0
    assert cli("lake", "cp", repo, "main", "a/b", "dev", "copy")[0] == 0
    assert cli("lake", "commit", repo, "dev", "-m", "second")[0] == 0
    assert cli("lake", "merge", repo, "dev", "main")[0] == 0
    assert cli("lake", "get", repo, "main", "copy", "--range", "1-3")[1] == "ell"
    listed = [json.loads(line)["path"] for line in cli("lake", "ls", repo, "main", "-r", "--json")[1].splitlines()]
    assert listed == ["a%20b", "a//b", "a/b", "copy", "é"]
    code, _, err = cli("lake", "ls", repo.replace("/lake#", "/other#"), "main")
    assert (code, err.count("\n")) == (2, 1)


def test_a_database_that_does_not_answer_is_one_line_without_its_password(cli):
    code, _, err = cli("lake", "ls", "x#demo", "main", "--db", "postgresql://me:secret@127.0.0.1:1/db")
    assert (code, err.count("\n")) == (1, 1)
    assert "secret" not in err
