"""Collection of an Icechunk repository: what nobody reaches goes, and nothing that lives does, whatever happens."""

import os
import shutil
import subprocess
import time
from contextlib import closing
from datetime import timedelta
from itertools import count

import cramjam
import numpy as np
import pytest

from desilt.errors import (
    BadRequest,
    DamagedAsset,
    Dangling,
    Locked,
    MissingAsset,
    OtherRecords,
    UnknownAsset,
    Unreadable,
)
from desilt.executors.executor import HERE
from desilt.executors.processes import Processes
from desilt.icechunk.format import manifest, states
from desilt.inventory import listing
from desilt.jobs.collect.job import job
from desilt.jobs.runner import run
from desilt.jobs.trash import bring_back
from desilt.objects import open_store
from desilt.objects.store import Outcome, Result
from desilt.records import locks
from desilt.records.holds import HoldKind
from desilt.runs.report import Amount
from desilt.sweep import delete
from desilt.testing.faults import After, Before, Crash, Steps
from icechunk_collecting import (
    ALL,
    FOLDERS,
    asked,
    collected,
    collected_by_library,
    copied,
    desilt_on,
    files,
    left_in,
    naive,
    planned,
    swept,
    zarr,
)
from icechunk_world import FORMATS, WHERE_BOTH, World, make_old, natives, put_array

DAY = timedelta(days=1)


@pytest.fixture(scope="module", params=[1, 2], ids=["format 1", "format 2"])
def made(request, tmp_path_factory):
    """A repository with a line of main, and one that was dropped; both have the chunks of one array."""
    if request.param not in FORMATS:
        pytest.skip(WHERE_BOTH)
    world = World(tmp_path_factory.mktemp("made"), request.param)
    world.commit("shared", shared=np.arange(8))
    for number in range(3):
        last = world.commit(f"main {number}", a=np.arange(6) + number)
    world.repo.create_branch("dropped", last)
    world.lost = [world.commit(f"dropped {number}", branch="dropped", b=np.arange(6) * number) for number in range(3)]
    world.repo.create_tag("v1", last)
    world.repo.delete_branch("dropped")
    make_old(world.root)
    return world


@pytest.fixture
def world(made, tmp_path):
    """The same again."""
    found = World.__new__(World)
    found.place, found.version, found.outside, found.lost = tmp_path, made.version, made.outside, made.lost
    subprocess.run(["cp", "-a", str(made.root), str(found.root)], check=True)
    found.reopen()
    return found


def going(world):
    return {folder: names for folder, names in naive(world.root).items() if names}


def untouched(world, before):
    assert files(world.root) == before


class Odd:
    """A store of which some methods are others."""

    def __init__(self, real, **methods):
        self._real, self._methods = real, methods

    def __getattr__(self, name):
        return self._methods.get(name) or getattr(self._real, name)


# ---- what goes, and what stays


def test_what_nobody_reaches_goes_and_all_else_is_as_it_was(world):
    dead, there, shown = naive(world.root), files(world.root), left_in(world.root)
    assert dead["snapshots"] == {*world.lost}
    with desilt_on(world.root) as repository:
        report = collected(repository, action="delete")
    assert files(world.root) == {folder: there[folder] - dead[folder] for folder in FOLDERS}
    assert left_in(world.root) == shown
    assert report.swept.removed == sum(len(names) for names in dead.values()) > 9


def test_a_chunk_that_the_dead_share_with_the_living_stays(world):
    living = natives(world.store, [world.repo.lookup_branch("main")])
    shared = natives(world.store, world.lost) & living
    assert shared
    with desilt_on(world.root) as repository:
        collected(repository, action="delete")
    assert living <= files(world.root)["chunks"]


def test_what_is_young_stays_with_all_that_it_needs_though_nobody_reaches_it(world):
    """Its ancestors, and what is old of it: the library's collector of format 1 leaves such a snapshot without them."""
    newest = world.lost[-1]
    (world.root / "snapshots" / newest).touch()
    with desilt_on(world.root) as repository:
        report = planned(repository, older_than=DAY)
        collected(repository, older_than=DAY, action="delete")
    assert report.inputs["kept for being young, or brought back lately"] == len(world.lost)
    assert not report.removed.objects
    world.repo.create_branch("again", newest)
    assert left_in(world.root)[0]["branch", "again"][:3] == world.lost[::-1]


def test_a_young_log_manifest_or_chunk_stays(world):
    dead = going(world)
    for folder, names in dead.items():
        if folder != "snapshots":
            (world.root / folder / min(names)).touch()
    with desilt_on(world.root) as repository:
        collected(repository, older_than=DAY, action="delete")
    left = {folder: names & files(world.root)[folder] for folder, names in dead.items() if folder != "snapshots"}
    assert left == {folder: {min(names)} for folder, names in dead.items() if folder != "snapshots"}


@pytest.mark.parametrize(("earlier", "goes"), [(0, False), (1, True)])
def test_a_time_in_whole_seconds_may_be_up_to_one_later(world, earlier, goes):
    """As some stores tell it: what says that it is as old as the limit may be younger."""
    name = min(going(world)["chunks"])
    with desilt_on(world.root) as repository:
        now = (repository.clock() - DAY).replace(microsecond=500_000)
        os.utime(world.root / "chunks" / name, (int((now - DAY).timestamp()) - earlier,) * 2)
        report = planned(repository, older_than=DAY, now=now)
    assert report.removed.objects == sum(map(len, going(world).values())) - (not goes)


def test_what_has_another_name_is_nobodys_to_remove(world):
    odd = [world.root / folder / "not an id" for folder in FOLDERS]
    for path in odd:
        path.write_bytes(b"?")
    make_old(world.root)
    with desilt_on(world.root) as repository:
        report = collected(repository, action="delete")
    assert all(path.exists() for path in odd)
    assert report.inputs["files of other names, which stay"] == len(odd)


# ---- what cannot be read, or is not there


@pytest.mark.parametrize("harm", ["cut", "version", "gone"])
def test_a_young_snapshot_that_cannot_be_read_stops_it_though_nobody_reaches_it(world, harm):
    path = world.root / "snapshots" / world.lost[-1]
    damage(path, harm)
    with desilt_on(world.root) as repository:
        if harm == "gone" and world.version == 1:  # nobody can reach it any more, and nothing is kept for it
            assert planned(repository, older_than=DAY).removed.objects
            return
        if harm == "gone":  # it is in the list still, which says that it is young
            with pytest.raises(Dangling, match=path.name):
                collected(repository, older_than=DAY)
            return
        path.touch()
        before = files(world.root)
        with pytest.raises((DamagedAsset, UnknownAsset), match=path.name):
            collected(repository, older_than=DAY)
    untouched(world, before)


def test_a_young_snapshot_that_lacks_what_it_descends_from_stops_it(world):
    if world.version == 2:
        pytest.skip("there its file does not say what that is")
    (world.root / "snapshots" / world.lost[-1]).touch()
    (world.root / "snapshots" / world.lost[0]).unlink()
    before = files(world.root)
    with desilt_on(world.root) as repository, pytest.raises(MissingAsset, match=world.lost[0]):
        collected(repository, older_than=DAY)
    untouched(world, before)


@pytest.mark.parametrize("harm", ["cut", "version"])
def test_an_old_snapshot_that_nobody_reaches_goes_unread(world, harm):
    damage(world.root / "snapshots" / world.lost[0], harm)
    make_old(world.root)
    dead = naive(world.root)
    with desilt_on(world.root) as repository:
        collected(repository, action="delete")
    assert not dead["snapshots"] & files(world.root)["snapshots"]


@pytest.mark.parametrize("harm", ["cut", "version", "gone"])
@pytest.mark.parametrize("folder", ["snapshots", "manifests"])
def test_what_lives_and_cannot_be_read_stops_it(world, folder, harm):
    head = world.repo.lookup_branch("main")
    name = head if folder == "snapshots" else states.fetch(world.store, head).manifests[0].id
    damage(world.root / folder / name, harm)
    make_old(world.root)
    before = files(world.root)
    with desilt_on(world.root) as repository, pytest.raises((DamagedAsset, Dangling), match=name):
        collected(repository)
    untouched(world, before)


def damage(path, harm):
    data = path.read_bytes()
    if harm == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif harm == "version":
        path.write_bytes(data[:36] + bytes([9]) + data[37:])
    else:
        path.unlink()


def test_a_chunk_that_is_needed_and_missing_stops_it_unless_as_many_are_accepted(world):
    needed = sorted(natives(world.store, [world.repo.lookup_branch("main")]))
    for name in needed[:2]:
        (world.root / "chunks" / name).unlink()
    before = files(world.root)
    with desilt_on(world.root) as repository:
        with pytest.raises(Dangling, match=r"2 of the chunks .*desilt fsck.*--accept-missing 2") as stopped:
            collected(repository)
        assert stopped.value.examples == tuple(f"chunks/{name}" for name in needed[:2])
        untouched(world, before)
        with pytest.raises(Dangling):
            collected(repository, accept_missing=1)
        untouched(world, before)
        report = collected(repository, accept_missing=2, action="delete")
        assert report.inputs["references to chunks that are missing"] == 2
        assert report.swept.removed
        with pytest.raises(Dangling):  # it is asked for each time
            collected(repository)


def test_a_damaged_id_does_not_make_garbage_of_what_it_stood_for(world):
    """Neither files nor their compression have a checksum: a byte may change, and it is another id."""
    needed = natives(world.store, [world.repo.lookup_branch("main")])
    listed = states.fetch(world.store, world.repo.lookup_branch("main")).manifests[0]
    path = world.root / "manifests" / listed.id
    data = path.read_bytes()
    content = bytearray(bytes(cramjam.zstd.decompress(data[39:])))
    raw = manifest.native_ids(manifest.fetch(world.store, listed))[0].as_py()
    content[content.index(raw) + 4] ^= 64
    path.write_bytes(data[:39] + bytes(cramjam.zstd.compress(bytes(content))))
    make_old(world.root)
    with desilt_on(world.root) as repository, pytest.raises(Dangling, match="1 of the chunks"):
        collected(repository)
    assert needed <= files(world.root)["chunks"]


def test_a_repository_without_refs_is_not_one_without_anything_to_keep(world):
    if world.version == 1:
        shutil.rmtree(world.root / "refs")
    else:
        (world.root / "repo").unlink()
    before = files(world.root)
    with pytest.raises(Unreadable), desilt_on(world.root) as repository:
        collected(repository)
    untouched(world, before)


@pytest.mark.parametrize("folder", ["snapshots/", "manifests/", "chunks/"])
@pytest.mark.parametrize("how_many", ["none", "half"])
def test_a_store_that_lists_only_some_of_what_is_there_stops_it(world, folder, how_many, monkeypatch):
    def lying(uri):
        real = open_store(uri)

        def some(prefix="", **words):
            for batch in real.list(prefix, **words):
                if prefix == folder:
                    batch = batch.slice(0, 0 if how_many == "none" else batch.num_rows // 2)
                yield batch

        return Odd(real, list=some)

    monkeypatch.setattr(listing, "open_store", lying)
    before = files(world.root)
    with desilt_on(world.root, store=lying(f"file://{world.root}")) as repository, pytest.raises(Dangling):
        collected(repository)
    untouched(world, before)


# ---- what happens meanwhile


def test_a_snapshot_that_gets_a_ref_before_it_is_swept_stays_with_all_it_needs(world):
    dead = going(world)
    with desilt_on(world.root) as repository:
        made = planned(repository, action="delete")
        world.repo.create_branch("again", world.lost[0])
        report = swept(repository, made.run)
    lost = left_in(world.root)
    assert lost[0]["branch", "again"][0] == world.lost[0]
    assert report.swept.held_again
    assert not {*world.lost[1:]} & files(world.root)["snapshots"]
    assert dead["snapshots"] & files(world.root)["snapshots"] == {world.lost[0]}


def test_a_session_that_is_open_and_commits_while_it_is_swept_loses_nothing(world):
    """What it has written lies there unnamed; it is younger than any age that is safe."""
    session = world.repo.writable_session("main")
    put_array(zarr.open_group(session.store, mode="a"), "late", np.arange(50))
    with desilt_on(world.root) as repository:
        made = planned(repository, older_than=timedelta(hours=1), action="delete")
        kept = made.keep["young"].objects if "young" in made.keep else 0
        new = session.commit("late")
        report = swept(repository, made.run)
    assert kept or world.version == 2
    assert report.swept.removed
    group = zarr.open_group(world.repo.readonly_session(snapshot_id=new).store, mode="r")
    assert group["late"][...].tolist() == list(range(50))
    with desilt_on(world.root) as repository:
        assert not planned(repository, older_than=timedelta(hours=1)).removed.objects


def test_the_library_may_have_collected_before_it_is_swept(world):
    shown = left_in(world.root)
    with desilt_on(world.root) as repository:
        made = planned(repository, action="delete")
        collected_by_library(world.root)
        report = swept(repository, made.run)
    assert (report.swept.removed, report.swept.failed) == (0, 0)
    assert report.swept.gone == made.removed.objects
    assert left_in(world.root) == shown


def test_two_at_once_are_one_after_the_other(world):
    with desilt_on(world.root) as repository:
        with locks.held(repository.records, repository.uid, run="another"), pytest.raises(Locked):
            collected(repository)
        assert collected(repository, action="delete").swept.removed
        with desilt_on(world.root, records=world.place / "other.db") as other, pytest.raises(OtherRecords):
            collected(other)


def test_where_a_snapshot_cannot_be_removed_all_that_it_needs_stays(world, monkeypatch):
    monkeypatch.setattr(delete, "PAUSES", ())
    first, real = min(world.lost), open_store(str(world.root))
    needs = natives(world.store, [first])
    manifests = {one.id for one in states.fetch(world.store, first).manifests}

    def failing(keys, **words):
        told = real.delete_many([key for key in keys if key != f"snapshots/{first}"], **words)
        by_key = {one.key: one for one in told}
        return [by_key.get(key, Outcome(key, Result.FAILED, "no")) for key in keys]

    with desilt_on(world.root, store=Odd(real, delete_many=failing)) as repository:
        report = collected(repository, action="delete")
    assert report.swept.failed == 1
    assert needs <= files(world.root)["chunks"]
    assert manifests <= files(world.root)["manifests"]
    assert {*world.lost} & files(world.root)["snapshots"] == {first}
    with desilt_on(world.root) as repository:  # and the next one takes it all
        collected(repository, action="delete")
    assert going(world) == {}


# ---- the way back


def test_what_went_to_the_trash_comes_back_and_stays_for_as_long_as_it_takes_to_be_old(world):
    there = files(world.root)
    with desilt_on(world.root) as repository:
        report = collected(repository, older_than=DAY)
        assert report.action == "trash"  # unless people say otherwise: age is the only fence here
        assert files(world.root) != there
        back = bring_back(repository, HERE, report.run)
        assert back.restored == report.swept.removed
        assert files(world.root) == there
        assert not planned(repository, older_than=DAY).removed.objects
        time.sleep(1.1)  # until that is longer ago than this second
        assert planned(repository).removed.objects == report.swept.removed
    if world.version == 1:
        world.repo.create_branch("again", world.lost[-1])
        assert left_in(world.root)[0]["branch", "again"][0] == world.lost[-1]


@pytest.mark.parametrize(
    ("action", "every"),
    [
        ("delete", 13),
        ("trash", 17),
        *(pytest.param(action, 1, marks=pytest.mark.slow) for action in ("delete", "trash")),
    ],
)
def test_cut_off_anywhere_and_done_again_it_ends_as_if_never_disturbed(made, tmp_path, monkeypatch, action, every):
    monkeypatch.setattr(locks, "SILENCE", timedelta(seconds=-1))  # the dead owner is this very process
    there, dead = files(made.root), naive(made.root)
    for number in count(step=every):
        root = copied(made.root, tmp_path / f"{number}")
        if cut_off_at(root, number, action):
            break
        shown = left_in(root)
        assert shown == left_in(made.root)
        whole_or_gone(root, made)
        with desilt_on(root) as repository:
            collected(repository, action=action)
        assert files(root) == {folder: there[folder] - dead[folder] for folder in FOLDERS}
        assert left_in(root) == shown
    assert number > 100


def cut_off_at(root, number, action):
    """A run that dies at one of the steps of its sweep; whether there were fewer than that."""
    with desilt_on(root) as repository:
        run_id = planned(repository, action=action).run
    steps = Steps(crash=(Before, After)[number % 2](number // 2))
    try:
        with desilt_on(root, steps=steps) as repository:
            swept(repository, run_id)
    except Crash:
        return False
    return steps.taken <= number // 2  # else that step raised something by itself


def whole_or_gone(root, made):
    """No snapshot that is left lacks anything that it had."""
    left = files(root)
    for name in left["snapshots"]:
        listed = states.fetch(open_store(str(root)), name).manifests
        assert {one.id for one in listed} <= left["manifests"]
        assert natives(made.store, [name]) <= left["chunks"]


# ---- a second run


def test_where_nothing_has_moved_chunks_are_not_listed_again(world):
    with desilt_on(world.root) as repository:
        first = collected(repository, older_than=DAY, action="delete")
        second = planned(repository, older_than=DAY)
        assert "inventory" in first.seconds
        assert "inventory" not in second.seconds
        assert (second.removed.objects, second.keep) == (0, first.keep)
        assert "inventory" in planned(repository, older_than=DAY, full=True).seconds
        assert "inventory" in planned(repository).seconds  # what is old by that may have come since
        collected(repository, older_than=DAY)
        assert "inventory" not in collected(repository, older_than=DAY).seconds
        world.commit("more", more=np.arange(9))
        assert "inventory" in collected(repository, older_than=DAY).seconds


@pytest.mark.parametrize("left", ["young", "failed", "restored"])
def test_what_is_left_is_looked_at_again_though_no_ref_has_moved(world, left, monkeypatch):
    """All runs together take what one would."""
    monkeypatch.setattr(delete, "PAUSES", ())
    real, name = open_store(str(world.root)), min(going(world)["chunks"])
    store = real
    if left == "young":
        (world.root / "chunks" / name).touch()
    elif left == "failed":

        def failing(keys, **words):
            told = {one.key: one for one in real.delete_many([key for key in keys if name not in key], **words)}
            return [told.get(key, Outcome(key, Result.FAILED, "no")) for key in keys]

        store = Odd(real, delete_many=failing)
    with desilt_on(world.root, store=store) as repository:
        report = collected(repository, older_than=DAY, action="trash" if left == "restored" else "delete")
    with desilt_on(world.root) as repository:
        if left == "restored":
            bring_back(repository, HERE, report.run)
        assert name in files(world.root)["chunks"]
        make_old(world.root)
        if left == "restored":
            assert not planned(repository, older_than=DAY).removed.objects
            return
        collected(repository, older_than=DAY, action="delete")
    assert going(world) == {}


def test_what_nobody_committed_goes_once_it_is_old_though_no_ref_has_moved(world):
    with desilt_on(world.root) as repository:
        collected(repository, action="delete")
        session = world.repo.writable_session("main")
        put_array(zarr.open_group(session.store, mode="a"), "never", np.arange(50))
        before = files(world.root)
        assert not collected(repository, older_than=DAY, action="delete").swept.removed
        untouched(world, before)
        assert going(world)["chunks"]
        time.sleep(1.1)  # until it is older than this second
        assert collected(repository, action="delete").swept.removed == 25
    assert going(world) == {}


# ---- what people ask


def test_less_than_an_hour_is_unsafe_and_says_what_it_risks(world):
    with desilt_on(world.root) as repository:
        with pytest.raises(BadRequest, match=r"session open .* loses"):
            planned(repository, older_than=timedelta(minutes=59), unsafe=False)
        report = planned(repository, older_than=timedelta(minutes=59))
        assert any("--unsafe" in note for note in report.notes)
        assert not any("--unsafe" in note for note in planned(repository, older_than=DAY).notes)
        usual = planned(repository, older_than=None)
        assert "for 7 days before" in usual.notes[0]


def test_what_nobody_can_tell_there_is_not_promised(world):
    with desilt_on(world.root) as repository, pytest.raises(BadRequest, match="does not tell"):
        planned(repository, unreached_for=2 * DAY)


def test_the_first_lines_say_what_protects_what_and_which_race_remains(world, cli):
    words = ("collect", "plan", f"icechunk+file://{world.root}", "--db", f"sqlite://{world.place}/r.db")
    code, out, err = cli(*words)
    assert code == 0, err
    lines = out.splitlines()
    assert lines[0].startswith("Safety: grace: nothing but age protects an object")
    assert any("nobody should create a branch or a tag" in line for line in lines[:6])


def test_a_hold_keeps_a_snapshot_that_no_ref_reaches_with_all_it_needs(world):
    with desilt_on(world.root) as repository:
        repository.orders.add(HoldKind.REF, world.lost[1], reason="audit", until=None)
        report = collected(repository, action="delete")
    assert report.swept.held_again == 0  # it was not even planned
    assert {*world.lost} & files(world.root)["snapshots"] == {*world.lost[:2]}
    world.repo.create_branch("again", world.lost[1])
    assert left_in(world.root)[0]["branch", "again"][:2] == world.lost[1::-1]


# ---- format 2


@pytest.fixture
def second(world):
    if world.version != 2:
        pytest.skip("of format 2")
    return world


def test_a_snapshot_that_nothing_reaches_leaves_the_list_before_its_file_goes(second):
    shown = left_in(second.root)
    with desilt_on(second.root) as repository:
        report = collected(repository, action="delete")
    assert report.history["commits collected"] == len(second.lost)
    listed = {one["id"] for one in second.repo.inspect_repo_info()["snapshots"]}
    assert listed == {name for line in shown[0].values() for name in line} == files(second.root)["snapshots"]
    assert second.commit("goes on", a=np.arange(3))
    assert second.repo.diff(
        from_snapshot_id=second.ancestry(second.repo.lookup_branch("main"))[-1][0], to_branch="main"
    )


def test_logs_of_expired_snapshots_stay_for_those_that_took_them_over(second):
    """Else the library would not know what has changed between two that are left."""
    line = second.ancestry(second.repo.lookup_branch("main"))
    second.repo.expire_snapshots(line[1][2])
    make_old(second.root)
    first = line[-1][0]
    said = second.repo.diff(from_snapshot_id=first, to_branch="main")
    theirs = copied(second.root, "theirs")
    collected_by_library(theirs)
    with desilt_on(second.root) as repository:
        report = collected(repository, action="delete")
    assert files(second.root) == files(theirs)
    assert files(second.root)["transactions"] > files(second.root)["snapshots"]
    assert report.swept.held_again == 0
    assert str(second.repo.diff(from_snapshot_id=first, to_branch="main")) == str(said)


def test_a_commit_under_way_has_a_file_that_no_list_has_and_keeps_what_it_needs(second):
    """As if the list were still to be written: what it was before a commit is put back."""
    before = second.file("repo")
    new = second.commit("late", late=np.arange(40), shared=np.arange(8) + 1)
    needs = natives(second.store, [new])
    (second.root / "repo").write_bytes(before)
    make_old(second.root)
    os.utime(second.root / "snapshots" / new)
    there = files(second.root)
    with desilt_on(second.root) as repository:
        collected(repository, older_than=DAY, action="delete")
    assert new in files(second.root)["snapshots"]
    assert needs <= files(second.root)["chunks"]
    assert {one.id for one in states.fetch(second.store, new).manifests} <= files(second.root)["manifests"]
    assert there["transactions"] - files(second.root)["transactions"] == {*second.lost}


def test_copies_of_the_list_go_by_age_to_the_trash_and_only_if_asked_for(second):
    folder = second.root / "overwritten"
    copies = sorted(folder.iterdir())  # the newest first
    assert len(copies) > 3
    year = 365 * 86_400_000

    def called_older(path):
        kind, left, name = path.name.split(".")
        return path.rename(folder / f"{kind}.{int(left) + year}.{name}")

    goes, by_name_alone = called_older(copies[0]), called_older(copies[1])
    by_name_alone.touch()
    there = {path.name for path in folder.iterdir()}
    with desilt_on(second.root) as repository:
        collected(repository)
        assert {path.name for path in folder.iterdir()} >= there
        with pytest.raises(BadRequest, match="--to trash"):
            planned(repository, backups_older_than=30 * DAY, action="delete")
        report = collected(repository, backups_older_than=30 * DAY)
        assert report.remove == {"backups": {"collected": Amount(1, report.removed.bytes)}}
        assert not goes.exists()
        assert {path.name for path in folder.iterdir()} >= there - {goes.name}
        assert list(second.repo.ops_log())
        assert bring_back(repository, HERE, report.run).restored == 1
        assert goes.exists()


def test_in_several_processes_it_is_the_same(world):
    there, dead = files(world.root), naive(world.root)
    with desilt_on(world.root) as repository, closing(Processes(2)) as executor:
        report = run(job, repository, executor, asked(repository, action="delete"), ALL)[-1]
    assert report.swept.removed == sum(map(len, dead.values()))
    assert files(world.root) == {folder: there[folder] - dead[folder] for folder in FOLDERS}
