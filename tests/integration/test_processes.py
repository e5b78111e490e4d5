"""Real processes on one lake, some of them killed: what was acknowledged is there, and the lake goes on."""

import itertools
import os
import random
import signal
import sqlite3
import threading
import time
from contextlib import ExitStack

import pytest

from desilt.lake import Lake
from desilt.lake.lake import Location
from histories import BRANCHES, Judge, from_lines, still_works
from patience import until
from workers import STAGING_AND_CONDEMNING, host, opened


@pytest.fixture(scope="module")
def processes():
    with host() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    """Where a lake can be: the URL of its database, and a directory."""
    if request.param == "sqlite":
        return {"url": f"sqlite://{tmp_path}/lake/desilt.db", "directory": f"{tmp_path}/lake"}
    return {"url": request.getfixturevalue("fresh_postgres_url")(), "directory": f"{tmp_path}/lake"}


@pytest.fixture
def repo(place):
    lake = Lake.create(Location(place["directory"], place["url"], None))
    made = lake.create_repository("many")
    for name in BRANCHES[1:]:
        made.create_branch(name, "main")
    yield made
    lake.close()


def roaming(processes, place, repo, tmp_path, *, count, enough, kills=0, **facts):
    """Random operations of ``count`` processes at once until their records are ``enough``, and some were killed."""
    chance, numbers, over = random.Random(random.random()), itertools.count(), tmp_path / "over"

    def start():
        number = next(numbers)
        log = f"{tmp_path}/{number}.log"
        return processes.start(
            "roam", **place, **facts, name=f"w{number}", seed=chance.random(), over=str(over), log=log
        )

    def recorded():
        texts = [log.read_text() for log in tmp_path.glob("*.log")]  # whole: a line may grow while it is read
        return [one for text in texts for one in from_lines(text.splitlines(keepends=True))]

    running = [start() for _ in range(count)]
    for _ in range(kills):
        more = len(recorded()) + chance.randrange(20)
        until(lambda more=more: len(recorded()) > more)
        victim = running.pop(chance.randrange(len(running)))
        os.kill(victim, signal.SIGKILL)
        assert processes.end_of(victim) == -signal.SIGKILL
        running.append(start())
    until(lambda: enough(recorded()))
    over.touch()
    assert [processes.end_of(pid) for pid in running] == [0] * count
    Judge(repo).judge(recorded())
    still_works(repo)


def acknowledged(records):
    return sum(one.acknowledged for one in records)


def test_processes_that_roam_and_are_killed_lose_nothing(processes, place, repo, tmp_path):
    roaming(processes, place, repo, tmp_path, count=4, kills=8, enough=lambda found: acknowledged(found) > 100)


def test_what_is_staged_while_others_condemn_is_held_or_refused(processes, place, repo, tmp_path):
    facts = {"often": STAGING_AND_CONDEMNING, "rare": STAGING_AND_CONDEMNING}

    def enough(found):
        return acknowledged(found) > 200 and sum(bool(one.condemned) for one in found) > 10

    roaming(processes, place, repo, tmp_path, count=5, enough=enough, **facts)


def test_everything_that_many_processes_commit_at_once_is_in_history(processes, place, repo, tmp_path):
    running = [
        processes.start("put_and_commit", **place, name=f"w{number}", times=8, log=f"{tmp_path}/{number}.log")
        for number in range(4)
    ]
    assert [processes.end_of(pid) for pid in running] == [0] * 4
    if list(repo.uncommitted("main")):
        repo.commit("main", "the rest")
    acknowledged = {line.strip() for log in tmp_path.glob("*.log") for line in log.open()}
    assert len(acknowledged) == 32
    assert {entry.path for entry in repo.list("main@")} == acknowledged
    history = list(repo.log("main"))
    assert all(len(commit.parents) <= 1 for commit in history)
    added = [change.path for older in history[:-1] for change in repo.diff(older.parents[0], older.id)]
    assert sorted(added) == sorted(acknowledged)  # each by one commit alone


@pytest.mark.parametrize("what", ["branch", "tag", "repository"])
@pytest.mark.usefixtures("repo")
def test_of_many_who_create_the_same_name_one_wins(processes, place, tmp_path, what):
    at = time.monotonic() + 0.3
    logs = [tmp_path / f"{number}.log" for number in range(6)]
    running = [processes.start("take", **place, what=what, at=at, log=str(log)) for log in logs]
    assert [processes.end_of(pid) for pid in running] == [0] * 6
    assert sorted(log.read_text() for log in logs) == ["exists"] * 5 + ["won"]


def test_many_processes_may_race_to_make_the_same_lake(processes, place, tmp_path):
    for number in range(10 if place["url"].startswith("sqlite") else 1):
        there = {key: text.replace("/lake", f"/lake{number}") for key, text in place.items()}
        at = time.monotonic() + 0.05
        running = [processes.start("make_lake", **there, at=at, log=f"{tmp_path}/{one}.log") for one in range(8)]
        assert [processes.end_of(pid) for pid in running] == [0] * 8
        lake = Lake.open(Location(there["directory"], there["url"], None))
        assert len(list(lake.repository("many").list("main"))) == 8
        lake.close()


def test_a_lake_is_made_beside_another_process_that_is_just_making_it(tmp_path):
    other = sqlite3.connect(tmp_path / "desilt.db", isolation_level=None, check_same_thread=False)
    other.execute("CREATE TABLE not_in_wal_mode_yet (x)")
    other.execute("BEGIN IMMEDIATE")
    with ExitStack() as stack:
        stack.callback(other.close)
        done = threading.Timer(0.3, other.execute, ["COMMIT"])
        done.start()
        stack.callback(done.join)
        lake = Lake.create(Location(str(tmp_path), f"sqlite://{tmp_path}/desilt.db", None))
        stack.callback(lake.close)
        assert lake.repositories() == []


def test_a_child_forked_in_the_middle_of_a_read_is_refused(processes, tmp_path):
    """It inherits a connection that SQLite believes in; going on with it would lose what it writes."""
    place = {"url": f"sqlite://{tmp_path}/desilt.db", "directory": str(tmp_path)}
    Lake.create(Location(place["directory"], place["url"], None)).create_repository("many")
    assert processes.end_of(processes.start("fork_while_reading", **place)) == 0


def test_a_forked_child_goes_on_when_its_parent_has_closed_the_lake(processes, place, repo):
    repo.database.close()  # only those two have it open
    assert processes.end_of(processes.start("outlive", **place)) == 0
    assert {entry.path for entry in repo.list("main")} == {"parent", "child", "orphan"}


def shown(repo, branch):
    if branch not in {one.name for one in repo.branches()}:
        return None
    return {entry.path: b"".join(repo.get(branch, entry.path)).decode() for entry in repo.list(branch)}


PREPARED = {"staged": "staged", "older": "older"}
MERGED = {"older": "older", "theirs": "theirs"}
OUTCOMES = {  # what a branch may show once a process has died there: all of it, or nothing
    "put": [PREPARED, {**PREPARED, "put": "put"}],
    "link": [PREPARED, {**PREPARED, "linked": "linked"}],
    "move": [PREPARED, {"older": "older", "moved": "staged"}],
    "commit": [PREPARED],
    "merge": [{"older": "older"}, MERGED],
    "reset": [PREPARED, {"older": "older"}],
    "delete": [PREPARED, None],
}


SLOW = ("commit", "merge")  # killed before each step; the others before each statement too


@pytest.mark.parametrize("operation", OUTCOMES)
def test_a_process_killed_anywhere_leaves_all_of_an_operation_or_nothing(processes, place, repo, operation):
    killed(processes, place, repo, operation, itertools.count(random.randrange(4), 4))


@pytest.mark.slow
@pytest.mark.parametrize("operation", OUTCOMES)
def test_a_process_killed_at_any_moment_leaves_all_of_an_operation_or_nothing(processes, place, repo, operation):
    killed(processes, place, repo, operation, itertools.count())


def killed(processes, place, repo, operation, pauses):
    """Killed at each of ``pauses``, until it is done before that."""
    repo.put("main", "older", b"older")
    repo.commit("main", "older")
    repo.create_branch("other", "main")
    repo.put("other", "theirs", b"theirs")
    repo.commit("other", "theirs")
    seen = []
    for pause in pauses:
        branch = f"b{pause}"
        repo.create_branch(branch, "main")
        if operation != "merge":
            repo.put(branch, "staged", b"staged")
        facts = {"operation": operation, "branch": branch, "pause": pause, "fine": operation not in SLOW}
        ended = processes.end_of(processes.start("once", **place, **facts))
        assert ended in (0, -signal.SIGKILL)
        left = shown(repo, branch)
        assert left in OUTCOMES[operation], f"killed at pause {pause}"
        seen.append(left)
        if left is None:
            repo.create_branch(branch, "main")
        repo.put(branch, "next", b"next")
        made = repo.commit(branch, "next")
        assert shown(repo, branch) == {**(left or {"older": "older"}), "next": "next"}
        assert next(repo.log(branch)).id == made.id
        assert not list(repo.uncommitted(branch))
        if ended == 0:
            break
    assert pause > 0
    assert all(one in seen for one in OUTCOMES[operation])
    still_works(opened(**place).repository("many"))
