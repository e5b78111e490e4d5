"""A run from its plan to its ledger: what goes, what stays, and what a later run finds."""

from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import pytest

from desilt.errors import Unreadable
from desilt.executors.executor import HERE
from desilt.executors.on_spark import OnSpark
from desilt.jobs import holds
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.runner import plan, run, sweep
from desilt.lake.gate import LakeGate
from desilt.lake.source import LakeSource
from desilt.records import ledger
from desilt.records.holds import HoldKind
from desilt.records.ledger import RunState
from desilt.runs.steps import Action
from desilt.sweep.limits import Limits
from desilt.testing import oracle
from words import contents, days, put

START = datetime(2026, 1, 1, tzinfo=UTC)
SURE = Limits(max_share=1.0, confirm=True)


def collect(repo, *, executor=HERE, limits=SURE, **ask):
    """Run it; the report of the last run."""
    return run(uncommitted.job, repo, executor, uncommitted.job.ask(**ask), limits)[-1]


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
    report = collect(repo, executor=OnSpark(spark))
    assert before - set(oracle.stored(repo)) == lost
    assert report.swept.removed == 5


def test_a_plan_is_swept_by_its_id(repo):
    lost = with_garbage(repo)
    planned = plan(uncommitted.job, repo, HERE)
    assert lost <= set(oracle.stored(repo))
    report = sweep(repo, HERE, planned.run, SURE)
    assert report.swept.removed == 3
    assert sweep(repo, HERE, planned.run, SURE) == report


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
    plan(uncommitted.job, repo, HERE)
    folder = f"{repo.prefix}_desilt/ranges/"
    caches = [key for batch in repo.store.list(folder) for key in batch["key"].to_pylist() if key.endswith(".parquet")]
    whole = repo.store.get(caches[0])
    repo.store.put(caches[0], [whole[:40] + bytes(16) + whole[56:]])  # noticed once its entries are read
    real, made = LakeSource.distrust, []

    def held_meanwhile(source, damaged):
        made.append(holds.hold(repo, HoldKind.ADDRESS, lost, reason="an order"))
        real(source, damaged)

    monkeypatch.setattr(LakeSource, "distrust", held_meanwhile)
    assert collect(repo).swept.removed == 2
    assert len(made) == 1
    assert lost in oracle.stored(repo)


def test_a_run_that_is_over_is_not_given_up_for_a_report_that_cannot_be_written(repo, monkeypatch):
    with_garbage(repo)
    with monkeypatch.context() as patch:
        patch.setattr(LakeGate, "end", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            collect(repo)
    with repo.database.write() as tx:
        tx.execute("INSERT INTO staging (token, path, value, address) VALUES ('nobody', ?, NULL, NULL)", b"stray")
    with pytest.raises(Unreadable, match="belongs to no branch"):
        collect(repo)
    with repo.database.read() as tx:
        assert [row.state for row in ledger.every(tx, repo.uid)] == [RunState.SWEPT]
