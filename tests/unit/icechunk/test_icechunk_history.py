"""Refs and snapshots are what the library says; what could not be read is never what nobody made."""

import json
import shutil
from dataclasses import asdict
from datetime import UTC, datetime

import cramjam
import pytest

from desilt.errors import DamagedAsset, MissingAsset, NotFound, UnknownAsset, Unreadable
from desilt.icechunk.format import config, repo_info, states
from desilt.icechunk.format.container import HEADER, AssetKind, fetched
from desilt.icechunk.format.ids import ROOT, bytes_of
from desilt.icechunk.history import history
from desilt.objects import open_store
from icechunk_world import WHERE_BOTH, WRITES_BOTH, World, make_old, natives


@pytest.fixture
def forked(world):
    """main and dev, a tag on each, a tag that was deleted, and a snapshot that no ref reaches."""
    first = world.commit("first", a=[1, 2, 3], metadata={"n": 1, "deep": [{"x": None}, 2.5, "ü", True]})
    world.repo.create_branch("dev", first)
    world.commit("second", b=[[1, 2], [3, 4]])
    lost = world.commit("lost", a=[7])
    world.repo.reset_branch("main", world.ancestry(lost)[1][0])
    world.commit("on dev", branch="dev", c=[5.0])
    for name, branch in (("v1", "main"), ("v2", "dev"), ("gone", "dev")):
        world.repo.create_tag(name, world.repo.lookup_branch(branch))
    world.repo.delete_tag("gone")
    return world


def test_refs_and_ancestry_are_what_the_library_says(forked):
    found = history(forked.store)
    branches, tags = forked.heads()
    assert found.format == forked.version
    assert {one.name: one.head for one in found.seen.branches} == branches
    assert {one.name: one.target for one in found.seen.tags} == tags
    assert (sorted(branches), sorted(tags), found.deleted_tags) == (["dev", "main"], ["v1", "v2"], {"gone"})
    for head in {*branches.values(), *tags.values()}:
        for name, parent, at, message, metadata in forked.ancestry(head):
            commit = found.seen.commits[name]
            assert (commit.parents, commit.created_at, commit.message) == ((parent,) if parent else (), at, message)
            assert {
                key: json.loads(text) if text[:1] in "[{1tn" else text for key, text in commit.metadata.items()
            } == (metadata)
    assert found.seen.below(found.seen.tips) == {
        name for head in branches.values() for name, *_ in forked.ancestry(head)
    }


def test_a_snapshot_that_no_ref_reaches_is_history_in_format_2_alone(forked):
    unreached = forked.files("snapshots") - {
        name for head in forked.heads()[0].values() for name, *_ in forked.ancestry(head)
    }
    assert len(unreached) == 1
    assert (history(forked.store).seen.commits.keys() >= unreached) == (forked.version == 2)


def test_the_file_of_each_snapshot_says_what_the_library_says(forked):
    for name in history(forked.store).seen.commits:
        found, said = states.fetch(forked.store, name), forked.inspected(name)
        assert [(one.id, one.size, one.references) for one in found.manifests] == forked.manifests(name)
        assert (found.message, dict(found.metadata)) == (said["commit_message"], said["metadata"])
        assert [one.size for one in found.manifests] == [
            len(forked.file(f"manifests/{one.id}")) for one in found.manifests
        ]


def test_what_refs_reach_is_what_the_librarys_own_collector_leaves(forked):
    make_old(forked.root)
    reached = history(forked.store).seen
    reached = reached.below(reached.tips)
    held = natives(forked.store, reached)
    manifests = {one.id for name in reached for one in states.fetch(forked.store, name).manifests}
    forked.repo.garbage_collect(datetime.now(UTC))
    assert forked.files("snapshots") == reached
    assert forked.files("manifests") == manifests
    assert forked.files("chunks") == held


def test_equal_refs_have_an_equal_revision_and_others_another(forked):
    first, again = history(forked.store), history(forked.store)
    assert first.seen.revision == again.seen.revision
    forked.repo.create_tag("v3", forked.repo.lookup_branch("main"))
    assert history(forked.store).seen.revision != first.seen.revision


def test_a_parent_that_was_edited_makes_another_revision_though_no_ref_moved(forked):
    first = history(forked.store).seen
    tip = next(one.head for one in first.branches if one.name == "main")
    cut = first.commits[tip].created_at
    forked.repo.expire_snapshots(cut)
    found = history(forked.store).seen
    assert found.commits[tip].parents == (ROOT,)
    assert found.revision != first.revision


def test_logs_that_expired_snapshots_left_to_others_are_known(forked):
    first = history(forked.store).seen
    tip = next(one.head for one in first.branches if one.name == "dev")
    (between,) = first.commits[tip].parents
    forked.repo.expire_snapshots(first.commits[tip].created_at)
    found = history(forked.store)
    assert found.pruned.get(tip, ()) == ((between,) if forked.version == 2 else ())


def test_odd_names_are_what_people_called_them(world):
    names = ["ü", "a b", "a%b", "[x]", "x.y", "..", "a:b"]
    head = world.commit(a=[1])
    for name in names:
        world.repo.create_branch(name, head)
        world.repo.create_tag(f"t{name}", head)
    found = history(world.store).seen
    assert set(found.names) == {*names, "main"}
    assert {one.name for one in found.tags} == {f"t{name}" for name in names}


def test_a_tag_that_the_library_itself_does_not_list_holds_all_the_same(place):
    """In format 1, in a directory: it lists names as they are written, and takes what it cannot find for deleted."""
    world = World(place, 1)
    kept = world.commit(a=[1, 2, 3])
    world.repo.create_tag("größe", kept)
    assert "größe" not in world.repo.list_tags()
    assert {one.name: one.target for one in history(world.store).seen.tags} == {"größe": kept}


@pytest.mark.skipif(not WRITES_BOTH, reason=WHERE_BOTH)
def test_after_an_upgrade_the_refs_of_before_count_no_longer(place):
    world = World(place, 1)
    world.commit(a=[1])
    world.upgrade()
    later = world.commit(a=[2])
    assert (world.root / "refs/branch.main/ref.json").exists()
    found = history(world.store)
    assert (found.format, found.seen.branches[0].head) == (2, later)
    assert {states.fetch(world.store, name).format for name in found.seen.commits} == {1, 2}
    (world.root / "repo").unlink()
    with pytest.raises(MissingAsset, match="repo cannot be relied on: the file is missing"):
        history(world.store)


def test_no_repository_is_told_from_one_that_lost_its_refs(forked, place):
    (place / "nothing").mkdir()
    with pytest.raises(NotFound, match="Icechunk repository"):
        history(open_store(str(place / "nothing")))
    for name in ("refs", "overwritten"):
        shutil.rmtree(forked.root / name, ignore_errors=True)
    (forked.root / "repo").unlink(missing_ok=True)
    with pytest.raises(Unreadable, match="has no refs any more"):
        history(forked.store)


def test_a_snapshot_that_is_missing_or_another_stops_the_reading(place):
    world = World(place, 1)
    first, second = world.commit(a=[1]), world.commit(a=[2])
    (world.root / f"snapshots/{first}").write_bytes(world.file(f"snapshots/{second}"))
    with pytest.raises(DamagedAsset, match="under another name"):
        history(world.store)
    (world.root / f"snapshots/{first}").unlink()
    with pytest.raises(MissingAsset, match=f"snapshots/{first}"):
        history(world.store)


def test_a_snapshot_of_format_2_has_no_place_in_a_repository_of_format_1(place):
    """It would look like a first one, and all before it like garbage."""
    world = World(place, 1)
    key = world.root / f"snapshots/{world.commit(a=[1])}"
    data = key.read_bytes()
    key.write_bytes(data[: HEADER - 3] + b"\2" + data[HEADER - 2 :])
    with pytest.raises(UnknownAsset, match="it has format 2, and the repository has 1"):
        history(world.store)


def test_a_snapshot_that_descends_from_itself_stops_the_reading(place):
    world = World(place, 1)
    first, second = world.commit(a=[1]), world.commit(a=[2])
    key = world.root / f"snapshots/{first}"
    head, content = key.read_bytes()[:HEADER], bytes(cramjam.zstd.decompress(key.read_bytes()[HEADER:]))
    assert content.count(bytes_of(ROOT)) == 1
    key.write_bytes(head + bytes(cramjam.zstd.compress(content.replace(bytes_of(ROOT), bytes_of(second)))))
    with pytest.raises(DamagedAsset, match="descends from itself"):
        history(world.store)


@pytest.mark.parametrize(
    ("key", "body", "error"),
    [
        ("refs/branch.main/ref.json", "", DamagedAsset),
        ("refs/branch.main/ref.json", "{}", DamagedAsset),
        ("refs/branch.main/ref.json", "[]", DamagedAsset),
        ("refs/branch.main/ref.json", '{"snapshot":"1cechnkrep0f1rstcmt0"}', DamagedAsset),
        ("refs/branch.main/ref.json", '{"snapshot":"00000000000000000000"}', MissingAsset),
        ("refs/branch.main/ZZZZZZZZ.json", '{"snapshot":"1CECHNKREP0F1RSTCMT0"}', UnknownAsset),
        ("refs/branch.main/ref.json.deleted", "", UnknownAsset),
        ("refs/note.main/ref.json", '{"snapshot":"1CECHNKREP0F1RSTCMT0"}', UnknownAsset),
        ("refs/ref.json", "{}", UnknownAsset),
    ],
)
def test_whatever_lies_among_refs_and_is_none_stops_the_reading(place, key, body, error):
    world = World(place, 1)
    world.commit(a=[1])
    (world.root / key).parent.mkdir(parents=True, exist_ok=True)
    (world.root / key).write_text(body)
    with pytest.raises(error):
        history(world.store)


def test_what_a_crash_left_of_a_ref_is_no_ref(place):
    world = World(place, 1)
    head = world.commit(a=[1])
    (world.root / "refs/branch.main/ref.json#1").write_text("{")
    assert history(world.store).seen.branches[0].head == head


def test_without_its_main_branch_a_repository_is_not_whole(place):
    world = World(place, 1)
    world.repo.create_branch("dev", world.commit(a=[1]))
    shutil.rmtree(world.root / "refs/branch.main")
    with pytest.raises(Unreadable, match="branch 'main' is missing"):
        history(world.store)


def test_the_configuration_is_read(world):
    found = (
        config.fetch(world.store)
        if world.version == 1
        else repo_info.read(fetched(world.store, "repo", AssetKind.REPO)).config
    )
    assert found["inline_chunk_threshold_bytes"] == 16
    place = found["virtual_chunk_containers"][world.outside]["store"]
    assert place == {"local_file_system": str(world.place / "elsewhere")}


def test_a_configuration_that_nobody_wrote_is_empty_and_a_damaged_one_is_raised(place):
    assert config.fetch(open_store(str(place))) == {}
    for body in ("a: [", "- a", "a: !x {b: 1}\n\tc"):
        (place / "config.yaml").write_text(body)
        with pytest.raises(DamagedAsset):
            config.fetch(open_store(str(place)))


def test_a_history_is_the_same_for_whoever_reads_it_elsewhere(forked, place):
    shutil.copytree(forked.root, place / "copy")
    assert asdict(history(open_store(str(place / "copy"))).seen) == asdict(history(forked.store).seen)
