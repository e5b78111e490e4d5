"""Log lines: who says what, in which run, and how loud."""

import logging
import re
from datetime import UTC, datetime, timedelta

import pytest

import desilt
from desilt.errors import FirstRun
from desilt.lake import Lake
from desilt.logs import formatter, logger, under_way

START = datetime(2026, 1, 1, tzinfo=UTC)
LINE = re.compile(r"^\S+ \S+ (INFO|DEBUG|WARNING) (\d{14}-[0-9a-f]{8}|-) desilt\.\S+: .", re.MULTILINE)


@pytest.fixture
def uri(tmp_path):
    lake = Lake.create(tmp_path / "lake")
    repo = lake.create_repository("demo", clock_at=START)
    repo.put("main", "kept", b"x")
    repo.commit("main", "one")
    repo.put("main", "lost", b"x")
    repo.reset("main")
    repo.set_clock(START + timedelta(days=30))
    lake.close()
    return f"{tmp_path}/lake#demo"


def test_every_line_of_a_run_has_its_id(uri, caplog):
    caplog.set_level(logging.DEBUG, logger="desilt")
    with desilt.open(uri) as repo:
        plan = repo.gc.plan()
        with pytest.raises(FirstRun):
            plan.sweep()
        plan.sweep(confirm=True, max_share=1.0)
    ours = [record for record in caplog.records if record.name.startswith("desilt.")]
    assert {record.run for record in ours} == {plan.run}
    told = [(record.levelname, record.getMessage()) for record in ours]
    for level, words in [
        ("INFO", "planning gc of 'demo'"),
        ("DEBUG", "inventory begins"),
        ("INFO", "inventory took"),
        ("INFO", "1 of 1 ranges are decoded"),
        ("INFO", "planned: 1 objects of 1 bytes would go"),
        ("WARNING", "refused (first-run)"),
        ("INFO", "sweeping 1 batches"),
        ("DEBUG", "batch 0: 1 condemned, 0 held again"),
        ("DEBUG", "batch 0: 1 removed, 0 gone, 0 failed"),
        ("INFO", "swept: 1 removed"),
    ]:
        assert any(one[0] == level and one[1].startswith(words) for one in told), words


def test_a_run_inside_of_another_is_told_apart_and_a_foreign_record_is_formatted(caplog):
    caplog.set_level(logging.INFO)
    log = logger("desilt.tests")
    with under_way("outer"):
        with under_way("inner"):
            log.info("a")
        log.info("b", extra={"run": "named"})
    log.info("c")
    assert [record.run for record in caplog.records] == ["inner", "named", "-"]
    foreign = logging.LogRecord("else", logging.INFO, "", 1, "hello", (), None)
    assert formatter().format(foreign).endswith("INFO - else: hello")


PLAN = ("expire", "plan")
OLD = ("--older-than", "2026-01-05")


@pytest.mark.parametrize("words", [("-v", *PLAN), ("expire", "-v", "plan"), (*PLAN, "-v"), (*PLAN, "--verbose")])
def test_verbose_logs_to_stderr_with_the_run_wherever_it_is_said(cli, uri, words):
    code, out, err = cli(*words, uri, *OLD)
    assert code == 0
    assert {level for level, _ in LINE.findall(err)} == {"INFO"}
    assert len(LINE.findall(err)) == len(err.splitlines())
    run = next(run for _, run in LINE.findall(err) if run != "-")
    assert run in out
    assert cli(*PLAN, uri, *OLD)[2] == ""  # and the next one is silent again


@pytest.mark.parametrize("words", [("-vv", *PLAN), ("-v", *PLAN, "-v"), (*PLAN, "-vvv")])
def test_twice_as_verbose_has_more(cli, uri, words):
    assert "DEBUG" in {level for level, _ in LINE.findall(cli(*words, uri, *OLD)[2])}


def test_quiet_leaves_hints_out(cli, uri):
    for words, heard in (((), True), (("-q",), False), (("--quiet",), False)):
        code, out, _ = cli("gc", "plan", uri, *words)
        assert code == 0
        assert "Would go: 1 object" in out
        assert ("desilt sweep" in out) is heard
    assert cli("-q", "runs", uri)[1].count("planned") == 3
