"""Ctrl-C and other ends, in real processes: one line, exit code 130, and nothing is left running."""

import os
import re
import signal
import subprocess
import sys
import uuid
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from desilt.executors.java import find_java
from desilt.jobs.unfinished import unfinished
from desilt.lake import Lake
from desilt.lake.lake import locate
from desilt.testing import oracle
from patience import FOR_EVER, until

NAME = "DESILT_TEST_PROCESS"
BEGAN = 18  # the field of /proc/…/stat, counted from the one after the state
needs_proc = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="only Linux tells who runs what")


class Started:
    """A `desilt` of its own, and all that it starts: known by a word in their environment."""

    def __init__(self, *arguments, stdin=subprocess.DEVNULL, **variables):
        self.word = uuid.uuid4().hex
        self.seen = {}  # when each process that was ever found began
        self.process = subprocess.Popen(
            [sys.executable, *arguments],
            env={**os.environ, NAME: self.word, **variables},
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def running(self):
        """The command lines of what runs, by process number; what has ended and is not yet buried does not count.

        A process that is just becoming another program has no environment; it is known by its number until it ends.
        """
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            pid = int(folder.name)
            with suppress(OSError):
                state, *more = (folder / "stat").read_text().rpartition(")")[2].split()
                known = self.seen.get(pid) == more[BEGAN]
                if state not in "ZX" and (known or self.word.encode() in (folder / "environ").read_bytes()):
                    self.seen[pid] = more[BEGAN]
                    found[pid] = (folder / "cmdline").read_text()
        return found

    def wait_for(self, word):
        """Until it, or what it started, has this in its command line."""
        self.wait_until(lambda: any(word in line for line in self.running().values()))

    def wait_until(self, holds):
        """Until something holds that it does not outlive."""
        until(lambda: holds() or self.process.poll() is not None)
        assert self.process.poll() is None, self.process.communicate()

    def end(self):
        """Its exit code, and what it said: once nobody has its output open any more."""
        out, err = self.process.communicate(timeout=FOR_EVER)
        return self.process.returncode, out, err


@pytest.fixture
def start():
    started = []

    def begin(*arguments, **variables):
        started.append(Started(*arguments, **variables))
        return started[-1]

    yield begin
    left = {pid: line for one in started for pid, line in one.running().items()}
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for one in started:
        one.process.communicate()
    assert left == {}


@pytest.fixture
def repo(tmp_path):
    """Old garbage, and a commit."""
    lake = Lake.create(locate(str(tmp_path / "lake")))
    made = lake.create_repository("mine", clock_at=datetime(2026, 1, 1, tzinfo=UTC))
    for number in range(20):
        made.put("main", f"path-{number}", f"{number}".encode())
        made.reset("main", path=f"path-{number}")
    made.put("main", "kept", b"kept")
    made.commit("main", "a commit")
    made.set_clock(made.clock() + timedelta(days=3))
    yield made
    lake.close()


@pytest.fixture
def uri(tmp_path, repo):
    return f"{tmp_path}/lake#{repo.name}"


def test_an_interrupt_while_modules_are_imported_is_one_line(start, tmp_path):
    (tmp_path / "click.py").write_text("import time\nprint('importing', flush=True)\nwhile True: time.sleep(0.01)\n")
    desilt = start("-m", "desilt", "--version", PYTHONPATH=str(tmp_path))
    assert desilt.process.stdout.readline() == "importing\n"
    desilt.process.send_signal(signal.SIGINT)
    assert desilt.end() == (130, "", "error: stopped; nothing was done yet\n")


# A Java for which time stands still once it is told to start one class.
SLOW_JAVA = """\
#!/bin/sh
for word do case $word in
-XshowSettings:*) printf 'java.home = %s\\njava.specification.version = %s\\n' {home} {java.major} >&2; exit ;;
{moment}) exec sleep 100000 ;;
esac; done
exec {java.home}/bin/java "$@"
"""


@needs_proc
@pytest.mark.parametrize("moment", ["org.apache.spark.launcher.Main", "org.apache.spark.deploy.SparkSubmit"])
def test_an_interrupt_while_spark_starts_leaves_no_jvm(start, uri, tmp_path, moment):
    """While its scripts find out how to start it, and when it is started."""
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text(SLOW_JAVA.format(home=home, java=find_java(), moment=moment))
    (home / "bin" / "java").chmod(0o755)
    desilt = start("-m", "desilt", "pins", uri, "--spark", JAVA_HOME=str(home), XDG_CACHE_HOME=str(tmp_path))
    desilt.wait_for("sleep\x00100000")
    desilt.process.send_signal(signal.SIGINT)
    code, out, err = desilt.end()
    assert (code, out) == (130, "")
    assert err == "error: stopped; what was done so far stays done; to go on, give the same command again\n"
    assert desilt.running() == {}


# Imported by every Python that is started with this on its path, executors too.
NOTHING_IS_CONDEMNED = """
import time
from desilt.records import removals as tombstones
tombstones.condemn = lambda *_: time.sleep(100000)
"""


@needs_proc
@pytest.mark.parametrize("where", [[], ["--spark"]], ids=["here", "on Spark"])
def test_a_sweep_that_is_interrupted_says_how_it_is_finished(start, repo, uri, tmp_path, cli, where):
    (tmp_path / "sitecustomize.py").write_text(NOTHING_IS_CONDEMNED)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    desilt = start("-m", "desilt", "gc", "run", uri, *where, "--confirm", "--max-share", "100%", PYTHONPATH=path)
    desilt.wait_until(lambda: unfinished(repo))
    desilt.process.send_signal(signal.SIGINT)
    code, out, err = desilt.end()
    assert (code, out) == (130, "")
    (cut_off,) = unfinished(repo)
    way_on = f"the same command finishes run {cut_off.id}, as does `desilt sweep {uri} {cut_off.id}`"
    said = err.splitlines()[-1]  # after signs of life, on a busy machine
    assert said == f"error: stopped; what was done so far stays done; {way_on}"
    until(lambda: desilt.running() == {})

    code, _, err = cli(*re.search("`desilt (.*)`", way_on)[1].split())
    assert code == 0
    assert "error" not in err  # nor anything but signs of life
    assert unfinished(repo) == []
    assert oracle.garbage(repo) == {}


@needs_proc
def test_a_process_that_is_killed_takes_its_jvm_along(start, uri):
    for number in (signal.SIGTERM, signal.SIGKILL):
        desilt = start("-m", "desilt", "pins", uri, "--spark")
        desilt.wait_for("org.apache.spark.deploy.SparkSubmit")
        desilt.process.send_signal(number)
        code, out, err = desilt.end()
        assert (code, out) == (-number, "")
        assert all(line.startswith("starting Spark: ") for line in err.splitlines())  # on a busy machine
        until(lambda desilt=desilt: desilt.running() == {})


@needs_proc
@pytest.mark.parametrize("jvm", ["sleep 1000 & sleep 1000", "trap '' TERM; while :; do sleep 0.1; done"])
def test_a_program_that_ends_has_ended_its_jvm(start, jvm):
    """Scripts and all, even if it is deaf; what it said is on stderr."""
    begin = (
        "from desilt.executors import session as spark; spark.GRACE_SECONDS = 0.5; "
        f"jvm = spark.launch(['sh', '-c', {'echo up; ' + jvm!r}])"
    )
    program = start("-c", f"{begin}; input()", stdin=subprocess.PIPE)
    assert program.process.stderr.readline() == "up\n"
    program.process.stdin.write("\n")
    program.process.stdin.flush()
    assert program.process.wait(FOR_EVER) == 0
    until(lambda: program.running() == {})
    assert program.end() == (0, "", "")


@needs_proc
def test_a_program_that_used_spark_ends_without_a_word(start):
    code = (
        "from desilt.executors import session as spark; context = spark.session(master='local[1]').sparkContext; "
        "seen = context.accumulator(0); context.parallelize([1, 2], 1).foreach(seen.add); print(seen.value)"
    )
    program = start("-c", code)
    assert program.end() == (0, "3\n", "")
    until(lambda: program.running() == {})


# What never ends, in two processes beside this one.
BESIDE = """
import time
from desilt.executors.processes import Processes
Processes(2)(time.sleep, [100000, 100000])
"""


@needs_proc
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_whoever_ends_takes_its_workers_along(start, number):
    program = start("-c", BESIDE)
    program.wait_until(lambda: sum("desilt.executors.worker" in line for line in program.running().values()) == 2)
    program.process.send_signal(number)
    program.end()
    until(lambda: program.running() == {})
