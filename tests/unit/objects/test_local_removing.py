"""What is special to removing files: folders, links, refusals of the disk, writers at the same time."""

import errno
import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from desilt.errors import BadRequest, Conflict, NotFound
from desilt.objects import Outcome, Result, local_files
from desilt.objects.local import LocalStore

REMOVED, GONE, FAILED = Result


def everything(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path / "root")


def fill(store, *keys):
    for key in keys:
        store.put(key, [key.encode()])
    return Path(store.root)


def test_empty_folders_go_but_never_the_root(store):
    root = fill(store, "a/b/c/1", "a/b/2", "d/e/3", "f/4")
    store.delete_many(["a/b/c/1"])
    assert everything(root) == ["a", "a/b", "a/b/2", "d", "d/e", "d/e/3", "f", "f/4"]
    store.move_many([("d/e/3", "a/3")])
    assert everything(root) == ["a", "a/3", "a/b", "a/b/2", "f", "f/4"]
    store.delete_many(["a/b/2", "a/3", "f/4"])
    assert root.is_dir()
    assert everything(root) == []


def test_a_folder_left_empty_by_a_crash_goes_when_its_key_is_removed_again(store):
    root = fill(store, "a/b/1", "c")
    (root / "a/b/1").unlink()
    assert store.delete_many(["a/b/1"]) == [Outcome("a/b/1", GONE)]
    assert everything(root) == ["c"]
    (root / "a").mkdir()
    assert store.delete_many(["a/b/1"]) == [Outcome("a/b/1", GONE)]
    assert everything(root) == ["c"]


def test_a_folder_that_cannot_be_tidied_is_left_in_peace(store, monkeypatch):
    fill(store, "a/b/1")

    def fails(_path):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "rmdir", fails)
    assert store.delete_many(["a/b/1"]) == [Outcome("a/b/1", REMOVED)]


def test_a_folder_is_not_an_object_and_stays(store):
    root = fill(store, "a/b/1")
    (root / "empty").mkdir()
    assert [each.result for each in store.delete_many(["a", "a/b", "empty"])] == [GONE] * 3
    assert [each.result for each in store.move_many([("a/b", "c"), ("empty", "d")])] == [GONE] * 2
    assert everything(root) == ["a", "a/b", "a/b/1", "empty"]


def test_a_link_is_neither_followed_nor_removed(store, tmp_path):
    outside, root = tmp_path / "outside", fill(store, "a/1", "a/2")
    (outside / "empty").mkdir(parents=True)
    (outside / "secret").write_bytes(b"secret")
    (root / "folder").symlink_to(outside)
    (root / "a/file").symlink_to(outside / "secret")
    (root / "a/dangling").symlink_to(outside / "nothing")
    before = everything(outside), everything(root)
    behind, links = ["folder/secret", "folder/none", "folder/empty/none"], ["folder", "a/file", "a/dangling"]
    for take in (store.delete_many, lambda keys: store.move_many([(key, "new/" + key) for key in keys])):
        outcomes = take(behind + links)
        assert [each.result for each in outcomes] == [FAILED] * 6
        assert all("is behind a link; only real" in each.detail for each in outcomes[:3])
        assert all("is a link or a device and no object" in each.detail for each in outcomes[3:])
    (outcome,) = store.move_many([("a/1", "folder/1")])
    assert outcome.result is FAILED
    assert "is behind a link" in outcome.detail
    assert (everything(outside), everything(root)) == before
    assert (outside / "secret").read_bytes() == b"secret"


def test_a_folder_is_held_while_its_objects_go_so_a_link_put_in_its_place_leads_nowhere(store, tmp_path, monkeypatch):
    outside, root, real = tmp_path / "outside", fill(store, "a/1", "a/2"), os.unlink
    outside.mkdir()
    (outside / "2").write_bytes(b"secret")

    def swapped(path, **more):
        if (root / "a").is_symlink():
            return real(path, **more)
        (root / "a").rename(root / "b")
        (root / "a").symlink_to(outside)
        return real(path, **more)

    monkeypatch.setattr(os, "unlink", swapped)
    assert store.delete_many(["a/1", "a/2"]) == [Outcome("a/1", REMOVED), Outcome("a/2", REMOVED)]
    assert (outside / "2").read_bytes() == b"secret"
    assert everything(root / "b") == []


def test_outcomes_come_in_the_order_of_the_keys_whatever_their_folders(store):
    fill(store, "a/1", "b/1", "a/2", "c")
    keys = ["c", "a/2", "b/1", "a/none", "none/1", "a/1", "b/1", "c"]
    results = [REMOVED, REMOVED, REMOVED, GONE, GONE, REMOVED, GONE, GONE]
    assert store.delete_many(keys) == [Outcome(key, result) for key, result in zip(keys, results, strict=True)]


def test_it_is_asked_before_each_file_whether_to_go_on(store):
    keys = [f"a/{number}" for number in range(5)]
    for key in keys:
        store.put(key, [b"x"])
    left = iter([None, None, None])  # before anything, and before two of them

    def between():
        if next(left, "over") == "over":
            raise InterruptedError

    with pytest.raises(InterruptedError):
        store.delete_many(keys, between=between)
    assert sorted(path.name for path in Path(store.root, "a").iterdir()) == ["2", "3", "4"]


def test_without_the_root_nothing_is_known_to_be_gone(store):
    shutil.rmtree(fill(store, "a/1", "b"))
    outcomes = store.delete_many(["a/1", "b", "none"])
    assert [each.result for each in outcomes] == [FAILED] * 3
    assert all("is not a directory; create it, or mount" in each.detail for each in outcomes)


def test_no_folder_stays_open(store, tmp_path, monkeypatch):
    root = fill(store, *(f"{folder}/1" for folder in "abcdef"))
    (root / "link").symlink_to(tmp_path)

    def fails(*_, **__):
        raise KeyboardInterrupt

    before = everything(Path("/proc/self/fd"))
    store.delete_many(["a/1", "b/none", "none/1", "link/1", "b/1/under", "c/1"])
    monkeypatch.setattr(os, "unlink", fails)
    with pytest.raises(KeyboardInterrupt):
        store.delete_many(["d/1"])
    assert everything(Path("/proc/self/fd")) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root is denied nothing")
def test_a_directory_that_may_be_changed_but_not_listed_gives_up_its_objects(store):
    root = fill(store, "a/1", "a/2")
    (root / "a").chmod(0o300)
    try:
        assert store.delete_many(["a/1"]) == [Outcome("a/1", REMOVED)]
    finally:
        (root / "a").chmod(0o700)


def test_a_move_over_a_link_replaces_the_link_and_not_what_it_leads_to(store, tmp_path):
    root = fill(store, "a")
    (tmp_path / "secret").write_bytes(b"secret")
    (root / "b").symlink_to(tmp_path / "secret")
    assert store.move_many([("a", "b")]) == [Outcome("a", REMOVED)]
    assert (tmp_path / "secret").read_bytes() == b"secret"
    assert store.get("b") == b"a"


def test_a_key_cannot_move_to_where_a_folder_is_or_below_an_object(store):
    root = fill(store, "a", "b/1", "c", "d")
    (root / "empty").mkdir()
    outcomes = store.move_many([("a", "b"), ("a", "empty"), ("a", "c/1"), ("a", "a/1"), ("d", "e")])
    assert [each.result for each in outcomes] == [FAILED] * 4 + [REMOVED]
    assert all("both an object and a folder" in each.detail for each in outcomes[:4])
    assert everything(root) == ["a", "b", "b/1", "c", "e", "empty"]


def test_a_name_too_long_for_the_disk_fails_alone(store):
    fill(store, "a", "b")
    outcomes = store.move_many([("a", "x" * 300), ("b", "c")])
    assert [each.result for each in outcomes] == [FAILED, REMOVED]
    assert "too long" in outcomes[0].detail
    assert store.get("a") == b"a"


def test_two_names_of_one_file_are_one_after_a_move(store):
    root = fill(store, "a")
    (root / "b").hardlink_to(root / "a")
    assert store.move_many([("a", "b")]) == [Outcome("a", REMOVED)]
    assert everything(root) == ["b"]
    (root / "c").hardlink_to(root / "b")
    assert store.move_many([("b", "d")]) == [Outcome("b", REMOVED)]
    assert everything(root) == ["c", "d"]


@pytest.mark.parametrize(
    ("number", "fact"),
    [
        (errno.EACCES, "failed: Permission denied; check the owner"),
        (errno.EROFS, "failed: Read-only file system; check the owner"),
        (errno.EIO, "failed: Input/output error; check the disk"),
    ],
)
def test_what_the_disk_refuses_is_the_outcome_of_its_key_alone(store, monkeypatch, number, fact):
    root = fill(store, "a/1", "a/2", "a/3", "b/1", "b/2", "b/3")
    unlink, rename = os.unlink, os.rename

    def fails(real):
        def call(path, *rest, **more):
            if Path(path).name == "2":
                raise OSError(number, os.strerror(number))
            return real(path, *rest, **more)

        return call

    monkeypatch.setattr(os, "unlink", fails(unlink))
    monkeypatch.setattr(os, "rename", fails(rename))
    deleted = store.delete_many(["a/1", "a/2", "a/3"])
    moved = store.move_many([(f"b/{number}", f"c/{number}") for number in (1, 2, 3)])
    for outcomes in (deleted, moved):
        assert [each.result for each in outcomes] == [REMOVED, FAILED, REMOVED]
        assert fact in outcomes[1].detail
        assert "\n" not in outcomes[1].detail
    assert everything(root) == ["a", "a/2", "b", "b/2", "c", "c/1", "c/3"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root is denied nothing")
def test_a_directory_that_may_not_be_changed_keeps_its_objects(store):
    root = fill(store, "a/1", "b/1", "closed/c/1")
    (root / "a").chmod(0o500)
    (root / "closed").chmod(0)
    try:
        deleted = store.delete_many(["a/1", "closed/c/1", "closed/none"])
        moved = store.move_many([("a/1", "c/1"), ("b/1", "a/2")])
    finally:
        (root / "a").chmod(0o700)
        (root / "closed").chmod(0o700)
    assert [each.result for each in deleted + moved] == [FAILED] * 5
    assert all("Permission denied; check the owner" in each.detail for each in deleted + moved)
    assert {"a/1", "b/1", "closed/c/1"} <= set(everything(root))


def test_nothing_is_synced_for_what_goes(store, monkeypatch):
    fill(store, "a/1", "a/2", "b/1")
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    store.delete_many(["a/1"])
    store.move_many([("a/2", "c/d/2")])
    assert synced == []


@pytest.mark.parametrize("again", ["by somebody else", "by a move"])
def test_a_folder_made_again_is_made_durable_again(store, monkeypatch, again):
    root = fill(store, "a/b/1", "keep")
    if again == "by somebody else":
        store.delete_many(["a/b/1"])
        (root / "a/b").mkdir(parents=True)
    else:
        shutil.rmtree(root / "a")
        store.move_many([("keep", "a/b/moved")])  # syncs nothing
    synced = []
    real = os.fsync

    def watched(descriptor):
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    store.put("a/b/2", [b"x"])
    assert synced[:2] == ["root", "a"]


def test_a_folder_that_vanishes_and_returns_while_it_is_made_is_taken_as_it_is(store, monkeypatch):
    root = fill(store, "keep")

    def returns(folder, **_):
        Path(folder).mkdir(exist_ok=True)
        raise FileExistsError(errno.EEXIST, "File exists")

    monkeypatch.setattr(os, "makedirs", returns)
    store.put("a/1", [b"x"])
    assert everything(root) == ["a", "a/1", "keep"]


@pytest.mark.parametrize("fsync", [True, False])
def test_a_put_into_a_folder_being_tidied_never_fails(tmp_path, fsync):
    store, other = LocalStore(tmp_path, fsync=fsync), LocalStore(tmp_path, fsync=fsync)
    done = threading.Event()

    def puts(writer):
        for _ in range(100 if fsync else 400):
            store.put(f"a/b/c/{writer}", [b"x"])  # removed by the others at any moment
            store.put(f"a/b/{writer}", [b"y"])
            assert store.move_many([(f"a/b/{writer}", f"a/b/c/d/{writer}")])[0].result is REMOVED
            assert store.get(f"a/b/c/d/{writer}") == b"y"
            assert store.delete_many([f"a/b/c/d/{writer}"])[0].result is REMOVED

    def deletes(by):
        failed = []
        while not done.is_set():
            outcomes = by.delete_many(["a/b/c/0", "a/b/c/1", "a/b/none/1", "a/none", "a/b/c/d/none"])
            failed += [each for each in outcomes if each.result is FAILED]
        return failed

    with ThreadPoolExecutor(4) as threads:
        deleters = [threads.submit(deletes, by) for by in (store, other)]
        try:
            for each in [threads.submit(puts, writer) for writer in (0, 1)]:
                each.result()
        finally:
            done.set()
        assert [each.result() for each in deleters] == [[], []]
    store.delete_many(["a/b/c/0", "a/b/c/1"])
    assert everything(tmp_path) == []


def test_moves_and_removals_of_one_key_at_once_leave_one_answer_true(store):
    for number in range(60):
        fill(store, "a/key")
        with ThreadPoolExecutor(2) as threads:
            moved = threads.submit(store.move_many, [("a/key", "b/key")])
            deleted = threads.submit(store.delete_many, ["a/key"])
        results = {moved.result()[0].result, deleted.result()[0].result}
        assert results == {REMOVED, GONE}, number
        if moved.result()[0].result is REMOVED:
            assert store.get("b/key") == b"a/key"
            store.delete_many(["b/key"])
        else:
            with pytest.raises(NotFound):
                store.get("b/key")


@pytest.mark.parametrize("odd", ["a/../b", "a\nb", "a\n", "\na", "a//b", "a/", "", ".", "a/.", "b" * 1025])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_among_many_plain_keys_one_that_is_none_is_seen_before_anything_goes(store, odd, place):
    root = fill(store, "a/x-1", "b")
    keys = ["a/x-1", "b"]
    keys.insert(place, odd)
    with pytest.raises(BadRequest, match="object key"):
        store.delete_many(keys)
    assert everything(root) == ["a", "a/x-1", "b"]


def test_odd_keys_that_can_be_kept_go_with_plain_ones(store):
    keys = ["a/x-1", "ä/😀", ".hidden", "a b", "b"]
    root = fill(store, *keys)
    assert [one.result for one in store.delete_many(keys)] == [REMOVED] * 5
    assert everything(root) == []


def test_before_each_file_it_is_asked_whether_it_may_go(store):
    root = fill(store, "a/1", "a/2", "a/3")
    asked = []

    def between():
        asked.append(everything(root))
        if len(asked) == 4:  # before anything at all, and before each
            raise InterruptedError

    with pytest.raises(InterruptedError):
        store.delete_many(["a/1", "a/2", "a/3"], between=between)
    assert asked == [["a", *left] for left in (["a/1", "a/2", "a/3"], ["a/1", "a/2", "a/3"], ["a/2", "a/3"], ["a/3"])]
    assert everything(root) == ["a", "a/3"]


@pytest.fixture(params=[0.0, 1e9], ids=["a slow disk", "a quick disk"])
def many(request, store, monkeypatch):
    """Keys of one folder, so many that they are asked for together where the disk is slow."""
    monkeypatch.setattr(local_files, "WAITS", request.param)
    keys = [f"a/{number:04d}" for number in range(5 * local_files.TOGETHER)]
    fill(store, *keys)
    return keys


def test_what_comes_of_each_of_many_is_told_in_their_order(store, many):
    root = Path(store.root)
    (root / many[100]).unlink()
    (root / many[200]).unlink()
    (root / many[200]).symlink_to(root / many[300])
    (root / many[250]).unlink()
    (root / many[250]).mkdir()
    asked = [*many[:300], "a/none", *many[301:]]
    outcomes = store.delete_many(asked)
    assert [one.key for one in outcomes] == asked
    others = {one.key: one.result for one in outcomes if one.result is not REMOVED}
    assert others.keys() == {many[100], many[200], many[250], "a/none"}
    assert everything(root) == ["a", many[200], many[250], many[300]]


def test_of_many_nothing_goes_once_somebody_may_no_longer_remove(store, many):
    """However many are on their way together: whoever looked last has looked before these."""
    looks = []

    def look():
        looks.append(len(everything(Path(store.root))))
        if looks[-1] <= len(many) // 2 + 1:
            raise Conflict("no longer ours")

    with pytest.raises(Conflict):
        store.delete_many(many, between=look)
    left = everything(Path(store.root))
    assert len(left) == looks[-1]
    assert left[1:] == many[len(many) - len(left) + 1 :]
    assert max(before - after for before, after in pairwise(looks)) <= local_files.TOGETHER


def test_of_many_none_is_on_its_way_once_the_folder_is_let_go(store, many, monkeypatch):
    """After an error too: what has its number next is another folder."""
    taken, close, under_way, seen = local_files._taken, os.close, [], []

    def slowly(name, folder):
        under_way.append(name)
        found = taken(name, folder)
        time.sleep(0.01)
        under_way.remove(name)
        return found

    def closes(descriptor):
        seen.append(len(under_way))
        close(descriptor)

    def breaks(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(local_files, "_taken", slowly)
    (Path(store.root) / many[local_files.TOGETHER + 1]).unlink()
    monkeypatch.setattr("desilt.objects.local.attempt", breaks)
    monkeypatch.setattr(os, "close", closes)
    with pytest.raises(KeyboardInterrupt):
        store.delete_many(many)
    assert seen
    assert not any(seen)
    assert len(everything(Path(store.root))) > len(many) // 2
