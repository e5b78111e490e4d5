"""Icechunk repositories in which something unusual happens: what lives stays, whoever comes in between."""

import subprocess
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest

from desilt.errors import BadRequest, Conflict, Dangling, MissingAsset
from desilt.executors.executor import HERE
from desilt.icechunk import tables
from desilt.icechunk.format import manifest, refs, states
from desilt.icechunk.history import history
from desilt.icechunk.layout import CHUNKS, MANIFESTS, SNAPSHOTS, TRANSACTIONS
from desilt.jobs import purge as purging
from desilt.jobs.expire.job import job as expire
from desilt.jobs.runner import run
from desilt.jobs.trash import bring_back
from desilt.objects import open_store
from desilt.records import locks
from desilt.records.holds import HoldKind
from desilt.repository.snapshot import Revision
from icechunk_collecting import (
    ALL,
    collected,
    desilt_on,
    files,
    left_in,
    naive,
    planned,
    rows_of,
    swept,
)
from icechunk_world import FORMATS, WHERE_BOTH, WRITES_BOTH, World, icechunk, make_old, natives, zarr

DAY = timedelta(days=1)


@pytest.fixture(scope="module", params=[1, 2], ids=["format 1", "format 2"])
def made(request, tmp_path_factory):
    """A repository with a line of main, and one that was dropped."""
    if request.param not in FORMATS:
        pytest.skip(WHERE_BOTH)
    world = World(tmp_path_factory.mktemp("made"), request.param)
    world.commit("first", a=np.arange(6))
    world.repo.create_branch("dropped", world.repo.lookup_branch("main"))
    world.lost = [world.commit(f"dropped {number}", branch="dropped", b=np.arange(6) + number) for number in range(2)]
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


@pytest.fixture
def second(world):
    if world.version != 2:
        pytest.skip("of format 2")
    return world


@pytest.fixture
def first(world):
    if world.version != 1 or not WRITES_BOTH:
        pytest.skip("of format 1, where the library writes both")
    return world


def needs(world, snapshot):
    """The files that a snapshot consists of."""
    listed = {f"{MANIFESTS}{one.id}" for one in states.fetch(world.store, snapshot).manifests}
    return {f"{SNAPSHOTS}{snapshot}", *listed, *(f"{CHUNKS}{name}" for name in natives(world.store, [snapshot]))}


def there(world, wanted):
    return {one for one in wanted if (world.root / one).exists()}


# ---- what its owner said


def test_a_repository_that_may_only_be_read_loses_nothing(second):
    """Its library collects nothing there, either."""
    with desilt_on(second.root) as repository:
        collected(repository, action="delete")
        second.repo.create_branch("b", second.repo.lookup_branch("main"))
        (second.root / CHUNKS / f"{'A' * 19}0").write_bytes(b"of a session that was given up")
        make_old(second.root)
        read_only = icechunk.RepoStatus(icechunk.RepoAvailability.read_only)
        made = planned(repository, action="delete")
        assert made.removed.objects == 1
        second.repo.set_status(read_only)
        before = files(second.root)
        with pytest.raises(Conflict, match="read-only"):
            swept(repository, made.run)
        assert files(second.root) == before
        second.repo.set_status(icechunk.RepoStatus(icechunk.RepoAvailability.online))
        assert swept(repository, made.run).swept.removed == 1


# ---- other names for the same


@pytest.mark.parametrize("compressed", [0, 1], ids=["plain", "compressed"])
@pytest.mark.parametrize("version", [1, 2], ids=["format 1", "format 2"])
def test_a_chunk_that_a_virtual_reference_leads_to_stays(tmp_path, version, compressed):
    """One that leads into the repository's own folder, from a snapshot that stays."""
    if version not in FORMATS or (compressed and not WRITES_BOTH):
        pytest.skip(WHERE_BOTH)
    world = World(tmp_path, version, compress_locations=compressed)
    world.commit("first", a=np.arange(8))
    pointed = sorted(natives(world.store, [world.repo.lookup_branch("main")]))
    session = world.repo.writable_session("main")
    group = zarr.open_group(session.store, mode="a")
    del group["a"]
    group.create_array("v", shape=(5,), chunks=(1,), dtype="i4", compressors=None)
    for at, name in enumerate([*pointed[:3], "0" * 20]):
        place = f"file://{world.root}/{CHUNKS}{name}" if at < 3 else f"{world.outside}{CHUNKS}{name}"
        session.store.set_virtual_ref(f"v/c/{at}", place, offset=0, length=4, validate_container=False)
    session.commit("virtual")
    last = world.repo.lookup_branch("main")
    make_old(world.root)
    with desilt_on(world.root) as repository:
        expire_all(repository)
        collected(repository, action="delete", full=True)
    assert files(world.root)[CHUNKS.rstrip("/")] == {*pointed[:3]}
    assert world.repo.lookup_branch("main") == last


def expire_all(repository):
    """But for the tips of refs."""
    asked = expire.asked(repository, before=repository.clock(), sizes=False)
    run(expire, repository, HERE, asked, ALL)


@pytest.mark.parametrize("few", [0, 1_000], ids=["listed", "asked for one by one"])
def test_whatever_ends_in_the_id_of_a_chunk_that_is_there_leads_to_it(world, monkeypatch, few):
    """One place has many spellings."""
    monkeypatch.setattr(tables, "FEW", few)
    ours, other = min(world.files("chunks")), "0" * 20
    places = [f"s3://b/p/chunks/{ours}", f"vcc://own/chunks//{ours}", ours, f"chunks/{other}", f"a{ours}", f"{ours}/b"]
    found = tables.inside(world.store, pa.array([*places, None], pa.string()))
    assert found.to_pylist() == [f"{CHUNKS}{ours}"] * 3 + [None] * 4
    assert tables.inside(world.store, pa.array([], pa.string())).to_pylist() == []


@pytest.mark.skipif(not WRITES_BOTH, reason=WHERE_BOTH)
def test_manifests_with_a_dictionary_each_are_read_by_their_own(tmp_path):
    world = World(tmp_path, 2, compress_locations=10)
    world.virtual("a", 50)
    world.commit("native", b=np.arange(8))
    world.virtual("c", 50, files=7)
    listed = tables.SnapshotLists(world.store).metarange(world.repo.lookup_branch("main"))
    decoder = tables.ManifestDecoder()
    alone = [decoder.entries(world.store, "", [one], at) for at, one in enumerate(listed)]
    assert sum(manifest.fetch(world.store, tables.as_listed(one)).compressed for one in listed) == 2
    assert decoder.entries(world.store, "", listed, 0) == pa.concat_tables(alone)


# ---- logs


def test_a_plan_names_no_log_that_a_snapshot_has_taken_over(second):
    """The library asks for it where two snapshots are compared."""
    for number in range(3):
        second.commit(f"main {number}", a=np.arange(6) + number)
    second.repo.expire_snapshots(next(second.repo.ancestry(branch="main")).written_at)
    make_old(second.root)
    taken_over = {log for logs in history(second.store).pruned.values() for log in logs}
    assert len(taken_over) > 2
    with desilt_on(second.root) as repository:
        named = rows_of(repository, planned(repository).run)
    assert not {f"{TRANSACTIONS}{log}" for log in taken_over} & named
    assert {f"{SNAPSHOTS}{name}" for name in second.lost} <= named


# ---- orders


def test_an_order_on_a_file_that_others_belong_to_is_refused_and_says_how_to_keep_them_too(world):
    """Kept alone, it would be a snapshot that cannot be read."""
    snapshot = world.lost[0]
    manifest = states.fetch(world.store, snapshot).manifests[0].id
    with desilt_on(world.root) as repository:
        for address in (f"{SNAPSHOTS}{snapshot}", f"{MANIFESTS}{manifest}"):
            with pytest.raises(BadRequest, match="--ref"):
                repository.orders.add(HoldKind.ADDRESS, address, reason="x", until=None)
        made = planned(repository, action="delete")
        repository.orders.add(HoldKind.REF, snapshot, reason="x", until=None)
        whole = needs(world, snapshot)
        swept(repository, made.run)
    assert there(world, whole) == whole


def test_copies_of_history_stay_where_somebody_ordered_it_or_brought_them_back(second):
    folder = second.root / "overwritten"
    year = 365 * 86_400_000
    for path in [*folder.iterdir()]:
        kind, left, name = path.name.split(".")
        path.rename(folder / f"{kind}.{int(left) + year}.{name}")
    kept, back = sorted(folder.iterdir())[-2:]
    with desilt_on(second.root) as repository:
        repository.orders.add(HoldKind.ADDRESS, f"overwritten/{kept.name}", reason="x", until=None)
        report = collected(repository, older_than=DAY, backups_older_than=30 * DAY)
        assert not back.exists()
        bring_back(repository, HERE, report.run)
        made = planned(repository, older_than=DAY, backups_older_than=30 * DAY)
        assert not {f"overwritten/{one.name}" for one in (kept, back)} & rows_of(repository, made.run)
        swept(repository, made.run)
    assert kept.exists()
    assert back.exists()


def test_the_newest_copy_stays_and_tells_that_there_was_a_list(first):
    """Refs that an upgrade left behind would else be believed, once the list is lost: of a past that is over."""
    first.upgrade()
    second = first.commit("of format 2", c=np.arange(6))
    for path in [*(first.root / "overwritten").iterdir()]:
        kind, left, name = path.name.rsplit(".", 2)
        path.rename(path.with_name(f"{kind}.{int(left) + 365 * 86_400_000}.{name}"))
    make_old(first.root)
    whole = needs(first, second)
    with desilt_on(first.root) as repository:
        collected(repository, older_than=DAY, backups_older_than=30 * DAY)
    (first.root / "repo").unlink()
    assert (first.root / "refs" / "branch.main" / "ref.json").exists()
    with pytest.raises(MissingAsset, match="repo"), desilt_on(first.root) as repository:
        collected(repository, action="delete")
    assert there(first, whole) == whole


# ---- the way back


def test_what_others_have_put_into_the_place_of_what_went_is_not_written_over(world):
    """As who restores a repository from a copy does; the trash has the same, or what is worth no more."""
    with desilt_on(world.root) as repository:
        report = collected(repository)
        went = world.root / SNAPSHOTS / world.lost[0]
        assert not went.exists()
        went.write_bytes(b"of others")
        bring_back(repository, HERE, report.run)
        assert went.read_bytes() == b"of others"
        assert (world.root / SNAPSHOTS / world.lost[1]).exists()


def test_a_young_snapshot_whose_past_is_gone_stops_it(world):
    """In format 1 it says itself what it descends from; in format 2 nobody asks."""
    (world.root / SNAPSHOTS / world.lost[1]).touch()
    (world.root / SNAPSHOTS / world.lost[0]).unlink()
    before = files(world.root)
    with desilt_on(world.root) as repository:
        if world.version == 1:
            with pytest.raises(MissingAsset, match=world.lost[0]):
                planned(repository, older_than=DAY)
        else:
            with pytest.raises(Dangling, match=world.lost[0]):  # which the list has
                planned(repository, older_than=DAY)
    assert files(world.root) == before


# ---- an upgrade meanwhile


def test_whoever_opened_it_before_an_upgrade_opens_it_again(first):
    """What format 1 has in no list, format 2 has; whoever goes by the one leaves gaps in the other."""
    with desilt_on(first.root) as repository:
        first.repo.create_branch("again", first.lost[-1])
        first.upgrade()
        first.repo.delete_branch("again")
        make_old(first.root)
        before = files(first.root)
        with pytest.raises(Conflict, match="upgraded"):
            planned(repository, action="delete")
        with locks.held(repository.records, repository.uid, run="run") as lock:
            since, now = Revision(1, "any"), repository.clock()
            with pytest.raises(Conflict, match="upgraded"):
                repository.editor.take(lock, "run", first.lost, since, now, None)
        assert files(first.root) == before
    with desilt_on(first.root) as repository:
        collected(repository, action="delete")
    assert naive(first.root)["snapshots"] == set()
    assert {one["id"] for one in first.repo.inspect_repo_info()["snapshots"]} == files(first.root)["snapshots"]


def test_snapshots_that_an_upgrade_has_put_into_a_list_are_taken_out_of_it_or_stay(first):
    first.repo.create_branch("again", first.lost[-1])
    with desilt_on(first.root) as repository:
        first.repo.delete_branch("again")
        made = planned(repository, action="delete")
        first.repo.create_branch("again", first.lost[-1])
        first.upgrade()
        first.repo.delete_branch("again")
        swept(repository, made.run)
    listed = {one["id"] for one in first.repo.inspect_repo_info()["snapshots"]}
    assert listed <= files(first.root)["snapshots"]
    assert {*first.lost} <= listed


def test_refs_that_an_upgrade_takes_away_while_they_are_read_are_not_taken_for_deleted(first):
    first.repo.create_branch("again", first.lost[-1])
    store = open_store(str(first.root))

    class Upgraded:
        """By somebody else, between the first question and the second."""

        def __getattr__(self, name):
            return getattr(store, name)

        def list(self, prefix="", **words):
            if prefix == "refs/" and not (first.root / "repo").exists():
                first.upgrade()
                (first.root / "refs" / "branch.again" / "ref.json").unlink()
            return store.list(prefix, **words)

    found = history(Upgraded())
    assert found.format == 2
    assert {one.name: one.head for one in found.seen.branches}["again"] == first.lost[-1]


def test_what_a_crash_leaves_beside_a_ref_stops_nobody(first):
    """As desilt itself leaves it in a directory, killed while a tag goes."""
    first.repo.create_tag("v1", first.lost[0])
    (first.root / "refs" / "tag.v1" / "0123456789abcdef.partial").write_bytes(b"")
    assert refs.read(first.store).tags == {"v1": first.lost[0]}
    with desilt_on(first.root) as repository:
        collected(repository, action="delete")
    assert left_in(first.root)[0]["tag", "v1"][0] == first.lost[0]


def test_what_was_moved_to_the_trash_is_purged_once_it_has_been_there_long_enough(world):
    with desilt_on(world.root) as repository:
        report = collected(repository)
        lying = [path for path in world.root.rglob("*") if path.is_file() and "trash" in path.parts]
        assert len(lying) == report.swept.removed
        gone = purging.empty(repository, HERE, older_than=timedelta(0))
        assert gone[report.run].objects == report.swept.removed
        assert not any(path.exists() for path in lying)


def test_what_is_held_by_now_is_not_purged(world):
    """Somebody has put a snapshot back from a copy of their own, and not its chunks."""
    lost = world.lost[0]
    whole = {one: world.file(one) for one in needs(world, lost) if not one.startswith(CHUNKS)}
    chunks = {one for one in needs(world, lost) if one.startswith(CHUNKS)}
    repo = world.file("repo") if world.version == 2 else b""
    with desilt_on(world.root) as repository:
        report = collected(repository)
        gone_chunks = {one for one in chunks if not (world.root / one).exists()}
        assert gone_chunks
        for one, body in whole.items():
            (world.root / one).write_bytes(body)
        if repo:
            (world.root / "repo").write_bytes(repo)
        world.reopen()
        world.repo.create_branch("again", lost)
        purging.empty(repository, HERE, older_than=timedelta(0))
        bring_back(repository, HERE, report.run)
    assert there(world, gone_chunks) == gone_chunks


def test_an_order_on_a_snapshot_that_stays_keeps_nothing_else_in_the_trash(world):
    with desilt_on(world.root) as repository:
        report = collected(repository)
        repository.orders.add(HoldKind.REF, world.repo.lookup_branch("main"), reason="x", until=None)
        gone = purging.empty(repository, HERE, older_than=timedelta(0))
    assert gone[report.run].objects == report.swept.removed
