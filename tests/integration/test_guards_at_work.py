"""Guards at work on real lakes: outgrown policies, small steps, confirmations."""

import itertools
import random
import uuid
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from desilt.clock import ManualClock
from desilt.domain.expiry import Expiry
from desilt.domain.keep_rules import KeepCounts
from desilt.domain.policy import parse
from desilt.errors import FirstRun, OutgrownPolicy, Shrinks
from desilt.executors.executor import HERE
from desilt.jobs.collect import job as collection
from desilt.jobs.expire import job as expiration
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.guarded import refusal
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.lifecycle import kept_policy
from desilt.jobs.lifecycle import lint as linting
from desilt.jobs.runner import plan, run, sweep
from desilt.lake import Lake, schema
from desilt.objects import open_store
from desilt.records import ledger, locks
from desilt.records.database import open_database
from desilt.runs.steps import Action
from desilt.sweep.limits import Limits
from desilt.testing.faults import After, Before, Crash, SteppedDatabase, Steps, stepped
from words import collecting, contents, days, stored

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
USUAL, ASKED = Limits(), Limits(confirm=True)
ALL = Limits(confirm=True, max_share=1.0, allow_empty=True)


def set_policy(repo, document):
    policy = parse(document)
    return kept_policy.keep(repo, policy, linting.findings(repo, policy))


def lifecycle_run(repo, limits=USUAL, **ask):
    return run(lifecycle.job, repo, HERE, lifecycle.job.ask(**ask), limits)[-1]


# ---- a policy that was right when it was set


ARCHIVED = {"logs": {"prefix": "logs/", "days": 7, "branch_days": {"archive": 365}}}


@pytest.fixture
def archive(repo):
    """A branch whose files are to be kept for a year; a run or two have gone by."""
    repo.create_branch("archive", "main")
    for number in range(20):
        repo.put("archive", f"logs/{number}", b"a log")
    repo.commit("archive", "logs")
    repo.put("main", "logs/main", b"a log")
    repo.commit("main", "a log")
    set_policy(repo, ARCHIVED)
    days(repo, 10)
    lifecycle_run(repo, ALL)
    assert len(stored(repo)) == 20
    return repo


def rename(repo, old, new):
    repo.create_branch(new, old)
    repo.delete_branch(old)


def test_a_branch_that_was_renamed_under_its_policy_stops_the_next_run(archive):
    rename(archive, "archive", "archive-2025")
    days(archive, 1)
    for limits in (USUAL, ALL):
        with pytest.raises(OutgrownPolicy, match="branch_days names 'archive', which matches no branch"):
            lifecycle_run(archive, limits)
    assert len(stored(archive)) == 20
    reason, passes = refusal(lifecycle.job, archive, plan(lifecycle.job, archive, HERE).run, Limits())
    assert (type(reason), passes) == (OutgrownPolicy, None)


def test_what_somebody_agrees_to_is_no_news(archive):
    rename(archive, "archive", "archive-2025")
    set_policy(archive, ARCHIVED)  # with --confirm: it is meant so
    archive.create_branch("another", "main")
    days(archive, 1)
    lifecycle_run(archive, ALL)
    assert len(stored(archive)) == 0


def test_a_keep_rule_that_protects_nothing_any_more_stops_the_next_run(repo):
    repo.put("main", "logs/a", b"a")
    repo.put("main", "gold/b", b"b")
    repo.commit("main", "first")
    set_policy(
        repo, {"rules": {"all": {"prefix": "", "days": 7, "noncurrent_only": True}}, "keep": [{"prefix": "gold/"}]}
    )
    repo.create_branch("dev", "main")
    repo.remove("main", "gold/b")
    repo.remove("main", "logs/a")
    repo.commit("main", "gone")
    days(repo, 10)
    with suppress(OutgrownPolicy):
        lifecycle_run(repo, ALL)
    assert any("gold/" in entry.path for entry in repo.list("dev"))
    assert contents(repo, "dev")["gold/b"] == "b"


def test_a_policy_from_a_file_is_looked_at_too(archive):
    made = plan(
        lifecycle.job,
        archive,
        HERE,
        lifecycle.job.ask(policy=parse({"l": {"prefix": "logs/", "days": 8, "branch_days": {"archive": 9}}})),
    ).run
    rename(archive, "archive", "archive-2025")
    with pytest.raises(OutgrownPolicy):
        sweep(archive, HERE, made, ALL)


def test_a_policy_that_is_given_is_not_agreed_to_by_planning_with_it(archive):
    """It was carried out before, and has lost the branch whose files it kept: to plan is to ask, not to say yes."""
    given = parse({"l": {"prefix": "logs/", "days": 8, "branch_days": {"archive": 900}}})
    archive.put("main", "logs/another", b"a log")
    archive.commit("main", "another log")
    days(archive, 10)
    assert lifecycle_run(archive, ALL, policy=given).swept.removed == 1
    rename(archive, "archive", "archive-2025")
    report = plan(lifecycle.job, archive, HERE, lifecycle.job.ask(policy=given))
    assert {one.code for one in report.objections} == {"outgrown-policy", "too-much", "nothing-held"}
    with pytest.raises(OutgrownPolicy, match=r"branch_days names 'archive'.*pass --confirm"):
        sweep(archive, HERE, report.run, Limits(max_share=1.0, allow_empty=True))
    assert len(stored(archive)) == 20
    sweep(archive, HERE, report.run, ALL)  # --confirm: somebody has seen what the plan says
    assert len(stored(archive)) == 0


# ---- small steps


def test_small_steps_on_many_days_do_not_drain_a_lake(repo):
    """Each day's share is below the limit; all of them together are not."""
    for number in range(100):
        repo.put("main", f"logs/{number:03d}", b"x")
    repo.commit("main", "a hundred")
    set_policy(repo, {"logs": {"prefix": "logs/00", "days": 900}})
    days(repo, 10)

    def take(first, last):
        rules = {f"r{number}": {"prefix": f"logs/{number:03d}", "days": 1} for number in range(first, last)}
        return lifecycle_run(repo, ASKED, policy=parse(rules))

    assert take(0, 28).swept.removed == 28
    days(repo, 2)
    assert take(28, 30).swept.removed == 2
    days(repo, 2)
    with pytest.raises(Shrinks, match="69 objects would be left of the 100 that there were on"):
        take(30, 31)
    assert len(stored(repo)) == 70


def test_a_lake_that_turns_over_is_not_refused(repo):
    kept_policy.keep(repo, parse({"logs": {"prefix": "logs/", "days": 6}}))
    for day in range(14):
        for number in range(6):
            repo.put("main", f"logs/{day}/{number}", b"x")
        repo.commit("main", f"day {day}")
        days(repo, 1)
        lifecycle_run(repo, ASKED)
    assert len(stored(repo)) < 60


def test_after_somebody_agreed_to_much_the_rest_is_what_counts(repo):
    for number in range(20):
        repo.put("main", f"logs/{number:02d}", b"x")
    repo.commit("main", "twenty")
    days(repo, 10)
    much = parse({"logs": {"prefix": "logs/0", "days": 1}})
    assert lifecycle_run(repo, ALL, policy=much).swept.removed == 10
    days(repo, 2)
    little = parse({"logs": {"prefix": "logs/11", "days": 1}})
    assert lifecycle_run(repo, ASKED, policy=little).swept.removed == 1


# ---- confirmations


@pytest.fixture
def long_history(repo):
    for number in range(40):
        repo.put("main", "a", str(number).encode())
        repo.commit("main", f"day {number}")
        days(repo, 1)
    repo.put("main", "a", b"now")
    repo.commit("main", "now")
    return repo


def expire(repo, days_old, limits=USUAL, keep=None):
    wish = Expiry(repo.clock() - days_old * DAY, keep)
    return run(expiration.job, repo, HERE, expiration.job.ask(wish=wish), limits)[-1]


def test_a_confirmation_of_thirty_days_is_none_of_thirty_minutes(long_history):
    repo = long_history
    assert expire(repo, 30, ASKED).history["abandoned"] > 0
    with pytest.raises(FirstRun):
        expire(repo, 30 / 1440, Limits(max_share=1.0))
    with pytest.raises(FirstRun):
        expire(repo, 29, Limits(max_share=1.0))
    days(repo, 1)
    expire(repo, 30)  # the same, a day later
    expire(repo, 60)
    days(repo, 5)
    with pytest.raises(FirstRun):
        expire(repo, 30, keep=KeepCounts(last=3))


def test_history_is_not_cut_down_by_more_than_its_share(long_history):
    repo = long_history
    before = len(list(repo.log("main")))
    with pytest.raises(Shrinks, match=r"\d+ commits would be left of the 42"):
        expire(repo, 5, ASKED)
    assert len(list(repo.log("main"))) == before
    for days_old in (35, 32, 30):  # step by step it is no more
        expire(repo, days_old, ASKED)
    with pytest.raises(Shrinks):
        expire(repo, 26, ASKED)
    expire(repo, 5, ALL)
    assert len(list(repo.log("main"))) < 10


def test_a_period_is_as_long_as_it_is_by_the_clock(long_history):
    """Where a manual clock stands, ``--now`` may be ahead of it."""
    repo = long_history
    expire(repo, 35, ASKED)
    wish = Expiry(repo.clock() - 30 * DAY)
    with pytest.raises(FirstRun):
        run(expiration.job, repo, HERE, expiration.job.ask(wish=wish, now=repo.clock() + 10 * DAY), USUAL)
    expire(repo, 30, ASKED)


@pytest.fixture
def dead(repo):
    """Leaves a branch behind that was deleted, by its name."""
    for number in range(40):
        repo.put("main", f"kept{number}", b"kept for good")
    repo.commit("main", "kept")

    def make(name):
        repo.create_branch(name, "main")
        repo.put(name, name, b"x" * 9)
        repo.commit(name, name)
        repo.delete_branch(name)

    return make


def collected(repo, limits=USUAL, **ask):
    return run(collection.job, repo, HERE, collecting(**ask), limits)[-1].swept.removed


def test_a_collection_that_leaves_less_alone_is_confirmed_again(repo, dead):
    dead("one")
    days(repo, 5)
    assert collected(repo, ASKED, unreached_for=DAY) > 0
    dead("two")
    days(repo, 5)
    with pytest.raises(FirstRun):
        collected(repo, unreached_for=timedelta(0))
    with pytest.raises(FirstRun):
        collected(repo, unreached_for=DAY, now=repo.clock() + DAY)
    assert collected(repo, unreached_for=DAY) > 0


def test_of_two_periods_each_is_confirmed(repo, dead):
    """The shorter of them says nothing for the other."""
    hour = timedelta(hours=1)
    dead("one")
    days(repo, 40)
    assert collected(repo, ASKED, older_than=hour, unreached_for=30 * DAY) > 0
    dead("two")
    days(repo, 2)
    with pytest.raises(FirstRun):
        collected(repo, older_than=hour, unreached_for=hour)
    assert collected(repo, ASKED, older_than=DAY, unreached_for=hour) > 0
    dead("three")
    days(repo, 2)
    with pytest.raises(FirstRun):
        collected(repo, older_than=2 * hour, unreached_for=hour)
    assert collected(repo, older_than=DAY, unreached_for=2 * hour) > 0


@pytest.mark.parametrize("job", ["collect", "lifecycle"])
def test_what_was_staged_lately_goes_by_a_yes_of_its_own_there_too(repo, dead, job):
    policy = parse({"logs": {"prefix": "logs/", "days": 1}})

    def act(limits=USUAL, **ask):
        return collected(repo, limits, **ask) if job == "collect" else lifecycle_run(repo, limits, policy=policy, **ask)

    for number in range(3):
        dead(f"dead{number}")
        repo.put("main", f"logs/{number}", b"x")
        repo.commit("main", "a log")
        days(repo, 5)
        if number == 1:
            with pytest.raises(FirstRun):
                act(replace(USUAL, max_share=1.0), dropped_for=timedelta(hours=1))
        act(ALL if number == 0 else replace(USUAL, max_share=1.0, allow_empty=True))


def garbage(repo, branch):
    repo.put(branch, "garbage", b"x")
    repo.reset(branch)
    days(repo, 3)


def gc(repo, limits=USUAL, **ask):
    return run(uncommitted.job, repo, HERE, uncommitted.job.ask(**ask), limits)[-1].swept


@pytest.mark.usefixtures("dead")
def test_a_yes_to_a_branch_and_its_trash_is_none_to_deleting_everywhere(repo):
    repo.create_branch("dev", "main")
    garbage(repo, "dev")
    assert gc(repo, ALL, branch="dev", action=Action.TRASH).removed == 1
    garbage(repo, "main")
    garbage(repo, "dev")
    for more in ({"action": Action.TRASH}, {"branch": "dev"}, {"branch": "main", "action": Action.TRASH}):
        with pytest.raises(FirstRun):
            gc(repo, **more)
    assert gc(repo, Limits(max_share=1.0), branch="dev", action=Action.TRASH).removed == 1
    assert gc(repo, ASKED).removed == 1
    garbage(repo, "dev")
    assert gc(repo, Limits(max_share=1.0), branch="dev").removed == 1


@pytest.mark.usefixtures("dead")
def test_what_was_staged_a_moment_ago_goes_by_a_yes_of_its_own(repo):
    garbage(repo, "main")
    assert gc(repo, ASKED).removed == 1
    garbage(repo, "main")
    for more in ({"dropped_for": timedelta(0)}, {"now": repo.clock() + DAY}):
        with pytest.raises(FirstRun):
            gc(repo, **more)
    assert gc(repo, dropped_for=2 * DAY).removed == 1


# ---- killed


def crowd(job, clock, directory):
    """Six objects that go, and one that stays."""
    database = open_database(f"sqlite://{directory}/{uuid.uuid4().hex}.db", create=True)
    schema.create(database, storage="")
    store = open_store(f"memory://{uuid.uuid4().hex}")
    store.clock, store.delete_batch = clock, 2
    repo = Lake(database, store, clock=clock).create_repository("demo")
    for name in range(6):
        repo.put("main", f"logs/{name}", b"four")
    if job is uncommitted.job:
        repo.reset("main")
    repo.put("main", "kept", b"kept")
    repo.commit("main", "kept")
    clock.now += 5 * DAY
    return repo


@pytest.mark.parametrize("job", [uncommitted.job, lifecycle.job], ids=lambda job: job.name)
@pytest.mark.parametrize("moment", [Before, After])
def test_what_was_removed_before_it_was_killed_counts_as_removed(tmp_path, monkeypatch, job, moment):
    monkeypatch.setattr(locks, "SILENCE", timedelta(seconds=-1))
    monkeypatch.setattr(locks, "BEAT_SECONDS", 1e6)
    ask = (
        lifecycle.job.ask(policy=parse({"l": {"prefix": "logs/", "days": 1}}))
        if job is lifecycle.job
        else uncommitted.job.ask()
    )
    for number in itertools.count(25 + random.randrange(7), 7):
        clock, steps = ManualClock(START), Steps(moment(number))
        repo = crowd(job, clock, tmp_path)
        cut = Lake(SteppedDatabase(repo.database, steps), stepped(repo.store, steps), clock=clock).repository("demo")
        with suppress(Crash):
            run(job, cut, HERE, ask, ALL)
        run(job, repo, HERE, ask, ALL)
        with repo.database.read() as tx:
            totals = [ledger.total(ledger.batches(tx, repo.uid, row.id)) for row in ledger.every(tx, repo.uid)]
        assert sum(total.removed for total in totals) == 6
        assert sum(total.removed_bytes for total in totals) == 24
        assert sum(total.gone for total in totals) == 0
        repo.database.close()
        if steps.taken < number:
            break
    assert number > 60
