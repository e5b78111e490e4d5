"""Two `desilt gc run` from two shells on one lake: one sweeps, the other leaves, and the books are right."""

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from desilt.errors import Locked
from desilt.jobs.unfinished import unfinished
from desilt.lake import Lake
from desilt.lake.fsck import check
from desilt.lake.lake import Location
from desilt.records import ledger, locks
from desilt.records import removals as tombstones
from desilt.records.ledger import RunState
from desilt.testing import oracle
from histories import still_works
from patience import FOR_EVER, until
from words import contents

GARBAGE, KEPT = 20, {f"kept-{number}": "kept" for number in range(5)}

# Imported by every Python that is started with this on its path. What is looked at is who may sweep.
# Each process says that it has come to a gate, and waits there for the file that opens it.
GATES = """
import os, pathlib, time
from desilt.records import locks
from desilt.lake.gate import LakeGate

def behind(gate, real):
    def waiting(*values, **named):
        where = pathlib.Path(os.environ["GATES"])
        if gate in os.environ["WAITS_AT"]:
            (where / f"{gate}-{os.getpid()}").touch()
            while not (where / gate).exists():
                time.sleep(0.002)
        return real(*values, **named)
    return waiting

locks.held = behind("lock", locks.held)
LakeGate.condemn = behind("condemn", LakeGate.condemn)
"""


@pytest.fixture(params=["sqlite", "postgres"])
def location(request, tmp_path):
    where = str(tmp_path / "lake")
    if request.param == "sqlite":
        return Location(where, f"sqlite://{where}/desilt.db", None)
    return Location(where, request.getfixturevalue("fresh_postgres_url")(), None)


@pytest.fixture
def repo(location):
    """Old garbage, and what is held."""
    lake = Lake.create(location)
    made = lake.create_repository("mine", clock_at=datetime(2026, 1, 1, tzinfo=UTC))
    for number in range(GARBAGE):
        made.put("main", "path", f"{number}".encode())
        made.reset("main")
    for path, text in KEPT.items():
        made.put("main", path, text.encode())
    made.commit("main", "a commit")
    made.put("main", "staged", b"staged")
    made.set_clock(made.clock() + timedelta(days=3))
    yield made
    lake.close()


@pytest.fixture
def shell(repo, location, tmp_path):
    """Start `desilt gc run` as from a shell; it waits at the gates that are named."""
    (tmp_path / "sitecustomize.py").write_text(GATES)
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    started = []

    def start(waits_at=""):
        command = ["-m", "desilt", "gc", "run", f"{location.storage}#{repo.name}", "--db", location.database]
        started.append(
            subprocess.Popen(
                [sys.executable, *command, "--confirm", "--max-share", "100%", "--json"],
                env={**os.environ, "PYTHONPATH": path, "GATES": str(tmp_path), "WAITS_AT": waits_at},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        return started[-1]

    yield start
    for one in started:
        one.kill()
        one.communicate()


def ended(process):
    """Its exit code, its report and what it complained of."""
    out, err = process.communicate(timeout=FOR_EVER)
    errors = [line for line in err.splitlines() if line.startswith("error")]
    return process.returncode, json.loads(out) if out else None, "\n".join(errors)


def at_gate(gate, process, tmp_path):
    """Until ``process`` waits there."""
    until(lambda: (tmp_path / f"{gate}-{process.pid}").exists() or process.poll() is not None)
    assert process.poll() is None, process.communicate()


def all_is_well(repo, *, runs):
    """Garbage is gone, once; what is held is there; and the ledger says so."""
    assert oracle.garbage(repo) == {}
    assert contents(repo, "main") == {**KEPT, "staged": "staged"}
    with repo.database.read() as tx:
        rows = ledger.every(tx, repo.uid)
        totals = [ledger.total(ledger.batches(tx, repo.uid, row.id)) for row in rows]
        stones = [stone for row in rows for stone in tombstones.of_run(tx, repo.uid, row.id)]
    assert [row.state for row in rows] == [RunState.SWEPT] * runs
    assert sum(total.asked for total in totals) == sum(total.removed for total in totals) == len(stones) == GARBAGE
    assert check(repo).sound
    still_works(repo)


def test_a_run_beside_one_that_sweeps_leaves_at_once_and_says_why(shell, repo, tmp_path):
    first = shell(waits_at="condemn")
    at_gate("condemn", first, tmp_path)
    stored = set(oracle.stored(repo))
    code, report, error = ended(shell())
    (at_work,) = unfinished(repo)
    assert (code, report) == (Locked.exit_code, None)
    says = rf"error: run {at_work.id} is at work \(process {first.pid} on .*, last heard of .* ago\); wait for it, .*"
    assert re.fullmatch(says, error)
    assert set(oracle.stored(repo)) == stored
    (tmp_path / "condemn").touch()
    code, report, error = ended(first)
    assert (code, error, report["run"], report["swept"]["removed"]) == (0, "", at_work.id, GARBAGE)
    all_is_well(repo, runs=1)


def test_of_runs_started_at_one_moment_one_sweeps(shell, repo, tmp_path):
    """The other is refused, or comes after it and finds nothing."""
    running = [shell(waits_at="lock") for _ in range(2)]
    for one in running:
        at_gate("lock", one, tmp_path)
    (tmp_path / "lock").touch()
    found = [ended(one) for one in running]
    swept = [report for code, report, _ in found if code == 0]
    assert {code for code, _, _ in found} <= {0, Locked.exit_code}
    assert sorted(report["swept"]["removed"] for report in swept) == [*[0] * (len(swept) - 1), GARBAGE]
    assert all("is at work" in error for code, _, error in found if code)
    with repo.database.read() as tx:
        assert locks.holder(tx, repo.uid) is None
    all_is_well(repo, runs=len(swept))
