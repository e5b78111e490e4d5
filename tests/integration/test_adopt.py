"""Records of a server's repository are handed over when that is said, and when nobody can be at work."""

from datetime import timedelta

import pytest

from desilt.clock import ManualClock
from desilt.errors import Conflict, OtherRecords, Refused, Unreadable
from desilt.executors.executor import HERE
from desilt.lakefs.adoption import adopt
from desilt.lakefs.opening import open_repository
from desilt.records import locks
from desilt.records.opening import open_records
from lakefs_model import LakefsModel


@pytest.fixture
def model(tmp_path, monkeypatch):
    with LakefsModel(tmp_path / "blocks") as found:
        monkeypatch.setenv("LAKEFS_BLOCKSTORE_LOCAL_PATH", str(found.root))
        repo = found.create("demo")
        repo.upload("main", b"a", b"a")
        repo.make_commit("main", "one")
        yield found


@pytest.fixture
def opened(model, tmp_path):
    closing = []

    def open_with(name):
        records = open_records(f"sqlite://{tmp_path / name}.db")
        closing.append(records)
        return open_repository(model.settings("demo"), records, clock=ManualClock(model.clock.now))

    yield open_with
    for one in closing:
        one.close()


def begin(repository):
    """A run that says whose records count."""
    with locks.held(repository.records, repository.uid, run="a-run") as lock:
        repository.gate.begin(lock, None, now=repository.clock(), clock_is_right=True)


def test_other_records_count_once_they_are_adopted(model, opened):
    old = opened("old")
    begin(old)
    old.store.put("_desilt/trash/a-run/data/x", [b"12345"])
    model.wait(timedelta(hours=2))
    new = opened("new")
    with pytest.raises(OtherRecords):
        new.gate.check()
    with pytest.raises(Refused, match="pass --confirm") as refused:
        adopt(new, confirm=False)
    assert "Holds, policies and watermarks" in str(refused.value)
    assert "1 objects (5 B) in the trash" in str(refused.value)
    with pytest.raises(OtherRecords):
        new.gate.check()
    made = adopt(new, confirm=True)
    assert (made.last_run, made.trashed, made.commits_lost) == ("a-run", 1, 0)
    new.gate.check()
    begin(new)
    with pytest.raises(OtherRecords):
        old.gate.check()


def test_nothing_is_adopted_while_a_run_may_be_at_work(model, opened):
    begin(opened("old"))
    model.wait(timedelta(minutes=59))
    with pytest.raises(Refused, match="a run may be at work"):
        adopt(opened("new"), confirm=True)
    model.wait(timedelta(minutes=2))
    adopt(opened("new"), confirm=True)


def test_records_that_count_are_not_adopted_again(model, opened):
    mine = opened("mine")
    begin(mine)
    model.wait(timedelta(hours=2))
    with pytest.raises(Conflict, match="already"):
        adopt(mine, confirm=True)


def test_a_server_that_was_restored_counts_as_it_is_once_that_is_said(model, opened):
    mine = opened("mine")
    mine.source(HERE).snapshot(mine.clock())
    repo = model.repositories["demo"]
    lost = repo.branches["main"].head
    repo.branches["main"].head = repo.commits.pop(lost).parents[0]
    with pytest.raises(Unreadable, match="adopt"):
        mine.source(HERE).snapshot(mine.clock())
    model.wait(timedelta(hours=2))
    assert adopt(opened("mine"), confirm=True).commits_lost == 1
    assert lost not in mine.source(HERE).snapshot(mine.clock()).commits
