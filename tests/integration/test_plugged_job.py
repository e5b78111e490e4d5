"""A job of another package: planned, swept, resumed, reported and explained like ours, with no word of it in desilt."""

import json
import shutil
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import desilt
from desilt.domain.times import CLOCK_MARGIN
from desilt.errors import BadRequest, Conflict, NotFound
from desilt.jobs import registry
from desilt.lake import Lake
from desilt.objects.local import LocalStore
from desilt.sweep import batches
from desilt.testing import oracle
from words import contents

START = datetime(2026, 1, 1, tzinfo=UTC)
JOB = Path(__file__).parents[1] / "fixtures" / "plugged" / "oversized.py"
BIG = b"b" * 100


@pytest.fixture
def plug(tmp_path, monkeypatch):
    """Install a package that brings a job, for as long as the test runs."""
    monkeypatch.syspath_prepend(tmp_path / "site")

    def install(name, target):
        folder = tmp_path / "site" / f"{name}_jobs-1.0.dist-info"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-jobs\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text(f"[desilt.jobs]\n{name} = {target}\n")
        registry.others.cache_clear()

    yield install
    registry.others.cache_clear()
    sys.modules.pop("oversized", None)


@pytest.fixture
def oversized(plug, tmp_path):
    plug("oversized", "oversized:job")
    shutil.copy(JOB, tmp_path / "site")


@pytest.fixture
def mine(tmp_path):
    """Two committed objects, a staged one, and five that nothing holds: four large ones, and a small one."""
    lake = Lake.create(tmp_path / "lake")
    repo = lake.create_repository("mine", clock_at=START)
    repo.put("main", "kept", BIG)
    repo.put("main", "small", b"s")
    repo.commit("main", "one")
    repo.lost = sorted(repo.put("main", f"lost{number}", BIG).address for number in range(4))
    repo.put("main", "little", b"l")
    repo.reset("main")
    repo.set_clock(START + timedelta(days=5))
    repo.put("main", "staged", BIG)
    yield repo
    lake.close()


@pytest.fixture
def uri(mine, tmp_path):
    return f"{tmp_path}/lake#{mine.name}"


@pytest.fixture
def repo(oversized, uri):  # noqa: ARG001
    with desilt.open(uri) as opened:
        yield opened


SURE = {"confirm": True, "max_share": 1.0}


def test_it_is_small():
    assert len(JOB.read_text().splitlines()) < 100


def test_it_plans_sweeps_reports_and_is_explained(mine, repo):
    assert "oversized" in repo.jobs()
    plan = repo.job("oversized").plan(at_least=50)
    assert sorted(plan.removals()["address"].to_pylist()) == mine.lost
    assert plan.report.remove["main"]["too large"].objects == 4
    assert "too large" in plan._repr_html_()
    report = plan.sweep(**SURE)
    assert report.swept.removed == 4
    assert set(mine.lost).isdisjoint(oracle.stored(mine))
    assert set(contents(mine, "main")) == {"kept", "small", "staged"}
    folder = f"{mine.prefix}_desilt/runs/oversized/{plan.run}/"
    assert "too large" in mine.store.get(f"{folder}report.html").decode()
    assert json.loads(mine.store.get(f"{folder}report.json"))["swept"]["removed"] == 4
    (told,) = repo.explain(mine.lost[0])
    assert (told.verdict, told.removal.run, told.removal.job, told.removal.rule) == (
        *("removed", plan.run, "oversized", "too large"),
    )
    assert [(run.id, run.job, run.state) for run in repo.runs()] == [(plan.run, "oversized", "swept")]
    assert repo.job("oversized").run(at_least=50).swept.removed == 0  # once was enough, and later runs are covered


def test_it_comes_back_from_the_trash(mine, repo):
    run = repo.job("oversized").run(at_least=50, action="trash", **SURE).run
    assert repo.restore(run).restored == 4
    assert set(mine.lost) <= set(oracle.stored(mine))


def test_cut_off_in_the_middle_of_a_sweep_it_goes_on_where_it_stopped(mine, repo, monkeypatch):
    monkeypatch.setattr(LocalStore, "delete_batch", 1)
    plan = repo.job("oversized").plan(at_least=50)
    real, calls = batches.delete, []

    def dying(*values, **named):
        calls.append(values)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*values, **named)

    with monkeypatch.context() as patch:
        patch.setattr(batches, "delete", dying)
        with pytest.raises(KeyboardInterrupt):
            plan.sweep(**SURE)
    assert len(set(mine.lost) & set(oracle.stored(mine))) == 2
    assert [run.state for run in repo.runs()] == ["sweeping"]
    finished = repo.planned(plan.run).sweep()
    assert (finished.swept.state, finished.swept.removed) == ("swept", 4)
    assert set(mine.lost).isdisjoint(oracle.stored(mine))


def test_a_run_of_it_that_was_cut_off_is_finished_by_the_next_of_any_job(mine, repo, monkeypatch):
    plan = repo.job("oversized").plan(at_least=50)

    def dying(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(batches, "delete", dying)
        with pytest.raises(KeyboardInterrupt):
            plan.sweep(**SURE)
    with monkeypatch.context() as patch:
        patch.setattr(registry, "others", dict)
        with pytest.raises(Conflict, match=r"no package here brings that job; install it again"):
            repo.gc.run(**SURE)
    assert repo.gc.run(**SURE).swept.removed == 1  # the small one
    assert repo.report(plan.run).swept.removed == 4
    assert set(mine.lost).isdisjoint(oracle.stored(mine))


def test_what_anything_holds_is_kept_though_its_kernel_looks_at_nothing(mine, repo):
    """Committed, staged, ordered, handed out for an upload, or young: the gate looks at all of it again."""
    mine.set_clock(mine.clock() + timedelta(days=5))
    held, *lost = mine.lost
    repo.holds.add(address=held, reason="evidence")
    young = mine.put("main", "young", BIG).address
    mine.reset("main", path="young")
    plan = repo.job("oversized").plan(at_least=1, careless=True)
    before = set(oracle.stored(mine))
    assert set(plan.removals()["address"].to_pylist()) == before
    hold = repo.holds.add(prefix="kept", reason="another")
    report = plan.sweep(**SURE)
    gone = before - set(oracle.stored(mine))
    little = gone - set(lost)
    assert set(lost) < gone
    assert len(little) == 1
    assert {held, young} <= set(oracle.stored(mine))
    assert (report.swept.removed, report.swept.held_again) == (4, len(before) - 4)
    assert set(contents(mine, "main")) == {"kept", "small", "staged"}
    repo.holds.lift(hold)
    mine.set_clock(mine.clock() + mine.grace + CLOCK_MARGIN + timedelta(days=1))
    again = repo.job("oversized").run(at_least=1, careless=True, **SURE)
    assert again.swept.removed == 1  # what was young
    assert set(contents(mine, "main")) == {"kept", "small", "staged"}


def test_it_has_commands_made_from_its_options(cli, uri, mine, oversized):  # noqa: ARG001
    code, out, _ = cli("--help")
    assert code == 0
    assert "oversized" in out
    assert "Large uploads that never became part of anything" in out
    out = cli("oversized", "run", "--help")[1]
    for word in (
        "--at-least",
        "--older-than",
        "--note",
        "--careless / --no-careless",
        "--to",
        "--confirm",
        "--json",
        "-v",
    ):
        assert word in out
    assert "Bytes from which on an upload is large.  [1000000]" in " ".join(out.split()).replace(" [", "  [")
    code, out, err = cli("oversized", "plan", uri, "--at-least", 50, "--older-than", "1d", "--json")
    assert (code, err) == (0, "")
    planned = json.loads(out)
    assert planned["removed"]["objects"] == 4
    code, out, _ = cli("runs", uri)
    assert f"{planned['run']}\toversized\t" in out
    assert cli("oversized", "run", uri, "--at-least", 50)[0] == 10  # needs --confirm
    code, out, _ = cli("oversized", "run", uri, "--at-least", 50, "--confirm", "--max-share", "100%")
    assert code == 0
    assert "4 objects of 400 B removed" in out
    code, out, _ = cli("explain", uri, mine.lost[0])
    assert "by rule 'too large'" in out
    assert cli("oversized", "plan", uri, "--at-least", "much")[0] == 2


def test_one_that_cannot_be_loaded_takes_nothing_with_it(cli, uri, plug):
    plug("wrong", "nowhere:job")
    code, out, _ = cli("--help")
    assert code == 0
    assert "cannot be used" in out
    code, _, err = cli("wrong", "plan", uri)
    assert code == 2
    assert "cannot be loaded" in err
    assert cli("runs", uri)[0] == 0


def test_none_may_take_the_name_of_one_of_ours(plug, uri):
    plug("gc", "oversized:job")
    with desilt.open(uri) as repo, pytest.raises(BadRequest, match="package gc-jobs brings a job 'gc'"):
        repo.jobs()


def test_an_unknown_one_is_told_with_those_there_are(repo):
    with pytest.raises(NotFound, match="gc, lifecycle, expire, collect, oversized"):
        repo.job("undersized")
