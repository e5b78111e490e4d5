"""Metaranges by the rule before today's, which said another size of each range: read, kept and built upon."""

from dataclasses import replace

import pytest

from desilt.errors import NothingToCommit
from desilt.sstable.ranges import EMPTY, FOLDER
from desilt.sstable.values import write_metarange
from words import changes, committed, contents, write


def make_older(repo, branch):
    """Have the head of ``branch`` name what an older desilt would have written: the size of the file, and eight."""
    head = repo.resolve(branch).commit
    listed = repo.ranges.metarange(head.metarange)
    sizes = [repo.store.head(f"{repo.prefix}{FOLDER}{one.id}").size + 8 for one in listed]
    older = repo.ranges.put_metarange(
        [replace(one, estimated_size=size) for one, size in zip(listed, sizes, strict=True)]
    )
    assert older != head.metarange
    with repo.database.write() as tx:
        tx.execute("UPDATE commits SET metarange = ? WHERE repository = ? AND id = ?", older, repo.uid, head.id)
    return older


def stage_the_same(repo, branch, *paths):
    """Stage what the branch has at ``paths``: a change that changes nothing."""
    with repo.database.write() as tx:
        token = next(one for one in repo.branches() if one.name == branch).token
        for path in paths:
            value = repo.ranges.get(repo.resolve(branch).commit.metarange, path.encode())
            tx.execute(
                "INSERT INTO staging (token, path, value, address) VALUES (?, ?, ?, ?)",
                *(token, path.encode(), value, repo.stat(branch, path).address),
            )


@pytest.fixture
def older(repo):
    """A repository whose main branch was committed to by an older desilt."""
    committed(repo, "main", **{f"p{number:03}": str(number) for number in range(40)})
    make_older(repo, "main")
    return repo


def test_entries_of_an_older_metarange_are_read(older):
    assert contents(older, "main") == {f"p{number:03}": str(number) for number in range(40)}


def test_a_change_that_changes_nothing_is_still_nothing_to_commit(older):
    stage_the_same(older, "main", "p000", "p020", "p039")
    with pytest.raises(NothingToCommit):
        older.commit("main", "nothing")
    assert list(older.uncommitted("main")) == []


def test_an_empty_commit_on_purpose_keeps_the_older_metarange(older):
    before = older.resolve("main").commit.metarange
    stage_the_same(older, "main", "p020")
    assert older.commit("main", "nothing, on purpose", allow_empty=True).metarange == before


def test_a_revert_of_what_is_taken_back_already_is_still_nothing_to_commit(older):
    made = committed(older, "main", p020="other")
    older.revert("main", made.id)
    make_older(older, "main")
    with pytest.raises(NothingToCommit):
        older.revert("main", made.id)


def test_a_change_on_top_of_an_older_metarange_is_that_change_and_no_other(older):
    before = older.resolve("main").commit
    made = committed(older, "main", p020="other")
    assert changes(older.diff(before.id, made.id)) == {"~p020"}
    shared = {one.id for one in older.ranges.metarange(before.metarange)}
    shared &= {one.id for one in older.ranges.metarange(made.metarange)}
    assert len(shared) == len(older.ranges.metarange(made.metarange)) - 1


def test_a_merge_brings_what_changed_since_an_older_metarange(older):
    older.create_branch("dev", "main")
    committed(older, "dev", p001="dev")
    committed(older, "main", p030="main")
    older.merge("dev", "main")
    found = contents(older, "main")
    assert (found["p001"], found["p030"], len(found)) == ("dev", "main", 40)


def test_a_commit_that_removes_everything_has_the_metarange_that_lakefs_gives_it(repo):
    committed(repo, "main", a="1")
    repo.remove("main", "a")
    made = repo.commit("main", "everything removed")
    assert made.metarange == "00fb7eff1a97c500eb3ca8d2ef5464131d6b6a5f9512e41eba97843522213b66"
    stored = repo.store.get(f"{repo.prefix}{FOLDER}{made.metarange}")
    assert stored == write_metarange([]).data
    assert contents(repo, "main") == {}
    assert repo.commit("main", "still nothing", allow_empty=True).metarange == made.metarange
    committed(repo, "main", b="2")
    assert contents(repo, "main") == {"b": "2"}


def test_what_is_emptied_by_an_older_desilt_is_empty_still(repo):
    committed(repo, "main", a="1")
    repo.remove("main", "a")
    head = repo.commit("main", "everything removed")
    with repo.database.write() as tx:
        tx.execute("UPDATE commits SET metarange = ? WHERE repository = ? AND id = ?", EMPTY, repo.uid, head.id)
    write(repo, "main", b="2")
    repo.remove("main", "b")
    with pytest.raises(NothingToCommit):
        repo.commit("main", "nothing")
    assert repo.commit("main", "on purpose", allow_empty=True).metarange == EMPTY
