"""Commits, branches, tags, merges and what refs mean."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

import lakefs_server as server
from desilt.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Dirty,
    InvalidName,
    InvalidRef,
    MergeConflict,
    NotFound,
    NothingToCommit,
    WrongClock,
)
from words import changes, committed, contents, seal, write


def test_a_repository_begins_with_an_empty_commit(repo):
    (first,) = repo.log("main")
    assert (first.parents, first.metarange, contents(repo, "main")) == ((), "", {})


def test_a_repository_begins_with_the_very_commit_that_a_lakefs_server_begins_one_with(lake):
    told = server.answers("log")[0]["results"][-1]
    repo = lake.create_repository("capture", clock_at=datetime.fromtimestamp(told["creation_date"], UTC))
    (first,) = repo.log("main")
    assert (first.id, first.generation) == (told["id"], told["generation"])
    assert (first.committer, first.message, first.metarange) == ("", told["message"], told["meta_range_id"])


def test_a_commit_keeps_what_people_say_of_it(repo):
    write(repo, "main", a="1")
    made = repo.commit("main", "why", committer="ana", metadata={"job": "42"})
    found = repo.resolve("main").commit
    assert found == made
    assert (found.message, found.committer, found.metadata) == ("why", "ana", {"job": "42"})


def test_a_commit_that_changes_nothing_is_made_if_asked_for(repo):
    first = committed(repo, "main", a="1")
    with pytest.raises(NothingToCommit):
        repo.commit("main", "nothing")
    made = repo.commit("main", "nothing, on purpose", allow_empty=True)
    assert (made.parents, made.metarange) == ((first.id,), first.metarange)


def test_log_tells_children_before_parents_and_later_times_first(repo):
    for number in range(3):
        committed(repo, "main", f"commit {number}", a=str(number))
    found = list(repo.log("main"))
    assert [commit.message for commit in found] == ["commit 2", "commit 1", "commit 0", "Repository created"]
    assert all(child.created_at > parent.created_at for child, parent in pairwise(found))


def test_a_commit_is_later_than_its_parent_even_when_the_clock_stands_still(repo, clock):
    first = committed(repo, "main", a="1")
    clock.now = first.created_at - timedelta(minutes=5)
    second = committed(repo, "main", a="2")
    assert second.created_at > first.created_at


def test_a_clock_far_behind_the_last_commit_is_refused_with_both_times(repo, clock):
    committed(repo, "main", a="1")
    clock.now = clock.now.replace(year=2025)
    write(repo, "main", a="2")
    with pytest.raises(WrongClock, match=r"2025-01-01.*2026-01-01"):
        repo.commit("main", "from the past")
    assert contents(repo, "main") == {"a": "2"}


def test_refs_are_branches_tags_commits_and_ways_up(repo):
    first = committed(repo, "main", a="1")
    second = committed(repo, "main", a="2")
    repo.create_tag("v1", first.id)
    for ref, wanted in [
        ("main", second),
        ("main@", second),
        ("main~1", first),
        ("main~", first),
        ("main^", first),
        ("main^1", first),
        ("v1", first),
        (second.id, second),
        (second.id[:8], second),
        (f"{second.id[:8]}~1", first),
    ]:
        assert repo.resolve(ref).commit == wanted, ref


@pytest.mark.parametrize("ref", ["nosuch", "main~9", "main^2", "ffffffff"])
def test_a_ref_that_leads_nowhere_is_named(repo, ref):
    with pytest.raises(NotFound, match=ref.split("~")[0].split("^")[0]):
        repo.resolve(ref)


@pytest.mark.parametrize("ref", [""])
def test_a_ref_that_cannot_be_read_is_refused(repo, ref):
    with pytest.raises(InvalidRef):
        repo.resolve(ref)


@pytest.mark.parametrize("name", ["", "-dev", "a b", "a/b", "ä", "a\n", "x" * 257])
def test_bad_branch_names_are_refused(repo, name):
    with pytest.raises(InvalidName):
        repo.create_branch(name, "main")


@pytest.mark.parametrize("name", ["", "@", "a b", "a/b", "a..b", "a.", "a.lock", "a^", "a:b", "a\x7f\0", "a@{b"])
def test_bad_tag_names_are_refused(repo, name):
    with pytest.raises(InvalidName):
        repo.create_tag(name, "main")


@pytest.mark.parametrize("name", ["ab", "Demo", "-demo", "a" * 64, "a_b", ""])
def test_bad_repository_names_are_refused(lake, name):
    with pytest.raises(InvalidName):
        lake.create_repository(name)


def test_names_are_taken_once(lake, repo):
    repo.create_tag("v1", "main")
    for take in (
        lambda: lake.create_repository("demo"),
        lambda: repo.create_branch("main", "main"),
        lambda: repo.create_branch("v1", "main"),
        lambda: repo.create_tag("v1", "main"),
        lambda: repo.create_tag("main", "main"),
    ):
        with pytest.raises(AlreadyExists):
            take()


def test_the_default_branch_cannot_be_deleted(repo):
    with pytest.raises(BadRequest):
        repo.delete_branch("main", force=True)


def test_repositories_do_not_see_each_other(lake, repo):
    other = lake.create_repository("other")
    committed(repo, "main", a="1")
    assert contents(other, "main") == {}
    with pytest.raises(NotFound):
        other.resolve(repo.resolve("main").commit.id)


def test_text_that_a_database_cannot_keep_is_refused(repo):
    write(repo, "main", a="1")
    with pytest.raises(BadRequest):
        repo.commit("main", "nul \0")
    with pytest.raises(BadRequest):
        repo.put("main", "a", b"", metadata={"k": "\ud800"})


def test_a_branch_begins_where_its_source_is_committed(repo):
    committed(repo, "main", a="1")
    write(repo, "main", b="staged")
    repo.create_branch("dev", "main")
    assert contents(repo, "dev") == {"a": "1"}


def test_diff_tells_what_turns_left_into_right(repo):
    committed(repo, "main", kept="1", changed="1", removed="1")
    repo.create_branch("dev", "main")
    repo.remove("dev", "removed")
    committed(repo, "dev", changed="2", added="3")
    committed(repo, "main", elsewhere="4")
    assert changes(repo.diff("main", "dev")) == {"~changed", "-removed", "+added", "-elsewhere"}
    assert changes(repo.diff("main", "dev", since_base=True)) == {"~changed", "-removed", "+added"}
    assert changes(repo.diff("dev", "dev")) == set()


def test_a_merge_brings_what_the_source_changed_and_keeps_the_rest(repo):
    committed(repo, "main", a="1", b="1", c="1")
    repo.create_branch("dev", "main")
    repo.remove("dev", "b")
    committed(repo, "dev", a="2", d="2")
    head = committed(repo, "main", c="3")
    merged = repo.merge("dev", "main")
    assert contents(repo, "main") == {"a": "2", "c": "3", "d": "2"}
    assert merged.parents == (head.id, repo.resolve("dev").commit.id)


def test_merging_what_is_there_already_makes_no_commit(repo):
    committed(repo, "main", a="1")
    repo.create_branch("dev", "main~1")
    assert repo.merge("dev", "main") is None
    assert repo.merge("main", "main") is None


def test_both_sides_changing_a_path_is_a_conflict_and_nothing_moves(repo):
    committed(repo, "main", a="1", b="1", c="1")
    repo.create_branch("dev", "main")
    committed(repo, "dev", a="dev", b="dev", fine="dev")
    repo.remove("main", "b")
    committed(repo, "main", a="main", c="main")
    before = repo.resolve("main").commit
    with pytest.raises(MergeConflict) as raised:
        repo.merge("dev", "main")
    assert raised.value.paths == ["a", "b"]
    assert repo.resolve("main").commit == before


@pytest.mark.parametrize(("strategy", "wanted"), [("source-wins", "dev"), ("dest-wins", "main")])
def test_a_strategy_settles_conflicts_and_only_those(repo, strategy, wanted):
    committed(repo, "main", a="1")
    repo.create_branch("dev", "main")
    committed(repo, "dev", a="dev", b="dev")
    committed(repo, "main", a="main", c="main")
    repo.merge("dev", "main", strategy=strategy)
    assert contents(repo, "main") == {"a": wanted, "b": "dev", "c": "main"}


def test_a_removal_against_a_change_follows_the_strategy(repo):
    committed(repo, "main", a="1")
    repo.create_branch("dev", "main")
    repo.remove("dev", "a")
    repo.commit("dev", "remove")
    committed(repo, "main", a="2")
    with pytest.raises(MergeConflict):
        repo.merge("dev", "main")
    repo.merge("dev", "main", strategy="source-wins")
    assert contents(repo, "main") == {}


def test_the_same_content_on_both_sides_is_no_conflict(repo):
    committed(repo, "main", a="1", b="1")
    repo.create_branch("dev", "main")
    repo.remove("dev", "b")
    committed(repo, "dev", a="same", new="same")
    repo.remove("main", "b")
    committed(repo, "main", a="same", new="same")
    kept = repo.stat("main", "a")
    repo.merge("dev", "main")
    assert contents(repo, "main") == {"a": "same", "new": "same"}
    assert repo.stat("main", "a") == kept


def test_a_merge_into_uncommitted_changes_is_refused(repo):
    repo.create_branch("dev", "main")
    committed(repo, "dev", a="1")
    write(repo, "main", b="1")
    with pytest.raises(Dirty):
        repo.merge("dev", "main")


def test_a_second_merge_starts_from_the_first(repo):
    committed(repo, "main", a="1")
    repo.create_branch("dev", "main")
    committed(repo, "dev", a="2")
    repo.merge("dev", "main")
    committed(repo, "main", a="3")
    committed(repo, "dev", b="4")
    repo.merge("dev", "main")
    assert contents(repo, "main") == {"a": "3", "b": "4"}


def test_a_revert_takes_one_commit_back(repo):
    committed(repo, "main", a="1")
    bad = committed(repo, "main", a="2", b="2")
    committed(repo, "main", c="3")
    repo.revert("main", bad.id)
    assert contents(repo, "main") == {"a": "1", "c": "3"}
    with pytest.raises(NothingToCommit):
        repo.revert("main", bad.id)


def test_a_revert_of_what_was_changed_again_is_a_conflict(repo):
    bad = committed(repo, "main", a="1")
    committed(repo, "main", a="2")
    with pytest.raises(MergeConflict):
        repo.revert("main", bad.id)


def test_a_merge_is_reverted_towards_the_parent_that_is_named(repo):
    committed(repo, "main", a="1")
    repo.create_branch("dev", "main")
    committed(repo, "dev", b="2")
    committed(repo, "main", c="3")
    merged = repo.merge("dev", "main")
    with pytest.raises(BadRequest):
        repo.revert("main", merged.id)
    repo.revert("main", merged.id, parent=1)
    assert contents(repo, "main") == {"a": "1", "c": "3"}


def test_the_same_bytes_uploaded_again_are_what_the_next_commit_holds(repo):
    committed(repo, "main", a="1")
    again = repo.put("main", "a", b"1")
    repo.commit("main", "again")
    assert repo.stat("main@", "a").address == again.address


def test_a_commit_in_progress_does_not_swallow_what_is_written_meanwhile(repo, monkeypatch):
    write(repo, "main", a="1")
    building = repo.ranges.put_metarange

    def write_meanwhile(ranges):
        monkeypatch.undo()
        write(repo, "main", a="2", b="2")
        return building(ranges)

    monkeypatch.setattr(repo.ranges, "put_metarange", write_meanwhile)
    repo.commit("main", "first")
    assert contents(repo, "main@") == {"a": "1"}
    assert contents(repo, "main") == {"a": "2", "b": "2"}


def test_two_commits_at_once_both_take_what_was_staged(repo, monkeypatch):
    write(repo, "main", a="1")
    building = repo.ranges.put_metarange

    def commit_meanwhile(ranges):
        monkeypatch.undo()
        write(repo, "main", b="2")
        repo.commit("main", "the faster one")
        return building(ranges)

    monkeypatch.setattr(repo.ranges, "put_metarange", commit_meanwhile)
    with pytest.raises(Conflict, match="somebody else"):
        repo.commit("main", "the slower one")
    assert contents(repo, "main@") == {"a": "1", "b": "2"}


def test_a_reset_wins_over_a_commit_in_progress(repo, monkeypatch):
    committed(repo, "main", a="1")
    write(repo, "main", a="2", b="2")
    building = repo.ranges.put_metarange

    def reset_meanwhile(ranges):
        monkeypatch.undo()
        repo.reset("main", path="a")
        return building(ranges)

    monkeypatch.setattr(repo.ranges, "put_metarange", reset_meanwhile)
    with pytest.raises(Conflict):
        repo.commit("main", "too late")
    assert contents(repo, "main@") == {"a": "1"}
    assert contents(repo, "main") == {"a": "1", "b": "2"}


def test_a_commit_that_died_after_sealing_is_finished_by_the_next_one(repo):
    write(repo, "main", a="1")
    seal(repo, "main")
    assert contents(repo, "main") == {"a": "1"}
    write(repo, "main", b="2")
    repo.commit("main", "whole")
    assert contents(repo, "main@") == {"a": "1", "b": "2"}


def test_of_several_sealed_staging_areas_the_newest_counts(repo):
    committed(repo, "main", a="0", b="0", c="0", d="0")
    write(repo, "main", a="1", b="1", c="1")
    repo.remove("main", "d")
    seal(repo, "main")
    write(repo, "main", a="2", b="2", d="2")
    seal(repo, "main")
    write(repo, "main", a="3")
    wanted = {"a": "3", "b": "2", "c": "1", "d": "2"}
    assert contents(repo, "main") == wanted
    repo.create_branch("other", "main")
    repo.reset("main", path="c")
    assert contents(repo, "main") == {**wanted, "c": "0"}
    seal(repo, "main")
    repo.commit("main", "all of it")
    assert contents(repo, "main@") == {**wanted, "c": "0"}


def meanwhile(repo, monkeypatch, action):
    """Run ``action`` once, at the moment when the next operation has read and not yet written."""
    real = repo.ranges.get_many

    def get_many(*arguments):
        monkeypatch.undo()
        action()
        return real(*arguments)

    monkeypatch.setattr(repo.ranges, "get_many", get_many)


def test_a_merge_never_forgets_a_commit_made_meanwhile(repo, monkeypatch):
    committed(repo, "main", a="1")
    repo.create_branch("dev", "main")
    committed(repo, "dev", b="2")
    building = repo.ranges.put_metarange

    def commit_meanwhile(ranges):
        monkeypatch.undo()
        committed(repo, "main", c="3")
        return building(ranges)

    monkeypatch.setattr(repo.ranges, "put_metarange", commit_meanwhile)
    repo.merge("dev", "main")
    assert contents(repo, "main@") == {"a": "1", "b": "2", "c": "3"}
    assert len(list(repo.log("main"))) == 5


def test_a_copy_takes_what_is_there_when_it_writes(repo, monkeypatch):
    committed(repo, "main", a="old")
    meanwhile(repo, monkeypatch, lambda: write(repo, "main", a="new"))
    repo.copy("main", "a", "main", "b")
    assert contents(repo, "main") == {"a": "new", "b": "new"}


def test_a_move_of_what_went_away_meanwhile_fails(repo, monkeypatch):
    committed(repo, "main", a="1")
    meanwhile(repo, monkeypatch, lambda: repo.remove("main", "a"))
    with pytest.raises(NotFound):
        repo.move("main", "a", "b")
    assert contents(repo, "main") == {}


def test_an_upload_to_a_branch_that_was_replaced_meanwhile_fails(repo):
    repo.create_branch("dev", "main")

    def body():
        repo.delete_branch("dev", force=True)
        repo.create_branch("dev", "main")
        yield b"late"

    with pytest.raises(Conflict):
        repo.put("dev", "a", body())
    assert contents(repo, "dev") == {}


def test_an_upload_that_breaks_off_stages_nothing(repo):
    def body():
        yield b"half"
        raise ConnectionError

    with pytest.raises(ConnectionError):
        repo.put("main", "a", body())
    assert contents(repo, "main") == {}
