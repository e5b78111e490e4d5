"""Times that can be trusted: later than every parent, and in step with the object store."""

from datetime import UTC, datetime, timedelta

import pytest

from desilt.clock import system_clock
from desilt.domain.times import microseconds
from desilt.errors import BadRequest, InvalidUri, WrongClock
from desilt.lake import Lake, commit_time
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


def ahead(repo, branch, length):
    """Have the head of ``branch`` say that it was made so much later than now: many quick commits do that."""
    head, at = repo.resolve(branch).commit, (repo.clock() + length).replace(microsecond=0)
    with repo.database.write() as tx:
        tx.execute(
            "UPDATE commits SET created_at = ? WHERE repository = ? AND id = ?", microseconds(at), repo.uid, head.id
        )
    return at


def test_commits_are_made_at_whole_seconds_and_a_second_apart(lake, monkeypatch):
    monkeypatch.setattr(lake, "clock", lambda: datetime(2026, 1, 1, 12, 0, 0, 700_000, tzinfo=UTC))
    monkeypatch.setattr(lake.store, "clock", lake.clock)
    repo = lake.create_repository("quick")
    for number in range(3):
        committed(repo, "main", a=str(number))
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert [found.created_at - noon for found in repo.log("main")] == [timedelta(seconds=n) for n in (3, 2, 1, 0)]


def test_a_commit_of_an_older_desilt_keeps_its_id_time_and_generation_and_is_built_upon(lake, monkeypatch):
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    monkeypatch.setattr(lake, "clock", lambda: noon)
    monkeypatch.setattr(lake.store, "clock", lake.clock)
    repo = lake.create_repository("older")
    at = microseconds(noon) + 700_000
    with repo.database.write() as tx:
        tx.execute("UPDATE commits SET id = 'an-old-id', generation = 0, created_at = ?", at)
        tx.execute("UPDATE branches SET head = 'an-old-id'")
    made = committed(repo, "main", a="1")
    (found, root) = repo.log("main")
    assert (root.id, root.generation, microseconds(root.created_at)) == ("an-old-id", 0, at)
    assert (found, found.parents, found.generation) == (made, ("an-old-id",), 1)
    assert found.created_at == noon + timedelta(seconds=2)  # the first whole second that is one later


def test_more_quick_commits_than_clocks_may_differ_wait_for_the_clock(lake, monkeypatch):
    """Ten minutes ahead is what a clock may be wrong by, and where six hundred quick commits get."""
    monkeypatch.setattr(lake, "clock", system_clock)
    monkeypatch.setattr(lake.store, "clock", system_clock)
    repo = lake.create_repository("burst")
    committed(repo, "main", a="1")
    at = ahead(repo, "main", timedelta(minutes=10, seconds=1))
    waited = []
    real = commit_time.sleep
    monkeypatch.setattr(commit_time, "sleep", lambda length: (waited.append(length), real(length)))
    made = [committed(repo, "main", a=str(number)) for number in range(2)]
    assert [one.created_at - at for one in made] == [timedelta(seconds=1), timedelta(seconds=2)]
    assert 0 < sum(waited) < 4


def test_a_clock_that_is_minutes_behind_is_not_waited_for(repo, monkeypatch):
    monkeypatch.setattr(commit_time, "sleep", lambda _: pytest.fail("it waits"))
    committed(repo, "main", a="1")
    ahead(repo, "main", timedelta(minutes=11))
    write(repo, "main", a="2")
    with pytest.raises(WrongClock, match="mend the one that is wrong"):
        repo.commit("main", "too early")
    ahead(repo, "main", timedelta(0))


def test_a_manual_clock_is_not_waited_for_and_the_message_says_to_move_it(lake, monkeypatch):
    monkeypatch.setattr(commit_time, "sleep", lambda _: pytest.fail("it waits"))
    repo = lake.create_repository("manual", clock_at=MANUAL)
    committed(repo, "main", a="1")
    ahead(repo, "main", timedelta(minutes=10, seconds=1))
    write(repo, "main", a="2")
    with pytest.raises(WrongClock, match="a second apart; move the clock of this repository on"):
        repo.commit("main", "too many at one moment")
    repo.set_clock(MANUAL + timedelta(seconds=1))
    assert repo.commit("main", "a moment later").created_at == MANUAL + timedelta(minutes=10, seconds=2)


@pytest.mark.usefixtures("unsound")
def test_a_manual_clock_stands_where_it_was_set(lake, tmp_path):
    store = LocalStore(tmp_path)
    manual = Lake(lake.database, store).create_repository("manual", clock_at=MANUAL)
    entry = manual.put("main", "a", b"1")
    commit = manual.commit("main", "then")
    assert (entry.modified_at, commit.created_at) == (MANUAL, MANUAL + timedelta(seconds=1))
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
        uri = "tape://bucket"

    with pytest.raises(InvalidUri, match="own time"):
        Lake(lake.database, Bucket()).create_repository("manual", clock_at=MANUAL)
