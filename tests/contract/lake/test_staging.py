"""What is written and not committed yet."""

import pytest

from desilt.errors import Dirty, InvalidPath, NotFound, NothingToCommit
from words import changes, committed, contents, read, write

ODD_PATHS = [
    "a//b",
    "a/b",
    "/leading",
    "trailing/",
    "with space",
    "plus+sign",
    "percent%20",
    "caf\u00e9",
    "cafe\u0301",
    ".",
    "..",
    "../up",
    "new\nline",
    "\U0001f9ca",
    "x" * 1024,
]


def test_what_was_put_is_read_back_before_and_after_a_commit(repo):
    entry = repo.put("main", "a", b"hello", content_type="text/plain", metadata={"k": "v"})
    assert read(repo, "main", "a") == "hello"
    repo.commit("main", "first")
    assert read(repo, "main@", "a") == "hello"
    assert repo.stat("main", "a") == entry
    assert (entry.size, entry.checksum) == (5, "5d41402abc4b2a76b9719d911017c592")


def test_paths_are_kept_exactly_as_given(repo):
    for number, path in enumerate(ODD_PATHS):
        repo.put("main", path, str(number).encode())
    wanted = {path: str(number) for number, path in enumerate(ODD_PATHS)}
    assert contents(repo, "main") == wanted
    repo.commit("main", "odd")
    assert contents(repo, "main") == wanted
    assert [entry.path for entry in repo.list("main")] == sorted(ODD_PATHS, key=str.encode)


@pytest.mark.parametrize("path", ["", "nul\0", "x" * 1025, "é" * 513, "\ud800"])
def test_a_path_that_no_entry_may_have_is_refused_and_changes_nothing(repo, path):
    with pytest.raises(InvalidPath):
        repo.put("main", path, b"x")
    assert contents(repo, "main") == {}
    assert not list(repo.store.list(f"{repo.prefix}branches/"))


def test_the_last_write_to_a_path_counts(repo):
    write(repo, "main", a="one")
    write(repo, "main", a="two")
    assert contents(repo, "main") == {"a": "two"}


def test_ranges_of_bytes_are_read(repo):
    write(repo, "main", a="0123456789")
    assert b"".join(repo.get("main", "a", start=2, length=3)) == b"234"
    assert b"".join(repo.get("main", "a", start=8, length=100)) == b"89"


def test_a_removed_path_is_gone_from_the_branch_and_not_from_the_commit(repo):
    committed(repo, "main", a="1", b="2")
    repo.remove("main", "a")
    assert contents(repo, "main") == {"b": "2"}
    assert contents(repo, "main@") == {"a": "1", "b": "2"}
    with pytest.raises(NotFound):
        repo.stat("main", "a")
    with pytest.raises(NotFound):
        repo.remove("main", "a")


def test_a_copy_inside_a_branch_points_to_the_same_object(repo):
    committed(repo, "main", a="1")
    copy = repo.copy("main", "a", "main", "b")
    assert copy.address == repo.stat("main", "a").address
    assert contents(repo, "main") == {"a": "1", "b": "1"}


def test_a_copy_from_elsewhere_is_an_object_of_its_own(repo):
    committed(repo, "main", a="1")
    repo.create_branch("dev", "main")
    copy = repo.copy("main", "a", "dev", "b")
    assert copy.address != repo.stat("main", "a").address
    assert contents(repo, "dev") == {"a": "1", "b": "1"}


def test_a_move_takes_the_entry_along(repo):
    committed(repo, "main", a="1")
    repo.move("main", "a", "b")
    assert contents(repo, "main") == {"b": "1"}
    repo.move("main", "b", "b")
    assert contents(repo, "main") == {"b": "1"}


def test_uncommitted_changes_are_told_by_kind(repo):
    committed(repo, "main", kept="1", changed="1", removed="1")
    write(repo, "main", changed="2", added="1", passing="1")
    repo.remove("main", "removed")
    repo.remove("main", "passing")
    assert changes(repo.uncommitted("main")) == {"+added", "~changed", "-removed"}


def test_reset_forgets_everything_a_prefix_or_a_path(repo):
    committed(repo, "main", a="1")
    write(repo, "main", **{"a": "2", "p/x": "3", "p/y": "4", "q": "5"})
    assert repo.reset("main", prefix="p/") == 2
    assert contents(repo, "main") == {"a": "2", "q": "5"}
    assert repo.reset("main", path="q") == 1
    assert contents(repo, "main") == {"a": "2"}
    with pytest.raises(NotFound):
        repo.reset("main", path="q")
    assert repo.reset("main") == 1
    assert contents(repo, "main") == {"a": "1"}


def test_removing_below_a_prefix_leaves_the_rest(repo):
    committed(repo, "main", **{"p/a": "1", "p0": "2", "q": "3"})
    write(repo, "main", **{"p/b": "4"})
    assert list(repo.remove_below("main", "p/")) == ["p/a", "p/b"]
    assert contents(repo, "main") == {"p0": "2", "q": "3"}


def test_listing_folds_at_the_delimiter_and_goes_on_after_a_path(repo):
    committed(repo, "main", **{"a": "", "d/1": "", "d/2": "", "e/f/g": ""})
    write(repo, "main", **{"d/3": "", "c": ""})
    repo.remove("main", "e/f/g")

    def names(**options):
        return [found.path for found in repo.list("main", **options)]

    assert names(delimiter="/") == ["a", "c", "d/"]
    assert names(prefix="d/", delimiter="/") == ["d/1", "d/2", "d/3"]
    assert names(prefix="d") == ["d/1", "d/2", "d/3"]
    assert names(after="d/1") == ["d/2", "d/3"]
    assert names(delimiter="/", after="d/") == []
    assert names(delimiter="/", after="a") == ["c", "d/"]


def test_a_branch_with_staged_changes_is_deleted_only_by_force(repo):
    repo.create_branch("dev", "main")
    write(repo, "dev", a="1")
    with pytest.raises(Dirty):
        repo.delete_branch("dev")
    repo.delete_branch("dev", force=True)
    assert [branch.name for branch in repo.branches()] == ["main"]


def test_a_branch_made_again_under_an_old_name_is_another_branch(repo):
    first = repo.create_branch("dev", "main")
    write(repo, "dev", a="1")
    repo.delete_branch("dev", force=True)
    again = repo.create_branch("dev", "main")
    assert again.uid != first.uid
    assert contents(repo, "dev") == {}


def test_changes_that_amount_to_nothing_are_nothing_to_commit(repo):
    write(repo, "main", a="1")
    repo.remove("main", "a")
    with pytest.raises(NothingToCommit):
        repo.commit("main", "nothing")
    assert contents(repo, "main") == {}
    with pytest.raises(NothingToCommit):
        repo.commit("main", "still nothing")
