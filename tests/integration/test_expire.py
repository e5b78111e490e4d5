"""Expiration on a lake: what is edited, what never goes, and what happens when refs move meanwhile."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from desilt.domain.expiry import Expiry, Omission
from desilt.domain.keep_rules import KeepCounts
from desilt.domain.policy import parse
from desilt.errors import BadRequest, EditedSince, NotFound
from desilt.executors.executor import HERE
from desilt.jobs import holds
from desilt.jobs.expire import job as expiration
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.runner import plan, run, sweep
from desilt.lake import commits, reader
from desilt.records import ledger
from desilt.records.holds import HoldKind
from desilt.runs.folder import Folder, find
from desilt.runs.history import FILE, Fate, read_change
from desilt.sweep.limits import Limits
from desilt.testing import oracle
from seed_003 import CUTOFF, sample

SURE = Limits(max_share=1.0, confirm=True)


@pytest.fixture
def lake(tmp_path):
    opened, repo, made = sample(tmp_path / "lake")
    yield repo, made
    opened.close()


def asked(**wish):
    return expiration.job.ask(wish=Expiry(wish.pop("before", CUTOFF), **wish))


def planned(repo, **wish):
    return plan(expiration.job, repo, HERE, asked(**wish))


def expired(repo, **wish):
    return run(expiration.job, repo, HERE, asked(**wish), SURE)[-1]


def change_of(repo, report):
    return read_change(Folder(repo.store, repo.prefix, find(repo.store, repo.prefix, report.run)).get_text(FILE))


def log(repo, ref):
    return [commit.message for commit in repo.log(ref)]


def parents(repo):
    with repo.database.read() as tx:
        return {commit.message: commit.parents for commit in commits.every(tx, repo.uid)}


def test_a_plan_says_all_of_it_and_changes_nothing(lake):
    repo, made = lake
    before, generation = parents(repo), repo.generation()
    change = change_of(repo, planned(repo))
    edited = {dot.message: (dot.before, dot.after, dot.why) for dot in change.dots if dot.fate is Fate.EDITED}
    assert edited.keys() == {"8", "9", "10", "12"}
    assert edited["12"] == ((made["5"],), (made["0"],), f"parent {made['5'][:12]} from before 2026-01-09 00:00:00 UTC")
    abandoned = {dot.message: dot.by for dot in change.dots if dot.fate is Fate.ABANDONED}
    assert abandoned == {"6": ("develop", "qa", "test"), "7": ("qa", "test")}
    assert {dot.message: dot.refs for dot in change.dots if dot.fate is Fate.POINTED} == {
        "3": ("tag tag1",), "5": ("tag tag2",)
    }  # fmt: skip
    assert set(change.skipped) == {"tag tag1", "tag tag2"}
    assert (parents(repo), repo.generation()) == (before, generation)


def test_no_object_goes_and_ids_and_times_stay(lake):
    repo, made = lake
    objects = oracle.stored(repo)
    with repo.database.read() as tx:
        times = {commit.id: (commit.created_at, commit.metarange) for commit in commits.every(tx, repo.uid)}
    report = expired(repo, delete_tags=True, delete_branches=True)
    assert (report.swept.state, report.swept.asked) == ("swept", 0)
    assert oracle.stored(repo) == objects
    with repo.database.read() as tx:
        assert {one.id: (one.created_at, one.metarange) for one in commits.every(tx, repo.uid)} == times
        assert commits.fetching(tx, repo.uid)(made["12"]).made_from == (made["5"],)


def test_a_date_that_has_not_passed_is_refused(lake):
    repo, _ = lake
    with pytest.raises(BadRequest, match="is not over yet; give a time that has passed"):
        planned(repo, before=repo.clock() + timedelta(seconds=1))


@pytest.mark.parametrize("mode", ["v1", "v2"])
def test_a_mode_that_the_repository_has_not_is_refused_in_one_line(lake, mode):
    repo, _ = lake
    says = f"^history cannot be made shorter in the mode '{mode}' here; choose design$"
    for ask in (asked(mode=mode), expiration.job.ask(before=CUTOFF, mode=mode)):
        with pytest.raises(BadRequest, match=says):
            plan(expiration.job, repo, HERE, ask)


def test_the_mode_of_a_lake_need_not_be_named(lake):
    repo, _ = lake
    plain = plan(expiration.job, repo, HERE, expiration.job.ask(before=CUTOFF))
    named = plan(expiration.job, repo, HERE, expiration.job.ask(before=CUTOFF, mode="design"))
    assert plain.history == named.history
    assert (plain.notes, named.notes) == ((), ())


def test_keep_rules_on_a_lake(lake):
    repo, _ = lake
    expired(repo, keep=KeepCounts(last=4))
    assert log(repo, "main") == ["14", "13", "12", "5", "Repository created"]
    assert log(repo, "qa") == ["8", "7", "6", "3", "Repository created"]


# ---- refs that never go


def old_branches(repo, made):
    """Three branches at old commits: one with something staged, one with an open ticket, one with neither."""
    for name in ("staged", "ticketed", "idle"):
        repo.create_branch(name, made["4"])
    repo.put("staged", "new", b"x")
    repo.physical_address("ticketed", "new")


def test_branches_in_use_and_the_default_branch_are_never_deleted(lake):
    repo, made = lake
    repo.set_clock(repo.clock() + timedelta(days=365))
    old_branches(repo, made)
    report = expired(repo, before=repo.clock() - timedelta(days=1), delete_branches=True)
    assert report.refs == {
        "develop": "deleted", "idle": "deleted", "qa": "deleted", "test": "deleted"
    }  # fmt: skip
    assert {branch.name for branch in repo.branches()} == {"main", "staged", "ticketed"}
    change = change_of(repo, report)
    assert "it is the default branch" in change.skipped["main"]
    assert "it has staged entries" in change.skipped["staged"]
    assert "it has open tickets" in change.skipped["ticketed"]


def commits_to_it(repo):
    repo.put("idle", "new", b"x")
    repo.commit("idle", "new")


def makes_it_again_at_a_young_commit(repo):
    repo.delete_branch("idle")
    repo.create_branch("idle", "main~1")


@pytest.mark.parametrize(
    ("meanwhile", "fate"),
    [
        (lambda repo: repo.put("idle", "new", b"x"), "protected: it has staged entries"),
        (lambda repo: repo.physical_address("idle", "new"), "protected: it has open tickets"),
        (commits_to_it, "kept: it is not expired any more"),
        (makes_it_again_at_a_young_commit, "kept: it is not expired any more"),
    ],
)
def test_a_branch_used_between_plan_and_sweep_stays(lake, meanwhile, fate):
    repo, made = lake
    old_branches(repo, made)
    made_plan = planned(repo, delete_branches=True)
    assert set(made_plan.refs) == {"idle"}
    meanwhile(repo)
    (told,) = sweep(repo, HERE, made_plan.run, SURE).refs.values()
    assert told.startswith("kept: ")
    assert told.endswith(fate)
    assert "idle" in {branch.name for branch in repo.branches()}


@pytest.mark.parametrize(
    ("meanwhile", "fate"),
    [
        (lambda repo: repo.put("idle", "new", b"x"), "kept: it has staged entries"),
        (lambda repo: repo.physical_address("idle", "new"), "kept: it has open tickets"),
        (makes_it_again_at_a_young_commit, "kept: it is not expired any more"),
    ],
)
def test_a_branch_used_at_the_last_moment_stays(lake, monkeypatch, meanwhile, fate):
    """Between the look at history and the transaction that edits it; staging moves no ref."""
    repo, made = lake
    old_branches(repo, made)
    real, times = reader.read, iter([True])

    def read(tx, core, now, **more):
        seen = real(tx, core, now, **more)
        if next(times, False):
            meanwhile(repo)
        return seen

    made_plan = planned(repo, delete_branches=True)
    monkeypatch.setattr(reader, "read", read)
    assert sweep(repo, HERE, made_plan.run, SURE).refs == {"idle": fate}
    assert "idle" in {branch.name for branch in repo.branches()}


def test_a_branch_that_was_made_again_at_the_same_commit_stays(lake):
    repo, made = lake
    old_branches(repo, made)
    made_plan = planned(repo, delete_branches=True)
    repo.delete_branch("idle")
    repo.create_branch("idle", made["4"])
    assert sweep(repo, HERE, made_plan.run, SURE).refs == {"idle": "kept: it has moved since"}


def test_a_tag_made_again_on_a_young_commit_stays(lake):
    repo, _ = lake
    made_plan = planned(repo, delete_tags=True)
    repo.delete_tag("tag1")
    repo.create_tag("tag1", "main")
    swept = sweep(repo, HERE, made_plan.run, SURE)
    assert swept.refs == {"tag1": "kept: it is not expired any more", "tag2": "deleted"}
    assert [tag.name for tag in repo.tags()] == ["tag1"]


def test_what_a_person_holds_is_not_abandoned(lake):
    repo, made = lake
    holds.hold(repo, HoldKind.REF, made["7"], reason="audit")
    report = expired(repo)
    assert report.history["abandoned"] == 0
    change = change_of(repo, report)
    held = {dot.message: dot for dot in change.dots}["7"]
    assert (held.fate, held.refs[0][:5]) == (Fate.POINTED, "hold ")
    assert any(name.startswith("hold ") for name in change.skipped)


# ---- refs that move meanwhile


def test_a_commit_made_between_plan_and_sweep_is_kept_and_the_plan_still_holds(lake):
    repo, _ = lake
    made_plan = planned(repo)
    repo.put("main", "main", b"15")
    repo.commit("main", "15")
    assert sweep(repo, HERE, made_plan.run, SURE).history["edited"] == 4
    assert log(repo, "main") == ["15", "14", "13", "12", "Repository created"]


def test_an_edit_that_does_not_hold_any_more_is_left_out(lake):
    """An old branch that somebody commits to becomes young: then what it descends from must be looked at anew."""
    repo, made = lake
    made_plan = planned(repo, keep=KeepCounts(last=2))
    # main~2 (12) now is the second of a line of its own, and its parent the third: rules keep the same of main,
    # but 'late' keeps 5 as well, so that the edit of 12 would be another one
    repo.create_branch("late", made["12"])
    swept = sweep(repo, HERE, made_plan.run, SURE)
    assert (made_plan.history["edited"], swept.history["edited"]) == (3, 2)
    assert log(repo, "main") == ["14", "13", "12", "5", "4", "2", "1", "Repository created"]
    expired(repo, keep=KeepCounts(last=2))
    assert log(repo, "main") == ["14", "13", "12", "5", "Repository created"]


def test_the_record_tells_what_was_done_not_what_was_planned(lake):
    repo, made = lake
    made_plan = planned(repo, delete_tags=True)
    repo.create_tag("save", made["7"])
    repo.delete_tag("tag1")
    repo.create_tag("tag1", "main")
    swept = sweep(repo, HERE, made_plan.run, SURE)
    assert (made_plan.history["abandoned"], swept.history["abandoned"]) == (7, 2)
    assert (swept.history["tags deleted"], swept.refs["tag2"]) == (1, "deleted")
    change = change_of(repo, swept)
    assert {dot.message for dot in change.dots if dot.fate is Fate.ABANDONED} == {"4", "5"}
    assert change.deleted.keys() == {"tag tag2"}
    assert sweep(repo, HERE, made_plan.run, SURE).history == swept.history


def test_of_two_plans_only_the_first_is_carried_out(lake):
    repo, _ = lake
    one, other = planned(repo), planned(repo, before=CUTOFF + timedelta(days=2))
    sweep(repo, HERE, one.run, SURE)
    with pytest.raises(EditedSince, match="was made before history was edited; plan again"):
        sweep(repo, HERE, other.run, SURE)
    assert sweep(repo, HERE, one.run, SURE).swept.state == "swept"  # told again, not done again


def test_a_lifecycle_plan_from_before_is_refused_and_one_of_the_gc_is_not(lake):
    repo, _ = lake
    rules = parse({"rule": {"prefix": "", "days": 1}})
    old = plan(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=rules))
    garbage = plan(uncommitted.job, repo, HERE, uncommitted.job.ask())
    expired(repo)
    with pytest.raises(EditedSince, match="was made before history was edited; plan again"):
        sweep(repo, HERE, old.run, replace(SURE, allow_empty=True))
    assert sweep(repo, HERE, garbage.run, SURE).swept.state == "swept"


def test_a_commit_changed_under_the_lock_would_be_an_error_and_nothing_is_done(lake, monkeypatch):
    """Compare and set: an edit whose commit has other parents than were seen fails, and with it all of them."""
    repo, _ = lake
    before, real = parents(repo), commits.edit

    def lying(tx, repository, name, *, seen, parents):
        return real(tx, repository, name, seen=(*seen, "0" * 64) if name == last else seen, parents=parents)

    last = next(dot.id for dot in change_of(repo, planned(repo)).dots if dot.fate is Fate.EDITED)
    monkeypatch.setattr(commits, "edit", lying)
    with pytest.raises(AssertionError, match="changed under a lock"):
        expired(repo)
    assert parents(repo) == before
    monkeypatch.undo()
    assert [row.history["edited"] for row in run(expiration.job, repo, HERE, asked(), SURE)][-1] in (0, 4)
    assert log(repo, "main") == ["14", "13", "12", "Repository created"]


# ---- abandon


@pytest.mark.parametrize(
    ("ref", "first", "last", "error", "says"),
    [
        ("main", "main", "main~1", BadRequest, "is the tip of branch 'main', which stays"),
        ("main", "main~1", "main~7", BadRequest, "is the root of branch 'main', which stays"),
        ("main", "main~2", "main~1", BadRequest, "name the newest first"),
        ("main", "main~1", "qa", BadRequest, "is not on the line of first parents of branch 'main'"),
        ("nobody", "main~1", "main~2", NotFound, "there is no branch or tag 'nobody'"),
        ("main", "main~3", "main~4", BadRequest, "is what tag 'tag2' points to"),
    ],
)
def test_what_cannot_be_abandoned(lake, ref, first, last, error, says):
    repo, _ = lake
    before = parents(repo)
    with pytest.raises(error, match=says):
        run(expiration.job, repo, HERE, expiration.job.ask(wish=Omission(ref, first, last)), SURE)
    assert parents(repo) == before
    with repo.database.read() as tx:
        assert ledger.every(tx, repo.uid) == []


def test_abandoning_again_what_is_abandoned_is_refused(lake):
    repo, made = lake
    wish = Omission("main", made["13"], made["13"])
    run(expiration.job, repo, HERE, expiration.job.ask(wish=wish), SURE)
    assert log(repo, "main")[:2] == ["14", "12"]
    with pytest.raises(BadRequest, match="is not on the line of first parents"):
        run(expiration.job, repo, HERE, expiration.job.ask(wish=wish), SURE)


def test_a_held_commit_cannot_be_abandoned_either(lake):
    repo, made = lake
    holds.hold(repo, HoldKind.REF, made["13"], reason="audit")
    with pytest.raises(BadRequest, match="is what hold '"):
        run(expiration.job, repo, HERE, expiration.job.ask(wish=Omission("main", made["13"], made["13"])), SURE)


def test_a_time_zone_is_not_forgotten_on_the_way_to_the_plan(lake):
    repo, _ = lake
    elsewhere = CUTOFF.astimezone(tz=datetime.fromisoformat("2026-01-01T00:00:00+09:00").tzinfo)
    assert elsewhere.tzinfo is not UTC
    made_plan = planned(repo, before=elsewhere)
    assert sweep(repo, HERE, made_plan.run, SURE).history["edited"] == 4
