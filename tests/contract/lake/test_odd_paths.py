"""Paths that are not UTF-8: data like any other, but for `put`."""

import pytest

import lakefs_server as server
from desilt.errors import InvalidPath, MergeConflict, NotFound, NothingToCommit
from desilt.lake.fsck import check
from desilt.lake.listing import CommonPrefix
from desilt.lake.manifest import ranges_of
from desilt.sstable.ranges import FOLDER
from odd_paths import commit_odd, listed, stage_odd, text
from words import changes, committed

BAD = b"bad\xffutf8"
DEEP = b"bad\xfe/\x80/deep"
NUL = b"nul\0in"
ODD = sorted([BAD, DEEP, NUL, b"\xed\xa0\x80", "é".encode()])


@pytest.fixture
def odd(repo):
    """A repository whose main branch has such paths, and one that is like others."""
    commit_odd(repo, "main", *ODD, text=b"odd")
    committed(repo, "main", good="1")
    return repo


def test_they_are_listed_in_the_order_of_their_bytes(odd):
    assert listed(odd, "main") == sorted([*ODD, b"good"])
    assert listed(odd, "main", prefix="bad") == [DEEP, BAD]
    assert listed(odd, "main", prefix=text(b"bad\xff")) == [BAD]
    assert listed(odd, "main", after=text(BAD)) == [path for path in sorted([*ODD, b"good"]) if path > BAD]


def test_they_are_folded_like_others(odd):
    found = list(odd.list("main", "bad", delimiter="/"))
    assert found[0] == CommonPrefix(text(b"bad\xfe/"))
    assert found[1].path == text(BAD)
    assert list(odd.list("main", text(b"bad\xfe/"), delimiter="/")) == [CommonPrefix(text(b"bad\xfe/\x80/"))]


@pytest.mark.parametrize("path", ODD)
def test_they_are_read_by_what_a_listing_calls_them(odd, path):
    assert odd.stat("main", text(path)).path == text(path)
    assert b"".join(odd.get("main", text(path))) == b"odd"


def test_one_that_is_not_there_is_not_found_and_told_by_its_bytes(odd):
    with pytest.raises(NotFound, match=r"there is no object 'b\\xadd'"):
        odd.stat("main", text(b"b\xadd"))


def test_nobody_writes_to_one(odd):
    path = text(BAD)
    for write in (
        lambda: odd.put("main", path, b"1"),
        lambda: odd.copy("main", "good", "main", path),
        lambda: odd.copy("main~1", text(DEEP), "main", path),
        lambda: odd.move("main", "good", path),
        lambda: odd.physical_address("main", path),
        lambda: odd.link("main", path, "token"),
        lambda: odd.stage("main", path, "s3://elsewhere/x", size=1, checksum="c"),
    ):
        with pytest.raises(InvalidPath, match=r"'bad\\xffutf8' is not valid UTF-8"):
            write()
    assert list(odd.uncommitted("main")) == []


def test_one_is_removed_copied_and_moved_away(odd):
    odd.remove("main", text(BAD))
    odd.copy("main", text(DEEP), "main", "a copy")
    odd.copy("main@", text(DEEP), "main", "another copy")
    odd.move("main", text(NUL), "no nul")
    assert changes(odd.uncommitted("main")) == {
        f"-{text(BAD)}",
        f"-{text(NUL)}",
        "+a copy",
        "+another copy",
        "+no nul",
    }
    made = odd.commit("main", "away")
    assert changes(odd.diff("main~1", made.id)) == {
        f"-{text(BAD)}",
        f"-{text(NUL)}",
        "+a copy",
        "+another copy",
        "+no nul",
    }
    assert b"".join(odd.get("main", "another copy")) == b"odd"


def test_all_below_a_prefix_are_removed(odd):
    assert list(odd.remove_below("main", "bad")) == [text(DEEP), text(BAD)]
    odd.commit("main", "below")
    assert listed(odd, "main", prefix="bad") == []


def test_what_is_staged_at_one_is_forgotten_by_path_and_by_prefix(odd):
    stage_odd(odd, "main", b"new\xff")
    assert changes(odd.uncommitted("main", prefix=text(b"new\xff"))) == {f"+{text(b'new' + bytes([255]))}"}
    assert odd.reset("main", path=text(b"new\xff")) == 1
    stage_odd(odd, "main", b"new\xff")
    assert odd.reset("main", prefix=text(b"new\xff")) == 1
    assert list(odd.uncommitted("main")) == []


def test_a_commit_on_top_changes_what_it_changes_and_keeps_the_rest(odd):
    committed(odd, "main", other="2")
    assert changes(odd.diff("main~1", "main")) == {"+other"}
    assert listed(odd, "main") == sorted([*ODD, b"good", b"other"])


def test_a_commit_with_one_is_reverted(odd):
    before = listed(odd, "main")
    commit_odd(odd, "main", b"\xff more", BAD, text=b"new")
    odd.revert("main", "main")
    assert listed(odd, "main") == before
    assert b"".join(odd.get("main", text(BAD))) == b"odd"
    with pytest.raises(NothingToCommit):
        odd.revert("main", "main~1")


def test_a_merge_brings_them(odd):
    odd.create_branch("dev", "main")
    commit_odd(odd, "dev", b"\xff on dev", BAD, text=b"dev")
    committed(odd, "main", other="2")
    odd.merge("dev", "main")
    assert listed(odd, "main") == sorted([*ODD, b"good", b"other", b"\xff on dev"])
    assert b"".join(odd.get("main", text(BAD))) == b"dev"


def test_a_conflict_names_them_by_their_bytes(odd):
    odd.create_branch("dev", "main")
    commit_odd(odd, "dev", BAD, text=b"dev")
    commit_odd(odd, "main", BAD, text=b"main")
    with pytest.raises(MergeConflict, match=r"both changed 1 path \('bad\\xffutf8'\)") as caught:
        odd.merge("dev", "main")
    assert caught.value.paths == [text(BAD)]
    odd.merge("dev", "main", strategy="source-wins")
    assert b"".join(odd.get("main", text(BAD))) == b"dev"


def test_a_staging_manifest_has_them(odd):
    address = stage_odd(odd, "main", b"new\xff")
    taken = odd.prepare_uncommitted()
    ranges = ranges_of(odd.core)
    (key,) = ranges.read(*ranges.metarange(taken.metarange))["key"].to_pylist()
    assert key.endswith(b"/new\xff")
    assert (taken.entries, odd.stat("main", text(b"new\xff")).address) == (1, address)
    odd.reset("main")


@pytest.mark.usefixtures("unsound")
def test_a_check_names_one_whose_object_is_lost(odd):
    assert check(odd).sound
    odd.store._objects.pop(odd.prefix + odd.stat("main", text(BAD)).address)
    found = check(odd)
    assert [one.about["path"] for one in found.of("missing-object")] == [text(BAD)]


@pytest.mark.usefixtures("unsound")
def test_a_commit_that_a_lakefs_server_made_is_read_and_built_upon(lake):
    repo = lake.create_repository("capture")
    for file in (server.ROOT / "odd").iterdir():
        repo.store.put(f"{repo.prefix}{FOLDER}{file.name}", [file.read_bytes()])
    (metarange,) = (name for name in server.tables("metaranges") if (server.ROOT / "odd" / name).exists())
    with repo.database.write() as tx:
        tx.execute("UPDATE commits SET metarange = ? WHERE repository = ?", metarange, repo.uid)
    assert listed(repo, "main") == [b"bad\xffutf8", b"good"]
    committed(repo, "main", more="1")
    assert listed(repo, "main") == [b"bad\xffutf8", b"good", b"more"]
    assert changes(repo.diff("main~1", "main")) == {"+more"}
    repo.remove("main", text(b"bad\xffutf8"))
    repo.commit("main", "no bad path")
    assert listed(repo, "main") == [b"good", b"more"]
