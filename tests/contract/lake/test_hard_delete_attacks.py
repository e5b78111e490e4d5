"""Hard delete under attack: copies of the database, workers that were thought dead, restores in between."""

import threading
from datetime import timedelta

import pytest

from copies import backup, cut_off, put_back
from desilt.errors import BadTicket, Conflict, WentBack
from desilt.jobs.harddelete.worker import HardDeleteWorker, keep_removing, remove
from desilt.lake import hard_delete as of_lake
from desilt.lake import heads, undiscard
from desilt.objects.store import Outcome, Result
from desilt.records import ledger
from desilt.records import removals as tombstones
from desilt.records.holds import HoldKind
from desilt.records.removals import State
from desilt.recovery.recover import recover
from desilt.repository.hard_delete import LEASE, HardDeleteSetting, WantedBack
from desilt.runs.known import report_of
from desilt.sweep import discards as sweeping
from desilt.testing import oracle
from words import contents, put, read, seal

MINUTE = timedelta(minutes=1)
SOON = HardDeleteSetting(10 * MINUTE, 1.0)
LATER = 2 * SOON.grace


@pytest.fixture
def repo(lake):
    made = lake.create_repository("demo")
    made.hard_delete.switch(SOON)
    put(made, "main", "first")
    made.commit("main", "first")
    return made


def state(repo, address):
    with repo.database.read() as tx:
        stone = tombstones.recorded(tx, repo.uid, [address]).get(address)
    return stone and stone.state


def pass_time(clock, length=LATER):
    clock.now += length


def removed(repo):
    """How many objects and bytes the ledger says that hard delete removed."""
    with repo.database.read() as tx:
        return ledger.removed_since(tx, repo.uid, repo.clock() - timedelta(days=9), only="harddelete")


class Killed(Exception):
    pass


def kill(*_, **__):
    raise Killed


# ---- a database that is put back


def test_what_was_restored_and_committed_since_the_copy_stays(repo, clock):
    address = put(repo, "main", "a", "A")
    repo.reset("main")
    copy = backup(repo.database)
    repo.hard_delete.restore(WantedBack())
    repo.commit("main", "with a")
    put_back(repo.database, copy)
    pass_time(clock)
    with pytest.raises(WentBack):
        remove(repo)
    recover(repo)
    pass_time(clock)
    assert remove(repo) is None
    assert (read(repo, "main", "a"), address in oracle.stored(repo)) == ("A", True)


def test_what_was_committed_since_the_copy_is_not_dropped_by_a_recovery(repo, clock):
    put(repo, "main", "a", "A")
    copy = backup(repo.database)
    repo.commit("main", "with a")
    repo.create_tag("v1", "main")
    put_back(repo.database, copy)
    recover(repo)
    pass_time(clock)
    assert remove(repo) is None
    assert read(repo, "v1", "a") == "A"


def test_what_somebody_drops_before_the_recovery_comes_back_with_it(repo, clock):
    """The restored database calls it fresh, and the commit that has it is not known yet."""
    address = put(repo, "main", "a", "A")
    copy = backup(repo.database)
    repo.commit("main", "with a")
    repo.create_tag("v1", "main")
    put_back(repo.database, copy)
    put(repo, "main", "a", "new")
    assert state(repo, address) is State.DISCARDED
    recover(repo)
    assert state(repo, address) is State.RESTORED
    pass_time(clock)
    remove(repo)
    assert read(repo, "v1", "a") == "A"


def test_what_a_worker_removed_since_the_copy_is_not_staged_any_more(repo, clock):
    address = put(repo, "main", "a", "A")
    kept = put(repo, "main", "b", "B")
    copy = backup(repo.database)
    repo.reset("main", path="a")
    pass_time(clock)
    remove(repo)
    put_back(repo.database, copy)
    pass_time(clock)
    assert recover(repo).removed == 1
    assert state(repo, address) is State.REMOVED
    assert oracle.staged(repo) == {kept}
    assert removed(repo) == (1, 1)


def test_a_copy_made_within_a_claim_brings_nothing_back(repo, clock):
    """The record of the claim is the only one that it lacks, and it knows that a move was coming."""
    address = put(repo, "main", "a", "A")
    repo.reset("main")
    pass_time(clock)
    cut_off(repo, remove)
    assert address not in oracle.stored(repo)
    back = repo.hard_delete.restore(WantedBack())
    assert (back.objects, back.late) == (0, 1)
    assert oracle.staged(repo) == set()
    pass_time(clock)
    remove(repo)
    assert state(repo, address) is State.REMOVED


def test_a_copy_made_within_a_restore_removes_nothing(repo, clock):
    address = put(repo, "main", "a", "A")
    repo.reset("main")
    assert cut_off(repo, lambda one: one.hard_delete.restore(WantedBack())).objects == 1
    pass_time(clock)
    assert remove(repo) is None or state(repo, address) is State.RESTORED
    assert address in oracle.stored(repo)


def test_a_ticket_that_a_copy_brings_back_makes_nothing_fresh(repo, clock):
    """It was used once, and what it was used for is committed."""
    handed = repo.physical_address("main", "a")
    repo.store.put(repo.prefix + handed.ticket.address, [b"A"])
    copy = backup(repo.database)
    repo.link("main", "a", handed.token)
    repo.commit("main", "with a")
    put_back(repo.database, copy)
    recover(repo)
    try:
        repo.link("main", "a", handed.token)
    except BadTicket:
        pytest.skip("it is refused")
    repo.reset("main")
    pass_time(clock)
    assert remove(repo) is None
    assert read(repo, "main", "a") == "A"


def test_a_while_after_a_recovery_uploads_are_watched_again(repo, clock):
    copy = backup(repo.database)
    repo.create_tag("v1", "main")
    repo.create_tag("v2", "main")
    put_back(repo.database, copy)
    recover(repo)
    before = put(repo, "main", "a")
    pass_time(clock)
    after = put(repo, "main", "b")
    repo.reset("main")
    assert (state(repo, before), state(repo, after)) == (None, State.DISCARDED)


@pytest.mark.usefixtures("unsound")
def test_no_recovery_while_a_worker_may_be_about_to_delete(repo, clock, monkeypatch):
    """It has claimed from the database that is lost, and has not even written that down."""
    put(repo, "main", "a", "A")
    copy = backup(repo.database)
    repo.reset("main")
    pass_time(clock)
    refused, real = [], sweeping.write_outcome

    def write(store, key, table):
        if not refused:
            put_back(repo.database, copy)
            with pytest.raises(Conflict, match="was at work") as raised:
                recover(repo)
            refused.append(raised.value)
        return real(store, key, table)

    monkeypatch.setattr(sweeping, "write_outcome", write)
    remove(repo)
    assert refused


# ---- workers


def test_one_that_is_late_is_not_counted_again(repo, clock, monkeypatch):
    for number in range(3):
        put(repo, "main", f"a{number}", "0123456789")
    repo.reset("main")
    pass_time(clock)
    real, late = of_lake.LakeHardDelete.settle, []

    def settle(self, *values):
        if not late:
            late.append(values)
            raise Killed
        return real(self, *values)

    monkeypatch.setattr(of_lake.LakeHardDelete, "settle", settle)
    with pytest.raises(Killed):
        remove(repo)
    pass_time(clock, LEASE)
    report = remove(repo)
    real(repo.hard_delete, *late[0])
    assert removed(repo) == (3, 30)
    assert (report.swept.removed, report.swept.gone) == (3, 0), "the one that was cut off had removed them"


def test_a_worker_killed_anywhere_leaves_its_work_to_the_next(repo, clock, monkeypatch):
    for step in ("write_outcome", "delete"):
        for number in range(2):
            address = put(repo, "main", "a", f"{step}{number}")
            repo.reset("main")
            pass_time(clock)
            real, calls = getattr(sweeping, step), []

            def dying(*values, real=real, calls=calls, number=number, **named):
                if len(calls) == number:
                    raise Killed
                calls.append(1)
                return real(*values, **named)

            with monkeypatch.context() as patch:
                patch.setattr(sweeping, step, dying)
                if step == "delete" and number == 1:
                    patch.setattr(of_lake.LakeHardDelete, "settle", kill)
                with pytest.raises(Killed):
                    remove(repo)
            assert remove(repo) is None, "its lease is not over"
            assert state(repo, address) is State.CLAIMED
            pass_time(clock, LEASE)
            assert remove(repo).swept.removed == 1
            assert state(repo, address) is State.REMOVED
            assert address not in oracle.stored(repo)


def test_what_is_held_does_not_hide_the_rest(repo, clock):
    repo.store.delete_batch = 2
    kept = {put(repo, "main", f"keep/{number}") for number in range(3)}
    repo.reset("main")
    other = put(repo, "main", "other")
    repo.reset("main")
    repo.orders.add(HoldKind.PREFIX, "keep/", reason="wait", until=None)
    pass_time(clock)
    assert remove(repo).swept.removed == 1
    assert (kept <= set(oracle.stored(repo)), other in oracle.stored(repo)) == (True, False)


def test_a_run_that_takes_longer_than_an_hour_tells_of_all_it_did(repo, clock, monkeypatch):
    repo.store.delete_batch = 1
    for number in range(4):
        put(repo, "main", f"a{number}")
    repo.reset("main")
    pass_time(clock)
    real = of_lake.LakeHardDelete.settle

    def slow(self, *values):
        done = real(self, *values)
        pass_time(clock, 40 * MINUTE)
        return done

    monkeypatch.setattr(of_lake.LakeHardDelete, "settle", slow)
    report = remove(repo)
    assert (report.removed.objects, report.swept.removed) == (4, 4)
    assert report_of(repo, report.run).swept.removed == 4


def test_what_the_store_always_refuses_is_asked_for_less_and_less(repo, clock, monkeypatch):
    put(repo, "main", "a")
    repo.reset("main")
    refuse = lambda _, keys, **__: [Outcome(key, Result.FAILED, "AccessDenied") for key in keys]  # noqa: E731
    monkeypatch.setattr(sweeping, "delete", refuse)
    worker, before = HardDeleteWorker(repo, 1.0), repo.generation()
    pass_time(clock)
    for _ in range(120):
        worker.work()
        pass_time(clock, MINUTE)
    assert 3 < repo.generation() - before < 20


def test_a_database_that_is_away_for_a_moment_ends_no_watch(repo, clock, monkeypatch):
    put(repo, "main", "a")
    repo.reset("main")
    pass_time(clock)
    real, calls = of_lake.LakeHardDelete.claim, []

    def claim(self, *values, **named):
        calls.append(1)
        if len(calls) == 1:
            raise Conflict("a move of somebody else was cut off")
        return real(self, *values, **named)

    monkeypatch.setattr(of_lake.LakeHardDelete, "claim", claim)
    watching = keep_removing(repo, sleep=lambda _: pass_time(clock, MINUTE))
    assert next(watching).swept.removed == 1


@pytest.mark.parametrize("became", ["removed", "restored"])
def test_a_row_that_is_out_of_step_stops_nobody(repo, clock, became):
    address, other = put(repo, "main", "a"), put(repo, "main", "b")
    repo.reset("main")
    with repo.database.write() as tx:
        tx.execute("UPDATE tombstones SET state = ?, run = 'run-1' WHERE address = ?", became, address)
    pass_time(clock)
    assert remove(repo).swept.removed == 1
    assert not repo.hard_delete.is_due()
    assert (address in oracle.stored(repo), other in oracle.stored(repo)) == (True, False)


# ---- restores


def test_a_commit_does_not_seal_what_a_restore_is_staging_into(repo, monkeypatch):
    """Else it would drop what came back, with the area that it was put into."""
    put(repo, "main", "a", "A")
    repo.reset("main")
    put(repo, "main", "b", "B")
    looking, sealed, real = threading.Event(), threading.Event(), undiscard._restage

    def slow(*values):
        looking.set()
        sealed.wait(0.5)
        return real(*values)

    monkeypatch.setattr(undiscard, "_restage", slow)
    built = heads.apply
    monkeypatch.setattr(heads, "apply", lambda *values: (sealed.set(), built(*values))[1])
    restoring = threading.Thread(target=lambda: repo.hard_delete.restore(WantedBack()))
    restoring.start()
    looking.wait(60)
    repo.commit("main", "b, and perhaps a")
    restoring.join(60)
    assert contents(repo, "main") == {"first": "x", "a": "A", "b": "B"}


def test_a_reset_of_two_areas_is_undone_as_it_was_seen(repo):
    put(repo, "main", "a", "old")
    seal(repo, "main")
    put(repo, "main", "a", "new")
    repo.reset("main")
    assert repo.hard_delete.restore(WantedBack()).objects == 1
    assert contents(repo, "main") == {"first": "x", "a": "new"}


def test_an_object_comes_back_with_all_paths_it_lost(repo):
    put(repo, "main", "p/1", "A")
    repo.copy("main", "p/1", "main", "q/1")
    repo.reset("main")
    assert repo.hard_delete.restore(WantedBack(prefix="p/")).objects == 1
    assert contents(repo, "main") == {"first": "x", "p/1": "A", "q/1": "A"}


def test_many_come_back_at_once(repo):
    for number in range(700):  # more than one question to the database can name
        put(repo, "main", f"many/{number:04d}")
    before = contents(repo, "main")
    repo.reset("main")
    assert repo.hard_delete.restore(WantedBack("main")).objects == 700
    assert contents(repo, "main") == before
