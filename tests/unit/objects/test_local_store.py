"""What is special to files: durability, leftovers, full disks, links."""

import errno
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from desilt.errors import BadRequest, Conflict, NotFound, StorageFailed
from desilt.objects.local import LocalStore
from desilt.objects.store import Result


def listed(store, prefix=""):
    return [key for batch in store.list(prefix) for key in batch.column("key").to_pylist()]


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


@pytest.fixture
def events(monkeypatch):
    """Every fsync and rename, in order, by the name of what they were done to."""
    seen = []
    fsync, replace = os.fsync, os.replace

    def watched_fsync(descriptor):
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        seen.append(("sync", "the file" if path.suffix == ".partial" else path.name))
        fsync(descriptor)

    def watched_replace(source, target):
        seen.append(("rename", Path(target).name))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "replace", watched_replace)
    return seen


def test_the_bytes_are_durable_before_the_name_and_the_name_before_the_return(tmp_path, events):
    store = LocalStore(tmp_path / "root")
    (tmp_path / "root").mkdir()
    store.put("a/b/key", [b"x"])
    made = [("sync", "root"), ("sync", "a")]  # the names `a` and `b` live in these two
    stored = [("sync", "the file"), ("rename", "key"), ("sync", "b")]
    assert events == made + stored
    events.clear()
    store.put("a/b/key", [b"y"])
    assert events == stored


def test_a_root_that_had_to_be_made_is_durable_too(tmp_path, events):
    LocalStore(tmp_path / "new" / "root").put("key", [b"x"])
    assert events[:2] == [("sync", tmp_path.name), ("sync", "new")]


def test_a_folder_somebody_else_made_is_made_durable_before_it_is_relied_on(tmp_path, events):
    (tmp_path / "a" / "b").mkdir(parents=True)
    LocalStore(tmp_path).put("a/b/key", [b"x"])
    assert events[:2] == [("sync", tmp_path.name), ("sync", "a")]


def test_fsync_can_be_left_out(tmp_path, events):
    LocalStore(tmp_path, fsync=False).put("a/key", [b"x"])
    assert events == [("rename", "key")]


def test_what_a_crash_leaves_is_listed_and_is_not_the_object(tmp_path):
    code = (
        "import os, sys; from desilt.objects.local import LocalStore\n"
        "def body():\n    yield b'half'; os.kill(os.getpid(), 9)\n"
        "LocalStore(sys.argv[1]).put('data/key', body())"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)]).returncode == -9
    store = LocalStore(tmp_path)
    (leftover,) = listed(store)
    assert leftover.startswith("data/")
    assert leftover.endswith(".partial")
    assert store.get(leftover) == b"half"
    with pytest.raises(NotFound):
        store.get("data/key")


def test_an_open_write_is_listed_as_young_garbage_only(tmp_path):
    store = LocalStore(tmp_path)
    during = []

    def body():
        yield b"half"
        during.extend(listed(store))

    store.put("key", body())
    assert len(during) == 1
    assert during[0].endswith(".partial")
    assert files(tmp_path) == ["key"]


def test_a_full_disk_is_told_in_one_line_and_leaves_nothing(tmp_path):
    code = (
        "import sys; from desilt.errors import StorageFailed; from desilt.objects.local import LocalStore\n"
        "store = LocalStore(sys.argv[1])\n"
        "store.put('key', [b'old'])\n"
        "try:\n    store.put('key', (b'x' * 65536 for _ in range(64)))\n"
        "except StorageFailed as error:\n    print(error)\n"
        "print([k for b in store.list() for k in b.column('key').to_pylist()], store.get('key'))"
    )
    unshare = shutil.which("unshare")
    script = 'mount -t tmpfs -o size=1m none "$1" || exit 77; exec "$2" -c "$3" "$1"'
    if unshare is None:
        pytest.skip("no unshare here to mount a small disk with")
    done = subprocess.run(
        [unshare, "-rm", "sh", "-c", script, "sh", str(tmp_path), sys.executable, code], capture_output=True, text=True
    )
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"cannot mount a small disk here: {done.stderr.strip()}")
    said, left = done.stdout.splitlines()
    assert said == (
        f"writing 'key' in {tmp_path.as_uri()} failed: the disk is full; "
        "free some space and try again, nothing was stored"
    )
    assert left == "['key'] b'old'"


@pytest.mark.parametrize(
    ("number", "fact"),
    [
        (errno.ENOSPC, "the disk is full; free some space"),
        (errno.EDQUOT, "the disk is full; free some space"),
        (errno.EACCES, "Permission denied; check the owner"),
        (errno.EROFS, "Read-only file system; check the owner"),
        (errno.EIO, "Input/output error; check the disk"),
    ],
)
@pytest.mark.parametrize("step", ["open", "write", "fsync", "replace"])
def test_a_failing_step_of_a_write_is_one_line_and_leaves_nothing(tmp_path, monkeypatch, step, number, fact):
    store = LocalStore(tmp_path)
    store.put("warm", [b"x"])
    real = getattr(os, step)

    def fails(*args, **kwargs):
        if step == "open" and not str(args[0]).endswith(".partial"):
            return real(*args, **kwargs)
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(os, step, fails)
        with pytest.raises(StorageFailed, match=fact) as raised:
            store.put("key", [b"body"])
    assert "\n" not in str(raised.value)
    assert files(tmp_path) == ["warm"]


def test_an_unreadable_folder_stops_the_listing(tmp_path, monkeypatch):
    store = LocalStore(tmp_path)
    store.put("a/key", [b"x"])
    real = os.open

    def fails(path, *how):
        if str(path).endswith("/a/"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, *how)

    monkeypatch.setattr(os, "open", fails)
    with pytest.raises(StorageFailed, match=r"listing 'a/' in .* failed: Permission denied"):
        listed(store)


def test_a_missing_root_is_not_an_empty_store(tmp_path):
    with pytest.raises(StorageFailed, match="create it, or mount"):
        LocalStore(tmp_path / "gone").list()


def test_folders_outside_the_prefix_or_before_after_are_not_opened(tmp_path, monkeypatch):
    store = LocalStore(tmp_path)
    for key in ("a/x/1", "a/y/1", "b/x/1", "b/y/1", "c/1"):
        store.put(key, [b"x"])
    opened = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda path, how: opened.append(os.path.relpath(path, tmp_path)) or real(path, how))
    assert [key for batch in store.list("b/", after="b/x/1") for key in batch.column("key").to_pylist()] == ["b/y/1"]
    assert opened == ["b", "b/x", "b/y"]
    opened.clear()
    assert [key for batch in store.list(after="b/x0") for key in batch.column("key").to_pylist()] == ["b/y/1", "c/1"]
    assert opened == [".", "b", "b/y", "c"]


def test_a_link_leads_nowhere(tmp_path):
    outside, root = tmp_path / "outside", tmp_path / "root"
    outside.mkdir()
    root.mkdir()
    (outside / "secret").write_bytes(b"secret")
    (root / "folder").symlink_to(outside)
    (root / "file").symlink_to(outside / "secret")
    store = LocalStore(root)
    assert listed(store) == []
    with pytest.raises(NotFound):
        store.get("file")
    with pytest.raises(NotFound):
        store.head("file")
    for ask in (
        lambda: store.get("folder/secret"),
        lambda: store.head("folder/secret"),
        lambda: store.put("folder/new", [b"x"]),
        lambda: listed(store, "folder/"),
    ):
        with pytest.raises(BadRequest, match="behind a link"):
            ask()
    assert files(outside) == ["secret"]


def test_a_link_between_real_folders_is_seen_wherever_it_leads_and_whenever_it_came(tmp_path):
    store = LocalStore(tmp_path)
    store.put("real/deep/key", [b"x"])
    assert store.get("real/deep/key") == b"x"
    (tmp_path / "way").mkdir()
    (tmp_path / "way" / "back").symlink_to("../real")
    (tmp_path / "way" / "nowhere").symlink_to("missing")
    for key in ("way/back/key", "way/back/deep/key", "way/nowhere/deep/key"):
        with pytest.raises(BadRequest, match="behind a link"):
            store.get(key)
    (tmp_path / "real").rename(tmp_path / "moved")
    (tmp_path / "real").symlink_to("moved")
    for ask in (store.get, store.head, lambda key: store.put(key, [b"y"])):
        with pytest.raises(BadRequest, match="behind a link"):
            ask("real/deep/key")
    (outcome,) = store.delete_many(["real/deep/key"])
    assert outcome.result is Result.FAILED
    assert files(tmp_path / "moved") == ["deep/key"]


def test_a_root_reached_by_a_link_works(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    store = LocalStore(tmp_path / "link")
    store.put("a/key", [b"x"])
    assert store.get("a/key") == b"x"
    assert listed(store, "a/") == ["a/key"]


def test_a_key_cannot_be_an_object_and_a_folder(tmp_path):
    store = LocalStore(tmp_path)
    store.put("a/b", [b"x"])
    for key in ("a", "a/b/c"):
        with pytest.raises(Conflict, match="both an object and a folder"):
            store.put(key, [b"y"])
    assert files(tmp_path) == ["a/b"]


def test_a_name_too_long_for_the_disk_is_a_bad_request(tmp_path):
    with pytest.raises(BadRequest, match="too long"):
        LocalStore(tmp_path).put("x" * 300, [b"y"])


def test_a_name_that_is_no_text_stops_the_listing(tmp_path):
    (tmp_path / os.fsdecode(b"\xff\xfe")).write_bytes(b"x")
    with pytest.raises(StorageFailed, match="not UTF-8"):
        listed(LocalStore(tmp_path))


def test_a_clock_dates_objects_to_the_microsecond(tmp_path):
    now = [datetime(1998, 1, 20, 12, 30, 45, 123456, tzinfo=UTC)]
    store = LocalStore(tmp_path, clock=lambda: now[0])
    store.put("first", [b"x"])
    now[0] += timedelta(days=8)
    store.copy("first", "second")
    assert store.head("first").modified_at == datetime(1998, 1, 20, 12, 30, 45, 123456, tzinfo=UTC)
    assert store.head("second").modified_at == now[0]
    (batch,) = store.list()
    assert batch.column("modified_at").to_pylist() == [store.head(key).modified_at for key in ("first", "second")]


def test_a_folder_tidied_away_between_puts_is_made_again(tmp_path):
    store = LocalStore(tmp_path)
    store.put("a/b/key", [b"x"])
    shutil.rmtree(tmp_path / "a")
    store.put("a/b/key", [b"y"])
    assert store.get("a/b/key") == b"y"
