"""Collection on a lake: what goes, what never does, and what a reader is told."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from desilt.cache import metaranges as metarange_cache
from desilt.domain.expiry import Expiry
from desilt.domain.policy import parse
from desilt.errors import (
    BadRequest,
    CommitGone,
    Conflict,
    CorruptTable,
    DamagedRun,
    Gone,
    HeldSince,
    OutsidePrefix,
    TooMuch,
    Unreadable,
)
from desilt.executors.executor import HERE
from desilt.executors.on_spark import OnSpark
from desilt.jobs import holds, trash
from desilt.jobs.collect import job as collection
from desilt.jobs.expire import job as expiration
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.runner import plan, run, sweep
from desilt.lake import commits, fsck
from desilt.records import locks, watermarks
from desilt.records import removals as tombstones
from desilt.records.holds import HoldKind
from desilt.runs import plan as plans
from desilt.runs.folder import Folder, find
from desilt.runs.report import Amount
from desilt.runs.steps import Action, OwnFiles, RemoveObjects
from desilt.sweep.batches import remove
from desilt.sweep.limits import Limits
from desilt.sweep.sweep import Sweep
from desilt.testing import oracle
from past_runs import PastRuns
from seed_003 import CUTOFF, sample
from words import collecting

SURE = Limits(max_share=1.0, confirm=True, allow_empty=True)
DAY = timedelta(days=1)


@pytest.fixture
def lake(tmp_path):
    """The seed's sample, expired: 6 and 7 are free."""
    opened, repo, made = sample(tmp_path / "lake")
    run(expiration.job, repo, HERE, expiration.job.ask(wish=Expiry(CUTOFF), sizes=False), SURE)
    yield repo, made
    opened.close()


def planned(repo, **ask):
    return plan(collection.job, repo, HERE, collecting(**ask))


def collected(repo, *, executor=HERE, **ask):
    return run(collection.job, repo, executor, collecting(**ask), SURE)[-1]


def swept(repo, report):
    return sweep(repo, HERE, report.run, SURE)


def messages(repo):
    with repo.database.read() as tx:
        return {commit.message for commit in commits.every(tx, repo.uid)}


def files(repo, folder):
    return {
        key.removeprefix(repo.prefix + folder)
        for batch in repo.store.list(repo.prefix + folder)
        for key in batch["key"].to_pylist()
    }


def read(repo, ref, path):
    return b"".join(repo.get(ref, path))


# ---- what goes


def test_dead_commits_go_with_all_that_only_they_had(lake):
    repo, made = lake
    lone = {repo.stat(made[number], "lone").address for number in "67"}
    before, tables = oracle.stored(repo), files(repo, "_lakefs/")
    report = collected(repo)
    assert before.keys() - oracle.stored(repo).keys() == lone
    assert report.remove.keys() == {"develop", "test", "ranges and metaranges"}
    assert len(tables) - len(files(repo, "_lakefs/")) == 4  # a range and a metarange of each
    assert messages(repo).isdisjoint({"6", "7"})
    assert fsck.check(repo, deep=True).sound


def test_what_shares_an_object_with_a_live_commit_keeps_it(lake):
    repo, made = lake
    shared = repo.stat(made["7"], "main").address  # 2's: reached by the tags
    collected(repo)
    assert read(repo, "tag1", "main") == b"2"
    assert shared in oracle.stored(repo)


def test_it_is_the_same_on_spark(lake, spark):
    repo, _ = lake
    report = collected(repo, executor=OnSpark(spark))
    assert (report.history["commits collected"], report.swept.state) == (2, "swept")
    assert read(repo, "test", "test") == b"9"
    assert collected(repo, executor=OnSpark(spark)).removed.objects == 0


def test_a_second_collection_finds_nothing(lake):
    repo, _ = lake
    collected(repo)
    again = planned(repo)
    assert (again.removed.objects, again.history, again.own) == (0, {"commits collected": 0}, {})


def test_readers_are_told_that_it_is_gone(lake):
    repo, made = lake
    late = repo.list(made["7"])  # a listing that was begun before
    collected(repo)
    for attempt in (
        lambda: repo.stat(made["7"], "test"),
        lambda: repo.resolve(made["7"][:12]),
        lambda: repo.create_branch("late", made["7"]),
        lambda: repo.create_tag("late", made["6"]),
        lambda: repo.merge(made["7"], "main"),
        lambda: list(repo.diff(made["7"], "main")),
        lambda: list(late),
    ):
        with pytest.raises(CommitGone, match=f"commit {made['7'][:1]}|commit {made['6'][:1]}"):
            attempt()


def test_the_object_of_an_entry_at_hand_is_gone_not_missing(lake):
    repo, made = lake
    body = repo.get(made["7"], "lone")
    collected(repo)
    with pytest.raises(Gone, match="by rule 'collected'"):
        b"".join(body)


def test_a_lake_without_dead_commits_still_loses_stray_tables(lake):
    repo, _ = lake
    collected(repo)
    repo.store.put(f"{repo.prefix}_lakefs/{'ab' * 32}", [b"of a commit that was cut off"])
    assert planned(repo).removed.objects == 0  # young: its commit may be on its way
    repo.set_clock(repo.clock() + 2 * DAY)
    assert collected(repo).remove == {"ranges and metaranges": {"collected": Amount(1, 28)}}
    assert planned(repo).removed == Amount()


# ---- what never goes


@pytest.mark.parametrize(
    "name", ["retention/lc/policy/x.json", "ab", "AB" * 32, "settings_object_path", "ab" * 32 + "/x"]
)
def test_other_files_beside_the_tables_are_not_ours(lake, name):
    repo, _ = lake
    repo.store.put(f"{repo.prefix}_lakefs/{name}", [b"x"])
    repo.set_clock(repo.clock() + 400 * DAY)
    collected(repo)
    assert name in files(repo, "_lakefs/")


def test_a_young_commit_stays_with_all_it_descends_from(lake):
    repo, made = lake
    repo.create_branch("short", made["7"])
    repo.put("short", "short", b"x")
    repo.commit("short", "short")
    repo.delete_branch("short")
    report = planned(repo)
    assert report.history["commits collected"] == 0
    assert report.inputs["kept for being young, or released lately"] == 3
    repo.set_clock(repo.clock() + 2 * DAY)
    assert collected(repo).history["commits collected"] == 3


def test_the_limit_of_age_can_be_moved_but_not_taken_away(lake):
    repo, _ = lake
    repo.delete_branch("qa")
    assert planned(repo, older_than=10 * DAY).history["commits collected"] == 0
    assert planned(repo, older_than=timedelta(hours=1)).history["commits collected"] == 3
    with pytest.raises(BadRequest, match="--older-than is less than 1h"):
        planned(repo, older_than=timedelta(minutes=59))


@pytest.mark.parametrize("days", [1, 3])
def test_what_an_expiration_let_go_of_lately_stays_if_that_is_wanted(lake, days):
    repo, _ = lake
    repo.set_clock(repo.clock() + 2 * DAY)
    assert planned(repo, unreached_for=days * DAY).history["commits collected"] == (2 if days == 1 else 0)


@pytest.mark.parametrize("kind", ["branch", "tag", "hold", "hold that ends"])
@pytest.mark.parametrize("when", ["before the plan", "after the plan"])
def test_what_anything_let_go_of_lately_stays_with_all_it_descends_from(lake, kind, when):
    repo, made = lake
    repo.set_clock(repo.clock() + 9 * DAY)
    report = planned(repo, unreached_for=DAY) if when == "after the plan" else None
    if kind == "branch":
        repo.create_branch("short", made["7"])
        repo.delete_branch("short")
    elif kind == "tag":
        repo.create_tag("short", made["7"])
        repo.delete_tag("short")
    elif kind == "hold":
        holds.lift(repo, holds.hold(repo, HoldKind.REF, made["7"], reason="audit").id)
    else:
        holds.hold(repo, HoldKind.REF, made["7"], reason="audit", until=timedelta(minutes=1))
        repo.set_clock(repo.clock() + timedelta(minutes=2))
    report = swept(repo, report or planned(repo, unreached_for=DAY))
    assert report.history["commits collected"] == 0
    assert {"6", "7"} <= messages(repo)
    repo.set_clock(repo.clock() + 2 * DAY)
    assert collected(repo, unreached_for=DAY).history["commits collected"] == 2


@pytest.mark.parametrize("save", ["branch", "tag", "hold"])
@pytest.mark.parametrize("when", ["before the plan", "after the plan"])
def test_what_is_pointed_at_again_stays(lake, save, when):
    repo, made = lake
    saving = {
        "branch": lambda: repo.create_branch("saved", made["6"]),
        "tag": lambda: repo.create_tag("saved", made["6"]),
        "hold": lambda: holds.hold(repo, HoldKind.REF, made["6"], reason="audit"),
    }[save]
    report = None if when == "before the plan" else planned(repo)
    saving()
    report = swept(repo, report or planned(repo))
    assert report.history["commits collected"] == 1  # 7, which descends from it
    assert read(repo, made["6"], "lone") == b"of 6"
    assert fsck.check(repo, deep=True).sound
    assert report.swept.held_again == (0 if when == "before the plan" else 3)  # an object, a range, a metarange


def test_a_hold_that_has_ended_saves_nothing(lake):
    repo, made = lake
    holds.hold(repo, HoldKind.REF, made["6"], reason="audit", until=DAY)
    repo.set_clock(repo.clock() + 2 * DAY)
    assert collected(repo).history["commits collected"] == 2


def test_looking_back_to_when_a_hold_counted_whose_commit_is_gone_is_no_error(lake):
    repo, made = lake
    back = repo.clock()
    holds.hold(repo, HoldKind.REF, made["6"], reason="audit", until=DAY)
    repo.set_clock(back + 2 * DAY)
    collected(repo)
    assert planned(repo, now=back).history["commits collected"] == 0


def test_a_copy_that_comes_too_late_is_told_that_it_is_gone(lake, monkeypatch):
    repo, made = lake
    entry = repo.stat(made["6"], "lone")
    collected(repo)
    monkeypatch.setattr(repo, "stat", lambda *_: entry)
    with pytest.raises(Gone, match="by rule 'collected'"):
        repo.copy(made["6"], "lone", "main", "saved")


def test_a_held_prefix_keeps_the_commits_that_alone_have_something_below_it(lake):
    repo, made = lake
    holds.hold(repo, HoldKind.PREFIX, "lon", reason="audit")
    report = collected(repo)
    assert report.inputs["kept by holds on prefixes"] == 2
    assert report.inputs["commits that nothing reaches"] == 2
    assert (report.history["commits collected"], read(repo, made["7"], "lone")) == (0, b"of 7")
    holds.lift(repo, holds.every(repo)[0].id)
    assert collected(repo).history["commits collected"] == 2


@pytest.mark.parametrize("prefix", ["nothing/of/the/kind", "tes", "lonely"])
def test_a_held_prefix_keeps_no_commit_whose_objects_below_it_others_have(lake, prefix):
    repo, _ = lake
    holds.hold(repo, HoldKind.PREFIX, prefix, reason="audit")
    assert collected(repo).history["commits collected"] == 2


def test_a_prefix_held_after_the_plan_stops_the_sweep(lake):
    repo, made = lake
    report = planned(repo)
    holds.hold(repo, HoldKind.PREFIX, "lone", reason="audit")
    with pytest.raises(HeldSince, match="before somebody ordered a prefix to be held; plan again"):
        swept(repo, report)
    assert read(repo, made["7"], "test") == b"7"
    assert collected(repo).history["commits collected"] == 0


def test_a_held_object_stays_though_its_commit_goes(lake):
    repo, made = lake
    address = repo.stat(made["7"], "lone").address
    holds.hold(repo, HoldKind.ADDRESS, address, reason="audit")
    report = collected(repo)
    assert report.history["commits collected"] == 2
    assert report.keep["held"].objects == 1
    assert address in oracle.stored(repo)
    repo.set_clock(repo.clock() + 400 * DAY)
    run(uncommitted.job, repo, HERE, uncommitted.job.ask(), SURE)
    assert address in oracle.stored(repo)


@pytest.mark.parametrize("when", ["before the plan", "after the plan"])
def test_a_staged_copy_of_a_dead_object_keeps_it(lake, when):
    repo, made = lake
    repo.create_branch("copy", made["7"])
    report = None if when == "before the plan" else planned(repo)
    repo.copy("copy", "lone", "copy", "again")
    if when == "after the plan":  # the plan saw the branch: let it be planned without
        repo.commit("copy", "copied")
        assert swept(repo, report).history["commits collected"] == 0
    else:
        repo.commit("copy", "copied")
        repo.delete_branch("copy")
        collected(repo)
    assert repo.stat(made["7"], "lone").address in oracle.stored(repo)


def test_what_a_lifecycle_run_removed_is_not_counted_again(lake):
    repo, made = lake
    address = repo.stat(made["7"], "lone").address
    repo.create_branch("seven", made["7"])
    rules = parse({"rule": {"prefix": "lone", "days": 1}})
    run(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=rules, full=True), SURE)
    assert address not in oracle.stored(repo)
    repo.delete_branch("seven")
    report = collected(repo)
    assert (report.history["commits collected"], report.swept.gone) == (2, 0)
    with repo.database.read() as tx:
        assert tombstones.find(tx, repo.uid, address).rule == "rule"


def test_what_was_brought_back_from_the_trash_lately_stays(lake):
    repo, made = lake
    repo.create_branch("seven", made["7"])
    rules = parse({"rule": {"prefix": "lone", "days": 1}})
    trashed = run(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=rules, action=Action.TRASH), SURE)[-1].run
    trash.bring_back(repo, HERE, trashed)
    repo.delete_branch("seven")
    report = collected(repo)
    assert (report.history["commits collected"], report.keep["restored"].objects) == (2, 2)


# ---- around it


def test_the_next_gc_is_a_clean_run(lake):
    repo, _ = lake
    repo.set_clock(repo.clock() + 30 * DAY)
    run(uncommitted.job, repo, HERE, uncommitted.job.ask(), SURE)
    saved = run(uncommitted.job, repo, HERE, uncommitted.job.ask(), SURE)[-1]
    assert saved.inputs["known from before"] > 0
    collected(repo)
    clean = run(uncommitted.job, repo, HERE, uncommitted.job.ask(), SURE)[-1]
    assert (clean.inputs["known from before"], clean.removed.objects) == (0, 0)
    assert clean.inputs["listed"] == len(oracle.stored(repo))


def test_a_gc_that_was_planned_before_leaves_the_next_one_clean_too(lake):
    repo, _ = lake
    repo.set_clock(repo.clock() + 30 * DAY)
    run(uncommitted.job, repo, HERE, uncommitted.job.ask(), SURE)
    early = plan(uncommitted.job, repo, HERE, uncommitted.job.ask())
    collected(repo)
    swept(repo, early)
    assert run(uncommitted.job, repo, HERE, uncommitted.job.ask(), SURE)[-1].inputs["known from before"] == 0


def test_fewer_commits_than_the_last_plan_saw_are_no_reason_to_stop(lake):
    repo, _ = lake
    for job in (uncommitted.job, collection.job):
        plan(job, repo, HERE, job.ask())
    collected(repo)
    for job in (uncommitted.job, collection.job):
        assert run(job, repo, HERE, job.ask(), SURE)[-1].swept.state == "swept"


def test_a_share_that_is_too_large_is_refused_before_a_commit_goes(lake):
    repo, made = lake
    for name in ("develop", "test", "qa"):
        repo.delete_branch(name)
    repo.set_clock(repo.clock() + 9 * DAY)
    with pytest.raises(TooMuch, match=r"objects would go"):
        run(collection.job, repo, HERE, collecting(), Limits(confirm=True))
    assert read(repo, made["7"], "test") == b"7"


def test_tables_in_the_plan_of_another_job_are_refused(lake):
    repo, _ = lake
    report = planned(repo)
    folder = Folder(repo.store, repo.prefix, find(repo.store, repo.prefix, report.run))
    made = plans.read(folder, repo.secret)
    objects, tables = made.steps_of(RemoveObjects)
    assert sum(file.rows for file in tables.files) == 4
    with locks.held(repo.database, repo.uid, run=made.run) as lock:
        of_others = Sweep(repo, made, lock, HERE, tables=False)
        with pytest.raises(OutsidePrefix):
            remove(of_others, tables)
        for step in (replace(tables, tables=False), replace(objects, tables=True)):
            with pytest.raises(OutsidePrefix):
                remove(replace(of_others, tables=True), step)


@pytest.mark.parametrize("damage", [b"", b"deadbeef\n"])
def test_a_list_of_commits_that_is_not_the_planned_one_is_refused(lake, damage):
    repo, _ = lake
    report = planned(repo)
    folder = Folder(repo.store, repo.prefix, find(repo.store, repo.prefix, report.run))
    repo.store.put(f"{folder.root}inputs/commits.txt", [damage])
    with pytest.raises(DamagedRun, match=r"inputs/commits.txt is missing, or not what was planned; plan again$"):
        swept(repo, report)
    assert {"6", "7"} <= messages(repo)


def test_while_its_commits_are_there_no_object_goes(lake, monkeypatch):
    """Commits come first; what is left of them is asked of the database, by a list that is the planned one."""
    repo, _ = lake
    monkeypatch.setattr("desilt.lake.editor.LakeEditor._take", lambda *_: None)
    before = oracle.stored(repo)
    assert collected(repo).swept.held_again > 0
    assert oracle.stored(repo) == before
    assert fsck.check(repo, deep=True).sound


def test_what_a_sweep_writes_down_beside_its_plan_decides_over_nothing(lake, monkeypatch):
    """Nobody signs it."""
    repo, made = lake
    report, real = planned(repo), Folder.put_text
    repo.create_tag("saved", made["6"])
    monkeypatch.setattr(
        Folder, "put_text", lambda self, name, text: real(self, name, text if name.startswith("report.") else "")
    )
    swept(repo, report)
    assert read(repo, "saved", "lone") == b"of 6"


def test_a_tag_on_a_commit_that_is_not_there_stops_everything(lake):
    repo, _ = lake
    with repo.database.write() as tx:
        tx.execute("UPDATE tags SET target = ? WHERE name = 'tag1'", "f" * 64)
    with pytest.raises(Unreadable, match="is missing from the database"):
        planned(repo)


def test_a_parent_that_is_not_there_stops_everything(lake):
    repo, made = lake
    with repo.database.write() as tx:
        tx.execute("DELETE FROM commits WHERE id = ?", made["1"])
    with pytest.raises(Unreadable):
        planned(repo)


def test_a_range_that_cannot_be_read_stops_everything(lake):
    repo, _ = lake
    with repo.database.read() as tx:
        metarange = commits.fetching(tx, repo.uid)(repo.resolve("tag2").commit.id).metarange
    (listed, *_) = repo.ranges.metarange(metarange)
    repo.store.put(f"{repo.prefix}_lakefs/{listed.id}", [b"damaged"])
    with pytest.raises(CorruptTable):
        planned(repo)


# ---- desilt's own files


def runs(repo, job):
    return {name.split("/")[0] for name in files(repo, f"_desilt/runs/{job}/")}


def test_folders_of_old_runs_go_unless_somebody_needs_them(lake):
    repo, _ = lake
    first = run(uncommitted.job, repo, HERE, uncommitted.job.ask(), SURE)[-1].run
    rules = parse({"rule": {"prefix": "nothing", "days": 1}})
    needed = run(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=rules), SURE)[-1].run
    only_planned = planned(repo).run
    repo.set_clock(repo.clock() + 40 * DAY)
    second = run(uncommitted.job, repo, HERE, uncommitted.job.ask(), SURE)[-1].run
    later = plan(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=rules)).run
    assert planned(repo).own.keys() == set()
    report = collected(repo, keep_runs=30 * DAY)
    assert report.own.keys() >= {"old runs"}
    assert runs(repo, "gc") == {second}
    assert runs(repo, "lifecycle") == {needed, later}  # its watermark names what is in the first
    assert only_planned not in runs(repo, "collect")
    assert first != second
    assert run(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=rules), SURE)[-1].swept.state == "swept"


def test_a_run_with_something_in_the_trash_keeps_its_folder(lake):
    repo, _ = lake
    repo.put("main", "never", b"committed")
    repo.reset("main")
    repo.set_clock(repo.clock() + 3 * DAY)
    trashed = run(uncommitted.job, repo, HERE, uncommitted.job.ask(action=Action.TRASH), SURE)[-1].run
    for _ in range(2):
        repo.set_clock(repo.clock() + 40 * DAY)
        run(uncommitted.job, repo, HERE, uncommitted.job.ask(), SURE)
    collected(repo, keep_runs=30 * DAY)
    assert trashed in runs(repo, "gc")
    assert trash.bring_back(repo, HERE, trashed).restored == 1


def test_a_watermark_written_after_the_plan_saves_what_it_names(lake):
    repo, _ = lake
    first = run(uncommitted.job, repo, HERE, uncommitted.job.ask(), SURE)[-1].run
    repo.set_clock(repo.clock() + 40 * DAY)
    run(uncommitted.job, repo, HERE, uncommitted.job.ask(), SURE)
    report = planned(repo, keep_runs=30 * DAY)
    with repo.database.write() as tx:
        watermarks.write(tx, repo.uid, "another", "x", {"pending": [{"key": f"_desilt/runs/gc/{first}/pending/a"}]})
    swept(repo, report)
    assert first in runs(repo, "gc")


def test_caches_go_when_none_of_their_ranges_is_left(lake):
    repo, _ = lake
    collected(repo)  # fills the cache, with dead ranges and live ones in one file
    assert len(files(repo, "_desilt/ranges/")) == 2
    repo.set_clock(repo.clock() + 2 * DAY)
    assert "range cache" not in collected(repo).own
    with repo.database.read() as tx:
        every = {name for commit in commits.every(tx, repo.uid) for name in _ranges(repo, commit)}
    (said,) = [name for name in files(repo, "_desilt/ranges/") if name.endswith(".json")]
    facts = json.loads(repo.store.get(f"{repo.prefix}_desilt/ranges/{said}"))
    facts["ranges"] = [[name, count] for name, count in facts["ranges"] if name not in every]
    assert facts["ranges"]
    repo.store.put(f"{repo.prefix}_desilt/ranges/{said}", [json.dumps(facts).encode()])
    data = f"{repo.prefix}_desilt/ranges/{said.removesuffix('.json')}.parquet"
    repo.store.put(data, [repo.store.get(data)])  # executors know nothing of the repository's clock
    repo.set_clock(repo.clock() + 2 * DAY)
    assert collected(repo).own["range cache"].objects == 2
    assert files(repo, "_desilt/ranges/") == set()


def _ranges(repo, commit):
    return [listed.id for listed in repo.ranges.metarange(commit.metarange)]


def test_sets_of_what_was_removed_that_grew_together_go_when_nobody_reads_them(lake, monkeypatch):
    repo, _ = lake
    monkeypatch.setattr("desilt.columns.classes.FEW", 3)
    past = PastRuns(repo)
    for _ in range(3):
        past.add(2)
        past.told()
    past.told()
    assert len(files(repo, "_desilt/removed/")) == 8
    for key in past.names():  # executors do not know of the manual clock
        repo.store.put(key, [repo.store.get(key)])
    assert "sets of what was removed" not in collected(repo).own
    repo.set_clock(repo.clock() + 2 * DAY)
    assert collected(repo).own["sets of what was removed"].objects == 6
    assert past.straight() <= past.told()


def test_staging_manifests_go_by_their_age(lake):
    repo, _ = lake
    repo.put("main", "staged", b"x")
    repo.prepare_uncommitted()
    assert len(files(repo, "_desilt/staging/")) == 2
    assert "staging manifests" not in collected(repo).own
    repo.set_clock(repo.clock() + 2 * DAY)
    assert collected(repo).own["staging manifests"].objects == 2
    assert files(repo, "_desilt/staging/") == set()


@pytest.mark.parametrize(
    "name",
    [
        "branches/x",
        "_lakefs/x",
        "_desilt/trash/x",
        "_desilt/runs/gc/",
        "_desilt/ranges/../x",
        "_desilt/removed/",
        "_desilt/removed/../x",
        "_desilt/removed/x.json",
        "_desilt/removed/8-runs.json",
        "_desilt/removed/8-runs-0000-x/../../x.parquet",
        "../x",
    ],
)
def test_only_own_files_are_tidied(lake, name, monkeypatch):
    repo, _ = lake
    monkeypatch.setattr("desilt.jobs.collect.tidy.found", lambda *_: (OwnFiles("x", (name,), 1, 1),))
    before = files(repo, "")
    with pytest.raises(OutsidePrefix):
        collected(repo)
    assert {one for one in before - files(repo, "") if not one.startswith(("branches/", "_lakefs/"))} == set()


def test_a_plan_made_while_commits_are_collected_says_so(lake, monkeypatch):
    repo, _ = lake
    real = metarange_cache.lists

    def lists(*values):
        monkeypatch.undo()
        collected(repo)
        repo.ranges.metarange.cache_clear()
        return real(*values)

    monkeypatch.setattr(metarange_cache, "lists", lists)
    with pytest.raises(Conflict, match="commits were collected while the plan was made; plan again"):
        plan(uncommitted.job, repo, HERE, uncommitted.job.ask())


@pytest.mark.parametrize("words", [{"unsafe": True}, {"accept_missing": 1}, {"backups_older_than": DAY}])
def test_what_is_for_another_kind_of_repository_is_refused(lake, words):
    repo, _ = lake
    with pytest.raises(BadRequest, match="Icechunk"):
        plan(collection.job, repo, HERE, collection.job.asked(repo, **words))
    with pytest.raises(BadRequest, match="no use for the trash"):
        collection.job.asked(repo, action="trash")
