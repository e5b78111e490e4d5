"""Times that can be trusted: later than every parent, and in step with the object store."""

from datetime import UTC, datetime, timedelta

import pytest

from desilt.errors import BadRequest, InvalidUri, WrongClock
from desilt.lake import Lake
from desilt.objects.local import LocalStore
from words import committed, contents, write

MANUAL = datetime(1998, 1, 20, 12, tzinfo=UTC)


@pytest.mark.parametrize("off", [timedelta(minutes=11), -timedelta(minutes=11)])
def test_a_clock_that_the_store_contradicts_makes_no_commit(repo, monkeypatch, off):
    committed(repo, "main", a="1")
    write(repo, "main", a="2")
    real = repo.store.clock
    monkeypatch.setattr(repo.store, "clock", lambda: real() + off)
    with pytest.raises(WrongClock, match=r"2026-01-01 00:0.* the object store's 202"):
        repo.commit("main", "wrong")
    with pytest.raises(WrongClock):
        repo.commit("main", "still wrong")
    monkeypatch.undo()
    repo.commit("main", "right")
    assert contents(repo, "main@") == {"a": "2"}


def test_a_few_minutes_off_are_forgiven(repo, monkeypatch):
    real = repo.store.clock
    monkeypatch.setattr(repo.store, "clock", lambda: real() + timedelta(minutes=9))
    committed(repo, "main", a="1")


def test_a_repository_is_not_made_by_a_wrong_clock(lake, monkeypatch):
    real = lake.store.clock
    monkeypatch.setattr(lake.store, "clock", lambda: real() + timedelta(hours=1))
    with pytest.raises(WrongClock):
        lake.create_repository("late")
    assert lake.repositories() == []


def test_a_merge_is_later_than_both_its_parents(repo, clock):
    committed(repo, "main", a="1")
    repo.create_branch("dev", "main")
    clock.now += timedelta(minutes=8)
    source = committed(repo, "dev", b="2")
    clock.now -= timedelta(minutes=8)
    assert repo.merge("dev", "main").created_at > source.created_at


@pytest.mark.usefixtures("unsound")
def test_a_manual_clock_stands_where_it_was_set(lake, tmp_path):
    store = LocalStore(tmp_path)
    manual = Lake(lake.database, store).create_repository("manual", clock_at=MANUAL)
    entry = manual.put("main", "a", b"1")
    commit = manual.commit("main", "then")
    assert (entry.modified_at, commit.created_at) == (MANUAL, MANUAL + timedelta(microseconds=1))
    assert store.head(manual.prefix + entry.address).modified_at == MANUAL
    again = Lake(lake.database, store).repository("manual")
    again.set_clock(MANUAL + timedelta(days=30))
    assert Lake(lake.database, store).repository("manual").clock() == MANUAL + timedelta(days=30)
    for stale in (again, manual):
        with pytest.raises(BadRequest, match="does not go back"):
            stale.set_clock(MANUAL + timedelta(days=1))


def test_a_manual_clock_that_others_moved_is_seen(lake):
    one = lake.create_repository("manual", clock_at=MANUAL)
    lake.repository("manual").set_clock(MANUAL + timedelta(days=30))
    entry = one.put("main", "a", b"1")
    assert one.clock() == entry.modified_at == MANUAL + timedelta(days=30)


def test_a_manual_clock_is_one_repositorys_own(lake):
    manual = lake.create_repository("manual", clock_at=MANUAL)
    other = lake.create_repository("other", clock_at=MANUAL + timedelta(days=1))
    usual = lake.create_repository("usual")
    for repo in (manual, other, usual):
        entry = repo.put("main", "a", b"1")
        stored = repo.store.head(repo.prefix + entry.address).modified_at
        assert abs(stored - repo.clock()) < timedelta(minutes=1)
        repo.commit("main", "each by its own clock")


@pytest.mark.parametrize(
    "moment", [datetime(1969, 12, 31, tzinfo=UTC), datetime(2106, 1, 1, tzinfo=UTC), MANUAL.replace(tzinfo=None)]
)
def test_a_moment_that_cannot_be_kept_is_refused(lake, moment):
    with pytest.raises(BadRequest, match="cannot be kept"):
        lake.create_repository("manual", clock_at=moment)
    repo = lake.create_repository("manual", clock_at=MANUAL)
    with pytest.raises(BadRequest, match="cannot be kept"):
        repo.set_clock(moment)


def test_the_systems_clock_is_not_set(repo):
    with pytest.raises(BadRequest, match="system's clock"):
        repo.set_clock(MANUAL)


def test_a_manual_clock_needs_a_store_that_can_be_dated(lake):
    class Bucket:
        uri = "s3://bucket"

    with pytest.raises(InvalidUri, match="own time"):
        Lake(lake.database, Bucket()).create_repository("manual", clock_at=MANUAL)
