"""`desilt harddelete` as people and programs meet it: words, exit codes, JSON."""

import json
import re
import subprocess
import sys
from datetime import timedelta

import pytest

from desilt.executors.executor import HERE
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.runner import run
from desilt.sweep.limits import Limits
from desilt.testing import oracle
from words import days, later, put

ALL = Limits(max_share=1.0, confirm=True, allow_empty=True)


@pytest.fixture
def lake(repo, uri, cli):
    """A repository with a manual clock, and the command line on it."""

    def told(*words):
        place = 1 if words[0] == "explain" else 2
        return cli(*words[:place], uri, *words[place:])

    return repo, told


def test_nothing_is_on_until_it_is_asked_for(lake):
    _, told = lake
    code, out, _ = told("harddelete", "status")
    assert (code, "off" in out) == (0, True)
    assert json.loads(told("harddelete", "status", "--json")[1])["on"] is False


def test_a_life_with_it(lake):
    repo, told = lake
    code, out, _ = told("harddelete", "on", "--grace", "10m", "--max-share", "100%")
    assert (code, "10 minutes after nothing points to them" in out) == (0, True)
    first = put(repo, "main", "a", "1")
    put(repo, "main", "a", "22")
    status = json.loads(told("harddelete", "status", "--json")[1])
    assert (status["waiting"], status["waiting_bytes"], status["fresh"], status["due"]) == (1, 1, 1, 0)
    assert told("harddelete", "run")[1] == "Nothing is due; 1 object can still be restored\n"
    answer = told("explain", first)
    assert "is about to be removed: it was never committed, and was condemned by hard delete" in answer[1]
    later(repo, minutes=11)
    code, out, _ = told("harddelete", "run")
    assert code == 0
    assert re.match(r"Run \S+: 1 object of 1 B removed\nThe whole list is in \S+report.html\n", out)
    assert first not in oracle.stored(repo)
    assert "was removed by hard delete, run" in told("explain", first)[1]
    runs = told("runs", "list", "--json")[1].splitlines()
    assert [(json.loads(one)["job"], json.loads(one)["removed"]) for one in runs] == [("harddelete", 1)]
    assert "overwritten" in told("runs", "show", "last")[1]
    report = json.loads(told("runs", "show", "last", "--json")[1])
    assert report["swept"]["removed"] == 1


def test_a_mistaken_reset_is_taken_back(lake):
    repo, told = lake
    told("harddelete", "on")
    address = put(repo, "main", "a", "precious")
    repo.reset("main")
    assert told("harddelete", "restore")[0] == 2
    code, out, err = told("harddelete", "restore", "--branch", "main")
    assert (code, out, err) == (0, "1 object of 8 B staged again\n", "")
    assert oracle.staged(repo) == {address}


def test_what_cannot_come_back_is_named(lake):
    repo, told = lake
    told("harddelete", "on")
    put(repo, "main", "a", "old")
    put(repo, "main", "a", "new")
    code, out, err = told("harddelete", "restore", "--all")
    assert (code, out) == (3, "0 objects of 0 B staged again\n")
    assert err == "a was written since, or its branch is gone: not restored\n"


def test_without_a_grace_it_goes_as_the_command_ends(lake, tmp_path):
    repo, told = lake
    assert "as each command ends" in told("harddelete", "on", "--grace", "0", "--max-share", "100%")[1]
    file = tmp_path / "file"
    file.write_text("x")
    for _ in range(2):
        assert told("lake", "put", "main", "a", str(file))[0] == 0
    assert len(oracle.stored(repo)) == 1
    assert told("lake", "reset", "main", "--all")[0] == 0
    assert oracle.stored(repo) == {}


def test_where_the_interlock_stops_it_the_command_is_done_all_the_same(lake):
    repo, told = lake
    told("harddelete", "on", "--grace", "0", "--max-share", "10%")
    put(repo, "main", "a")
    code, _, err = told("lake", "reset", "main", "--all")
    assert (code, "not removed yet: hard delete would remove 1 of 1 objects" in err) == (0, True)
    code, _, err = told("harddelete", "run")
    assert (code, "the limit is 10%" in err) == (10, True)
    assert told("harddelete", "run", "--max-share", "100%")[0] == 0
    assert oracle.stored(repo) == {}


def test_off_leaves_what_is_staged_to_gc_and_a_last_run_removes_what_waits(lake):
    repo, told = lake
    told("harddelete", "on", "--max-share", "100%")
    put(repo, "main", "a", "1")
    staged = put(repo, "main", "a", "2")
    code, out, _ = told("harddelete", "off")
    assert code == 0
    assert "1 staged upload left to `desilt gc`; 1 object condemned before" in out
    repo.reset("main")
    days(repo, 3)
    assert run(uncommitted.job, repo, HERE, uncommitted.job.ask(), ALL)[-1].swept.removed == 1
    assert staged not in oracle.stored(repo)
    assert len(oracle.stored(repo)) == 1, "what hard delete has condemned is its own"
    assert told("harddelete", "run", "--max-share", "100%")[0] == 0
    assert oracle.stored(repo) == {}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--grace", "40d"], "30 days at most"),
        (["--grace", "soon"], "is not a length of time"),
        (["--max-share", "0%"], "would remove nothing, ever"),
        (["--max-share", "0.5"], "30%"),
    ],
)
def test_what_cannot_be_meant_is_refused(lake, words, says):
    _, told = lake
    code, out, err = told("harddelete", "on", *words)
    assert (code, out) == (2, "")
    assert says in err


def test_metrics_tell_of_what_waits(lake, tmp_path):
    repo, told = lake
    told("harddelete", "on", "--max-share", "100%")
    put(repo, "main", "a", "1")
    put(repo, "main", "a", "2")
    later(repo, minutes=5)
    told("harddelete", "run", "--metrics", str(tmp_path / "m.prom"))
    text = (tmp_path / "m.prom").read_text()
    assert 'desilt_discarded_objects{repository="demo",state="waiting"} 1' in text
    assert 'desilt_fresh_objects{repository="demo"} 1' in text
    assert (
        float(re.search(r"desilt_oldest_discard_seconds\{.*\} (\d+)", text)[1]) == timedelta(minutes=5).total_seconds()
    )


DYING = """
import sys, time
from desilt.cli.attempt import run
from desilt.cli.main import desilt
from desilt.sweep import discards

def delete(*_, **__):
    print("claimed", flush=True)
    time.sleep(600)

discards.delete = delete
run(desilt, ["harddelete", "run", sys.argv[1]])
"""


def test_a_worker_that_is_killed_leaves_its_claim_to_the_next(lake, uri):
    repo, told = lake
    told("harddelete", "on", "--max-share", "100%")
    put(repo, "main", "a", "1")
    put(repo, "main", "a", "2")
    later(repo, minutes=11)
    with subprocess.Popen([sys.executable, "-c", DYING, uri], stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout.readline() == "claimed\n"
        worker.kill()
    assert told("harddelete", "run")[1] == "Nothing is due\n"
    assert json.loads(told("harddelete", "status", "--json")[1])["claimed"] == 1
    assert told("harddelete", "restore", "--all")[0] == 3, "it may still be about to delete it"
    later(repo, minutes=11)
    assert "1 object of 1 B removed" in told("harddelete", "run")[1]
    assert len(oracle.stored(repo)) == 1
