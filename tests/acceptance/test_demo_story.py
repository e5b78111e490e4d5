"""The demo's scenario, line by line: what the branches show in the end, and what is garbage."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from desilt.demo import story
from desilt.domain.address import uid_time
from desilt.domain.entry import AddressType
from desilt.lake import Lake, commits
from desilt.lake.lake import locate
from desilt.testing import oracle
from desilt.testing.scenario import replay

EVENTS = [f"events/01-{day}/part-{part}.parquet" for day in ("05", "06", "07") for part in range(3)]


@pytest.fixture(scope="module")
def told():
    return []


@pytest.fixture(scope="module")
def repo(tmp_path_factory, told):
    lake = Lake.create(locate(f"{tmp_path_factory.mktemp('demo')}#demo"))
    yield replay(lake, "demo", story(), say=lambda moment, text: told.append((moment, text)))
    lake.close()


def paths(repo, ref):
    return [entry.path for entry in repo.list(ref)]


def test_main_shows_events_models_and_what_north_linked(repo):
    deleted = "events/01-05/part-2.parquet"
    kept = [path for path in EVENTS if path != deleted]
    expected = [*kept, "events/01-15/part-0.parquet", "latest/part-0.parquet", "models/churn.bin", "partners/north.csv"]
    assert paths(repo, "main") == sorted(expected)
    assert list(repo.uncommitted("main")) == []
    assert deleted in paths(repo, "v1")


def test_mains_model_is_bens_last_try(repo):
    assert (repo.stat("main", "models/churn.bin").size, repo.stat("v1", "models/churn.bin").size) == (310_000, 300_000)
    assert repo.stat("main", "models/churn.bin").modified_at == datetime(2026, 1, 14, 17, tzinfo=UTC)


def test_the_overwritten_day_is_back_and_shares_its_object_with_latest(repo):
    day, latest = repo.stat("main", "events/01-15/part-0.parquet"), repo.stat("main", "latest/part-0.parquet")
    assert (day.size, day.address) == (45_000, latest.address)


def test_dev_has_both_models_the_archive_and_work_under_way(repo):
    changes = [(change.kind, change.path) for change in repo.uncommitted("dev")]
    renamed = [("added", "events/01-05/first.parquet"), ("removed", "events/01-05/part-0.parquet")]
    assert changes == [*renamed, ("added", "notes.txt")]
    old, copied = repo.stat("v1", "models/churn.bin"), repo.stat("dev", "models/churn-v1.bin")
    assert old.checksum == copied.checksum
    assert old.address != copied.address
    assert repo.stat("dev", "raw/clicks.tar").address_type is AddressType.FULL
    assert not [path for path in paths(repo, "dev") if path.startswith("import/")]


def test_the_experiment_is_gone_but_its_commit_is_not(repo):
    assert [branch.name for branch in repo.branches()] == ["dev", "main"]
    with repo.database.read() as tx:
        every = {commit.id: commit for commit in commits.every(tx, repo.uid)}
    reached = {commit.id for commit in repo.log("main", "dev", "v1")}
    (lost,) = [commit for commit in every.values() if commit.id not in reached]
    assert (lost.message, lost.committer) == ("Half an idea", "eve")
    assert len([path for path in paths(repo, lost.id) if path.startswith("scratch/")]) == 4


def test_garbage_is_what_the_story_says(repo):
    names = {branch.uid: branch.name for branch in repo.branches()}
    found = Counter((names.get(address.split("/")[1]), size) for address, size in oracle.garbage(repo).items())
    assert found == {
        ("dev", 310_000): 2,  # models that were tried and not committed
        ("dev", 80_000): 5,  # the import that was reset
        ("dev", len("compare both models\n")): 1,  # notes, before they were written again
        (None, 120_000): 5,  # staged on the experiment when its branch was deleted
        ("main", 96_000): 1,  # what south uploaded and could not link
    }


def test_six_weeks_pass_and_all_of_the_garbage_is_old(repo, told):
    now = repo.clock()
    assert now - min(moment for moment, _ in told) == timedelta(days=41, hours=15)
    assert [moment for moment, _ in told] == sorted(moment for moment, _ in told)
    assert all(now - uid_time(address.rsplit("/", 1)[-1]) > timedelta(days=5) for address in oracle.garbage(repo))
    by_day = {commit.created_at.date() for commit in repo.log("main", "dev")}
    assert len(by_day) == 10


def test_lines_fit_a_terminal(told):
    assert [text for _, text in told if len(text) > 66] == []
