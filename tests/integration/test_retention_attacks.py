"""Retention under attack: what people ordered, restored or are shown is neither tagged nor removed, whatever happens.

Each test replays how an object was lost once, or how somebody tried in vain: an order in
the wrong moment, a copy of the database from in between, a tag that comes late.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from copies import backup, put_back
from desilt.domain.policy import parse as parse_policy
from desilt.domain.retention import parse
from desilt.errors import BadRequest, Conflict, Gone, PolicyReplaced, Refused, WentBack
from desilt.executors.executor import HERE
from desilt.jobs import trash, unfinished
from desilt.jobs.lifecycle import kept_policy
from desilt.jobs.retention import document as documented
from desilt.jobs.retention import job as retention
from desilt.jobs.retention import restore as restoring
from desilt.jobs.retention.restore import restore
from desilt.jobs.runner import plan, run, sweep
from desilt.lake.journal import name_of
from desilt.objects.tags import EXPIRE_NOW
from desilt.records import removals as tombstones
from desilt.records.holds import Hold, HoldKind
from desilt.records.removals import State
from desilt.recovery.recover import recover, survey
from desilt.sweep import batch_tags, batches, tag
from desilt.sweep.limits import Limits
from desilt.testing import oracle
from tagged_store import Jobs, Tags
from words import add_hold, days, later, lift_hold, put, read, stage

START = datetime(2026, 1, 1, tzinfo=UTC)
SURE = Limits(max_share=1.0, confirm=True, allow_empty=True)
NO_WAIT = timedelta(0)
BATCH = {"batch": True, "account_id": "123456789012", "role_arn": "arn:aws:iam::123456789012:role/tagger"}
KEEP_LOGS = parse_policy({"rules": {"r": {"prefix": "zz", "days": 9}}, "keep": [{"prefix": "logs/"}]})
KEEP_GOLD = parse_policy({"rules": {"r": {"prefix": "zz", "days": 9}}, "keep": [{"prefix": "gold/"}]})


@pytest.fixture
def repo(memory_repo):
    """In memory, which is quicker."""
    return memory_repo


@pytest.fixture
def tags(repo, monkeypatch):
    """The store has tags, from here on."""
    made = Tags(repo)
    monkeypatch.setattr(type(repo.store), "tagging", made)
    return made


@pytest.fixture
def jobs(tags, monkeypatch):
    """And it has batch jobs."""
    made = Jobs(tags)
    monkeypatch.setattr(batch_tags, "BatchJobs", made)
    monkeypatch.setattr(batch_tags, "_bucket", lambda repository: repository.store)
    monkeypatch.setattr(batch_tags, "POLL_SECONDS", 0.0)
    return made


@pytest.fixture(params=["tags", "no tags"])
def some_tags(request):
    """On a store with tags, and on one without."""
    return request.getfixturevalue("tags") if request.param == "tags" else None


def rules(prefix, **expiration):
    """A document of one rule: kinds, and days."""
    periods = {kind: {"days": count} for kind, count in expiration.items()}
    return parse({"rules": [{"status": "enabled", "filter": {"prefix": prefix}, "expiration": periods}]})


LOGS = rules("main/logs/", all=5)
NOTHING = rules("main/zz/", all=5)


def asked(document=LOGS, **options):
    return retention.job.ask(document=document, **options)


def retain(repo, document=LOGS, limits=SURE, **options):
    return run(retention.job, repo, HERE, asked(document, **options), limits)[-1]


def planned(repo, document=LOGS, **options):
    return plan(retention.job, repo, HERE, asked(document, **options), SURE)


def old_log(repo, path="logs/1"):
    """The address of a log that has expired."""
    address = put(repo, "main", path, "precious")
    repo.commit("main", path)
    days(repo, 10)
    return address


def state(repo, address):
    with repo.database.read() as tx:
        found = tombstones.recorded(tx, repo.uid, [address]).get(address)
    return found and found.state


def is_there(repo, address):
    return address in oracle.stored(repo)


def shown(repo):
    """The addresses that some reader is shown, at any branch or tag."""
    return {entry.address for ref in (*repo.branches(), *repo.tags()) for entry in repo.list(ref.name)}


def judge(repo, tags=None):
    """Nothing that is shown is lost, or carries a tag; nor would it be lost if the rule of the bucket came by."""
    lost = shown(repo) - set(oracle.stored(repo))
    assert not lost, f"shown, and not there: {sorted(lost)}"
    if tags is not None:
        marked = shown(repo) & tags.tagged()
        assert not marked, f"shown, and tagged: {sorted(marked)}"


def ripen(repo):
    """Whatever somebody has sent has arrived by now."""
    later(repo, minutes=11)


def killed(*_):
    raise KeyboardInterrupt


def cut_off(repo, monkeypatch, where, name, **options):
    """A run that died there, and was given up: its id."""
    with monkeypatch.context() as patch:
        patch.setattr(where, name, killed)
        with pytest.raises(KeyboardInterrupt):
            retain(repo, **options)
    return given_up(repo)


def given_up(repo):
    (row,) = unfinished.unfinished(repo)
    unfinished.give_up(repo, row.id)
    return row.id


def copying(repo, monkeypatch, where, name):
    """Copies of the database, made each time somebody is about to do that."""
    made, real = [], getattr(where, name)

    def copied_first(*words):
        made.append(backup(repo.database))
        return real(*words)

    monkeypatch.setattr(where, name, copied_first)
    return made


def go_back(repo, copy):
    """The database as it was; whoever was at work then is not any more."""
    put_back(repo.database, copy)
    with repo.database.write() as tx:
        tx.execute("UPDATE locks SET owner = ''")


# ---- orders that come in the wrong moment


def order(repo, kind, address):
    """A hold on the one log there is; its id. An address is held past the check that it is not gone."""
    commit = next(iter(repo.log("main")))
    value = {HoldKind.PREFIX: "logs/", HoldKind.REF: commit.id, HoldKind.ADDRESS: address}[kind]
    made = Hold("order-1", kind, value, "a court's", repo.clock(), None)
    add_hold(repo, made)
    return made.id


@pytest.mark.parametrize("kind", HoldKind)
def test_what_is_held_stays_though_it_became_ripe_between_plan_and_sweep(repo, kind):
    address = old_log(repo)
    retain(repo)
    later(repo, minutes=30)
    order(repo, kind, address)
    later(repo, minutes=10)
    made = planned(repo)
    later(repo, hours=23, minutes=50)  # the plan is not stale, the wait is over
    sweep(repo, HERE, made.run, SURE)
    assert (state(repo, address), is_there(repo, address)) == (State.MARKED, True)
    retain(repo)
    assert is_there(repo, address)


def test_a_plan_removes_what_was_ripe_when_it_was_made(repo):
    address = old_log(repo)
    retain(repo)
    later(repo, hours=23)
    made = planned(repo)
    later(repo, hours=2)
    sweep(repo, HERE, made.run, SURE)
    assert is_there(repo, address)
    retain(repo)
    assert not is_there(repo, address)


@pytest.mark.parametrize("kind", HoldKind)
def test_what_is_held_stays_though_a_run_looks_back(repo, kind):
    address = old_log(repo)
    retain(repo)
    order(repo, kind, address)
    days(repo, 3)
    retain(repo, now=repo.clock() - timedelta(days=3))
    assert (state(repo, address), is_there(repo, address)) == (State.MARKED, True)


def test_an_address_that_is_held_stays_though_nothing_points_to_it_any_more(repo):
    address = put(repo, "main", "tmp/1")
    days(repo, 10)
    document = rules("main/tmp/", uncommitted=5)
    retain(repo, document)
    repo.reset("main")
    order(repo, HoldKind.ADDRESS, address)
    days(repo, 3)
    retain(repo, document)
    assert (state(repo, address), is_there(repo, address)) == (State.MARKED, True)


def busy_tagger(repo, tags):
    """The address of a log that a run marked, and could not tag."""
    address = old_log(repo)
    tags.fails.add(repo.prefix + address)
    retain(repo)
    assert state(repo, address) is State.TAG_FAILED
    tags.fails.clear()
    return address


@pytest.mark.parametrize("kind", HoldKind)
def test_what_is_held_before_it_is_tagged_is_not_tagged(repo, tags, kind):
    address = busy_tagger(repo, tags)
    hold = order(repo, kind, address)
    later(repo, hours=1)
    retain(repo)
    assert state(repo, address) in (State.MARKED, State.TAG_FAILED)
    assert tags.tagged() == set()
    lift_hold(repo, hold)
    retain(repo)
    assert tags.tagged() == {address}


def test_what_is_held_between_plan_and_sweep_is_not_tagged(repo, tags):
    address = busy_tagger(repo, tags)
    made = planned(repo)
    order(repo, HoldKind.PREFIX, address)
    sweep(repo, HERE, made.run, SURE)
    assert (state(repo, address), tags.tagged()) == (State.TAG_FAILED, set())


def test_what_is_held_is_not_given_to_a_batch_job(repo, tags, jobs):
    held, other = old_log(repo), put(repo, "main", "logs/2")
    tags.fails.add(repo.prefix + held)
    retain(repo)
    tags.fails.clear()
    order(repo, HoldKind.ADDRESS, held)
    repo.commit("main", "another")
    days(repo, 10)
    retain(repo, **BATCH)
    assert [job["keys"] for job in jobs.made] == [[repo.prefix + other]]
    assert tags.tagged() == {other}


@pytest.mark.parametrize("kind", HoldKind)
def test_what_is_held_after_it_was_tagged_loses_the_tag_and_stays_hidden(repo, tags, kind):
    address = old_log(repo)
    retain(repo, tag="other=1")
    retain(repo)
    assert tags.tagged() == {address}
    hold = order(repo, kind, address)
    tags.fails.add(repo.prefix + address)
    retain(repo)
    assert (state(repo, address), tags.tagged()) == (State.TAGGED, {address})  # nobody knows better
    tags.fails.clear()
    retain(repo)
    assert (state(repo, address), tags.tagged()) == (State.MARKED, set())
    with pytest.raises(Gone):
        read(repo, "main", "logs/1")
    lift_hold(repo, hold)
    retain(repo)
    assert (state(repo, address), tags.tagged()) == (State.TAGGED, {address})


def answer_lost(repo, tags, _jobs, monkeypatch):
    """The store has set the tag, and did not come to say so."""
    with monkeypatch.context() as patch:
        patch.setattr(tags, "loses", {repo.prefix + one for one in shown(repo)})
        retain(repo)


def tagger_killed(repo, _tags, _jobs, monkeypatch):
    """The tag is set, and nothing of that is in the ledger."""
    cut_off(repo, monkeypatch, tag, "settle")


def job_left_alone(repo, _tags, _jobs, monkeypatch):
    """The store is about to set the tag, and nobody waits for that."""
    cut_off(repo, monkeypatch, batch_tags, "_wait", **BATCH)


@pytest.mark.parametrize("happens", [answer_lost, tagger_killed, job_left_alone])
def test_what_is_held_loses_a_tag_that_the_ledger_does_not_know(repo, tags, jobs, monkeypatch, happens):
    address = old_log(repo)
    happens(repo, tags, jobs, monkeypatch)
    assert state(repo, address) in (State.MARKED, State.TAG_FAILED)
    order(repo, HoldKind.PREFIX, address)
    later(repo, hours=1)
    retain(repo)
    jobs.work()
    later(repo, hours=1)
    retain(repo)
    assert tags.tagged() == set()


def test_a_keep_rule_set_after_a_plan_for_a_document_of_its_own_makes_it_void(repo):
    address = old_log(repo)
    made = planned(repo)
    kept_policy.keep(repo, KEEP_LOGS)
    with pytest.raises(PolicyReplaced):
        sweep(repo, HERE, made.run, SURE)
    assert state(repo, address) is None
    retain(repo)
    assert state(repo, address) is None


def test_a_keep_rule_set_while_a_run_marks_stops_it(repo, monkeypatch):
    address, real = old_log(repo), batches.sweep_piece

    def kept_first(piece):
        kept_policy.keep(repo, KEEP_LOGS)
        return real(piece)

    monkeypatch.setattr(batches, "sweep_piece", kept_first)
    with pytest.raises(PolicyReplaced):
        retain(repo)
    assert state(repo, address) is None


@pytest.mark.parametrize("said", ["as old as the first", "no time at all"])
def test_an_entry_staged_since_the_plan_holds_whatever_its_time(repo, said):
    entry = repo.put("main", "tmp/1", b"precious")
    repo.orders.add(HoldKind.PREFIX, "gold/", reason="a court's", until=None)
    kept_policy.keep(repo, KEEP_GOLD)
    days(repo, 10)
    document = rules("main/", all=5)
    made = planned(repo, document)
    # a copy, on a machine whose clock is days behind
    stage(repo, "main", replace(entry, path="gold/1", modified_ns=entry.modified_ns if "old" in said else 0))
    report = sweep(repo, HERE, made.run, SURE)
    assert (report.swept.removed, report.swept.held_again) == (0, 1)
    assert state(repo, entry.address) is None
    retain(repo, document)
    assert state(repo, entry.address) is None


def test_an_entry_staged_again_where_the_plan_saw_it_holds_if_it_has_no_time(repo):
    entry = repo.put("main", "tmp/1", b"precious")
    days(repo, 10)
    made = planned(repo, rules("main/", all=5), dropped_for=NO_WAIT)
    stage(repo, "main", replace(entry, modified_ns=0))
    sweep(repo, HERE, made.run, SURE)
    assert state(repo, entry.address) is None


# ---- copies of the database that were made in between


def refuses(repo, **options):
    """Nothing goes on with this database before it is recovered."""
    assert survey(repo)
    with pytest.raises(WentBack, match="desilt lake recover"):
        repo.gate.check()
    with pytest.raises(WentBack):
        retain(repo, **options)
    with pytest.raises(WentBack):
        restore(repo, HERE, prefix="main/")


def test_a_copy_made_while_a_run_marks_is_refused_and_learns_the_marks(repo, tags, monkeypatch):
    address = old_log(repo)
    retain(repo, NOTHING)  # the tag is known: nothing else than the marks tells that there was more
    with monkeypatch.context() as patch:
        copies = copying(repo, patch, batches, "sweep_piece")
        retain(repo)
    assert tags.tagged() == {address}
    go_back(repo, copies[0])
    assert address in shown(repo)
    refuses(repo)
    recover(repo)
    assert state(repo, address) is State.MARKED
    judge(repo, tags)
    repo.create_tag("audit", "main")
    retain(repo)
    judge(repo, tags)
    ripen(repo)
    assert restore(repo, HERE, addresses=(address,)).restored == 1
    assert (read(repo, "audit", "logs/1"), tags.tagged()) == ("precious", set())


def test_a_copy_made_while_a_run_marks_and_removes_is_refused_and_shows_nothing_that_is_gone(repo, monkeypatch):
    address = old_log(repo)
    with monkeypatch.context() as patch:
        copies = copying(repo, patch, batches, "sweep_piece")
        retain(repo, wait=NO_WAIT)
    assert not is_there(repo, address)
    go_back(repo, copies[0])
    assert address in shown(repo)
    refuses(repo)
    recover(repo)
    judge(repo)
    with pytest.raises(Gone):
        read(repo, "main", "logs/1")


def test_a_copy_made_while_a_restore_is_under_way_is_refused_and_brings_it_back(repo, some_tags, monkeypatch):
    address = old_log(repo)
    retain(repo)
    ripen(repo)
    copies = copying(repo, monkeypatch, restoring, "unmark")
    assert restore(repo, HERE, run="last").restored == 1
    go_back(repo, copies[0])
    refuses(repo)
    recover(repo)
    assert (state(repo, address), read(repo, "main", "logs/1")) == (State.RESTORED, "precious")
    judge(repo, some_tags)
    days(repo, 3)
    retain(repo, NOTHING, replace(SURE, after_restore=True))
    assert is_there(repo, address)
    judge(repo, some_tags)


def test_a_copy_from_before_a_restore_brings_it_back_without_a_tag(repo, tags):
    address = old_log(repo)
    retain(repo, tag="other=1")
    ripen(repo)
    copy = backup(repo.database)
    restore(repo, HERE, run="last")
    put_back(repo.database, copy)
    tags.tag_many([repo.prefix + address], EXPIRE_NOW)  # which comes late
    recover(repo)
    assert (state(repo, address), tags.tagged()) == (State.RESTORED, set())


@pytest.mark.parametrize("give_up", [False, True])
def test_a_copy_from_before_a_run_learns_what_it_marked_and_which_tags_it_set(repo, tags, give_up):
    address = old_log(repo)
    copy = backup(repo.database)
    retain(repo, tag="other=1")
    later(repo, hours=1)
    put_back(repo.database, copy)
    recover(repo, give_up=give_up)
    assert (state(repo, address), tags.tagged()) == (State.MARKED, {address})
    judge(repo, tags)
    ripen(repo)
    assert restore(repo, HERE, addresses=(address,)).restored == 1
    assert tags.tagged() == set()
    judge(repo, tags)


@pytest.mark.parametrize("journal", ["whole", "broken"])
def test_giving_a_journal_up_forgets_no_restore(repo, some_tags, journal):
    address = old_log(repo)
    retain(repo)
    ripen(repo)
    copy = backup(repo.database)
    repo.create_tag("v0", "main")
    restore(repo, HERE, run="last")
    repo.create_tag("v1", "main")
    newest = repo.generation()
    put_back(repo.database, copy)
    if journal == "broken":
        repo.store.put(repo.prefix + name_of(newest), [b"rot"])
        assert survey(repo).broken
    if some_tags:
        some_tags.tag_many([repo.prefix + address], EXPIRE_NOW)  # which comes late
    recover(repo, give_up=True)
    assert (state(repo, address), read(repo, "main", "logs/1")) == (State.RESTORED, "precious")
    judge(repo, some_tags)
    days(repo, 3)
    retain(repo, NOTHING, replace(SURE, after_restore=True))
    assert is_there(repo, address)


def test_a_recovery_keeps_staged_entries_of_what_is_on_its_way_back(repo, tags):
    address = put(repo, "main", "tmp/1", "precious")
    days(repo, 10)
    retain(repo, rules("main/tmp/", uncommitted=5))
    ripen(repo)
    tags.fails.add(repo.prefix + address)
    assert restore(repo, HERE, run="last").failed == 1
    assert state(repo, address) is State.RESTORING
    copy = backup(repo.database)
    repo.create_tag("v1", "main")
    put_back(repo.database, copy)
    assert recover(repo).dropped == 0
    assert state(repo, address) is State.RESTORING  # it may carry a tag: it stays hidden
    tags.fails.clear()
    assert restore(repo, HERE, addresses=(address,)).restored == 1
    assert (read(repo, "main", "tmp/1"), tags.tagged()) == ("precious", set())


# ---- restored, and still in danger


@pytest.mark.parametrize("what", ["run", "prefix", "addresses"])
def test_a_restore_waits_until_every_tag_that_was_sent_has_arrived(repo, tags, what):
    address = old_log(repo)
    report = retain(repo)
    words = {"run": report.run, "prefix": "main/logs/", "addresses": (address,)}
    with pytest.raises(Conflict, match="may still arrive; try again in 10 min"):
        restore(repo, HERE, **{what: words[what]})
    tags.tag_many([repo.prefix + address], EXPIRE_NOW)  # of another try of the same task, taken for lost
    later(repo, minutes=9)
    with pytest.raises(Conflict, match="try again in 1 minute"):
        restore(repo, HERE, **{what: words[what]})
    assert state(repo, address) is State.TAGGED
    later(repo, minutes=2)
    assert restore(repo, HERE, **{what: words[what]}).restored == 1
    assert (read(repo, "main", "logs/1"), tags.tagged()) == ("precious", set())


def test_a_run_that_is_refused_takes_late_tags_off_first(repo, tags):
    for number in range(9):
        put(repo, "main", f"x/{number}")
    address = old_log(repo)
    documented.keep(repo, LOGS)
    run(retention.job, repo, HERE, retention.job.ask(), SURE)
    ripen(repo)
    restore(repo, HERE, run="last")
    tags.tag_many([repo.prefix + address], EXPIRE_NOW)  # later than anybody thinks
    documented.keep(repo, rules("main/x/0", all=5))  # the mended rule
    later(repo, hours=1)
    with pytest.raises(Refused):
        run(retention.job, repo, HERE, retention.job.ask(), Limits())
    assert tags.tagged() == set()
    judge(repo, tags)


def test_what_was_restored_is_not_removed_by_the_next_run(repo):
    address = old_log(repo)
    retain(repo)
    restore(repo, HERE, run="last")
    days(repo, 2)
    retain(repo)
    assert (state(repo, address), is_there(repo, address)) == (State.MARKED, True)  # anew, and for its whole wait


def test_a_plan_from_before_a_restore_does_not_mark_it_again(repo):
    address = old_log(repo)
    first = planned(repo)
    retain(repo)
    later(repo, hours=1)
    restore(repo, HERE, run="last")
    sweep(repo, HERE, first.run, SURE)
    assert state(repo, address) is State.RESTORED


def test_what_a_run_that_was_given_up_had_condemned_comes_back(repo, some_tags, monkeypatch):
    address = old_log(repo)
    cut = cut_off(repo, monkeypatch, batches, "write_outcome")
    assert state(repo, address) is State.CONDEMNED
    ripen(repo)
    assert restore(repo, HERE, run=cut).restored == 1
    assert (state(repo, address), read(repo, "main", "logs/1")) == (State.RESTORED, "precious")
    unhurt = rules("main/logs/", all=500)
    retain(repo, unhurt)
    days(repo, 3)
    retain(repo, unhurt)
    judge(repo, some_tags)
    assert is_there(repo, address)


def test_the_trash_lifts_no_marks(repo, tags, monkeypatch):
    """Of a run that was given up: one object carries a tag and is on its way back, the other one is condemned."""
    monkeypatch.setattr(type(repo.store), "delete_batch", 1)
    both = [put(repo, "main", f"logs/{number}", "precious") for number in range(2)]
    repo.commit("main", "both")
    days(repo, 10)
    real, count = batches.write_outcome, []

    def killed_at_the_second(*words):
        count.append(words)
        return killed() if len(count) == 2 else real(*words)

    with monkeypatch.context() as patch:
        patch.setattr(batches, "write_outcome", killed_at_the_second)
        with pytest.raises(KeyboardInterrupt):
            retain(repo)
    cut = given_up(repo)
    (marked,) = [one for one in both if state(repo, one) is State.MARKED]
    tags.tag_many([repo.prefix + marked], EXPIRE_NOW)
    ripen(repo)
    tags.fails.add(repo.prefix + marked)
    assert restore(repo, HERE, addresses=(marked,)).failed == 1
    with pytest.raises(Conflict, match="desilt retention restore"):
        trash.bring_back(repo, HERE, cut)
    assert {state(repo, one) for one in both} == {State.RESTORING, State.CONDEMNED}
    judge(repo, tags)
    tags.fails.clear()
    assert restore(repo, HERE, run=cut).restored == 2
    assert tags.tagged() == set()
    assert shown(repo) == set(both)


# ---- jobs of the store


def dies(jobs, monkeypatch, moment):
    """A run is killed before the store has its job, after, or while it waits for it."""
    real = jobs.create

    def create(*words):
        if moment == "after":
            real(*words)
        raise KeyboardInterrupt

    if moment == "waiting":
        monkeypatch.setattr(batch_tags, "_wait", killed)
    else:
        monkeypatch.setattr(jobs, "create", create)


@pytest.mark.parametrize("moment", ["before", "after", "waiting"])
def test_a_batch_job_that_was_cut_off_is_found_and_is_over_before_anything_is_restored(
    repo, tags, jobs, monkeypatch, moment
):
    address = old_log(repo)
    with monkeypatch.context() as patch:
        dies(jobs, patch, moment)
        with pytest.raises(KeyboardInterrupt):
            retain(repo, **BATCH)
    cut = given_up(repo)
    ripen(repo)
    assert restore(repo, HERE, run=cut).restored == 1
    assert [(job["token"], job["state"]) for job in jobs.made] == [(cut, "Cancelled")]
    jobs.work()
    assert (read(repo, "main", "logs/1"), tags.tagged()) == ("precious", set())
    retain(repo, NOTHING, **BATCH)
    assert len(jobs.made) == 1
    judge(repo, tags)
    assert is_there(repo, address)


@pytest.mark.parametrize("moment", ["before", "after", "waiting"])
def test_a_batch_job_that_was_cut_off_is_found_and_waited_for_by_the_next_run(repo, tags, jobs, monkeypatch, moment):
    address = old_log(repo)
    with monkeypatch.context() as patch:
        dies(jobs, patch, moment)
        with pytest.raises(KeyboardInterrupt):
            retain(repo, **BATCH)
    assert state(repo, address) is State.MARKED
    retain(repo, **BATCH)
    assert [job["state"] for job in jobs.made] == ["Complete"]
    assert (state(repo, address), tags.tagged()) == (State.TAGGED, {address})


def test_giving_a_broken_journal_up_stops_batch_jobs_before_it_brings_anything_back(repo, tags, jobs, monkeypatch):
    address = old_log(repo)
    copy = backup(repo.database)
    with monkeypatch.context() as patch:
        patch.setattr(batch_tags, "_wait", killed)
        with pytest.raises(KeyboardInterrupt):
            retain(repo, **BATCH)
    ripen(repo)
    newest = repo.generation()
    put_back(repo.database, copy)
    repo.store.put(repo.prefix + name_of(newest), [b"rot"])
    recover(repo, give_up=True)
    assert (state(repo, address), read(repo, "main", "logs/1")) == (State.RESTORED, "precious")
    jobs.work()
    judge(repo, tags)


# ---- entries that say where their object is


def test_an_object_of_the_repository_cannot_be_staged_as_one_from_elsewhere(repo):
    entry = repo.put("main", "logs/1", b"x")
    with pytest.raises(BadRequest):
        repo.stage("main", "gold/1", repo.uri + entry.address, size=1, checksum="x")
