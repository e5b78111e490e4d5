"""Every move is on record beside the objects: what is cut off is settled, and a restored database is told so."""

import json
import random
from dataclasses import replace
from datetime import timedelta

import pytest

from copies import backup, brought_back, cut_off, put_back, refs_of
from desilt.domain.policy import parse
from desilt.errors import (
    AlreadyExists,
    Conflict,
    DesiltError,
    JournalBroken,
    NotFound,
    NothingToCommit,
    StorageFailed,
    Unreadable,
    WentBack,
)
from desilt.jobs import holds
from desilt.jobs.lifecycle import kept_policy
from desilt.lake import Lake, commits, journal, moves, repositories, writes
from desilt.lake.change import Change
from desilt.lake.fsck import check
from desilt.records import locks
from desilt.records import removals as tombstones
from desilt.records.holds import HoldKind
from desilt.records.removals import Tombstone
from desilt.recovery.recover import recover, survey
from desilt.testing.faults import After, Before, Crash, SteppedDatabase, Steps, stepped
from words import collect, committed, contents, lift_hold, reparent, tables, write

POLICY = parse({"r": {"prefix": "logs/", "days": 3}})


def opened(lake, steps=None):
    """The same repository through another door, whose steps are counted."""
    steps = steps or Steps()
    clock = lake.repository("demo").clock
    again = Lake(SteppedDatabase(lake.database, steps), stepped(lake.store, steps), clock=clock, raggedness=7)
    return again.repository("demo")


def records(repo):
    return [journal.read(repo.core, number) for number in journal.after(repo.core, -1)]


def newest(repo):
    return records(repo)[-1]


def did(record):
    return [change["do"] for change in record.changes]


@pytest.fixture
def busy(repo):
    """With something for every kind of move."""
    committed(repo, "main", a="1")
    committed(repo, "main", b="2")
    repo.create_branch("dev", "main")
    repo.create_branch("old", "main")
    committed(repo, "dev", c="3")
    repo.create_tag("v1", "main")
    write(repo, "main", staged="4")
    holds.hold(repo, HoldKind.PREFIX, "a", reason="a court's order")
    return repo


def first_hold(repo):
    return holds.every(repo)[0].id


KEEPING = {
    "commit": lambda repo: repo.commit("main", "one"),
    "revert": lambda repo: repo.revert("dev", "dev"),
    "branch": lambda repo: repo.create_branch("new", "main"),
    "tag": lambda repo: repo.create_tag("v2", "main"),
    "hold": lambda repo: holds.hold(repo, HoldKind.REF, "dev", reason="a court's order"),
    "policy": lambda repo: kept_policy.keep(repo, POLICY),
}
RELEASING = {
    "delete a branch": lambda repo: repo.delete_branch("old"),
    "delete a tag": lambda repo: repo.delete_tag("v1"),
    "lift a hold": lambda repo: lift_hold(repo, first_hold(repo)),
    "edit": lambda repo: reparent(repo, repo.resolve("main").commit, repo.resolve("main~2").commit),
    "collect": lambda repo: collect(repo, repo.resolve("dev").commit),
}


# ---- records


@pytest.mark.parametrize("act", [*KEEPING.values(), *RELEASING.values()], ids=[*KEEPING, *RELEASING])
@pytest.mark.usefixtures("unsound")
def test_every_move_leaves_a_record_that_follows_the_last(busy, act):
    before, generation = newest(busy), busy.generation()
    act(busy)
    made = newest(busy)
    assert busy.generation() == generation + 1 == made.generation
    assert (made.follows, made.before) == (generation, before.mark)
    with busy.database.read() as tx:
        assert repositories.mark_at(tx, busy.uid, made.generation) == made.mark
    moves.check(busy.core)


def test_a_repository_begins_with_a_record(repo):
    assert [did(record) for record in records(repo)] == [["RepositoryMade", "Committed", "BranchMade"]]
    assert (repo.generation(), newest(repo).follows) == (0, -1)


def test_what_is_refused_leaves_none(busy):
    before = records(busy)
    with pytest.raises(AlreadyExists):
        busy.create_tag("v1", "main")
    with pytest.raises(NotFound):
        busy.delete_tag("v9")
    with pytest.raises(NothingToCommit):
        busy.commit("dev", "nothing")
    assert records(busy) == before
    assert busy.generation() == before[-1].generation


def test_a_commit_carries_all_that_its_row_has(busy):
    made = busy.commit("main", "one", committer="ana", metadata={"k": "v"})
    (facts,) = [change for change in newest(busy).changes if change["do"] == "Committed"]
    assert (facts["id"], facts["metarange"], facts["message"]) == (made.id, made.metarange, "one")
    assert (facts["committer"], facts["metadata"], facts["parents"]) == ("ana", {"k": "v"}, list(made.parents))


def test_kinds_of_changes_keep_their_names():
    """Records of years ago name them so."""
    assert set(Change.kinds) == {
        *("RepositoryMade", "Committed", "BranchMade", "HeadMoved", "AreasTaken", "BranchDeleted", "TagMade"),
        *("TagDeleted", "HoldMade", "HoldLifted", "PolicySet", "HistoryEdited", "CommitsCollected", "TablesBack"),
        *("RunBegan", "BroughtBack", "MarksFollowed", "DatabaseRecovered", "GivenUp", "HardDeleteSet"),
        *("DiscardsClaimed", "DiscardsRestored"),
    }


def test_of_a_thousand_moves_names_sort_as_numbers_do():
    names = [journal.name_of(number) for number in (0, 9, 10, 999, 1_000, 99_999, 1_000_000, 10**12)]
    assert names == sorted(names)


# ---- cut off


@pytest.mark.parametrize("act", KEEPING.values(), ids=KEEPING)
def test_what_keeps_something_and_is_cut_off_is_carried_out_by_the_next_move(lake, busy, act):
    whole = []
    cut_off(busy, lambda repo: (act(repo), whole.append(backup(lake.database))))
    wanted, last = refs_of(whole[0]), newest(busy)
    assert check(busy).counts["cut-off-move"] == 1
    busy.create_tag("next", "dev")
    found = backup(lake.database)
    with lake.database.read() as tx:
        assert repositories.mark_at(tx, busy.uid, last.generation) == last.mark
    found["tags"] = [row for row in found["tags"] if row[1] != "next"]
    found["move_marks"] = [row for row in found["move_marks"] if row[1] <= last.generation]
    assert refs_of(found) == wanted
    assert moves.cut_off(busy.core) is None


@pytest.mark.parametrize("act", RELEASING.values(), ids=RELEASING)
def test_what_releases_something_and_is_cut_off_is_given_up(lake, busy, act):
    """Whoever wanted it has seen since that it was not done: it must not happen behind their back."""
    before = refs_of(backup(lake.database))
    cut_off(busy, act)
    moves.settle(busy.core)
    found = refs_of(backup(lake.database))
    assert {name: found[name] for name in found if name != "move_marks"} == {
        name: before[name] for name in before if name != "move_marks"
    }
    assert did(newest(busy)) == ["GivenUp"]
    moves.check(busy.core)
    busy.create_tag("next", "dev")
    moves.check(busy.core)


def test_a_commit_that_is_cut_off_at_any_step_is_made_once(lake, busy):
    outcomes = set()
    for number in range(100):
        crash = (Before, After)[number % 2](number // 2)
        write(busy, "main", **{f"file{number}": "x"})
        with_crash = Steps(crash)
        try:
            opened(lake, with_crash).commit("main", f"try {number}")
        except Crash:
            outcomes.add("cut off")
        else:
            break
        try:
            busy.commit("main", f"again {number}")
        except NothingToCommit:
            outcomes.add("was made")
        made = [commit.message for commit in busy.log("main")]
        assert (f"try {number}" in made) + (f"again {number}" in made) == 1
        assert f"file{number}" in contents(busy, "main@")
        moves.check(busy.core)
    assert outcomes == {"cut off", "was made"}


def test_a_move_that_was_only_under_way_is_not_made_again(busy, monkeypatch):
    """Its record was there, and its transaction has committed before we had the lock."""
    busy.create_tag("v2", "main")
    before = refs_of(backup(busy.database))
    monkeypatch.setattr(moves, "cut_off", lambda _: newest(busy))
    moves.settle(busy.core)
    assert refs_of(backup(busy.database)) == before


def test_what_is_reset_as_a_commit_is_cut_off_is_in_that_commit(busy, monkeypatch):
    """It died after reset had looked, and before it had the branch."""
    real, made = writes.settle, []

    def settle(core):
        real(core)
        if not made:
            made.append(cut_off(busy, lambda repo: repo.commit("main", "cut off")))

    monkeypatch.setattr(writes, "settle", settle)
    assert busy.reset("main") == 0
    assert busy.resolve("main").commit == made[0]
    busy.create_tag("next", "main")
    assert contents(busy, "main")["staged"] == "4"


def test_what_is_reset_after_a_commit_was_cut_off_is_in_that_commit(busy):
    made = cut_off(busy, lambda repo: repo.commit("main", "cut off"))
    assert busy.reset("main") == 0
    assert busy.resolve("main").commit == made
    assert contents(busy, "main")["staged"] == "4"


def test_a_move_whose_commit_was_collected_meanwhile_is_given_up(lake, busy):
    dead = busy.resolve("old").commit
    lost = committed(busy, "old", only="here")
    busy.delete_branch("old", force=True)
    cut_off(busy, lambda repo: repo.create_branch("saved", lost.id))
    with lake.database.write() as tx:  # by a sweep that was at work, and knew nothing of it
        commits.collect(tx, busy.uid, [lost.id], run="run-9", at=busy.clock())
    busy.create_tag("next", dead.id)
    assert "saved" not in {branch.name for branch in busy.branches()}
    moves.check(busy.core)


@pytest.mark.parametrize("missing", [False, True])
def test_a_commit_one_of_whose_tables_was_condemned_meanwhile_is_given_up(lake, busy, missing):
    made = cut_off(busy, lambda repo: repo.commit("main", "cut off"))
    name = sorted(tables(busy, made) - tables(busy, busy.resolve("main").commit))[0]
    if missing:
        lake.store._objects.pop(f"{busy.prefix}_lakefs/{name}")
        busy.ranges.metarange.cache_clear()
    else:
        with lake.database.write() as tx:
            tombstones.condemn(tx, busy.uid, [Tombstone(f"_lakefs/{name}", "run-9", "x", busy.clock())])
    moves.settle(busy.core)
    assert made.id not in {commit.id for commit in busy.log("main")}
    assert contents(busy, "main")["staged"] == "4"  # still staged
    with lake.database.write() as tx:
        tombstones.lift(tx, busy.uid, "run-9", [f"_lakefs/{name}"], tombstones.State.RESTORED, at=busy.clock())
    again = busy.commit("main", "again")
    assert again.metarange == made.metarange


def test_a_give_up_that_is_cut_off_is_settled_too(lake, busy):
    cut_off(busy, lambda repo: repo.delete_tag("v1"))
    for number in range(40):
        try:
            opened(lake, Steps(After(number))).create_tag(f"t{number}", "main")
        except Crash:
            moves.check(busy.core)
            continue
        break
    moves.check(busy.core)
    assert "v1" in {tag.name for tag in busy.tags()}
    assert check(busy).sound


def test_the_lost_answer_to_a_record_is_no_failure(busy, monkeypatch):
    """The store has it; the answer never came, and the second try is told that it is there."""
    real = busy.store.put_new
    monkeypatch.setattr(busy.store, "put_new", lambda key, body: real(key, body) and False)
    made = busy.commit("main", "one")
    assert busy.resolve("main").commit == made
    moves.check(busy.core)


def test_a_store_that_fails_at_the_record_leaves_it_open(busy, monkeypatch):
    def failing(_key, _body):
        raise StorageFailed("the bucket is away")

    with monkeypatch.context() as patch:
        patch.setattr(busy.store, "put_new", failing)
        with pytest.raises(StorageFailed, match="may have been done or not: look before you try again"):
            busy.create_tag("v2", "main")
    assert {tag.name for tag in busy.tags()} == {"v1"}
    busy.create_tag("v2", "main")


@pytest.mark.usefixtures("unsound")
def test_a_number_that_another_took_at_the_last_moment_is_not_taken_again(busy, monkeypatch):
    """Between the look at the journal and the transaction, somebody else was cut off."""
    core, real = busy.core, moves.Move.finish

    def finish(self):
        other = replace(newest(busy), generation=self.generation, mark="another")
        assert journal.write(core, other)
        monkeypatch.setattr(moves.Move, "finish", real)
        real(self)

    monkeypatch.setattr(moves.Move, "finish", finish)
    with pytest.raises(Conflict, match="nothing was done, try again"):
        busy.create_tag("v2", "main")
    assert "v2" not in {tag.name for tag in busy.tags()}


# ---- restored


@pytest.fixture
def lost(lake, busy):
    """A database that lost a week: how it was, and the repository that does not know."""
    saved = backup(lake.database)
    busy.commit("main", "lost one")
    busy.create_tag("lost", "main")
    write(busy, "main", more="5")
    busy.commit("main", "lost two")
    whole = backup(lake.database)
    put_back(lake.database, saved)
    return busy, whole


MOVING = {**KEEPING, **RELEASING}


@pytest.mark.parametrize("act", MOVING.values(), ids=MOVING)
@pytest.mark.usefixtures("unsound")
def test_a_copy_that_is_one_move_behind_is_no_move_cut_off(lake, busy, act):
    """It did not know that the move was coming. What is staged after the restore is not taken for the lost commit's."""
    saved = backup(lake.database)
    act(busy)
    put_back(lake.database, saved)
    write(busy, "main", after="the restore")
    for refused in (lambda: busy.create_tag("v9", "main"), lambda: busy.reset("dev"), lambda: moves.check(busy.core)):
        with pytest.raises(WentBack, match="the journal has a move after"):
            refused()
    assert "newer-journal" in check(busy).counts
    recover(busy)
    moves.check(busy.core)
    assert contents(busy, "main")["after"] == "the restore"


@pytest.mark.parametrize("act", MOVING.values(), ids=MOVING)
@pytest.mark.usefixtures("unsound")
def test_a_restored_database_fails_at_its_first_move(lost, act):
    repo, _ = lost
    before = backup(repo.database)
    with pytest.raises(WentBack, match=r"the journal has 3 moves after .*'lost two' on 'main'.*desilt lake recover"):
        act(repo)
    after = backup(repo.database)
    assert refs_of(after) == refs_of(before)
    assert after["repositories"] == before["repositories"]


@pytest.mark.usefixtures("unsound")
def test_a_number_is_not_enough(lake, lost):
    """As many moves and more, made behind the journal's back: still another history."""
    repo, _ = lost
    with lake.database.write() as tx:
        for _ in range(9):
            repositories.begin_move(tx, repo.uid)
            repositories.end_move(tx, repo.uid, repositories.generation(tx, repo.uid), "0" * 16)
    with pytest.raises(JournalBroken):
        moves.check(repo.core)
    with lake.database.write() as tx:
        tx.execute("UPDATE repositories SET generation = generation - 6 WHERE uid = ?", repo.uid)
    with pytest.raises(WentBack, match="is not the one that the database knows"):
        moves.check(repo.core)


@pytest.mark.usefixtures("unsound")
def test_fsck_calls_it_unsound(lost):
    repo, _ = lost
    found = check(repo)
    assert not found.sound
    assert found.counts["newer-journal"] == 3
    assert "lost two" in found.of("newer-journal")[-1].fact


def test_recovered_it_is_as_it_was(lake, lost):
    repo, whole = lost
    found = survey(repo)
    assert [did(record)[0] for record in found.moves] == ["Committed", "TagMade", "Committed"]
    made = recover(repo)
    assert (made.moves, made.commits) == (3, 2)
    assert brought_back(backup(lake.database), whole) == refs_of(whole)
    moves.check(repo.core)
    assert not survey(repo)
    assert {"staged": "4", "more": "5"}.items() <= contents(repo, "main@").items()
    assert not list(repo.uncommitted("main"))  # it was committed
    repo.put("main", "next", b"6")
    repo.commit("main", "life goes on")


def test_what_was_staged_since_the_restore_stays_staged(lost):
    repo, _ = lost
    write(repo, "main", since="7", staged="8")
    recover(repo)
    assert {change.path for change in repo.uncommitted("main")} == {"since", "staged"}
    assert contents(repo, "main")["staged"] == "8"
    assert contents(repo, "main@")["staged"] == "4"


@pytest.mark.usefixtures("unsound")
def test_given_up_it_goes_on_from_where_it_is(lake, lost):
    repo, whole = lost
    before = refs_of(backup(lake.database))
    recover(repo, give_up=True)
    found = refs_of(backup(lake.database))
    assert {name: found[name] for name in found if name != "move_marks"} == {
        name: before[name] for name in before if name != "move_marks"
    }
    moves.check(repo.core)
    committed(repo, "main", other="9")
    moves.check(repo.core)
    put_back(lake.database, whole)  # the lost one comes back after all
    with pytest.raises(WentBack, match="another move"):
        repo.create_tag("v9", "main")


def test_recovery_that_is_cut_off_at_any_step_goes_on(lake, lost, monkeypatch):
    cut_off_at(range(random.randrange(4), 200, 4), lake, lost, monkeypatch)


@pytest.mark.slow
def test_recovery_that_is_cut_off_at_each_step_goes_on(lake, lost, monkeypatch):
    cut_off_at(range(200), lake, lost, monkeypatch)


def cut_off_at(steps, lake, lost, monkeypatch):
    monkeypatch.setattr(locks, "SILENCE", timedelta(seconds=-1))  # whoever died is taken over from at once
    monkeypatch.setattr(locks, "BEAT_SECONDS", 1e6)
    repo, whole = lost
    saved = backup(lake.database)
    for number in steps:
        put_back(lake.database, saved)
        try:
            again = opened(lake, Steps(After(number)))
            recover(again)
        except Crash:
            recover(repo)
            assert brought_back(backup(lake.database), whole) == refs_of(whole), number
            moves.check(repo.core)
            continue
        break
    assert number > 10


def test_recovered_twice_is_recovered_once(lake, lost):
    repo, _ = lost
    recover(repo)
    before = backup(lake.database)
    assert recover(repo).moves == 0
    after = backup(lake.database)
    assert {name: rows for name, rows in after.items() if name != "locks"} == {
        name: rows for name, rows in before.items() if name != "locks"
    }


def test_a_database_that_lacks_nothing_is_left_as_it_is(lake, busy):
    before = backup(lake.database)
    assert recover(busy).kept_since is None
    after = backup(lake.database)
    assert all(after[name] == before[name] for name in before if name != "locks")


def test_uploads_since_the_copy_are_known_to_stay(lake, lost):
    repo, _ = lost
    copied_at = records(repo)[-4].at
    recover(repo)
    with lake.database.read() as tx:
        (since,) = tx.one("SELECT kept_since FROM repositories WHERE uid = ?", repo.uid)
    assert since == (copied_at - repo.core.ticket_life - timedelta(minutes=10)).timestamp() * 1_000_000


def test_an_owner_from_the_lost_database_has_no_fence_any_more(lake, lost):
    repo, _ = lost
    with lake.database.write() as tx:
        tx.execute("INSERT INTO locks VALUES (?, 7, '', '', 0)", repo.uid)
    recover(repo)
    with lake.database.read() as tx:
        assert tx.one("SELECT fence FROM locks WHERE repository = ?", repo.uid)[0] > 1_000_000


# ---- a journal that cannot be read


@pytest.mark.usefixtures("unsound")
def test_no_bit_of_the_last_record_can_flip_unseen(busy):
    key = busy.prefix + journal.name_of(busy.generation())
    whole = busy.store.get(key)
    for place in range(0, len(whole) - 1, 7):
        busy.store.put(key, [whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]])
        with pytest.raises((Unreadable, WentBack)):
            moves.check(busy.core)
    busy.store.put(key, [b""])
    with pytest.raises(Unreadable):
        moves.check(busy.core)
    assert check(busy).counts["broken-journal"] == 1
    busy.store.put(key, [whole])
    moves.check(busy.core)


@pytest.mark.usefixtures("unsound")
def test_a_record_that_somebody_wrote_without_the_secret_is_none(busy):
    key = busy.prefix + journal.name_of(busy.generation())
    facts = json.loads(busy.store.get(key))
    facts["mark"] = "0" * 16
    busy.store.put(key, [json.dumps(facts).encode()])
    with pytest.raises(Unreadable, match="not what was written"):
        moves.check(busy.core)


@pytest.mark.usefixtures("unsound")
def test_a_journal_without_its_last_record_stops_whoever_removes(lake, busy):
    lake.store._objects.pop(busy.prefix + journal.name_of(busy.generation()))
    with pytest.raises(JournalBroken, match="recover --give-up"):
        moves.check(busy.core)
    assert check(busy).counts["broken-journal"] == 1
    recover(busy, give_up=True)
    moves.check(busy.core)


@pytest.mark.usefixtures("unsound")
@pytest.mark.usefixtures("unsound")
def test_a_journal_that_began_before_this_database_is_of_another_history(lake, busy):
    """It was brought up to date from an older copy, after one that had been brought up to date before."""
    with lake.database.write() as tx:
        tx.execute("UPDATE repositories SET journal_from = generation + 1")
    with pytest.raises(WentBack, match="from an older copy"):
        moves.check(busy.core)


@pytest.mark.usefixtures("unsound")
def test_a_gap_in_what_is_newer_is_not_passed_over(lake, lost):
    repo, _ = lost
    lake.store._objects.pop(repo.prefix + journal.name_of(repo.generation() + 1))
    with pytest.raises(DesiltError) as raised:
        repo.create_tag("v9", "main")
    assert isinstance(raised.value, WentBack | JournalBroken)
    found = survey(repo)
    assert "no record of move" in found.broken
    with pytest.raises(Unreadable, match="cannot be brought back"):
        recover(repo)
    assert check(repo).counts["broken-journal"] == 1


def test_what_a_killed_put_left_in_the_journal_is_no_record(busy):
    folder = (busy.prefix + journal.name_of(0)).rpartition("/")[0]
    busy.store.put(f"{folder}/0123456789abcdef.partial", [b"half"])
    busy.create_tag("v2", "main")
    moves.check(busy.core)
