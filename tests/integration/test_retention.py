"""Retention from its document to what reads as gone, is removed, comes back, or is archived."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from desilt.domain.policy import parse as parse_policy
from desilt.domain.retention import parse
from desilt.errors import BadRequest, Conflict, EditedSince, Gone, PolicyReplaced, Refused
from desilt.executors.executor import HERE
from desilt.executors.on_spark import OnSpark
from desilt.jobs import trash
from desilt.jobs.collect import job as collection
from desilt.jobs.explain.explain import explain
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.lifecycle import kept_policy
from desilt.jobs.retention import document as documented
from desilt.jobs.retention import job as retention
from desilt.jobs.retention.restore import restore
from desilt.jobs.retention.vacuum import vacuum
from desilt.jobs.runner import plan, run, sweep
from desilt.records import removals as tombstones
from desilt.records.holds import HoldKind
from desilt.records.removals import State
from desilt.runs.steps import Action
from desilt.sweep.limits import Limits
from desilt.testing import oracle, retained
from plan_rows import named
from words import committed, days, put, read

START = datetime(2026, 1, 1, tzinfo=UTC)
SURE = Limits(max_share=1.0, confirm=True, allow_empty=True)
NO_WAIT = timedelta(0)


def rules(prefix="", **expiration):
    """A document of one rule: kinds, and days."""
    periods = {kind: {"days": count} for kind, count in expiration.items()}
    return parse({"rules": [{"status": "enabled", "filter": {"prefix": prefix}, "expiration": periods}]})


def names(repo, document):
    """What a plan would mark: what the oracle says."""
    found = named(repo, plan(retention.job, repo, HERE, retention.job.ask(document=document)))
    assert found == retained.marked(repo, document, repo.clock())
    return found


def retain(repo, document, *, executor=HERE, **options):
    return run(retention.job, repo, executor, retention.job.ask(document=document, **options), SURE)[-1]


def state(repo, address):
    with repo.database.read() as tx:
        found = tombstones.recorded(tx, repo.uid, [address]).get(address)
    return found and found.state


def is_there(repo, address):
    return address in oracle.stored(repo)


# ---- what expires


def test_all_expires_what_is_older_on_every_branch_that_has_it(repo):
    (old,) = [put(repo, "main", "logs/1")]
    repo.commit("main", "old")
    repo.create_branch("dev", "main")
    days(repo, 10)
    young = put(repo, "main", "logs/2")
    repo.commit("main", "young")
    days(repo, 1)
    assert names(repo, rules("main/", all=5)) == set()  # dev has it, too
    assert names(repo, rules("", all=5)) == {old}
    assert names(repo, rules("", all=0.5)) == {old, young}
    assert names(repo, rules("", noncurrent=5)) == set()


def test_what_was_removed_a_minute_ago_is_not_expired_by_its_age(repo):
    old = put(repo, "main", "a")
    repo.commit("main", "a")
    days(repo, 30)
    repo.remove("main", "a")
    repo.commit("main", "no a")
    days(repo, 9)
    assert names(repo, rules("main/", noncurrent=10)) == set()
    days(repo, 2)
    assert names(repo, rules("main/", noncurrent=10)) == {old}


def test_what_came_back_for_a_moment_is_current_since_then(repo):
    old = put(repo, "main", "a")
    first = repo.commit("main", "a")
    repo.remove("main", "a")
    gone = repo.commit("main", "no a")
    days(repo, 30)
    assert names(repo, rules("main/", noncurrent=10)) == {old}
    back = repo.revert("main", gone.id)
    repo.remove("main", "a")
    repo.commit("main", "no a again")
    days(repo, 9)
    assert first.id != back.id
    assert names(repo, rules("main/", noncurrent=10)) == set()
    days(repo, 2)
    assert names(repo, rules("main/", noncurrent=10)) == {old}


def test_staged_entries_expire_by_rules_for_them(repo):
    staged = put(repo, "main", "tmp/1")
    kept = put(repo, "main", "gold/1")
    days(repo, 3)
    assert names(repo, rules("main/tmp/", noncurrent=1)) == set()
    assert names(repo, rules("main/tmp/", uncommitted=5)) == set()
    assert names(repo, rules("main/tmp/", uncommitted=2)) == {staged}
    assert names(repo, rules("", all=2)) == {staged, kept}


def test_an_object_goes_only_when_all_that_uses_it_has_expired(repo):
    shared = put(repo, "main", "a/1")
    repo.commit("main", "a")
    days(repo, 20)
    repo.copy("main", "a/1", "main", "b/1")  # young, and staged
    assert names(repo, rules("main/a/", all=10)) == set()
    assert names(repo, rules("main/", all=10)) == set()
    days(repo, 11)
    assert names(repo, rules("main/", all=10)) == {shared}
    assert names(repo, rules("main/a/", all=10, uncommitted=1)) == set()


def test_tags_holds_keep_rules_and_unreached_commits_hold(repo):
    everything = rules("", all=5)
    tagged, held, kept, lost, plain = (put(repo, "main", f"{name}/1") for name in ("t", "h", "k", "l", "p"))
    repo.commit("main", "all")
    repo.create_branch("side", "main")
    put(repo, "side", "s")
    repo.commit("side", "s")
    days(repo, 10)
    assert {tagged, held, kept, lost, plain} <= names(repo, everything)
    repo.orders.add(HoldKind.PREFIX, "h/", reason="because", until=None)
    repo.orders.add(HoldKind.ADDRESS, plain, reason="because", until=None)
    kept_policy.keep(repo, parse_policy({"rules": {"r": {"prefix": "zz", "days": 9}}, "keep": [{"prefix": "k/"}]}))
    found = named(repo, plan(retention.job, repo, HERE, retention.job.ask(document=everything)))
    assert found == {tagged, lost, oracle_address(repo, "side", "s")}
    repo.create_tag("v1", "main")
    found = named(repo, plan(retention.job, repo, HERE, retention.job.ask(document=everything)))
    assert found == {oracle_address(repo, "side", "s")}
    repo.delete_branch("side")
    assert not named(repo, plan(retention.job, repo, HERE, retention.job.ask(document=everything)))


def oracle_address(repo, ref, path):
    return repo.stat(ref, path).address


# ---- marked, hidden, removed


def test_what_is_marked_is_gone_for_readers_and_later_commits_inherit_it(repo):
    address = put(repo, "main", "logs/1", "old")
    put(repo, "main", "other", "stays")
    repo.commit("main", "both")
    days(repo, 10)
    put(repo, "main", "other", "newer")
    repo.commit("main", "newer")
    report = retain(repo, rules("main/logs/", all=5))
    assert (report.swept.removed, report.swept.action) == (1, "mark")
    assert (state(repo, address), is_there(repo, address)) == (State.MARKED, True)
    assert report.marks["marked"].objects == 1
    with pytest.raises(Gone, match=r"rule 1 \(all\)"):
        read(repo, "main", "logs/1")
    with pytest.raises(Gone):
        repo.copy("main", "logs/1", "main", "copy")
    repo.create_branch("dev", "main")
    with pytest.raises(Gone):
        repo.copy("main", "logs/1", "dev", "copy")
    committed(repo, "dev", more="1")
    repo.merge("dev", "main")
    repo.create_tag("v1", "main")
    assert [entry.path for entry in repo.list("v1")] == ["more", "other"]
    assert [entry.path for entry in repo.list("v1", gone=True)] == ["logs/1", "more", "other"]
    restore(repo, HERE, run="last")
    assert read(repo, "v1", "logs/1") == read(repo, "dev", "logs/1") == "old"


def test_what_waited_is_removed_and_what_did_not_stays(repo):
    first = put(repo, "main", "logs/1")
    repo.commit("main", "1")
    days(repo, 6)
    second = put(repo, "main", "logs/2")
    repo.commit("main", "2")
    document = rules("main/logs/", all=5)
    retain(repo, document)
    days(repo, 0.9)
    retain(repo, document)
    assert is_there(repo, first)
    days(repo, 5)
    report = retain(repo, document)
    assert (state(repo, first), is_there(repo, first)) == (State.REMOVED, False)
    assert (state(repo, second), is_there(repo, second)) == (State.MARKED, True)
    assert {name: one.objects for name, one in report.marks.items()} == {"marked": 1, "removed": 1}
    with pytest.raises(Gone):
        read(repo, "main", "logs/1")


@pytest.mark.parametrize("kind", HoldKind)
def test_what_people_order_to_be_kept_is_not_removed_though_it_was_marked(repo, kind):
    address = put(repo, "main", "logs/1")
    commit = repo.commit("main", "1")
    days(repo, 10)
    document = rules("main/logs/", all=5)
    value = {HoldKind.PREFIX: "logs/", HoldKind.ADDRESS: address, HoldKind.REF: commit.id}[kind]
    if kind is HoldKind.ADDRESS:
        hold = repo.orders.add(kind, value, reason="because", until=None)
        assert names(repo, document) == set()
        repo.orders.lift(hold.id)
    retain(repo, document)
    days(repo, 3)
    if kind is HoldKind.ADDRESS:
        with pytest.raises(Gone):
            repo.orders.add(kind, value, reason="because", until=None)
        return
    repo.orders.add(kind, value, reason="because", until=None)
    retain(repo, document)
    assert (state(repo, address), is_there(repo, address)) == (State.MARKED, True)


def test_a_hold_made_while_it_is_removed_lets_all_of_it_wait(repo):
    address = put(repo, "main", "logs/1")
    repo.commit("main", "1")
    days(repo, 10)
    document = rules("main/logs/", all=5)
    retain(repo, document)
    days(repo, 3)
    planned = plan(retention.job, repo, HERE, retention.job.ask(document=document), SURE)
    repo.orders.add(HoldKind.PREFIX, "logs/", reason="because", until=None)
    sweep(repo, HERE, planned.run, SURE)
    assert (state(repo, address), is_there(repo, address)) == (State.MARKED, True)


def test_a_staged_entry_that_is_overwritten_committed_or_renewed_meanwhile(repo):
    overwritten, renewed, kept_on, expired = (put(repo, "main", f"tmp/{n}") for n in range(4))
    days(repo, 10)
    document = rules("main/tmp/", uncommitted=5)
    planned = plan(retention.job, repo, HERE, retention.job.ask(document=document), SURE)
    assert named(repo, planned) == {overwritten, renewed, kept_on, expired}
    put(repo, "main", "tmp/0", "new")
    repo.copy("main", "tmp/1", "main", "tmp/copy")
    report = sweep(repo, HERE, planned.run, SURE)
    assert (report.swept.removed, report.swept.held_again) == (2, 2)
    assert [state(repo, one) for one in (overwritten, renewed)] == [None, None]
    assert [state(repo, one) for one in (kept_on, expired)] == [State.MARKED, State.MARKED]
    other = put(repo, "main", "tmp/9")
    days(repo, 10)
    planned = plan(retention.job, repo, HERE, retention.job.ask(document=document), SURE)
    repo.commit("main", "all of it")
    report = sweep(repo, HERE, planned.run, SURE)
    assert report.swept.removed == 0
    assert state(repo, other) is None
    with pytest.raises(Gone):
        read(repo, "main", "tmp/3")  # the commit inherits what was gone
    assert read(repo, "main", "tmp/0") == "new"


def test_another_document_makes_a_plan_void(repo):
    put(repo, "main", "logs/1")
    repo.commit("main", "1")
    days(repo, 10)
    documented.keep(repo, rules("main/logs/", all=5))
    planned = plan(retention.job, repo, HERE, retention.job.ask(), SURE)
    documented.keep(repo, rules("main/logs/", all=50))
    with pytest.raises(PolicyReplaced):
        sweep(repo, HERE, planned.run, SURE)
    documented.keep(repo, rules("main/logs/", all=5))
    kept_policy.keep(repo, parse_policy({"rules": {"r": {"prefix": "zz", "days": 9}}, "keep": [{"prefix": "logs/"}]}))
    with pytest.raises(PolicyReplaced):
        sweep(repo, HERE, planned.run, SURE)


def test_the_first_run_wants_a_yes(repo):
    put(repo, "main", "logs/1")
    put(repo, "main", "b")
    repo.commit("main", "1")
    days(repo, 10)
    documented.keep(repo, rules("main/logs/", all=5))
    with pytest.raises(Refused, match="never carried out"):
        run(retention.job, repo, HERE, retention.job.ask(), Limits(max_share=1.0))


def test_it_has_no_use_for_the_trash(repo):
    with pytest.raises(BadRequest, match="no use for the trash"):
        retention.job.ask(action="trash")
    with pytest.raises(BadRequest, match="cannot mark what goes"):
        lifecycle.job.ask(action="mark")
    put(repo, "main", "logs/1")
    repo.commit("main", "1")
    days(repo, 10)
    report = retain(repo, rules("main/logs/", all=5))
    days(repo, 1)
    with pytest.raises(Conflict, match="desilt retention restore"):
        trash.bring_back(repo, HERE, report.run)


def test_it_is_the_same_on_spark(repo, spark):
    addresses = {put(repo, "main", f"logs/{number}") for number in range(5)}
    repo.commit("main", "1")
    days(repo, 10)
    document = rules("main/logs/", all=5)
    retain(repo, document, executor=OnSpark(spark))
    assert {state(repo, one) for one in addresses} == {State.MARKED}
    days(repo, 2)
    retain(repo, document, executor=OnSpark(spark))
    assert {state(repo, one) for one in addresses} == {State.REMOVED}


# ---- back again


def test_marks_are_taken_back_by_run_prefix_or_address(repo):
    first, second, third = (put(repo, "main", f"{name}/1", name) for name in "abc")
    staged = put(repo, "main", "d/1", "d")
    repo.commit("main", "some")
    repo.create_branch("dev", "main")
    fourth = put(repo, "dev", "a/2", "a2")
    days(repo, 10)
    retain(repo, rules("", all=5))
    assert {state(repo, one) for one in (first, second, third, staged, fourth)} == {State.MARKED}
    assert restore(repo, HERE, prefix="main/a/").restored == 1
    assert read(repo, "main", "a/1") == "a"
    assert restore(repo, HERE, prefix="dev/a/").restored == 1  # the first is there already
    assert read(repo, "dev", "a/2") == "a2"
    assert restore(repo, HERE, addresses=(second, third)).restored == 2
    assert restore(repo, HERE, run="last").restored == 1
    assert read(repo, "main", "d/1") == "d"
    retain(repo, rules("", all=5))
    assert state(repo, first) is State.RESTORED  # for as long as a ticket lives
    days(repo, 2)
    retain(repo, rules("", all=5))
    assert state(repo, first) is State.MARKED


def test_what_went_in_between_is_told_as_gone(repo):
    first, _ = (put(repo, "main", f"{name}/1", name) for name in "ab")
    repo.commit("main", "some")
    days(repo, 10)
    retain(repo, rules("", all=5))
    repo.store.delete_many([repo.prefix + first])
    back = restore(repo, HERE, run="last")
    assert (back.restored, back.gone, back.failed) == (1, 1, 0)
    assert read(repo, "main", "b/1") == "b"
    with pytest.raises(Gone, match=r"rule 1 \(all\)"):
        read(repo, "main", "a/1")
    assert restore(repo, HERE, run="last").gone == 1


def test_restoring_wants_to_know_what(repo):
    with pytest.raises(BadRequest, match="--run, --prefix or --address"):
        restore(repo, HERE)


# ---- beside other jobs, on the same objects


def removing(repo, job, **words):
    return run(job, repo, HERE, job.ask(**words), SURE)[-1]


LIFECYCLE = parse_policy({"rules": {"old": {"prefix": "logs/", "days": 5}}})
JOBS = {
    "lifecycle": lambda repo: removing(repo, lifecycle.job, policy=LIFECYCLE),
    "lifecycle, to the trash": lambda repo: removing(repo, lifecycle.job, policy=LIFECYCLE, action=Action.TRASH),
    "gc": lambda repo: removing(repo, uncommitted.job),
    "collect": lambda repo: removing(repo, collection.job, unreached_for=NO_WAIT),
}


def lost_interest(repo):
    """Nothing points to what is on dev any more, staged or committed."""
    repo.reset("dev")
    repo.delete_branch("dev")
    days(repo, 3)


def two_objects(repo):
    """One that a commit has, one that is staged; on main, and on dev alone."""
    repo.create_branch("dev", "main")
    on_main, on_dev = put(repo, "main", "logs/1"), put(repo, "dev", "logs/2")
    repo.commit("main", "1")
    repo.commit("dev", "2")
    staged = put(repo, "dev", "logs/3")
    days(repo, 10)
    return on_main, on_dev, staged


@pytest.mark.parametrize("other", JOBS)
def test_what_is_marked_is_left_alone_by_every_other_job(repo, other):
    found = two_objects(repo)
    document = rules("", all=5)
    retain(repo, document, wait=timedelta(days=30))
    if other in ("gc", "collect"):
        lost_interest(repo)
    report = JOBS[other](repo)
    assert (report.removed.objects - report.tables.objects, report.swept.held_again) == (0, 0)
    assert [state(repo, one) for one in found] == [State.MARKED] * 3
    assert all(is_there(repo, one) for one in found)
    days(repo, 40)
    retain(repo, document)
    assert [state(repo, one) for one in found] == [State.REMOVED] * 3
    assert not any(is_there(repo, one) for one in found)


@pytest.mark.parametrize("other", JOBS)
def test_what_another_job_removed_is_not_marked(repo, other):
    two_objects(repo)
    if other in ("gc", "collect"):
        lost_interest(repo)
    JOBS[other](repo)
    before = {one: state(repo, one) for one in everything_known(repo)}
    retain(repo, rules("", all=5))
    after = {one: state(repo, one) for one in before}
    assert {one for one in before if before[one] is not None} <= {one for one in before if after[one] == before[one]}
    assert all(is_there(repo, one) for one, now in after.items() if now is State.MARKED)


def everything_known(repo):
    return sorted(oracle.committed(repo) | oracle.staged(repo) | set(oracle.stored(repo)))


@pytest.mark.parametrize("other", JOBS)
def test_plans_of_both_at_once_remove_each_object_once(repo, other):
    found = two_objects(repo)
    document = rules("", all=5)
    planned = plan(retention.job, repo, HERE, retention.job.ask(document=document), SURE)
    if other in ("gc", "collect"):
        lost_interest(repo)
    JOBS[other](repo)
    before = {one: state(repo, one) for one in found}
    late = replace(SURE, max_plan_age=timedelta(days=9))
    if other == "collect":
        with pytest.raises(EditedSince):
            sweep(repo, HERE, planned.run, late)
        return
    sweep(repo, HERE, planned.run, late)
    for one in found:
        assert state(repo, one) in ([before[one]] if before[one] else [State.MARKED, None])


def test_what_came_back_from_the_trash_can_be_marked_and_the_other_way_round(repo):
    on_main, _, _ = two_objects(repo)
    report = JOBS["lifecycle, to the trash"](repo)
    trash.bring_back(repo, HERE, report.run)
    days(repo, 2)
    retain(repo, rules("", all=5))
    assert state(repo, on_main) is State.MARKED
    restore(repo, HERE, run="last")
    days(repo, 2)
    JOBS["lifecycle"](repo)
    assert (state(repo, on_main), is_there(repo, on_main)) == (State.REMOVED, False)


def test_a_marked_object_that_nothing_points_to_any_more_is_not_forgotten(repo):
    staged = put(repo, "main", "tmp/1")
    days(repo, 10)
    document = rules("main/tmp/", uncommitted=5)
    retain(repo, document)
    repo.reset("main")
    days(repo, 3)
    retain(repo, document)
    assert (state(repo, staged), is_there(repo, staged)) == (State.REMOVED, False)


# ---- the ledger, kept short


def test_what_nothing_points_to_moves_to_the_archive_and_is_explained_from_there(repo):
    on_main, on_dev, staged = two_objects(repo)
    document = rules("", all=5)
    retain(repo, document, wait=NO_WAIT)
    retain(repo, document, wait=NO_WAIT)
    days(repo, 100)
    found = vacuum(repo, HERE)
    assert (found.tombstones, found.used) == (0, 3)
    lost_interest(repo)
    JOBS["collect"](repo)
    found = vacuum(repo, HERE)
    assert (found.tombstones, found.used) == (2, 1)
    assert [state(repo, one) for one in (on_main, on_dev, staged)] == [State.REMOVED, None, None]
    (told,) = explain(repo, on_dev)
    assert (told.verdict, told.removal.rule, told.removal.job) == ("removed", "rule 1 (all)", "retention")
    assert vacuum(repo, HERE).tombstones == 0
    with pytest.raises(Gone):
        read(repo, "main", "logs/1")


def test_explain_knows_the_states(repo):
    on_main, _, _ = two_objects(repo)
    document = rules("", all=5)
    retain(repo, document)
    (told,) = explain(repo, on_main)
    assert (told.verdict, told.removal.state) == ("marked", State.MARKED)
    days(repo, 2)
    retain(repo, document)
    (told,) = explain(repo, on_main)
    assert (told.verdict, told.removal.state) == ("removed", State.REMOVED)
