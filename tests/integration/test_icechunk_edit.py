"""History of real Icechunk repositories made shorter, killed between any two writes, and while others write to it."""

import shutil
from pathlib import Path

import pytest

from desilt.domain.expiry import Expiry
from desilt.domain.keep_rules import KeepCounts
from desilt.errors import BadRequest, Conflict, EditedSince
from desilt.executors.executor import HERE
from desilt.icechunk.history import history
from desilt.jobs import holds
from desilt.jobs.expire import job as expiration
from desilt.jobs.runner import run, sweep
from desilt.objects import open_store
from desilt.records.holds import HoldKind
from desilt.runs.folder import Folder, find
from desilt.runs.history import FILE, Fate, read_change

pytest.importorskip("icechunk", reason="desilt[icechunk] is not installed: nothing of Icechunk is tested")

from icechunk_editing import (
    RESULTS,
    SURE,
    Crash,
    Sample,
    Watched,
    asked,
    expired,
    opened,
    planned,
)
from icechunk_world import FORMATS, WHERE_BOTH, WRITES_BOTH, World

CASES = [(1, "design"), (1, "v1"), (2, "design"), (2, "v2")]


@pytest.fixture(params=CASES, ids=[f"format {version}, {mode}" for version, mode in CASES])
def case(request, place):
    """The sample, and one of the modes of its format."""
    version, mode = request.param
    if version not in FORMATS:
        pytest.skip(WHERE_BOTH)
    return Sample(World(place, version)), mode


@pytest.fixture(params=[1, 2], ids=["format 1", "format 2"])
def sample(request, place):
    """The sample, for the mode of the library."""
    if request.param not in FORMATS:
        pytest.skip(WHERE_BOTH)
    return Sample(World(place, request.param))


def own(sample):
    return f"v{sample.world.version}"


def beside(sample):
    return opened(sample.world.place, sample.world.root)


def everything(sample):
    """What the library reads at every ref: the names of arrays."""
    branches, tags = sample.world.heads()
    return {
        name: sorted(one["path"] for one in sample.world.inspected(head)["nodes"])
        for name, head in {**branches, **tags}.items()
    }


def test_the_documents_sample_as_the_library_sees_it_afterwards(case):
    sample, mode = case
    before = everything(sample)
    report = expired(beside(sample), sample, mode=mode)
    assert sample.lines() == RESULTS[mode]
    assert everything(sample) == before
    assert any(mode in note for note in report.notes) == (mode != "design")


def test_the_default_is_what_the_library_of_that_format_does(sample):
    expired(beside(sample), sample)
    assert sample.lines() == RESULTS[own(sample)]


def test_the_other_formats_mode_is_refused(sample):
    other = "v1" if own(sample) == "v2" else "v2"
    says = f"mode '{other}' here; choose {own(sample)} or design"
    with pytest.raises(BadRequest, match=says):
        planned(beside(sample), sample, mode=other)


def test_expired_refs_go_and_the_default_branch_does_not(case):
    sample, mode = case
    sample.world.repo.create_branch("stale", sample.made[4])
    report = expired(beside(sample), sample, mode=mode, delete_expired_tags=True, delete_expired_branches=True)
    assert report.refs == {"stale": "deleted", "tag1": "deleted", "tag2": "deleted"}
    assert sample.lines() == {name: RESULTS["design"][name] for name in ("main", "develop", "test", "qa")}
    if sample.world.version == 2:
        assert set(sample.world.repo.inspect_repo_info()["deleted_tags"]) == {"tag1", "tag2"}
    with pytest.raises(Exception, match="tag"):
        sample.world.repo.create_tag("tag1", sample.made[14])  # its name is never used again


def test_the_library_goes_on_from_there(case):
    """It commits on top, compares with what was before, expires and collects, all as on a repository of its own."""
    sample, mode = case
    expired(beside(sample), sample, mode=mode)
    repo = sample.world.repo
    sample.commit(15, "main")
    if sample.world.version == 2:
        for branch, arrays in (("qa", {1, 2, 3, 6, 7, 8}), ("main", {1, 2, 4, 5, 12, 13, 14, 15})):
            found = repo.diff(from_snapshot_id=sample.made[0], to_branch=branch)
            assert found.new_arrays == {f"/a{number}" for number in arrays}
    later = next(iter(repo.ancestry(branch="main"))).written_at
    repo.expire_snapshots(later)
    repo.garbage_collect(later)
    assert sample.lines()["main"].startswith("15,")
    assert everything(sample)["main"] == ["/", *sorted(f"/a{number}" for number in (1, 2, 4, 5, 12, 13, 14, 15))]


def test_keep_rules_and_holds_count_there_too(case):
    sample, mode = case
    repository = beside(sample)
    holds.hold(repository, HoldKind.REF, sample.made[7], reason="because")
    expired(repository, sample, mode=mode, keep=KeepCounts(last=4))
    lines = sample.lines()
    assert lines["main"] == "14,13,12,5,4,2,1,0" if mode != "design" else lines["main"] == "14,13,12,5,0"
    assert sample.made[7] in history(repository.store, [sample.made[7]]).seen.commits
    sample.world.repo.readonly_session(snapshot_id=sample.made[7])


def test_what_was_released_can_no_longer_be_opened_and_the_report_says_so(sample):
    repository = beside(sample)
    report = expired(repository, sample)
    folder = Folder(repository.store, repository.prefix, find(repository.store, repository.prefix, report.run))
    change = read_change(folder.get_text(FILE))
    fate = Fate.RELEASED if sample.world.version == 2 else Fate.ABANDONED
    assert {sample.number(dot.id) for dot in change.dots if dot.fate is fate} == {1, 2, 4, 6, 7}
    sample.world.reopen()
    for number in (1, 2, 4, 6, 7):
        if sample.world.version == 2:
            with pytest.raises(Exception, match="snapshot"):
                list(sample.world.repo.ancestry(snapshot_id=sample.made[number]))
        else:
            assert list(sample.world.repo.ancestry(snapshot_id=sample.made[number]))


# ---- killed, and done again


def copied(sample, place):
    """The same repository once more."""
    there = place / "copy"
    shutil.rmtree(there, ignore_errors=True)
    shutil.copytree(sample.world.root, there / "repo")
    return there


def test_killed_at_any_write_and_done_again_it_ends_the_same(case, place):
    sample, mode = case
    words = {"mode": mode, "delete_expired_tags": True}
    expected = {name: RESULTS["design"][name] for name in ("main", "develop", "test", "qa")}
    root, copy = sample.world.root, copied(sample, place)
    moments = [(number, moment) for number in range(20) for moment in ("before", "after")]
    reached = set()
    for number, moment in moments:
        shutil.rmtree(root)
        shutil.copytree(copy / "repo", root)
        (place / "records.db").unlink(missing_ok=True)

        def dies(at, when, number=number, moment=moment):
            if (at, when) == (number, moment):
                raise Crash

        watched = Watched(open_store(str(root)), dies)
        repository = opened(place, root, store=watched)
        plan = planned(repository, sample, **words).run
        try:
            sweep(repository, HERE, plan, SURE)
        except Crash:
            reached.add((number, moment))
            again = beside(sample)
            sweep(again, HERE, plan, SURE)
            again.records.close()
        repository.records.close()
        assert sample.lines() == expected, (number, moment)
    writes = 2 if sample.world.version == 2 else {"design": 6, "v1": 6}[mode]
    assert reached == {(number, moment) for number in range(writes) for moment in ("before", "after")}


# ---- others are there, too


def swept_while(sample, happens, *, at=0, **words):
    """A plan, and what happens right before a write of it."""
    done = []

    def once(number, when):
        if number >= at and when == "before" and not done:
            done.append(True)
            sample.world.reopen()
            happens()

    watched = Watched(open_store(str(sample.world.root)), once)
    repository = opened(sample.world.place, sample.world.root, store=watched)
    report = run(expiration.job, repository, HERE, asked(sample, **words), SURE)[-1]
    assert done
    return report


@pytest.mark.parametrize("at", [0, 1])
def test_a_commit_that_comes_in_between_stays_and_all_is_done(case, at):
    sample, mode = case
    if sample.world.version == 2 and at:
        pytest.skip("right before the one write nobody can be seen in a directory; see the buckets")
    swept_while(sample, lambda: sample.commit(15, "main"), at=at, mode=mode)
    assert sample.lines() == {**RESULTS[mode], "main": f"15,{RESULTS[mode]['main']}"}


@pytest.mark.parametrize("kind", ["branch", "tag"])
def test_a_ref_made_in_between_on_what_was_to_go_is_whole(case, kind):
    sample, mode = case
    make = getattr(sample.world.repo, f"create_{kind}")
    swept_while(sample, lambda: make("rescue", sample.made[7]), mode=mode)
    lines = sample.lines()
    # 7 was in no plan, so it is not edited, and keeps what it needs
    assert lines.pop("rescue") == ("7,6,3,2,1,0" if mode == "design" else "7,6,3,0")
    through = {"test": "9,7,6,3,0", "qa": "8,7,6,3,0"} if mode == "v2" else {}  # a tip stays in the way of others there
    assert lines == {**RESULTS[mode], **through}
    rescued = sample.made[7]
    assert "/a7" in [one["path"] for one in sample.world.inspected(rescued)["nodes"]]


def test_a_branch_that_is_reset_in_between_keeps_what_it_shows(case):
    sample, mode = case
    swept_while(sample, lambda: sample.world.repo.reset_branch("develop", sample.made[6]), mode=mode)
    assert sample.lines()["develop"].startswith("6,")
    assert "/a6" in everything(sample)["develop"]


def test_a_branch_that_moves_before_it_is_deleted_stays(case):
    sample, mode = case
    sample.world.repo.create_branch("stale", sample.made[4])
    words = {"mode": mode, "delete_expired_branches": True}
    report = swept_while(sample, lambda: sample.commit(15, "stale"), **words)
    assert report.refs == {"stale": "kept: it is not expired any more"}
    assert sample.lines()["stale"].startswith("15,")


def test_a_branch_stays_where_somebody_holds_anything_in_between(case):
    """It may reach what is held; in a directory nobody is seen who comes right before the one write of format 2."""
    sample, mode = case
    if sample.world.version == 2:
        pytest.skip("of format 1, where branches go after all else")
    sample.world.repo.create_branch("stale", sample.made[4])
    other = beside(sample)
    words = {"mode": mode, "delete_expired_branches": True}
    report = swept_while(sample, lambda: holds.hold(other, HoldKind.REF, sample.made[2], reason="because"), **words)
    assert report.refs == {"stale": "kept: a hold was made since, on a commit that it may reach"}
    assert "stale" in sample.lines()


def test_after_an_upgrade_in_between_nothing_more_is_written(case):
    sample, mode = case
    if sample.world.version == 2 or not WRITES_BOTH:
        pytest.skip("of format 1, where the library writes both")
    before = {path.name: path.read_bytes() for path in (sample.world.root / "snapshots").iterdir()}
    with pytest.raises(Conflict, match="upgraded"):
        swept_while(sample, sample.world.upgrade, mode=mode)
    after = {path.name: path.read_bytes() for path in (sample.world.root / "snapshots").iterdir()}
    assert sum(before[name] != after[name] for name in before) == 1  # which was under way


def test_what_somebody_holds_in_between_is_not_released(case):
    sample, mode = case
    other = beside(sample)
    swept_while(sample, lambda: holds.hold(other, HoldKind.REF, sample.made[6], reason="because"), mode=mode)
    seen = history(open_store(str(sample.world.root)), [sample.made[6]]).seen
    assert sample.made[6] in seen.commits
    if sample.world.version == 2:
        sample.world.reopen()
        assert list(sample.world.repo.ancestry(snapshot_id=sample.made[6]))


def test_whatever_else_the_file_says_stays_as_it_was(sample):
    if sample.world.version == 1:
        pytest.skip("format 1 has a file for each thing")
    repo = sample.world.repo
    repo.set_metadata({"owner": "ü", "nested": {"list": [1, 2], "nothing": None}})
    repo.set_feature_flag("move_node", False)
    before, log = repo.inspect_repo_info(), list(repo.ops_log())
    expired(beside(sample), sample)
    sample.world.reopen()
    after = sample.world.repo.inspect_repo_info()
    assert sample.world.repo.metadata == {"owner": "ü", "nested": {"list": [1, 2], "nothing": None}}
    assert {one.name: one.setting for one in sample.world.repo.feature_flags()}["move_node"] is False
    assert before.keys() == after.keys()
    assert {name for name in before if before[name] != after[name]} == {"header", "snapshots", "latest_updates"}
    now = list(sample.world.repo.ops_log())[1:]
    assert [(one.kind, one.updated_at) for one in now] == [(one.kind, one.updated_at) for one in log]
    assert now[0].backup_path in {path.name for path in (sample.world.root / "overwritten").iterdir()}
    assert [one.backup_path for one in now][1:] == [one.backup_path for one in log][1:]
    kept = {one["id"]: one for one in before["snapshots"]}
    for one in after["snapshots"]:
        assert {**one, "parent_id": None} == {**kept[one["id"]], "parent_id": None}


def test_a_repository_that_is_upgraded_in_between_is_left_to_its_new_format(sample):
    if sample.world.version == 2:
        pytest.skip("it is upgraded by then")
    (upgraded,) = (Path(__file__).parents[1] / "fixtures" / "icechunk-v2" / "repo").glob("repo")
    files = sample.world.files("snapshots")
    with pytest.raises(Conflict, match="was upgraded to format 2"):
        swept_while(sample, lambda: shutil.copy(upgraded, sample.world.root))
    (sample.world.root / "repo").unlink()
    assert sample.world.files("snapshots") == files
    assert sample.lines()["main"] == "14,13,12,5,4,2,1,0"  # only the oldest edit was made by then


def test_history_can_be_expired_again_and_plans_from_before_are_refused(case):
    sample, mode = case
    repository = beside(sample)
    late = planned(repository, sample, mode=mode, delete_expired_tags=True).run
    expired(repository, sample, mode=mode)
    with pytest.raises(EditedSince):
        sweep(repository, HERE, late, SURE)
    expired(repository, sample, mode=mode, delete_expired_tags=True)
    assert "tag1" not in sample.lines()
    cut = sample.world.ancestry(sample.made[13])[0][2]
    wish = Expiry(cut, None, delete_tags=True, delete_branches=True, mode=mode)
    run(expiration.job, repository, HERE, expiration.job.ask(wish=wish, sizes=False), SURE)
    assert sample.lines() == {"main": "14,13,0"}


def test_a_repository_that_may_only_be_read_is_not_written(sample):
    if sample.world.version == 1:
        pytest.skip("format 1 has no status")
    from icechunk import RepoAvailability, RepoStatus

    repository = beside(sample)
    plan = planned(repository, sample).run
    before = (sample.world.root / "repo").read_bytes()
    sample.world.repo.set_status(RepoStatus(availability=RepoAvailability.read_only, limited_availability_reason="x"))
    now = (sample.world.root / "repo").read_bytes()
    assert now != before
    with pytest.raises(Conflict, match="is read-only; set its status to online"):
        sweep(repository, HERE, plan, SURE)
    assert (sample.world.root / "repo").read_bytes() == now
