"""Real processes that use a lake: a host that forks them quickly, and what they do.

The host has imported everything and opened nothing. It is told jobs by lines of
JSON; each runs in a process of its own, which may be killed at any moment.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from contextlib import contextmanager, suppress
from pathlib import Path

from desilt.errors import AlreadyExists, Conflict, StorageFailed
from desilt.lake import Lake
from desilt.lake.lake import Location
from desilt.objects.opening import open_store
from desilt.records.database import open_database
from desilt.testing.faults import SteppedDatabase, Steps, stepped
from histories import BRANCHES, Writer, to_line

ROAMING = ("put", "put", "put", "put", "commit", "commit", "merge", "link", "copy", "move", "remove", "copy_across",
           "reset_path", "revert", "branch_off", "tag")  # fmt: skip
RARE = ("reset", "delete", "collect", "expire")
STAGING_AND_CONDEMNING = ("put", "put", "put", "link", "copy", "commit", "reset_path", "tag", "collect", "collect")


# ---- jobs: what a process does


def roam(url, directory, name, seed, over, log, often=ROAMING, rare=RARE):
    """Random operations until the file ``over`` is there; each is on record before it begins and once it is over."""
    chance, repo = random.Random(seed), opened(url, directory).repository("many")
    with Path(log).open("a") as file:

        def write(record):
            file.write(to_line(record))
            file.flush()

        writer = Writer(name, repo, write, time.monotonic)
        while not Path(over).exists():
            kind = chance.choice(rare if chance.random() < 0.03 else often)
            writer.do(kind, chance.choice(BRANCHES[:2]), chance.choice(BRANCHES[:2]), chance.randrange(20))


def put_and_commit(url, directory, name, times, log):
    repo = opened(url, directory).repository("many")
    with Path(log).open("a") as file:
        for number in range(times):
            repo.put("main", f"{name}/{number}", f"{name}/{number}".encode())
            print(f"{name}/{number}", file=file, flush=True)
            with suppress(Conflict):  # somebody else took it along
                repo.commit("main", f"{name} {number}")


def take(url, directory, what, at, log):
    """Create something that many want to create, at one moment."""
    lake = opened(url, directory)
    repo = lake.repository("many")
    act = {
        "branch": lambda: repo.create_branch("wanted", "main"),
        "tag": lambda: repo.create_tag("wanted", "main"),
        "repository": lambda: lake.create_repository("wanted"),
    }[what]
    wait_until(at)
    try:
        act()
        Path(log).write_text("won")
    except AlreadyExists:
        Path(log).write_text("exists")


def make_lake(url, directory, at, log):
    wait_until(at)
    lake = Lake.create(Location(directory, url, None))
    with suppress(AlreadyExists):
        lake.create_repository("many")
    lake.repository("many").put("main", str(os.getpid()), b"here")
    Path(log).write_text("made")


def outlive(url, directory):
    """Fork with the lake open; the parent closes it and ends, the child goes on."""
    lake = opened(url, directory)
    repo = lake.repository("many")
    repo.put("main", "parent", b"before the fork")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        repo.put("main", "child", b"beside its parent")
        os.read(read, 1)
        repo.put("main", "orphan", b"after its parent")
        os._exit(0)
    while "child" not in {entry.path for entry in repo.list("main")}:
        time.sleep(0.01)
    lake.close()
    os.write(write, b".")
    assert os.waitpid(child, 0)[1] == 0


def fork_while_reading(url, directory):
    """Fork with a listing half read: the child must not write, the parent goes on."""
    lake = opened(url, directory)
    repo = lake.repository("many")
    for number in range(3):
        repo.put("main", f"parent-{number}", b"x")
    listing = repo.list("main")
    next(listing)
    child = os.fork()
    if child == 0:
        try:
            repo.put("main", "child", b"x")
        except StorageFailed:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert len(list(listing)) == 2
    repo.put("main", "parent-3", b"x")


def once(url, directory, operation, branch, pause, fine):
    """One operation that dies at its pause number ``pause``: before a step, or (``fine``) a statement or a commit."""
    real = opened(url, directory)
    repo = real.repository("many")
    address = repo.physical_address(branch, "linked") if operation == "link" else None
    if address:
        repo.store.put(repo.prefix + address.ticket.address, [b"linked"])
    steps = Steps(fine=fine)
    repo = Lake(SteppedDatabase(real.database, steps), stepped(real.store, steps)).repository("many")
    left = iter(range(pause))
    steps.pause = lambda: next(left, None) is None and os.kill(os.getpid(), signal.SIGKILL)
    {
        "put": lambda: repo.put(branch, "put", b"put"),
        "link": lambda: repo.link(branch, "linked", address.token),
        "move": lambda: repo.move(branch, "staged", "moved"),
        "commit": lambda: repo.commit(branch, "a commit"),
        "merge": lambda: repo.merge("other", branch, message="a merge"),
        "reset": lambda: repo.reset(branch, path="staged"),
        "delete": lambda: repo.delete_branch(branch, force=True),
    }[operation]()


JOBS = {job.__name__: job for job in (roam, put_and_commit, take, make_lake, outlive, fork_while_reading, once)}


def opened(url, directory):
    return Lake(open_database(url), open_store(directory))


def wait_until(at):
    while time.monotonic() < at:
        time.sleep(0.0005)


# ---- the host


class Host:
    """Starts jobs, each in a process of its own."""

    def __init__(self, process):
        self._process = process

    def start(self, job, **facts):
        """The id of the new process."""
        return self._ask(job=job, **facts)

    def end_of(self, pid):
        """Wait for a process: 0, its exit code, or minus the signal that killed it."""
        return self._ask(wait=pid)

    def _ask(self, **line):
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


@contextmanager
def host():
    command = [sys.executable, __file__]
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=paths) as process:
        yield Host(process)
        process.stdin.close()


def serve():
    for line in sys.stdin:
        facts = json.loads(line)
        if "wait" in facts:
            answer = os.waitstatus_to_exitcode(os.waitpid(facts["wait"], 0)[1])
        else:
            answer = os.fork() or run(facts)
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


def run(facts):
    code = 1
    try:
        JOBS[facts.pop("job")](**facts)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()
