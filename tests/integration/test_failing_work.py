"""A piece of work that fails is told in one line, wherever it was done; whoever wants all of it gets it with -v."""

import os
import subprocess
import sys

import pytest

# Imported by every Python that is started with this on its path, executors too. There are pieces enough for a worker.
GONE = """
from desilt.executors import by_size
from desilt.inventory import listing

by_size.IN_ONE_PROCESS = {alone}
listing.PARTITIONS_TO_A_STRETCH = 1

def gone(_):
    raise OSError(5, "Input/output error")

gone.__module__ = "sitecustomize"
listing.list_stretch = gone
"""


@pytest.fixture
def failing(tmp_path, repo, uri):
    """`desilt gc plan` where the store goes away in the middle."""
    for name in ("one", "two"):
        repo.create_branch(name, "main")
        repo.put(name, "a", b"a")

    def plan(*words, alone=10**9):
        (tmp_path / "sitecustomize.py").write_text(GONE.format(alone=alone))
        path = os.pathsep.join([str(tmp_path), *sys.path])
        command = [sys.executable, "-m", "desilt", "gc", "plan", uri, *words]
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})

    return plan


@pytest.mark.parametrize(
    ("words", "alone"), [([], 10**9), ([], -1), (["--spark"], 10**9)], ids=["here", "in processes", "on Spark"]
)
def test_it_is_one_line(failing, words, alone):
    ended = failing("-q", *words, alone=alone)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.count("\n") == 1, ended.stderr
    line = ended.stderr
    assert "Input/output error" in line
    assert "the same command" in line


def test_all_of_it_is_in_the_log(failing):
    assert "in gone" in failing("-v", alone=-1).stderr
