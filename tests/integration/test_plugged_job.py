"""A job of another package: planned, swept, resumed, reported and explained like ours, with no word of it in desilt."""

import json
import shutil
import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import desilt
from desilt.columns.schemas import PLAN
from desilt.domain.times import CLOCK_MARGIN, microseconds
from desilt.errors import BadRequest, Conflict, NotFound, StagedLost
from desilt.executors.executor import HERE
from desilt.jobs import registry, runner
from desilt.jobs.job import Figures, Job, Mark, Traits
from desilt.jobs.packages import others
from desilt.lake import Lake
from desilt.objects.local import LocalStore
from desilt.repository.gate import Rules
from desilt.repository.sealed import Sealed, seal
from desilt.runs import plan_files
from desilt.runs.plan import Evidence
from desilt.runs.report import Amount
from desilt.runs.steps import RemoveObjects, TakeCommits
from desilt.sweep import batches
from desilt.sweep.limits import Limits
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
        folder = tmp_path / "site" / f"{name.replace('/', '_')}_jobs-1.0.dist-info"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-jobs\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text(f"[desilt.jobs]\n{name} = {target}\n")
        others.cache_clear()

    yield install
    others.cache_clear()
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
    repo.little = {repo.put("main", "little", b"l").address}
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
ALL = Limits(**SURE, allow_empty=True)


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


# ---- jobs that are wrong, or want too much


def hostile(mark, **traits):
    """A job of somebody else, whose mark makes whatever it likes of what is stored."""
    return Job("hostile", NoOptions, mark, Traits(**traits))


@dataclass(frozen=True)
class NoOptions:
    pass


def everything(work, **evidence):
    """Every object goes, it says, and that nothing speaks against it."""
    repository, seen = work.repository, work.source.snapshot(work.run.now)
    old = work.run.now - timedelta(days=300)
    rows = [(address, size, old, "remove", "hostile", "r\0p") for address, size in oracle.stored(repository).items()]
    table = pa.table(list(map(list, zip(*rows, strict=True))), schema=PLAN)
    files = plan_files.write(repository.store, f"{work.folder}plan/all.parquet", table)
    stored = Amount(len(rows), sum(row[1] for row in rows))
    claims = {"held": 1, "stored": stored, "measure": "stored objects", **evidence}
    return Mark(
        Evidence("everything", seen.revision, len(seen.commits), **claims),
        Figures(work.run.now, {}, {}),
        (RemoveObjects(files),),
    )


def by_rules(work):
    seen = work.source.snapshot(work.run.now)
    refs = {one.name: one.head for one in seen.branches}, {one.name: one.target for one in seen.tags}
    rules = Rules("hostile", {"r": {"prefix": "", "days": 1}}, "f", True, *refs)
    return everything(work, rules=rules, judged=Sealed("x", "y"))


def at_once(work):
    return everything(work, dropped_for=timedelta(0), after_restore=True)


@pytest.mark.parametrize("mark", [by_rules, at_once, everything])
def test_whatever_its_mark_says_what_anything_has_stays(mine, repo, mark):
    """Though it comes with rules and refs as they are, and vouches for itself; also what was dropped a moment ago."""
    mine.create_tag("v1", "main")
    repo.holds.add(prefix="kept", reason="evidence")
    held = repo.holds.add(address=mine.lost[0], reason="evidence")
    mine.set_clock(mine.clock() + timedelta(days=5))
    mine.reset("main", path="staged")  # dropped a moment ago, and as old as the rest
    before = oracle.stored(mine)
    made = runner.plan(hostile(mark, keeps_copied=True, tables=True, committed=False), mine, HERE)
    with pytest.raises(NotFound, match="no job 'hostile'"):  # whoever is asked to sweep it must know it
        runner.sweep(mine, HERE, made.run, ALL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "find", lambda _: registry.trusted(hostile(mark)))
        runner.sweep(mine, HERE, made.run, ALL)
    gone = before.keys() - oracle.stored(mine).keys()
    assert gone == set(mine.lost[1:]) | mine.little
    said = json.loads(mine.store.get(f"{mine.prefix}_desilt/runs/hostile/{made.run}/plan.json"))["evidence"]
    assert (said["rules"], said["judged"], said["after_restore"]) == (None, None, False)
    assert set(contents(mine, "main")) == {"kept", "small"}
    assert contents(mine, "v1") == contents(mine, "main")
    repo.holds.lift(held)


def test_it_does_not_know_what_a_restored_database_has_lost(mine):
    """Whatever traits it claims: what was staged since the copy stays, and stays kept for gc."""
    with mine.database.write() as tx:
        tx.execute("UPDATE repositories SET kept_since = ?", microseconds(mine.clock() - timedelta(days=9)))
    job = hostile(at_once, keeps_copied=True)
    with pytest.raises(StagedLost):
        runner.run(job, mine, HERE, None, ALL)
    assert set(mine.lost) <= oracle.stored(mine).keys()
    with mine.database.read() as tx:
        assert tx.one("SELECT kept_since FROM repositories")[0] is not None


@pytest.mark.parametrize("step", ["commits", "tables"])
def test_commits_and_tables_are_not_its_to_take(mine, step):
    def mark(work):
        marked, sealed = everything(work), seal(mine.store, f"{work.folder}inputs/commits.txt", b"")
        step_of = {
            "commits": TakeCommits(sealed, 0, None),
            "tables": replace(marked.steps[0], tables=True),
        }
        return replace(marked, steps=(step_of[step],))

    with pytest.raises(BadRequest, match="`desilt collect` alone may"):
        runner.plan(hostile(mark, tables=True), mine, HERE)


def test_one_that_is_called_like_ours_is_not_ours(mine):
    job = replace(hostile(by_rules), name="gc")
    assert not registry.is_ours(job)
    runner.run(job, mine, HERE, None, ALL)
    assert set(contents(mine, "main")) == {"kept", "small", "staged"}


def test_a_package_that_broke_takes_nothing_of_ours_with_it(repo, plug, tmp_path):
    repo.job("oversized").run(at_least=50, **SURE)
    (tmp_path / "site" / "oversized.py").write_text("import nothing_of_the_kind\n")
    sys.modules.pop("oversized", None)
    plug("oversized", "oversized:job")
    assert repo.gc.run(**SURE).swept.removed == 1
    assert repo.lifecycle.plan(policy={"all": {"prefix": "", "days": 3}}).report.removed.objects == 2
    with pytest.raises(Conflict, match="deleted what it removed"):
        repo.restore("last")


def test_a_run_of_one_that_is_gone_can_be_given_up(mine, repo, uri, cli, monkeypatch):
    plan = repo.job("oversized").plan(at_least=50)

    def dying(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(batches, "delete", dying)
        with pytest.raises(KeyboardInterrupt):
            plan.sweep(**SURE)
    monkeypatch.setattr(registry, "others", dict)
    with pytest.raises(Conflict, match=f"give the run up with `desilt runs give-up {plan.run}`"):
        repo.gc.run(**SURE)
    assert cli("runs", "give-up", uri, "nosuch")[0] == 1
    assert cli("runs", "give-up", uri, plan.run) == (0, f"Gave up run {plan.run}\n", "")
    assert repo.gc.run(**SURE).swept.removed == 5  # with what it was about to remove
    assert set(contents(mine, "main")) == {"kept", "small", "staged"}


@pytest.mark.parametrize("name", ["simulate", "upkeep", "Over", "a/b", "über"])
def test_names_that_would_be_no_folder_or_no_command_are_refused(plug, uri, name):
    plug(name, "oversized:job")
    with desilt.open(uri) as repo, pytest.raises(BadRequest, match="brings a job"):
        repo.jobs()


# ---- commands


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
    with pytest.raises(NotFound, match="gc, lifecycle, retention, expire, collect, oversized"):
        repo.job("undersized")
