"""What was uploaded and never committed is condemned by whatever drops its last reference, and by nothing else."""

from datetime import timedelta

import pytest

from desilt.errors import BatchOver, DesiltError, Gone, NothingToCommit, TooFast
from desilt.jobs import holds
from desilt.jobs.harddelete.worker import HardDeleteWorker, keep_removing, remove
from desilt.lake import discards, fresh
from desilt.lake.hard_delete import PAUSES
from desilt.objects.store import Outcome, Result
from desilt.records import ledger
from desilt.records import removals as tombstones
from desilt.records.holds import HoldKind
from desilt.records.ledger import RunRow, RunState
from desilt.records.removals import State
from desilt.repository.hard_delete import LEASE, HardDeleteSetting, WantedBack
from desilt.testing import oracle
from words import contents, put, seal

MINUTE = timedelta(minutes=1)
NOW = HardDeleteSetting(timedelta(0), 1.0)
PAUSE = PAUSES[0]
SOON = HardDeleteSetting(10 * MINUTE, 1.0)


@pytest.fixture
def repo(lake):
    made = lake.create_repository("demo")
    made.hard_delete.switch(SOON)
    return made


def condemned(repo):
    """What hard delete has condemned, and by what."""
    with repo.database.read() as tx:
        stones = tombstones.found_in(tx, repo.uid, tombstones.left_to_hard_delete(tx, repo.uid))
    return {address: stone.rule for address, stone in stones.items()}


def watched(repo):
    with repo.database.read() as tx:
        return {str(row[0]) for row in tx.rows("SELECT address FROM fresh WHERE repository = ?", repo.uid)}


def rows(repo):
    with repo.database.read() as tx:
        return list(discards.every(tx, repo.uid))


def link(repo, branch, path, text="linked"):
    handed = repo.physical_address(branch, path)
    repo.store.put(repo.prefix + handed.ticket.address, [text.encode()])
    return repo.link(branch, path, handed.token).address


def elsewhere(repo, branch, path):
    repo.stage(branch, path, "s3://elsewhere/object", size=1, checksum="ab")


def pass_time(clock, length):
    clock.now += length


# ---- what drops the last reference


@pytest.mark.parametrize(
    ("drop", "by"),
    [
        (lambda repo: put(repo, "main", "a", "new"), "overwritten"),
        (lambda repo: link(repo, "main", "a"), "overwritten"),
        (lambda repo: elsewhere(repo, "main", "a"), "overwritten"),
        (lambda repo: repo.copy("main", "b", "main", "a"), "overwritten"),
        (lambda repo: repo.move("main", "b", "a"), "overwritten"),
        (lambda repo: repo.copy("dev", "c", "main", "a"), "overwritten"),
        (lambda repo: repo.remove("main", "a"), "removed from its branch"),
        (lambda repo: list(repo.remove_below("main", "a")), "removed from its branch"),
        (lambda repo: repo.reset("main"), "reset"),
        (lambda repo: repo.reset("main", path="a"), "reset"),
        (lambda repo: repo.reset("main", prefix="a"), "reset"),
    ],
    ids=[
        "put",
        "link",
        "elsewhere",
        "copy",
        "move",
        "copy across",
        "rm",
        "rm -r",
        "reset",
        "reset path",
        "reset prefix",
    ],
)
def test_whatever_drops_the_last_reference_condemns(repo, drop, by):
    repo.create_branch("dev", "main")
    put(repo, "dev", "c")
    first, other = put(repo, "main", "a"), put(repo, "main", "b")
    drop(repo)
    assert condemned(repo)[first] == by
    assert set(condemned(repo)) - {first} <= {other}
    assert first not in watched(repo)


def test_what_was_staged_on_a_deleted_branch_is_condemned(repo):
    repo.create_branch("dev", "main")
    first = put(repo, "dev", "a")
    seal(repo, "dev")
    second, kept = put(repo, "dev", "a", "newer"), put(repo, "main", "a")
    repo.delete_branch("dev", force=True)
    assert condemned(repo) == dict.fromkeys([first, second], "branch deleted")
    assert watched(repo) == {kept}


def test_what_a_newer_area_hides_is_condemned_by_the_commit(repo):
    hidden = put(repo, "main", "a", "1")
    seal(repo, "main")
    shown, other = put(repo, "main", "a", "2"), put(repo, "main", "b")
    assert condemned(repo) == {}, "a sealed area still points to it"
    repo.commit("main", "one")
    assert condemned(repo) == {hidden: "hidden by a newer entry"}
    assert {shown, other} <= oracle.committed(repo)
    assert watched(repo) == set()


def test_what_is_hidden_at_one_path_and_committed_at_another_stays(repo):
    kept = put(repo, "main", "a")
    repo.copy("main", "a", "main", "b")
    seal(repo, "main")
    put(repo, "main", "a", "new")
    repo.commit("main", "one")
    assert condemned(repo) == {}
    assert kept in oracle.committed(repo)


def test_an_area_that_no_commit_takes_hides_nothing_of_it(repo, monkeypatch):
    """Written while a commit is being built: the commit has what was there before."""
    taken = put(repo, "main", "a", "1")
    newer = []
    real = repo.ranges.put_metarange

    def slow(*values, **named):
        if not newer:
            newer.append(put(repo, "main", "a", "2"))
        return real(*values, **named)

    monkeypatch.setattr(repo.ranges, "put_metarange", slow)
    repo.commit("main", "one")
    assert taken in oracle.committed(repo)
    assert condemned(repo) == {}
    assert watched(repo) == set(newer)


def test_what_a_gathering_merges_away_is_condemned(repo):
    hidden = put(repo, "main", "a", "1")
    seal(repo, "main")
    shown, other = put(repo, "main", "a", "2"), put(repo, "main", "b")
    repo.reset("main", path="b")
    assert condemned(repo) == {hidden: "hidden by a newer entry", other: "reset"}
    assert watched(repo) == {shown}


def test_what_changes_nothing_is_condemned_with_its_areas(repo):
    gone = put(repo, "main", "a")
    seal(repo, "main")
    repo.remove("main", "a")
    with pytest.raises(NothingToCommit):
        repo.commit("main", "nothing")
    assert condemned(repo) == {gone: "nothing to commit"}


# ---- what keeps it


def test_a_move_keeps_what_it_moves(repo):
    address = put(repo, "main", "a")
    repo.move("main", "a", "b")
    assert (condemned(repo), watched(repo)) == ({}, {address})
    repo.move("main", "b", "b")
    assert (condemned(repo), watched(repo)) == ({}, {address})


def test_a_copy_keeps_it_until_it_goes_too(repo):
    address = put(repo, "main", "a")
    repo.copy("main", "a", "main", "b")
    put(repo, "main", "a", "new")
    assert condemned(repo) == {}
    repo.reset("main", path="b")
    assert condemned(repo) == {address: "reset"}


def test_a_sealed_area_keeps_it(repo):
    address = put(repo, "main", "a")
    seal(repo, "main")
    put(repo, "main", "a", "new")
    repo.remove("main", "a")
    assert address not in condemned(repo)
    assert address in watched(repo)


def test_what_was_ever_committed_is_left_alone(repo):
    address = put(repo, "main", "a")
    repo.commit("main", "one")
    repo.copy("main", "a", "main", "b")
    repo.move("main", "b", "c")
    repo.reset("main")
    repo.remove("main", "a")
    repo.commit("main", "two")
    repo.create_branch("dev", "main~1")
    repo.copy("dev", "a", "dev", "d")
    repo.delete_branch("dev", force=True)
    assert (condemned(repo), watched(repo)) == ({}, set())
    assert address in oracle.committed(repo)


def test_what_lies_elsewhere_is_never_condemned(repo):
    elsewhere(repo, "main", "a")
    repo.reset("main")
    assert (condemned(repo), watched(repo)) == ({}, set())


@pytest.mark.parametrize(("kind", "value"), [(HoldKind.PREFIX, "logs/"), (HoldKind.ADDRESS, None)])
def test_what_somebody_ordered_to_be_kept_is_left_to_the_collector(repo, kind, value):
    address = put(repo, "main", "logs/a")
    other = put(repo, "main", "other")
    repo.orders.add(kind, value or address, reason="audit", until=None)
    repo.reset("main")
    assert condemned(repo) == {other: "reset"}
    assert (watched(repo), {row.address for row in rows(repo)}) == (set(), {other})
    assert address in oracle.stored(repo)


def test_a_path_that_it_had_before_counts_for_a_hold(repo):
    address = put(repo, "main", "logs/a")
    repo.copy("main", "logs/a", "main", "b")
    repo.reset("main", path="logs/a")
    repo.orders.add(HoldKind.PREFIX, "logs/", reason="audit", until=None)
    repo.reset("main", path="b")
    assert condemned(repo) == {}
    assert address in oracle.stored(repo)


def test_an_address_that_has_a_tombstone_keeps_it(repo):
    """Retention marks what is staged; what becomes of it then is retention's."""
    address = put(repo, "main", "a")
    stone = tombstones.Tombstone(address, "run-1", "rule", repo.clock(), 1, 0, State.MARKED)
    with repo.database.write() as tx:
        tombstones.condemn(tx, repo.uid, [stone])
    repo.reset("main")
    with repo.database.read() as tx:
        assert tombstones.find(tx, repo.uid, address) == stone
    assert (rows(repo), watched(repo)) == ([], set())


# ---- on and off


def test_off_unless_it_is_asked_for(lake):
    repo = lake.create_repository("quiet")
    put(repo, "main", "a", "1")
    put(repo, "main", "a", "2")
    assert repo.hard_delete.setting() is None
    assert (condemned(repo), watched(repo)) == ({}, set())


def test_what_was_staged_before_it_was_on_is_left_alone(lake):
    """A staged copy of something committed looks like an upload."""
    repo = lake.create_repository("late")
    before = put(repo, "main", "a")
    repo.hard_delete.switch(SOON)
    after = put(repo, "main", "b")
    repo.reset("main")
    assert condemned(repo) == {after: "reset"}
    assert before in oracle.garbage(repo)


def test_off_forgets_what_it_watched_and_on_does_not_bring_it_back(repo):
    address = put(repo, "main", "a")
    assert repo.hard_delete.switch(None) == 1
    assert repo.hard_delete.setting() is None
    repo.hard_delete.switch(SOON)
    repo.reset("main")
    assert (condemned(repo), watched(repo)) == ({}, set())
    assert address in oracle.garbage(repo)


def test_a_commit_takes_rows_away_whether_it_is_on_or_off(repo):
    """Rows that are there while it is off: as a database has them that somebody has mended by hand."""
    address = put(repo, "main", "a")
    repo.hard_delete.switch(None)
    with repo.database.write() as tx:
        tx.execute("INSERT INTO fresh (repository, address, size_bytes) VALUES (?, ?, 1)", repo.uid, address)
    repo.commit("main", "one")
    assert watched(repo) == set()


def test_it_is_read_in_each_transaction(repo, lake):
    other = lake.repository("demo")
    other.hard_delete.switch(None)
    put(repo, "main", "a")
    assert watched(repo) == set()
    other.hard_delete.switch(SOON)
    assert watched(repo) == set()
    assert put(repo, "main", "a") in watched(repo)


# ---- workers


def test_after_its_grace_it_is_removed_and_on_record(repo, clock):
    address = put(repo, "main", "a", "12345")
    put(repo, "main", "a", "new")
    assert remove(repo) is None, "its grace is not over"
    assert address in oracle.stored(repo)
    pass_time(clock, SOON.grace)
    report = remove(repo)
    assert (report.swept.removed, report.swept.bytes, report.swept.failed) == (1, 5, 0)
    assert {branch: list(reasons) for branch, reasons in report.remove.items()} == {"main": ["overwritten"]}
    assert address not in oracle.stored(repo)
    with repo.database.read() as tx:
        stone = tombstones.find(tx, repo.uid, address)
        (run,) = ledger.every(tx, repo.uid)
        (batch,) = ledger.batches(tx, repo.uid, run.id)
    assert (stone.state, stone.run, stone.rule) == (State.REMOVED, run.id, "overwritten")
    assert (run.job, run.state) == ("harddelete", RunState.SWEPT)
    assert (batch.asked, batch.removed, batch.removed_bytes) == (1, 1, 5)
    assert rows(repo) == []
    assert remove(repo) is None


def test_a_hold_made_within_the_grace_keeps_its_object(repo, clock):
    address, other = put(repo, "main", "logs/a"), put(repo, "main", "b")
    repo.reset("main")
    hold = repo.orders.add(HoldKind.ADDRESS, address, reason="wait", until=None)
    prefixed = repo.orders.add(HoldKind.PREFIX, "b", reason="wait", until=None)
    pass_time(clock, SOON.grace)
    assert remove(repo) is None
    assert {address, other} <= set(oracle.stored(repo))
    repo.orders.lift(hold.id)
    repo.orders.lift(prefixed.id)
    pass_time(clock, PAUSES[1])
    assert remove(repo).swept.removed == 2
    assert not {address, other} & set(oracle.stored(repo))


def test_no_hold_is_made_on_what_a_worker_has_claimed(repo, clock):
    address = put(repo, "main", "a")
    repo.reset("main")
    pass_time(clock, SOON.grace)
    repo.hard_delete.claim(row(repo, "run-1"), 0, most=10)
    with pytest.raises(Gone):
        repo.orders.add(HoldKind.ADDRESS, address, reason="late", until=None)


def row(repo, name):
    return RunRow(name, "harddelete", "", "delete", repo.clock(), None, RunState.SWEPT, 0, 0)


def settle(repo, claim, result=Result.REMOVED):
    outcomes = [Outcome(repo.prefix + one.address, result) for one in claim.stones]
    return repo.hard_delete.settle(claim, "f", outcomes)


def test_what_one_has_claimed_no_other_gets_until_its_lease_ends(repo, clock):
    addresses = {put(repo, "main", path) for path in "abc"}
    repo.reset("main")
    pass_time(clock, SOON.grace)
    first = repo.hard_delete.claim(row(repo, "run-1"), 0, most=2)
    second = repo.hard_delete.claim(row(repo, "run-2"), 0, most=2)
    assert repo.hard_delete.claim(row(repo, "run-3"), 0, most=2) is None
    claimed = [{stone.address for stone in claim.stones} for claim in (first, second)]
    assert [len(some) for some in claimed] == [2, 1]
    assert set.union(*claimed) == addresses
    pass_time(clock, LEASE)
    third = repo.hard_delete.claim(row(repo, "run-3"), 0, most=2)
    assert len(third.stones) == 2
    with pytest.raises(BatchOver):
        repo.hard_delete.sure(first)  # its lease has ended, and it is another's
    repo.hard_delete.sure(third)


def test_one_that_was_taken_over_settles_nothing(repo, clock):
    address = put(repo, "main", "a")
    repo.reset("main")
    pass_time(clock, SOON.grace)
    first = repo.hard_delete.claim(row(repo, "run-1"), 0, most=2)
    pass_time(clock, LEASE)
    second = repo.hard_delete.claim(row(repo, "run-2"), 0, most=2)
    assert settle(repo, first).asked == 0
    with repo.database.read() as tx:
        assert tombstones.find(tx, repo.uid, address).state is State.CLAIMED
    assert settle(repo, second).removed == 1
    assert repo.hard_delete.discards().removed == 1, "counted once"
    with repo.database.read() as tx:
        stone = tombstones.find(tx, repo.uid, address)
    assert (stone.state, stone.run) == (State.REMOVED, "run-2")


def test_what_the_store_failed_at_is_tried_again_and_never_restored(repo, clock):
    address = put(repo, "main", "a")
    repo.reset("main")
    pass_time(clock, SOON.grace)
    settle(repo, repo.hard_delete.claim(row(repo, "run-1"), 0, most=2), Result.FAILED)
    assert repo.hard_delete.restore(WantedBack()).late == 1
    assert repo.hard_delete.claim(row(repo, "run-2"), 0, most=2) is None
    pass_time(clock, 5 * PAUSE)
    settle(repo, repo.hard_delete.claim(row(repo, "run-2"), 0, most=2))
    assert condemned(repo) == {}
    with repo.database.read() as tx:
        assert tombstones.find(tx, repo.uid, address).state is State.REMOVED


def test_too_large_a_share_of_the_lake_stops_it(repo, clock):
    for number in range(10):
        put(repo, "main", f"kept/{number}")
    repo.commit("main", "some")
    lost = {put(repo, "main", f"lost/{number}") for number in range(10)}
    repo.reset("main")
    pass_time(clock, SOON.grace)
    with pytest.raises(TooFast, match="10 of 20 objects: 50%, the limit is 40%"):
        remove(repo, max_share=0.4)
    assert lost <= set(oracle.stored(repo))
    assert remove(repo, max_share=0.5).swept.removed == 10
    put(repo, "main", "a", "1")
    put(repo, "main", "a", "2")
    pass_time(clock, SOON.grace)
    with pytest.raises(TooFast, match="after 10 within the hour"):
        remove(repo, max_share=0.45)
    pass_time(clock, 60 * MINUTE)
    assert remove(repo, max_share=0.45).swept.removed == 1


def test_a_worker_that_goes_on_begins_a_run_each_hour(repo, clock):
    worker = HardDeleteWorker(repo, 1.0)
    runs = []
    for _ in range(3):
        put(repo, "main", "a", "1")
        put(repo, "main", "a", "2")
        pass_time(clock, 31 * MINUTE)
        runs.append(worker.work().run)
    assert len(set(runs)) == 2
    assert runs[0] == runs[1]


def test_a_worker_that_watches_takes_up_what_becomes_due(repo, clock):
    watching = keep_removing(repo, max_share=1.0, sleep=lambda _: pass_time(clock, MINUTE))
    put(repo, "main", "a", "1")
    put(repo, "main", "a", "2")
    assert next(watching).swept.removed == 1
    repo.reset("main")
    assert next(watching).swept.removed == 2


# ---- restore


def test_a_mistaken_reset_is_undone(repo, clock):
    put(repo, "main", "committed")
    repo.commit("main", "one")
    for path in ("a", "b/c", "committed"):
        put(repo, "main", path, f"text of {path}")
    repo.copy("main", "a", "main", "copy")
    before, held = contents(repo, "main"), watched(repo)
    repo.reset("main")
    back = repo.hard_delete.restore(WantedBack("main"))
    assert (back.objects, back.written, back.late) == (3, (), 0)
    assert contents(repo, "main") == before
    assert (watched(repo), condemned(repo), rows(repo)) == (held, {}, [])
    pass_time(clock, 2 * SOON.grace)
    assert remove(repo) is None
    repo.commit("main", "two")
    assert contents(repo, "main@") == before


def test_a_mistaken_removal_is_undone(repo):
    put(repo, "main", "a", "text")
    repo.remove("main", "a")
    assert repo.hard_delete.restore(WantedBack(prefix="a")).objects == 1
    assert contents(repo, "main") == {"a": "text"}


def test_only_what_is_meant_comes_back(repo):
    repo.create_branch("dev", "main")
    first, second = put(repo, "main", "a/1"), put(repo, "main", "b/1")
    third, fourth = put(repo, "dev", "a/1"), put(repo, "dev", "c")
    repo.reset("main")
    repo.reset("dev")
    assert repo.hard_delete.restore(WantedBack("main", "a/")).objects == 1
    assert repo.hard_delete.restore(WantedBack(addresses=(fourth,))).objects == 1
    assert set(condemned(repo)) == {second, third}
    assert {first, fourth} <= oracle.staged(repo)


@pytest.mark.parametrize(
    "since",
    [
        lambda repo: put(repo, "main", "a", "new"),
        lambda repo: (put(repo, "main", "a", "new"), repo.reset("main", path="a")),
        lambda repo: (put(repo, "main", "a", "new"), repo.commit("main", "one")),
        lambda repo: (put(repo, "main", "a", "new"), repo.commit("main", "one"), repo.remove("main", "a")),
        lambda repo: (put(repo, "dev", "a", "new"), repo.commit("dev", "one"), repo.merge("dev", "main")),
        lambda repo: elsewhere(repo, "main", "a"),
    ],
    ids=["put", "put and reset", "commit", "commit and remove", "merge", "elsewhere"],
)
def test_a_path_that_was_written_since_is_left_as_it_is(repo, since):
    repo.create_branch("dev", "main")
    address = put(repo, "main", "a", "old")
    repo.reset("main")
    since(repo)
    before = contents(repo, "main@"), oracle.staged(repo)
    assert repo.hard_delete.restore(WantedBack(addresses=(address,))).written == ("a",)
    assert (contents(repo, "main@"), oracle.staged(repo)) == before
    assert address in condemned(repo)


def test_what_was_overwritten_does_not_come_back_over_what_did_it(repo):
    put(repo, "main", "a", "old")
    put(repo, "main", "a", "new")
    assert repo.hard_delete.restore(WantedBack()).written == ("a",)
    assert contents(repo, "main") == {"a": "new"}


def test_what_went_with_its_branch_does_not_come_back_to_another_of_its_name(repo):
    repo.create_branch("dev", "main")
    address = put(repo, "dev", "a")
    repo.delete_branch("dev", force=True)
    repo.create_branch("dev", "main")
    assert repo.hard_delete.restore(WantedBack(addresses=(address,))).written == ("a",)
    assert contents(repo, "dev") == {}


def test_what_came_back_is_condemned_again_when_it_is_dropped_again(repo, clock):
    address = put(repo, "main", "a")
    for _ in range(2):
        repo.reset("main")
        assert condemned(repo) == {address: "reset"}
        assert repo.hard_delete.restore(WantedBack()).objects == 1
        assert condemned(repo) == {}
    repo.remove("main", "a")
    pass_time(clock, SOON.grace)
    assert remove(repo).swept.removed == 1
    assert address not in oracle.stored(repo)


def test_what_came_back_and_was_committed_is_never_condemned_again(repo):
    address = put(repo, "main", "a")
    repo.reset("main")
    repo.hard_delete.restore(WantedBack())
    repo.commit("main", "one")
    repo.copy("main", "a", "main", "b")
    repo.reset("main")
    assert condemned(repo) == {}
    assert address in oracle.committed(repo)


def test_odd_paths_come_back_as_they_were(repo):
    odd = ["é", "e\u0301", "a//b", "%2F", "ＡＢ\U0001f600"]
    for path in odd:
        put(repo, "main", path, path.encode().hex())
    before = contents(repo, "main")
    repo.reset("main")
    repo.hard_delete.restore(WantedBack("main"))
    assert contents(repo, "main") == before


# ---- beside others


def test_nothing_of_another_repository_is_touched(lake, repo, clock):
    other = lake.create_repository("other")
    theirs = put(other, "main", "a")
    mine = put(repo, "main", "a")
    other.reset("main")
    repo.reset("main")
    pass_time(clock, SOON.grace)
    assert set(condemned(repo)) == {mine}
    assert condemned(other) == {}
    remove(repo, max_share=1.0)
    assert theirs in oracle.stored(other)


def test_nobody_stages_what_is_condemned(repo):
    """By an entry that was read before."""
    address = put(repo, "main", "a")
    entry = repo.stat("main", "a")
    repo.reset("main")
    repo.create_branch("dev", "main")
    with pytest.raises(DesiltError):
        repo._writer.copy_in(entry, "dev", "b")
    assert address in condemned(repo)
    assert address not in oracle.staged(repo)


def test_counting_is_of_this_moment(repo):
    put(repo, "main", "a", "1")
    put(repo, "main", "a", "22")
    found = repo.hard_delete.discards()
    assert (found.waiting, found.waiting_bytes, found.fresh, found.due, found.stored) == (1, 1, 1, 0, 2)
    with repo.database.read() as tx:
        assert fresh.count(tx, repo.uid) == 1


def test_holds_that_are_over_keep_nothing(repo, clock):
    address = put(repo, "main", "a")
    holds.hold(repo, HoldKind.ADDRESS, address, reason="for a minute", until=repo.clock() + MINUTE)
    pass_time(clock, 2 * MINUTE)
    repo.reset("main")
    assert condemned(repo) == {address: "reset"}
