"""What a terminal can show, and what a shell asks: colours, letters, half-typed words."""

import os
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from words import committed, days, put

START = datetime(2026, 1, 1, tzinfo=UTC)
ESCAPE = "\x1b["


@pytest.fixture
def full(repo):
    committed(repo, "main", "a first ● commit", kept="1")
    put(repo, "main", "lost é")
    repo.reset("main")
    repo.create_tag("v1", "main")
    days(repo, 5)
    return repo


def desilt(*words, tty=False, **variables):
    """The exit code and what was said, in a process of its own; with a terminal or without."""
    command = [sys.executable, "-m", "desilt", *map(str, words)]
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | variables
    if not tty:
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
        return done.returncode, done.stdout + done.stderr
    leader, follower = os.openpty()
    with subprocess.Popen(command, env=environment, stdin=follower, stdout=follower, stderr=follower) as process:
        os.close(follower)
        said = b""
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:
                break
            if not part:
                break
            said += part
    os.close(leader)
    return process.returncode, said


def test_colours_are_for_terminals_that_want_them(full, uri):
    assert full
    words = ("gc", "plan", uri)
    assert ESCAPE.encode() in desilt(*words, tty=True, TERM="xterm")[1]
    assert ESCAPE.encode() not in desilt(*words, tty=True, TERM="xterm", NO_COLOR="1")[1]
    assert ESCAPE.encode() not in desilt(*words)[1]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437", "utf-8"])
@pytest.mark.parametrize(
    "words", [("lake", "log", "--graph"), ("gc", "plan"), ("expire", "plan", "--older-than", "1d")]
)
def test_a_character_that_is_lacking_fails_nothing(full, uri, words, encoding):
    assert full
    group, name, *rest = words
    code, said = desilt(group, name, uri, *rest, PYTHONIOENCODING=encoding, PYTHONUTF8="0")
    assert code == 0, said
    assert b"Traceback" not in said


def test_an_error_with_such_characters_is_one_line(full, uri):
    assert full
    code, said = desilt("lake", "stat", uri, "main", "fehlt-ü-●", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (code, len(said.splitlines())) == (1, 1)


def completed(words, shell="bash"):
    variables = {"_DESILT_COMPLETE": f"{shell}_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    code, said = desilt(**variables)
    assert code == 0
    return [line.split(",", 1)[1] for line in said.decode().splitlines() if "," in line]


def test_a_shell_completes_commands_options_runs_and_refs(full, uri, cli):
    assert completed("desilt up") == ["upkeep"]
    assert "--max-share" in completed("desilt gc run --ma")
    cli("gc", "plan", uri)
    run = cli("runs", uri)[1].split("\t")[0]
    assert completed(f"desilt sweep {uri} {run[:3]}") == [run]
    assert completed(f"desilt sweep {uri} la") == ["last"]
    assert completed(f"desilt lake ls {uri} ") == ["main", "v1"]
    assert completed("desilt sweep ./nowhere#mine 6") == []
    assert full


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_is_told_how(cli, shell):
    code, out, _ = cli("completion", shell)
    assert (code, "_DESILT_COMPLETE" in out) == (0, True)
