"""The plan of the uncommitted collection, on Spark: the traps of its document, each by name."""

from datetime import UTC, datetime, timedelta

import pyarrow.parquet as pq
import pytest

from desilt.domain.entry import AddressType, Entry
from desilt.errors import BadRequest, CorruptTable
from desilt.executors.executor import HERE
from desilt.executors.on_spark import OnSpark
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.runner import plan
from desilt.lake import Lake
from desilt.lake.lake import locate
from desilt.lake.source import LakeSource
from desilt.objects.file import ObjectFile
from desilt.runs.report import Amount
from desilt.testing import oracle
from words import put, stage

START = datetime(2026, 1, 1, tzinfo=UTC)
LATER = START + timedelta(days=30)


def planned(repo, *, executor=HERE, at=LATER):
    """The paths' addresses that a plan at ``at`` names."""
    if at > repo.clock():
        repo.set_clock(at)
    report = plan(uncommitted.job, repo, executor)
    folder = f"{repo.prefix}_desilt/runs/gc/{report.run}/plan/"
    keys = [key for batch in repo.store.list(folder) for key in batch["key"].to_pylist()]
    found = {row["address"] for key in keys for row in pq.read_table(ObjectFile(repo.store, key)).to_pylist()}
    assert found == oracle.collectable(repo, repo.clock())
    assert report.removed.objects == len(found)
    return found


def test_on_spark_the_same_objects_go(spark, repo):
    kept = put(repo, "main", "kept")
    repo.commit("main", "kept")
    lost = {put(repo, "main", "lost"), put(repo, "main", "lost")}
    repo.reset("main")
    assert planned(repo, executor=OnSpark(spark)) == lost
    assert planned(repo, executor=OnSpark(spark)) == lost  # now from the range cache
    assert kept not in lost


def test_a_an_object_merged_elsewhere_outlives_its_own_branch(repo):
    repo.create_branch("dev", "main")
    merged = put(repo, "dev", "merged")
    repo.commit("dev", "one")
    repo.merge("dev", "main")
    repo.delete_branch("dev")
    assert merged not in planned(repo)


def test_a_commits_that_no_ref_reaches_hold_their_objects(repo):
    repo.create_branch("dev", "main")
    held = put(repo, "dev", "held")
    repo.commit("dev", "one")
    repo.delete_branch("dev")
    assert held not in planned(repo)


def test_b_a_copy_that_is_reset_does_not_take_the_committed_object_along(repo):
    held = put(repo, "main", "a")
    repo.commit("main", "one")
    repo.copy("main", "a", "main", "copy")
    assert planned(repo, at=START + timedelta(days=3)) == set()
    repo.reset("main")
    assert held not in planned(repo)


def test_c_objects_younger_than_a_ticket_are_skipped(repo):
    put(repo, "main", "a")
    repo.reset("main")
    assert planned(repo, at=START + timedelta(hours=24)) == set()
    assert len(planned(repo, at=START + timedelta(hours=24, minutes=11))) == 1


def test_c_a_direct_upload_is_kept_while_its_ticket_is_open(repo):
    address = repo.physical_address("main", "a")
    repo.store.put(repo.prefix + address.ticket.address, [b"x"])
    assert planned(repo, at=START + timedelta(hours=23)) == set()
    assert planned(repo) == {address.ticket.address}


def test_d_a_deleted_branch_leaves_its_objects_to_be_collected(repo):
    repo.create_branch("dev", "main")
    lost = put(repo, "dev", "lost")
    repo.delete_branch("dev", force=True)
    assert planned(repo) == {lost}


def test_e_what_another_branch_stages_is_held(repo):
    repo.create_branch("dev", "main")
    held = put(repo, "dev", "held")
    assert held not in planned(repo)


def test_overwritten_and_removed_uploads_go(repo):
    first = put(repo, "main", "a")
    second = put(repo, "main", "a")
    third = put(repo, "main", "b")
    repo.remove("main", "b")
    assert planned(repo) == {first, third}
    assert second not in planned(repo)


def test_the_leftover_of_a_crash_goes_when_it_is_old(repo):
    leftover = put(repo, "main", "a").rsplit("/", 1)[0] + "/0011223344556677.partial"
    repo.store.put(repo.prefix + leftover, [b"half"])
    repo.set_clock(LATER)
    assert plan(uncommitted.job, repo, HERE).removed.objects == 1


def test_metadata_and_runs_are_never_candidates(repo):
    put(repo, "main", "a")
    repo.commit("main", "one")
    repo.prepare_uncommitted()
    repo.set_clock(LATER)
    for _ in range(3):
        assert plan(uncommitted.job, repo, HERE).removed.objects == 0


def test_a_plan_removes_nothing_and_moves_no_ref(repo):
    put(repo, "main", "a")
    repo.reset("main")
    before, generation = oracle.stored(repo), repo.generation()
    planned(repo)
    assert (oracle.stored(repo), repo.generation()) == (before, generation)


def test_an_empty_repository_has_nothing_to_remove(repo):
    report = plan(uncommitted.job, repo, HERE)
    assert (report.removed.objects, report.kept.objects, report.inputs["commits"]) == (0, 0, 1)


def test_a_range_that_cannot_be_read_stops_the_plan(repo):
    put(repo, "main", "a")
    repo.commit("main", "one")
    (key,) = [
        key
        for batch in repo.store.list(f"{repo.prefix}_lakefs/")
        for key in batch["key"].to_pylist()
        if repo.store.get(key).find(b"metaranges") < 0
    ]
    raw = bytearray(repo.store.get(key))
    raw[5] ^= 0xFF
    repo.store.put(key, [bytes(raw)])
    with pytest.raises(CorruptTable):
        plan(uncommitted.job, repo, HERE)


def cache_files(repo):
    keys = [key for batch in repo.store.list(f"{repo.prefix}_desilt/ranges/") for key in batch["key"].to_pylist()]
    return [key for key in keys if key.endswith(".parquet")]


@pytest.mark.parametrize("damage", ["cut", "flip", "empty"])
def test_a_damaged_cache_file_is_made_again_and_never_trusted(repo, damage):
    held = put(repo, "main", "a")
    repo.commit("main", "one")
    lost = put(repo, "main", "b")
    repo.reset("main")
    assert planned(repo) == {lost}
    (key,) = cache_files(repo)
    raw = bytearray(repo.store.get(key))
    for at in range(len(raw) // 2 - 200, len(raw) // 2 + 200):
        raw[at] ^= 0x55
    repo.store.put(key, [{"cut": bytes(raw[:-30]), "flip": bytes(raw), "empty": b""}[damage]])
    assert planned(repo) == {lost}
    assert held not in planned(repo)


def test_a_lake_inside_the_lake_is_left_alone(repo):
    inner = Lake.create(locate(f"{repo.store.root}/{repo.prefix}branches/nested"))
    put(inner.create_repository("inner", clock_at=START), "main", "a")
    inner.close()
    repo.set_clock(LATER)
    report = plan(uncommitted.job, repo, HERE)
    assert report.removed.objects == 0
    assert report.keep["foreign"].objects > 0


def test_a_whole_address_that_leads_inside_holds_its_object(repo):
    lost = put(repo, "main", "a")
    entry = Entry("a", f"odd://{repo.prefix}{lost}", 1, "x", 0, address_type=AddressType.FULL)
    stage(repo, "main", entry)  # past the check that refuses this
    repo.commit("main", "one")
    repo.set_clock(LATER)
    assert plan(uncommitted.job, repo, HERE).removed.objects == 0


def test_an_object_linked_while_the_plan_reads_is_held_by_its_ticket(repo, monkeypatch):
    address = repo.physical_address("main", "a")
    repo.store.put(repo.prefix + address.ticket.address, [b"x"])
    repo.set_clock(START + timedelta(hours=23))
    real = LakeSource.staged

    def link_just_after(self, run):
        seen = real(self, run)
        repo.link("main", "a", address.token)
        return seen

    monkeypatch.setattr(LakeSource, "staged", link_just_after)
    assert plan(uncommitted.job, repo, HERE).keep == {"ticket": Amount(1, 1)}


def test_a_leftover_among_the_plans_files_is_passed_over(repo, monkeypatch):
    real = repo.store.put

    def put_and_leave(key, body):
        if key.endswith("plan/part-00000.parquet"):
            real(f"{key.removesuffix('part-00000.parquet')}0011223344556677.partial", [b"half"])
        return real(key, body)

    monkeypatch.setattr(type(repo.store), "put", lambda _self, key, body: put_and_leave(key, body))
    assert plan(uncommitted.job, repo, HERE).removed.objects == 0


def test_a_sidecar_with_a_wrong_count_is_not_believed(repo):
    put(repo, "main", "a")
    repo.commit("main", "one")
    assert planned(repo) == set()
    (key,) = cache_files(repo)
    sidecar = key.replace(".parquet", ".json")
    repo.store.put(sidecar, [repo.store.get(sidecar).replace(b", 1]]", b", 2]]")])
    assert planned(repo) == set()


def test_a_plan_leaves_nothing_outside_its_folder_but_the_cache(repo):
    put(repo, "main", "a")
    before = set(oracle.stored(repo))
    planned(repo)
    folders = {folder.removeprefix(repo.prefix) for folder in repo.store.folders(f"{repo.prefix}_desilt/")}
    assert folders <= {"_desilt/runs/", "_desilt/ranges/", "_desilt/journal/"}  # the last is there already
    assert set(oracle.stored(repo)) == before


def test_now_may_look_back_and_not_ahead(tmp_path):
    lake = Lake.create(locate(str(tmp_path / "lake")))
    repo = lake.create_repository("demo")
    plan(uncommitted.job, repo, HERE, uncommitted.job.ask(now=START))
    with pytest.raises(BadRequest, match="ahead"):
        plan(uncommitted.job, repo, HERE, uncommitted.job.ask(now=datetime.now(UTC) + timedelta(days=1)))
    lake.close()
