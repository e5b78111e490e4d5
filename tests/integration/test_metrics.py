"""`--metrics`: figures that a collector of Prometheus reads, however a command ends."""

import re
from datetime import UTC, datetime

import pytest

from desilt.records.ledger import RunState
from desilt.runs.metrics import escaped
from desilt.sweep import batches
from words import committed, days, put

START = datetime(2026, 1, 1, tzinfo=UTC)
SURE = ("--confirm", "--max-share", "100%")
LINE = re.compile(r'(\w+)\{((?:\w+="(?:[^"\\]|\\.)*",?)*)\} (\S+)')


@pytest.fixture
def full(repo):
    committed(repo, "main", kept="1")
    for number in range(3):
        put(repo, "main", f"lost{number}", "x")
        repo.reset("main")
    days(repo, 5)
    return repo


@pytest.fixture
def file(tmp_path):
    return tmp_path / "desilt.prom"


def read(file):
    """Every figure by its name and labels; each once, and of a metric that is described."""
    found, described = {}, set()
    for line in file.read_text().splitlines():
        if line.startswith("# "):
            described.add(line.split()[2])
            continue
        name, labels, value = LINE.fullmatch(line).groups()
        key = name, *re.findall(r'\w+="((?:[^"\\]|\\.)*)"', labels)
        assert key not in found
        assert name in described
        found[key] = float(value)
    return found


def test_a_plan_and_a_run_are_told(cli, full, uri, file):
    assert cli("gc", "plan", uri, "--metrics", file)[0] == 0
    found = read(file)
    assert found["desilt_planned_objects", "demo", "gc"] == 3
    assert found["desilt_exit_code", "demo", "gc"] == 0
    assert ("desilt_removed_objects", "demo", "gc") not in found
    assert ("desilt_stage_seconds", "demo", "gc", "verdicts") in found
    assert cli("gc", "run", uri, *SURE, "--metrics", file)[0] == 0
    found = read(file)
    assert found["desilt_removed_objects", "demo", "gc"] == 3
    assert found["desilt_removed_bytes", "demo", "gc"] == 3
    assert found["desilt_last_success_timestamp_seconds", "demo", "gc"] == full.clock().timestamp()
    assert found["desilt_oldest_unfinished_run_seconds", "demo"] == 0
    assert file.stat().st_mode & 0o777 == 0o644
    assert [one.name for one in file.parent.glob(".desilt*")] == []


def test_a_refusal_is_told_too(cli, full, uri, file):
    assert cli("gc", "run", uri, "--metrics", file)[0] == 10
    found = read(file)
    assert found["desilt_exit_code", "demo", "gc"] == 10
    assert ("desilt_last_success_timestamp_seconds", "demo", "gc") not in found
    assert full


def test_a_run_that_was_cut_off_shows_its_age_and_its_end_is_told_once(cli, full, uri, file, monkeypatch):
    def dying(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(batches, "delete", dying)
        assert cli("gc", "run", uri, *SURE)[0] == 130
    days(full, 0.5)
    cli("gc", "plan", uri, "--metrics", file)
    assert read(file)["desilt_oldest_unfinished_run_seconds", "demo"] == 43_200
    assert cli("gc", "run", uri, *SURE, "--metrics", file)[0] == 0
    found = read(file)  # of both runs, the last
    assert found["desilt_oldest_unfinished_run_seconds", "demo"] == 0
    assert RunState.SWEEPING not in cli("runs", uri)[1]


def test_an_upkeep_tells_of_each_step(cli, full, uri, file, tmp_path):
    (tmp_path / "upkeep.yaml").write_text("gc: {max_share: 100%}\nexpire: {older_than: 30d}\nlifecycle: {}\n")
    code = cli("upkeep", "run", uri, "--file", tmp_path / "upkeep.yaml", "--confirm", "gc", "--metrics", file)[0]
    found = read(file)
    codes = {key[2]: value for key, value in found.items() if key[0] == "desilt_exit_code"}
    assert (code, codes) == (10, {"gc": 0, "expire": 0, "lifecycle": 10, "upkeep": 10})
    assert found["desilt_removed_objects", "demo", "gc"] == 3
    assert full


def test_sweeps_and_purges_have_figures_too(cli, full, uri, file):
    cli("gc", "plan", uri, "--to", "trash")
    assert cli("sweep", uri, "last", *SURE, "--metrics", file)[0] == 0
    assert read(file)["desilt_removed_objects", "demo", "gc"] == 3
    assert read(file)["desilt_trash_objects", "demo"] == 3
    days(full, 8)
    assert cli("purge", uri, "--metrics", file)[0] == 0
    assert read(file)["desilt_trash_bytes", "demo"] == 0
    assert read(file)["desilt_exit_code", "demo", "purge"] == 0


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_done(cli, full, uri, tmp_path):
    code, _, err = cli("gc", "run", uri, *SURE, "--metrics", tmp_path / "no" / "such" / "file.prom")
    assert (code, "cannot be written" in err) == (2, True)
    assert cli("runs", uri)[1] == ""
    assert full


def test_labels_are_written_as_the_format_has_them():
    assert escaped('a"b\\c\nd') == r"a\"b\\c\nd"
    assert escaped("x\udcff") == r"x\\udcff"
