"""A script's commands are answered by this process, and cannot tell."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import scripts
from scripts import run_script


@pytest.fixture
def answered(monkeypatch):
    """The words of each command that this process was asked for."""
    seen = []

    def noted(group, words):
        seen.append(words)
        return run(group, words)

    run = scripts.run
    monkeypatch.setattr(scripts, "run", noted)
    return seen


def test_a_command_has_the_folder_the_streams_and_the_exit_code_of_the_script(tmp_path, answered):
    (tmp_path / "below").mkdir()
    ended = run_script(
        """
        cd below
        desilt lake init lake#mine > made
        printf hello | desilt lake put lake main a/b - >> made
        desilt lake get lake main a/b
        desilt lake get lake main nosuch || echo " exit $?" >&2
        desilt lake get lake main nosuch
        echo not reached
        """,
        tmp_path,
    )
    assert (ended.code, ended.out) == (1, "hello")
    assert ended.err.count("error: ") == 2
    assert " exit 1\n" in ended.err
    assert (tmp_path / "below" / "made").read_text()
    assert [words[1] for words in answered] == ["init", "put", "get", "get", "get"]


def test_a_command_has_the_environment_of_the_script_and_leaves_none_of_it(tmp_path):
    before, folder, streams = dict(os.environ), Path.cwd(), (sys.stdin, sys.stdout, sys.stderr)
    ended = run_script("desilt lake init '~/lake#mine'; DESILT_DB=mysql://host desilt lake ls lake main", tmp_path)
    assert (ended.code, ended.err.count("mysql://host")) == (2, 1)
    assert (tmp_path / "lake" / "desilt.db").exists()
    assert (dict(os.environ), Path.cwd(), (sys.stdin, sys.stdout, sys.stderr)) == (before, folder, streams)


def test_commands_in_a_pipe_do_not_wait_for_each_other(tmp_path, answered):
    """More than a pipe holds goes from one to the other; the second starts a process of its own."""
    ended = run_script(
        """
        desilt lake init lake#mine > made
        head -c 300000 /dev/zero | desilt lake put lake main a - >> made
        desilt lake get lake main a | desilt lake put lake main b - >> made
        desilt lake get lake main b | head -c 5
        """,
        tmp_path,
    )
    assert (ended.code, ended.out, ended.err) == (0, "\0" * 5, "")
    assert len(answered) == 4  # of those in the pipe, one


def test_a_file_that_is_only_there_for_the_command_is_read(tmp_path, answered):
    ended = run_script("desilt lake init lake#mine; desilt lake put lake main a <(echo hello)", tmp_path)
    assert (ended.code, ended.err) == (0, "")
    assert [words[1] for words in answered] == ["init"]


def test_the_command_that_is_installed_starts_cold(tmp_path):
    """As a user starts it: a process and a Spark of its own."""
    desilt = Path(sys.executable).parent / "desilt"
    ended = subprocess.run([desilt, "demo"], cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert "garbage" in ended.stdout
    assert list(tmp_path.iterdir()) == []
