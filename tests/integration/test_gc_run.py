"""A run from its plan to its ledger: what goes, what stays, and what a later run finds."""

from datetime import UTC, datetime, timedelta

import pytest

from desilt.jobs import holding, uncommitted
from desilt.jobs.job import Ask
from desilt.jobs.running import plan, run, sweep
from desilt.lake import Lake
from desilt.lake.holds import Kind
from desilt.lake.lake import locate
from desilt.runs.plan import Action
from desilt.sources.lake import LakeSource
from desilt.sources.spread import OnSpark, in_process
from desilt.sweep.guard import Limits
from desilt.testing import oracle
from words import contents

START = datetime(2026, 1, 1, tzinfo=UTC)
SURE = Limits(max_share=1.0, confirm=True)


@pytest.fixture
def repo(tmp_path):
    lake = Lake.create(locate(str(tmp_path / "lake")))
    yield lake.create_repository("demo", clock_at=START)
    lake.close()


def put(repo, branch, path, text="x"):
    return repo.put(branch, path, text.encode()).address


def days(repo, count):
    repo.set_clock(repo.clock() + timedelta(days=count))


def collect(repo, *, spread=in_process, limits=SURE, **ask):
    """Run it; the report of the last run."""
    return run(uncommitted.job, repo, spread, Ask(**ask), limits)[-1]


def with_garbage(repo, count=3):
    put(repo, "main", "kept")
    repo.commit("main", "kept")
    lost = {put(repo, "main", f"lost{number}") for number in range(count)}
    repo.reset("main")
    put(repo, "main", "staged")
    days(repo, 5)
    return lost


def test_garbage_goes_and_everything_else_stays(repo):
    lost = with_garbage(repo)
    before = set(oracle.stored(repo))
    report = collect(repo)
    assert before - set(oracle.stored(repo)) == lost
    assert report.swept.asked == report.swept.removed == 3
    assert report.swept.bytes == 3
    assert contents(repo, "main") == {"kept": "x", "staged": "x"}
    assert repo.tombstones(sorted(lost)).keys() == lost


def test_a_second_run_finds_nothing(repo):
    with_garbage(repo)
    collect(repo)
    report = collect(repo)
    assert report.removed.objects == 0
    assert report.inputs["listed"] == 0
    assert report.stored.objects == 2


def test_what_was_staged_then_and_is_not_now_goes_in_the_next_run(repo):
    with_garbage(repo)
    collect(repo)
    gone = repo.stat("main", "staged").address
    repo.reset("main")
    assert collect(repo).removed.objects == 0  # somebody may be reading it
    repo.set_clock(repo.clock() + timedelta(days=1, seconds=1))
    report = collect(repo)
    assert report.removed.objects == 1
    assert gone not in oracle.stored(repo)
    assert contents(repo, "main") == {"kept": "x"}


def test_on_spark_the_same_goes(spark, repo):
    lost = with_garbage(repo, 5)
    before = set(oracle.stored(repo))
    report = collect(repo, spread=OnSpark(spark))
    assert before - set(oracle.stored(repo)) == lost
    assert report.swept.removed == 5


def test_a_plan_is_swept_by_its_id(repo):
    lost = with_garbage(repo)
    planned = plan(uncommitted.job, repo, in_process)
    assert lost <= set(oracle.stored(repo))
    report = sweep(repo, in_process, planned.run, SURE)
    assert report.swept.removed == 3
    assert sweep(repo, in_process, planned.run, SURE) == report


def test_trash_keeps_the_bytes(repo):
    lost = with_garbage(repo)
    report = collect(repo, action=Action.TRASH)
    assert not lost & set(oracle.stored(repo))
    trash = [
        key
        for batch in repo.store.list(f"{repo.prefix}_desilt/trash/{report.run}/")
        for key in batch["key"].to_pylist()
    ]
    assert {key.partition(report.run + "/")[2] for key in trash} == lost


def test_a_hold_made_between_two_looks_at_commits_is_heeded(repo, monkeypatch):
    """A damaged cache makes a plan read commits twice: holds are of the same moment as the last of them."""
    lost = min(with_garbage(repo))
    plan(uncommitted.job, repo, in_process)
    folder = f"{repo.prefix}_desilt/ranges/"
    caches = [key for batch in repo.store.list(folder) for key in batch["key"].to_pylist() if key.endswith(".parquet")]
    whole = repo.store.get(caches[0])
    repo.store.put(caches[0], [whole[:40] + bytes(16) + whole[56:]])  # noticed once its entries are read
    real, made = LakeSource.distrust, []

    def held_meanwhile(source, damaged):
        made.append(holding.hold(repo, Kind.ADDRESS, lost, reason="an order"))
        real(source, damaged)

    monkeypatch.setattr(LakeSource, "distrust", held_meanwhile)
    assert collect(repo).swept.removed == 2
    assert len(made) == 1
    assert lost in oracle.stored(repo)
