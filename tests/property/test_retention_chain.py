"""Random histories with chains of retention runs: each marks what the naive oracle names, and follows all marks.

Documents, holds, keep rules and refs change between the runs, the store fails, its own
worker removes what is tagged, marks are taken back, other jobs run. What is visible
always reads as it did.
"""

import uuid
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from aging import ALL, START, Stubborn, order
from desilt.domain.policy import KeepRule
from desilt.domain.retention import parse
from desilt.errors import FencedOff, Gone, PlanOutdated
from desilt.executors.executor import HERE
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.lifecycle import kept_policy
from desilt.jobs.retention import job as retention
from desilt.jobs.retention.restore import restore
from desilt.jobs.runner import plan, run, sweep
from desilt.jobs.unfinished import give_up
from desilt.lake import Lake, schema
from desilt.lake.gate import LakeGate
from desilt.objects import open_store
from desilt.objects.tags import ObjectTag
from desilt.records import locks
from desilt.records.database import open_database
from desilt.records.holds import HoldKind
from desilt.records.removals import State
from desilt.sweep import delete as removing
from desilt.sweep import ripe, unmark
from desilt.sweep import tag as tagging
from desilt.testing import oracle, retained
from plan_rows import named
from retaining import NO_RULES, Retaining, RetainingWithTags, WithTags, marks
from words import days, later, lift_hold, stage


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr(removing, "PAUSES", (0.0,))


@pytest.fixture(autouse=True)
def _any_document_fits(monkeypatch):
    """Drawn by chance, few make sense; that those are refused is told elsewhere."""
    monkeypatch.setattr(lifecycle, "findings", lambda *_: [])
    monkeypatch.setattr(retention, "findings", lambda *_: [])


def retaining(machine, examples, steps):
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],  # to make a history smaller would take minutes
        ),
    )


@pytest.mark.parametrize("machine", [Retaining, RetainingWithTags])
def test_a_chain_of_runs_marks_what_expired_and_loses_nothing_that_is_visible(machine):
    retaining(machine, examples=2, steps=25)


@pytest.mark.slow
@pytest.mark.parametrize("machine", [Retaining, RetainingWithTags])
def test_a_long_chain_of_runs_marks_what_expired_and_loses_nothing_that_is_visible(machine):
    retaining(machine, examples=300, steps=50)


# ---- orders of events that random chains seldom hit


def document(prefix="", **said):
    filtered = {"prefix": prefix} if prefix else {}
    expiration = {kind: {"days": count} for kind, count in said.items()}
    return parse({"rules": [{"status": "enabled", "filter": filtered, "expiration": expiration}]})


OLD = document(noncurrent=2)


@pytest.fixture
def repo(tmp_path):
    database = open_database(f"sqlite://{tmp_path}/lake.db", create=True)
    schema.create(database, storage="")
    store = open_store(f"memory://{uuid.uuid4().hex}")
    made = Lake(database, store, raggedness=1).create_repository("chain", clock_at=START)
    made.store = Stubborn(made.store)
    yield made
    database.close()


@pytest.fixture
def tagged(repo):
    """The same on a store with tags."""
    repo.store = WithTags(repo.store._store)
    return repo


def written(repo, branch, *paths, text=""):
    found = [repo.put(branch, path, f"{path}{text}".encode()).address for path in paths]
    repo.commit(branch, "some")
    return found


def replaced(repo, *paths):
    """Old versions, replaced days ago."""
    found = written(repo, "main", *paths)
    written(repo, "main", *paths, text=", new")
    days(repo, 5)
    return found


def first(repo):
    return list(repo.log("main"))[-2].id


def ask(said=OLD, wait=1, **more):
    return retention.job.ask(document=said, wait=timedelta(days=wait), **more)


def marked_by(repo, said=OLD, **more):
    """What a run marks: what the oracle and a plan name."""
    wanted, before = retained.marked(repo, said, repo.clock()), set(marks(repo))
    assert named(repo, plan(retention.job, repo, HERE, ask(said, **more))) == wanted
    run(retention.job, repo, HERE, ask(said, **more), ALL)
    assert marks(repo).keys() - before <= wanted
    return wanted


def back(repo, **which):
    later(repo, minutes=11)  # until then, a tag of the last run may still be on its way
    return restore(repo, HERE, **which)


def states(repo):
    return {stone.state for stone in marks(repo).values()}


def moment(repo):
    repo.set_clock(repo.clock() + timedelta(microseconds=1))


def test_what_was_in_the_head_just_then_stays_one_moment_more(repo):
    (old,) = written(repo, "main", "a")
    days(repo, 5)
    written(repo, "main", "a", text=", new")
    replaced_at = repo.clock()
    repo.set_clock(replaced_at + timedelta(days=2))
    assert marked_by(repo) == set()
    moment(repo)
    assert marked_by(repo) == {old}


def test_what_came_back_into_a_head_since_stays(repo):
    (old,) = written(repo, "main", "a")
    written(repo, "main", "a", text=", new")
    newer = repo.resolve("main").commit.id
    days(repo, 5)
    repo.revert("main", newer)
    repo.revert("main", "main")
    days(repo, 1)
    assert marked_by(repo) == set()
    days(repo, 2)
    assert marked_by(repo) == {old}


def test_what_is_marked_waits_as_long_as_it_is_told_to(repo):
    replaced(repo, "a")
    marked_by(repo, wait=1)
    repo.set_clock(repo.clock() + timedelta(days=1) - timedelta(microseconds=1))
    marked_by(repo, wait=1)
    assert states(repo) == {State.MARKED}
    moment(repo)
    marked_by(repo, wait=1)
    assert states(repo) == {State.REMOVED}


@pytest.mark.parametrize("kind", HoldKind)
def test_what_is_marked_and_then_held_waits_until_it_is_released(repo, kind):
    old, other = replaced(repo, "a", "b")
    marked_by(repo)
    value = {HoldKind.PREFIX: "a", HoldKind.REF: first(repo), HoldKind.ADDRESS: old}[kind]
    hold, kept = order(repo, kind, value), {old, other} if kind is HoldKind.REF else {old}
    days(repo, 2)
    marked_by(repo)
    assert {one for one, stone in marks(repo).items() if stone.state is State.MARKED} == kept
    assert kept <= set(oracle.stored(repo))
    lift_hold(repo, hold)
    marked_by(repo)
    assert states(repo) == {State.REMOVED}


def test_what_the_store_would_not_remove_is_tried_again(repo):
    (old,) = replaced(repo, "a")
    repo.store.keeps = {repo.prefix + old}
    marked_by(repo, wait=0)
    assert states(repo) == {State.REMOVING}
    repo.store.keeps = set()
    marked_by(repo, document("dev/", all=9), wait=9)
    assert states(repo) == {State.REMOVED}
    assert old not in oracle.stored(repo)


def kept_below(repo, prefix):
    rules = (KeepRule("k", prefix=prefix),)
    kept_policy.keep(repo, replace(NO_RULES, keep=rules))
    return rules


def test_what_a_keep_rule_keeps_is_not_marked(repo):
    _, other = replaced(repo, "a", "b")
    rules = kept_below(repo, "a")
    wanted = retained.marked(repo, OLD, repo.clock(), keep=rules)
    assert named(repo, plan(retention.job, repo, HERE, ask())) == wanted == {other}


def test_what_is_staged_since_the_plan_where_a_keep_rule_keeps_it_is_not_marked(repo):
    said, entry = document(uncommitted=2), repo.put("main", "a", b"a")
    rules = kept_below(repo, "kept/")
    days(repo, 5)
    planned = plan(retention.job, repo, HERE, ask(said))
    assert named(repo, planned) == {entry.address}
    stage(repo, "main", replace(entry, path="kept/a"))
    assert retained.marked(repo, said, repo.clock(), keep=rules) == set()
    sweep(repo, HERE, planned.run, ALL)
    assert marks(repo) == {}


def test_what_is_staged_since_the_plan_on_a_branch_with_other_rules_is_not_marked(repo):
    said = replace(OLD, rules=document("main/a", uncommitted=2).rules + document("dev/b", uncommitted=2).rules)
    repo.create_branch("dev", "main")
    entry = repo.put("main", "a", b"a")
    days(repo, 5)
    planned = plan(retention.job, repo, HERE, ask(said))
    assert named(repo, planned) == {entry.address}
    stage(repo, "dev", entry)
    assert retained.marked(repo, said, repo.clock()) == set()
    sweep(repo, HERE, planned.run, ALL)
    assert marks(repo) == {}


def test_what_is_marked_and_then_held_is_not_tagged(tagged):
    (old,) = replaced(tagged, "a")
    tagged.store.tagging.refuses = {tagged.prefix + old}
    marked_by(tagged)
    tagged.store.tagging.refuses = set()
    planned = plan(retention.job, tagged, HERE, ask())
    hold = order(tagged, HoldKind.PREFIX, "a")
    sweep(tagged, HERE, planned.run, ALL)  # it knows of no hold: all waits
    assert tagged.store.tagging.carrying() == set()
    marked_by(tagged)
    assert tagged.store.tagging.carrying() == set()
    lift_hold(tagged, hold)
    marked_by(tagged)
    assert tagged.store.tagging.carrying() == {tagged.prefix + old}


def test_what_is_tagged_and_then_held_loses_its_tag(tagged):
    old, other = replaced(tagged, "a", "b")
    marked_by(tagged)
    order(tagged, HoldKind.PREFIX, "a")
    marked_by(tagged)
    assert tagged.store.tagging.carrying() == {tagged.prefix + other}
    assert marks(tagged)[old].state is State.MARKED


def test_an_object_that_is_held_waits_though_nothing_points_to_it(repo):
    old = repo.put("main", "a", b"a").address
    days(repo, 5)
    assert marked_by(repo, document(uncommitted=2)) == {old}
    repo.reset("main")
    order(repo, HoldKind.ADDRESS, old)
    days(repo, 2)
    marked_by(repo, document(uncommitted=2))
    assert states(repo) == {State.MARKED}
    assert old in oracle.stored(repo)


def test_a_hold_that_comes_between_the_batches_lets_the_rest_wait(repo):
    replaced(repo, "a", "b", "c", "d")
    repo.store.delete_batch = 1
    marked_by(repo)
    days(repo, 2)
    remove = repo.store._store.delete_many

    def held_meanwhile(keys, **more):
        order(repo, HoldKind.PREFIX, "nothing/")
        return remove(keys, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repo.store._store, "delete_many", held_meanwhile)
        run(retention.job, repo, HERE, ask(), ALL)
    assert sorted(stone.state for stone in marks(repo).values()) == ["marked"] * 3 + ["removed"]


def test_every_tag_that_was_ever_set_comes_off(tagged):
    old, other = replaced(tagged, "a", "b")
    tags = tagged.store.tagging
    tags.refuses = {tagged.prefix + other}
    marked_by(tagged, tag="first=1")
    tags.refuses = set()
    tags.tag_many([tagged.prefix + other], ObjectTag("first", "1"))  # refused, and set: nobody can tell
    marked_by(tagged, tag="second=2")
    back(tagged, addresses=(old, other))
    assert states(tagged) == {State.RESTORED}
    assert not tags.carrying(ObjectTag("first", "1")) | tags.carrying(ObjectTag("second", "2"))


def test_what_comes_back_has_lost_its_tag_before_anybody_sees_it(tagged):
    old, other = replaced(tagged, "a", "b")
    marked_by(tagged)
    tagged.store.tagging.refuses = {tagged.prefix + old}
    done = back(tagged, prefix="main/")
    assert (done.restored, done.failed) == (1, 1)
    with pytest.raises(Gone):
        tagged.stat(first(tagged), "a")
    assert b"".join(tagged.get(first(tagged), "b")) == b"b"
    tagged.store.tagging.refuses = set()
    assert back(tagged, prefix="main/").restored == 1
    assert tagged.store.tagging.carrying() == set()
    assert marked_by(tagged) == set()  # somebody wanted it
    days(tagged, 2)
    assert marked_by(tagged) == {old, other}


def test_only_what_is_meant_comes_back(repo):
    a, _, c = replaced(repo, "a", "b", "c")
    marked_by(repo)
    assert back(repo, addresses=(a,)).restored == 1
    assert back(repo, prefix="dev/").restored == back(repo, prefix="main/x").restored == 0
    assert back(repo, prefix="main/b").restored == 1
    assert {one for one, stone in marks(repo).items() if stone.state is State.MARKED} == {c}


def test_a_tag_that_comes_late_is_taken_off_for_two_days(tagged):
    (old,) = replaced(tagged, "a")
    marked_by(tagged)
    back(tagged, addresses=(old,))
    days(tagged, 1.9)
    tagged.store.tagging.tag_many([tagged.prefix + old], ObjectTag.parse("lakefs-expire-now=1"))
    marked_by(tagged, document("dev/", all=9))
    assert tagged.store.tagging.carrying() == set()


# ---- an owner that has lost its lock


@contextmanager
def taken_over(repo, holder, name, *, after):
    """As ``holder`` is asked for ``name``, somebody else takes the lock; before it acts, or after."""
    act = getattr(holder, name)

    def stolen(*args, **kwargs):
        found = act(*args, **kwargs) if after else None
        with repo.database.write() as tx:
            tx.execute("UPDATE locks SET fence = fence + 1")
        return found if after else act(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(holder, name, stolen)
        yield


def test_who_lost_its_lock_while_it_tagged_writes_nothing_down(tagged):
    replaced(tagged, "a", "b")
    with taken_over(tagged, tagged.store.tagging, "tag_many", after=True), pytest.raises(FencedOff):
        run(retention.job, tagged, HERE, ask(), ALL)
    assert states(tagged) == {State.MARKED}


def test_who_lost_its_lock_before_it_tags_tags_nothing(tagged):
    replaced(tagged, "a", "b")
    with taken_over(tagged, tagging, "tag", after=False), pytest.raises(FencedOff):
        run(retention.job, tagged, HERE, ask(), ALL)
    assert tagged.store.tagging.carrying() == set()


def test_who_lost_its_lock_while_it_looked_for_what_is_gone_writes_nothing_down(tagged):
    (old,) = replaced(tagged, "a")
    marked_by(tagged)
    tagged.store.delete_many([tagged.prefix + old])
    with taken_over(tagged, tagging, "present_keys", after=True), pytest.raises(FencedOff):
        run(retention.job, tagged, HERE, ask(), ALL)
    assert states(tagged) == {State.TAGGED}


def test_who_lost_its_lock_while_it_removed_writes_nothing_down(repo):
    replaced(repo, "a")
    with taken_over(repo, repo.store._store, "delete_many", after=True), pytest.raises(FencedOff):
        run(retention.job, repo, HERE, ask(wait=0), ALL)
    assert states(repo) == {State.REMOVING}


def test_who_lost_its_lock_before_it_removes_removes_nothing(repo):
    (old,) = replaced(repo, "a")
    with taken_over(repo, ripe, "_remove", after=False), pytest.raises(FencedOff):
        run(retention.job, repo, HERE, ask(wait=0), ALL)
    assert states(repo) == {State.MARKED}
    assert old in oracle.stored(repo)


def test_who_lost_its_lock_while_it_restored_shows_nothing(tagged):
    replaced(tagged, "a", "b")
    marked_by(tagged)
    with taken_over(tagged, tagged.store.tagging, "untag_many", after=True), pytest.raises(FencedOff):
        back(tagged, prefix="")
    assert states(tagged) == {State.RESTORING}


def test_who_lost_its_lock_before_it_restores_takes_no_tag_off(tagged):
    replaced(tagged, "a", "b")
    marked_by(tagged)
    with taken_over(tagged, unmark, "_unmark", after=False), pytest.raises(FencedOff):
        back(tagged, prefix="")
    assert states(tagged) == {State.TAGGED}
    assert len(tagged.store.tagging.carrying()) == 2


# ---- faults that these tests found


@pytest.mark.parametrize("kind", [HoldKind.PREFIX, HoldKind.REF])
def test_what_comes_of_age_between_plan_and_sweep_is_held_all_the_same(repo, kind):
    (old,) = replaced(repo, "a")
    marked_by(repo, wait=1)
    later(repo, hours=1)
    order(repo, kind, {HoldKind.PREFIX: "a", HoldKind.REF: first(repo)}[kind])
    later(repo, hours=22)
    planned = plan(retention.job, repo, HERE, ask(wait=1))
    later(repo, hours=2)
    sweep(repo, HERE, planned.run, ALL)
    assert old in oracle.stored(repo)


def test_a_keep_rule_that_comes_after_a_plan_counts_though_its_document_was_given(repo):
    (old,) = replaced(repo, "a")
    planned = plan(retention.job, repo, HERE, ask())
    kept_policy.keep(repo, replace(NO_RULES, keep=(KeepRule("k", prefix="a"),)))
    with suppress(PlanOutdated):
        sweep(repo, HERE, planned.run, ALL)
    assert old not in marks(repo)


def cut_off(repo):
    """A run that hid a batch, and was killed before it said that it is marked; given up."""

    def killed(*_):
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(locks, "SILENCE", timedelta(seconds=-1))  # the dead owner is this very process
        patch.setattr(LakeGate, "settle", killed)
        with pytest.raises(KeyboardInterrupt):
            run(retention.job, repo, HERE, ask(), ALL)
        (gone_by,) = {stone.run for stone in marks(repo).values()}
        give_up(repo, gone_by)
    later(repo, hours=1)
    return gone_by


def test_what_a_run_hid_that_was_given_up_comes_back(repo):
    replaced(repo, "a")
    assert back(repo, run=cut_off(repo)).restored == 1


def test_what_a_run_hid_that_was_given_up_is_followed(repo):
    replaced(repo, "a")
    cut_off(repo)
    for _ in range(2):
        run(retention.job, repo, HERE, ask(document(noncurrent=800)), ALL)
        days(repo, 3)
    assert states(repo) == {State.REMOVED}


def test_what_the_store_removed_on_its_way_back_is_named_by_no_plan(tagged):
    (old,) = replaced(tagged, "a")
    marked_by(tagged)
    tagged.store.tagging.refuses = {tagged.prefix + old}
    assert back(tagged, addresses=(old,)).failed == 1
    tagged.store.tagging.refuses = set()
    plan(retention.job, tagged, HERE, ask())
    tagged.store.delete_many([tagged.prefix + old])
    assert back(tagged, addresses=(old,)).gone == 1
    days(tagged, 3)
    assert marked_by(tagged) == set()
