"""Commits that need what a run collects: nothing that a branch reaches is ever removed under it."""

import itertools
from datetime import UTC, datetime, timedelta

import pytest

from desilt.errors import BeingCollected, CommitGone
from desilt.lake import repositories
from desilt.lake.fsck import check
from desilt.records import ledger
from desilt.records import removals as tombstones
from desilt.records.ledger import BatchRow, RunRow, RunState
from desilt.records.removals import State, Tombstone
from words import collect, committed, contents, forget_files, reparent, root, tables

LONG_AGO = timedelta(minutes=11)
OVER = [State.REMOVED, State.GONE, State.FAILED]
UNDER_WAY = [State.CONDEMNED, State.TRASHED, State.RESTORING]


class Again:
    """The first commit of main was collected; to remove a file brings back the name of its tables."""

    def __init__(self, repo):
        self.repo, self.batches = repo, itertools.count()
        first = committed(repo, "main", **{f"a{number}": "1" for number in range(20)})
        self.tables = tables(repo, first)
        self.head = committed(repo, "main", b="2", aa="2")
        self.names = self.tables - tables(repo, self.head)
        reparent(repo, self.head, root(repo))
        collect(repo, first)
        repo.remove("main", "b")
        repo.remove("main", "aa")
        self.contents = {f"a{number}": "1" for number in range(20)}

    def condemn(self, state, ago, names=None):
        """By a run that is done with it since ``ago``, if it is; it may have taken its time between."""
        number, at = next(self.batches), self.repo.clock() - ago
        stones = [
            Tombstone(f"_lakefs/{name}", "run-9", "collected", at - LONG_AGO, batch=number, state=state)
            for name in names or self.names
        ]
        with self.repo.database.write() as tx:
            tombstones.condemn(tx, self.repo.uid, stones)
            ledger.write_ahead(tx, self.repo.uid, "run-9", BatchRow(number, ""))
            if state in OVER:
                ledger.write_result(tx, self.repo.uid, "run-9", BatchRow(number, "results"), at=at)

    def give_up(self, ago):
        """The run was cut off, and nobody takes it up any more."""
        at = self.repo.clock() - ago
        row = RunRow("run-9", "collect", "", "delete", at - LONG_AGO, at, RunState.ABANDONED, 1, 1)
        with self.repo.database.write() as tx:
            ledger.begin(tx, self.repo.uid, row)

    def refused(self):
        with pytest.raises(BeingCollected, match=r"run run-9 .* nothing was done"):
            self.repo.commit("main", "again")
        assert self.repo.resolve("main@").commit.id == self.head.id
        assert contents(self.repo, "main") == self.contents  # still staged

    def done(self):
        made = self.repo.commit("main", "again")
        assert tables(self.repo, made) == self.tables
        self.repo.ranges.metarange.cache_clear()
        self.repo.ranges.table.cache_clear()
        assert contents(self.repo, "main@") == self.contents
        assert self.repo.tombstones(f"_lakefs/{name}" for name in self.tables) == {}


@pytest.fixture
def again(repo):
    made = Again(repo)
    assert len(made.names) > 1  # the metarange, and ranges
    return made


@pytest.mark.parametrize("state", OVER)
def test_what_was_removed_long_ago_is_written_again_and_no_longer_gone(repo, again, state):
    again.condemn(state, LONG_AGO)
    forget_files(repo, again.names)
    again.done()
    with repo.database.read() as tx:
        found = tombstones.recorded(tx, repo.uid, [f"_lakefs/{name}" for name in again.names])
    assert {(stone.state, stone.run) for stone in found.values()} == {(State.RESTORED, "run-9")}


@pytest.mark.parametrize("state", UNDER_WAY)
def test_what_a_run_has_not_done_with_is_waited_for(again, state):
    again.condemn(state, timedelta(days=30))
    again.refused()


@pytest.mark.parametrize("state", [*OVER, *UNDER_WAY])
def test_what_was_condemned_lately_is_waited_for(again, clock, state):
    again.condemn(state, timedelta(minutes=9))
    again.refused()
    clock.now += timedelta(minutes=2)
    if state in OVER:
        again.done()
    else:
        again.refused()


def test_what_a_run_was_cut_off_at_is_free_once_it_is_given_up(repo, again):
    again.condemn(State.CONDEMNED, timedelta(days=30))
    again.refused()
    again.give_up(timedelta(minutes=9))
    again.refused()
    forget_files(repo, again.names)
    repo.clock.now += timedelta(minutes=2)
    again.done()


def test_one_condemned_table_is_enough(repo, again):
    for name in sorted(again.names):
        again.condemn(State.CONDEMNED, LONG_AGO, [name])
        again.refused()
        with repo.database.write() as tx:
            tombstones.lift(tx, repo.uid, "run-9", [f"_lakefs/{name}"], State.RESTORED, at=repo.clock())
    again.done()


def test_a_slow_commit_counts_from_when_it_began_to_write(again, repo, clock, monkeypatch):
    again.condemn(State.REMOVED, timedelta(minutes=5))
    real = repo.ranges.put_metarange

    def slowly(ranges):
        clock.now += timedelta(minutes=30)
        return real(ranges)

    monkeypatch.setattr(repo.ranges, "put_metarange", slowly)
    again.refused()


def just_before_moving(monkeypatch, action):
    """Run ``action`` when a commit has looked at everything, and not yet begun its last transaction."""
    real = repositories.begin_move

    def begin(tx, uid, **more):
        begun = real(tx, uid, **more)
        action(tx)
        return begun

    monkeypatch.setattr(repositories, "begin_move", begin)


def test_what_was_removed_after_the_last_look_is_waited_for(repo, again, monkeypatch):
    again.condemn(State.CONDEMNED, LONG_AGO)

    def settle(tx):
        forget_files(repo, again.names & {key.rpartition("/")[2] for key in repo.store._objects})
        tombstones.settle(tx, repo.uid, "run-9", -1, State.REMOVED)

    just_before_moving(monkeypatch, settle)
    again.refused()


def test_what_was_condemned_again_after_the_last_look_is_waited_for(repo, again, monkeypatch):
    again.condemn(State.REMOVED, timedelta(days=2))
    stones = [
        Tombstone(f"_lakefs/{name}", "run-9", "x", repo.clock() - LONG_AGO, state=State.REMOVED) for name in again.names
    ]
    just_before_moving(monkeypatch, lambda tx: tombstones.condemn(tx, repo.uid, stones))
    again.refused()


def test_what_had_no_tombstone_at_the_last_look_is_asked_for_once_more(repo, again, monkeypatch):
    stones = [Tombstone(f"_lakefs/{name}", "run-9", "x", repo.clock() - LONG_AGO) for name in again.names]
    just_before_moving(monkeypatch, lambda tx: tombstones.condemn(tx, repo.uid, stones))
    again.refused()


@pytest.mark.parametrize("metarange", [True, False])
def test_a_file_that_went_after_it_was_written_is_not_relied_on(repo, again, monkeypatch, metarange):
    again.condemn(State.REMOVED, LONG_AGO)
    written, putting, building = set(), repo.store.put, repo.ranges.put_metarange

    def put(key, body):
        written.add(key.rpartition("/")[2])
        return putting(key, body)

    def put_metarange(ranges):
        made = building(ranges)
        forget_files(repo, [made] if metarange else again.names - {made})
        return made

    monkeypatch.setattr(repo.store, "put", put)
    monkeypatch.setattr(repo.ranges, "put_metarange", put_metarange)
    again.refused()
    assert again.names <= written  # whether it was there or not
    monkeypatch.undo()
    again.done()


def test_a_trashed_table_says_what_to_do(repo, again):
    again.condemn(State.TRASHED, LONG_AGO)
    with pytest.raises(BeingCollected, match=r"`desilt restore`.*`desilt purge`"):
        repo.commit("main", "again")


def test_merges_and_reverts_ask_too(repo):
    base = committed(repo, "main", a="1")
    bad = committed(repo, "main", b="2")
    repo.create_branch("dev", "main")
    repo.remove("dev", "b")
    repo.commit("dev", "as before")
    repo.create_branch("other", "main")
    committed(repo, "dev", c="3")
    stones = [Tombstone(f"_lakefs/{name}", "run-9", "x", repo.clock()) for name in tables(repo, base)]
    with repo.database.write() as tx:
        tombstones.condemn(tx, repo.uid, stones)
    with pytest.raises(BeingCollected):
        repo.revert("main", bad.id)
    with pytest.raises(BeingCollected):
        repo.merge("dev~1", "other")
    assert repo.resolve("main").commit.id == repo.resolve("other").commit.id == bad.id
    with repo.database.write() as tx:
        tombstones.lift(tx, repo.uid, "run-9", [one.address for one in stones], State.RESTORED, at=repo.clock())


def test_tombstones_of_another_repository_do_not_matter(lake, repo, again):
    other = lake.create_repository("other")
    stones = [Tombstone(f"_lakefs/{name}", "run-9", "x", repo.clock()) for name in again.names]
    with repo.database.write() as tx:
        tombstones.condemn(tx, other.uid, stones)
    again.done()


# ---- commits that are collected while somebody builds on them


def while_building(repo, monkeypatch, action):
    real = repo.ranges.put_metarange

    def put_metarange(ranges):
        monkeypatch.undo()
        action()
        return real(ranges)

    monkeypatch.setattr(repo.ranges, "put_metarange", put_metarange)


def test_a_merge_of_what_is_collected_meanwhile_does_nothing(repo, monkeypatch):
    repo.create_branch("dev", "main")
    source = committed(repo, "dev", a="1")

    def gone():
        repo.delete_branch("dev")
        collect(repo, source)

    while_building(repo, monkeypatch, gone)
    head = repo.resolve("main").commit
    with pytest.raises(CommitGone, match=source.id):
        repo.merge("dev", "main")
    assert repo.resolve("main").commit == head


@pytest.mark.parametrize("which", ["reverted", "before"])
def test_a_revert_of_what_is_collected_meanwhile_does_nothing(repo, monkeypatch, which):
    before = committed(repo, "main", a="1")
    reverted = committed(repo, "main", a="2")
    head = committed(repo, "main", b="2")

    def gone():
        reparent(repo, head, root(repo))
        collect(repo, reverted if which == "reverted" else before)
        if which == "before":
            repo.create_tag("v1", head.id)
            reparent(repo, reverted, root(repo))

    while_building(repo, monkeypatch, gone)
    with pytest.raises(CommitGone):
        repo.revert("main", reverted.id)
    assert repo.resolve("main").commit.id == head.id


def test_a_commit_that_was_collected_does_not_come_back_while_a_clock_stands_still(lake):
    repo = lake.create_repository("still", clock_at=datetime(2026, 1, 1, tzinfo=UTC))
    committed(repo, "main", a="1", b="1")

    def same():
        repo.create_branch("dev", "main")
        repo.remove("dev", "b")
        return repo.commit("dev", "without b")

    first = same()
    repo.delete_branch("dev")
    collect(repo, first)
    second = same()
    assert (second.metarange, second.parents) == (first.metarange, first.parents)
    assert second.id != first.id
    assert check(repo).sound
