"""What each job refuses to do: a table of situations, each made for each job it can befall.

Refused is refused: whatever was in the store and in the database before is there afterwards, as it was. All that
may be new are files of desilt's own.
"""

import uuid
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from copies import backup, put_back
from desilt.clock import ManualClock
from desilt.domain.expiry import Expiry
from desilt.domain.policy import parse
from desilt.errors import (
    DamagedRun,
    EditedSince,
    FirstRun,
    HeldSince,
    HistoryLost,
    Locked,
    NothingHeld,
    OutgrownPolicy,
    OutsidePrefix,
    PolicyReplaced,
    RecoveredSince,
    Shrinks,
    StagedLost,
    StalePlan,
    TooMany,
    TooMuch,
    WentBack,
    WrongTime,
)
from desilt.executors.executor import HERE
from desilt.jobs import holds
from desilt.jobs.collect import job as collection
from desilt.jobs.expire import job as expiration
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.lifecycle import kept_policy
from desilt.jobs.runner import plan, run, sweep
from desilt.lake import Lake, schema
from desilt.objects import open_store
from desilt.records import locks
from desilt.records.database import open_database
from desilt.records.holds import HoldKind
from desilt.recovery.recover import recover
from desilt.runs import plan as plans
from desilt.runs import plan_files
from desilt.runs.folder import Folder, find
from desilt.runs.steps import RemoveObjects
from desilt.sweep.limits import Limits

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
SURE = Limits(max_share=1.0, confirm=True, allow_empty=True)
POLICY = parse({"logs": {"prefix": "logs/", "days": 10, "branch_days": {"also": 15}}})
JOBS = {
    "gc": (uncommitted.job, {}),
    "lifecycle": (lifecycle.job, {}),
    "expire": (expiration.job, {"wish": Expiry(START + 10 * DAY)}),
    "collect": (collection.job, {"unreached_for": timedelta(0)}),
}
BEGUN = (
    "runs",
    "move_marks",
    "intents",
    "repositories",
)  # a run that comes to its end as it looks at what it is to take
EVERY, REMOVING = tuple(JOBS), ("gc", "lifecycle", "collect")  # to expire is to edit history; no object goes


@dataclass
class Case:
    """One job on a lake where it has something to do."""

    repo: Any
    clock: ManualClock
    job: Any
    wanted: dict
    open: ExitStack  # until it was refused

    def planned(self):
        return plan(self.job, self.repo, HERE, self.job.ask(**self.wanted)).run

    def sweep(self, run_id, limits=SURE):
        return lambda: sweep(self.repo, HERE, run_id, limits)

    def run(self, limits=SURE):
        return lambda: run(self.job, self.repo, HERE, self.job.ask(**self.wanted), limits)

    def both(self, limits=SURE):
        """A plan that is made and then swept, and a run that does both."""
        return [self.sweep(self.planned(), limits), self.run(limits)]

    def folder(self, run_id):
        return Folder(self.repo.store, self.repo.prefix, find(self.repo.store, self.repo.prefix, run_id))

    def moves_on(self):
        """More than one move: nobody takes a restore for a move that was cut off."""
        for number in range(2):
            self.repo.create_branch(f"at-{self.repo.generation()}-{number}", "main")

    def everything(self):
        """Every object but the one that tells the store's time, and every row but who is at work."""
        keys = [key for batch in self.repo.store.list("") for key in batch["key"].to_pylist()]
        objects = {key: self.repo.store.get(key) for key in keys if not key.endswith("_desilt/clock")}
        return objects, {name: rows for name, rows in backup(self.repo.database).items() if name != "locks"}


@pytest.fixture
def lake(tmp_path):
    clock = ManualClock(START)
    database, store = open_database(f"sqlite://{tmp_path}/lake.db", create=True), open_store(f"memory://{uuid.uuid4()}")
    schema.create(database, storage="")
    store.clock = clock
    yield Lake(database, store, clock=clock)
    database.close()


@pytest.fixture
def case(request, lake):
    """Something to go for every job, and something that stays."""
    repo = lake.create_repository("demo")
    repo.create_branch("left", "main")
    commit(repo, "left", "data/unreached", "data/too")
    repo.delete_branch("left")
    commit(repo, "main", "logs/old", "logs/older", "data/old")
    repo.create_branch("also", "main")
    commit(repo, "main", "data/second")
    commit(repo, "main", "data/third")
    for path in ("dropped/a", "dropped/b"):
        repo.put("main", path, path.encode())
    repo.reset("main")
    kept_policy.keep(repo, POLICY)
    lake.clock.now += 20 * DAY
    commit(repo, "main", "data/new")
    with ExitStack() as stack:
        yield Case(repo, lake.clock, *JOBS[request.param], stack)


def commit(repo, branch, *paths):
    for path in paths:
        repo.put(branch, path, path.encode())
    return repo.commit(branch, " ".join(paths))


# ---- what is refused, by whom, and the words that say why or name the way out

TABLE = []


def refused(error, says, *jobs, may_change=()):
    """The function makes a situation, and returns what is refused in it."""

    def add(make):
        TABLE.extend(pytest.param(job, make, error, says, set(may_change), id=f"{job}-{make.__name__}") for job in jobs)
        return make

    return add


@refused(StalePlan, "--max-plan-age", *EVERY)
def the_plan_is_too_old(case):
    made = case.planned()
    case.clock.now += DAY + timedelta(seconds=1)
    return [case.sweep(made)]


@refused(FirstRun, "--confirm", *EVERY)
def nobody_agreed_to_it(case):
    return case.both(replace(SURE, confirm=False))


@refused(TooMuch, "--max-share", *REMOVING)
@refused(Shrinks, "--max-share", "expire")
def it_is_too_large_a_share(case):
    return case.both(replace(SURE, max_share=0.05))


@refused(TooMany, "--max-objects", *REMOVING)
def it_is_too_many_objects(case):
    return case.both(replace(SURE, max_objects=1))


@refused(NothingHeld, "--allow-empty", *REMOVING)
def nothing_at_all_is_held(case):
    """In another repository, where all there is is what the job removes."""
    lake = Lake(case.repo.database, case.repo.store, clock=case.clock)
    case.repo = lake.create_repository("bare")
    case.repo.create_branch("left", "main")
    for path in ("logs/a", "logs/b"):
        case.repo.put("left", path, path.encode())
    if case.job is uncommitted.job:
        case.repo.reset("left")
    else:
        case.repo.commit("left", "all there is")
    if case.job is collection.job:
        case.repo.delete_branch("left")
    kept_policy.keep(case.repo, parse({"logs": {"prefix": "logs/", "days": 10}}))
    case.clock.now += 20 * DAY
    return case.both(replace(SURE, allow_empty=False))


@refused(PolicyReplaced, "plan again", "gc", "lifecycle")
def the_policy_is_another_one_since(case):
    made = case.planned()
    kept_policy.keep(case.repo, parse({"logs": {"prefix": "logs/", "days": 12}}))
    with case.repo.database.write() as tx:
        tx.execute("UPDATE repositories SET ticket_life = ticket_life * 2")
    lake = Lake(case.repo.database, case.repo.store, clock=case.clock)
    case.repo = lake.repository("demo")
    return [case.sweep(made)]


@refused(EditedSince, "before history was edited; plan again", "lifecycle", "expire", "collect")
def history_was_edited_since(case):
    made = case.planned()
    run(expiration.job, case.repo, HERE, expiration.job.ask(wish=Expiry(START + 15 * DAY)), SURE)
    return [case.sweep(made)]


@refused(HeldSince, "before somebody ordered a prefix to be held; plan again", "collect", may_change=BEGUN)
def a_prefix_is_held_since(case):
    made = case.planned()
    holds.hold(case.repo, HoldKind.PREFIX, "data/", reason="because")
    return [case.sweep(made)]


@refused(OutgrownPolicy, "branch_days names 'also', which matches no branch", "lifecycle")
def the_policy_names_a_branch_that_was_renamed(case):
    made = case.planned()
    case.repo.create_branch("as-well", "also")
    case.repo.delete_branch("also")
    return [case.sweep(made), *case.both()]


@refused(WentBack, "desilt lake recover", *EVERY)
def the_database_is_an_older_copy(case):
    copy = backup(case.repo.database)
    case.moves_on()
    made = case.planned()
    put_back(case.repo.database, copy)
    return [case.sweep(made), case.planned, case.run()]


@refused(WentBack, "--after-restore", *EVERY)
def what_an_earlier_plan_saw_was_given_up(case):
    copy = backup(case.repo.database)
    case.moves_on()
    case.planned()
    put_back(case.repo.database, copy)
    recover(case.repo, give_up=True)
    case.clock.now += HOUR
    return case.both()


@refused(HistoryLost, "a history that the database no longer has; plan again", *EVERY)
def the_past_that_it_saw_was_given_up(case):
    copy = backup(case.repo.database)
    case.moves_on()
    made = case.planned()
    put_back(case.repo.database, copy)
    recover(case.repo, give_up=True)
    case.moves_on()
    case.moves_on()
    return [case.sweep(made), case.sweep(made, replace(SURE, after_restore=True))]


@refused(RecoveredSince, "before the database was recovered; plan again", *EVERY)
def the_database_was_recovered_since(case):
    made, copy = case.planned(), backup(case.repo.database)
    case.moves_on()
    put_back(case.repo.database, copy)
    recover(case.repo)
    return [case.sweep(made)]


@refused(StagedLost, "desilt gc run --after-restore", "lifecycle", "collect")
def what_was_staged_since_a_copy_is_lost(case):
    copy = backup(case.repo.database)
    case.moves_on()
    put_back(case.repo.database, copy)
    recover(case.repo)
    return case.both()


@refused(WrongTime, "the object store's", *EVERY)
def the_clock_of_the_store_says_otherwise(case):
    made, right = case.planned(), case.repo.store.clock
    case.repo.store.clock = ManualClock(case.clock.now + timedelta(minutes=11))
    case.open.callback(setattr, case.repo.store, "clock", right)
    return [case.sweep(made), case.planned, case.run()]


@refused(WrongTime, "the plan was made at", *EVERY)
def it_is_earlier_than_when_the_plan_was_made(case):
    made = case.planned()
    case.clock.now -= timedelta(minutes=11)
    return [case.sweep(made)]


@refused(WrongTime, "the last run was at", *EVERY)
def it_is_earlier_than_when_the_last_run_was(case):
    case.run()()
    case.clock.now -= HOUR
    return case.both()


@refused(DamagedRun, "is not what was written; plan again", *EVERY)
def the_plan_was_tampered_with(case):
    made = case.planned()
    folder = case.folder(made)
    folder.put_text(plans.FILE, folder.get_text(plans.FILE).replace('"held": ', '"held": 1'))
    return [case.sweep(made)]


@refused(OutsidePrefix, "not an object of this repository", "gc", "lifecycle", may_change=BEGUN)
def the_plan_names_what_is_no_object_of_the_repository(case):
    """Though somebody who knows the secret signed it: the run begins, and comes to an end there."""
    run_id, store = case.planned(), case.repo.store
    made = plans.read(case.folder(run_id), case.repo.secret)
    (file,) = (one for one in made.files if one.rows)
    rows = plan_files.read(store, file)
    kind = rows.schema.field("address")
    others = pa.array([f"../{uuid.uuid4()}"] * rows.num_rows, kind.type)
    forged = plan_files.write(store, file.key, rows.set_column(rows.schema.get_field_index("address"), kind, others))
    steps = (replace(step, files=forged) if isinstance(step, RemoveObjects) else step for step in made.steps)
    plans.write(case.folder(run_id), replace(made, steps=tuple(steps)), case.repo.secret)
    return [case.sweep(run_id)]


@refused(Locked, "run another is at work", *EVERY)
def another_run_is_at_work(case):
    made = case.planned()
    case.open.enter_context(locks.held(case.repo.database, case.repo.uid, run="another"))
    return [case.sweep(made), case.run()]


@pytest.mark.parametrize(("case", "make", "error", "says", "may_change"), TABLE, indirect=["case"])
def test_it_is_refused_and_nothing_is_removed_or_changed(case, make, error, says, may_change):
    for act in make(case):
        objects, rows = case.everything()
        with pytest.raises(error) as raised:
            act()
        assert type(raised.value) is error
        assert all(part in str(raised.value) for part in says.split("; "))  # what else is said no to may lie between
        assert raised.value.exit_code == {Locked: 11, DamagedRun: 1}.get(error, 10)
        objects_then, rows_then = case.everything()
        assert objects.items() <= objects_then.items()
        assert all("/_desilt/" in key for key in objects_then.keys() - objects.keys())
        assert {name for name in rows if rows[name] != rows_then[name]} <= may_change


@pytest.mark.parametrize("case", JOBS, indirect=True)
def test_what_is_not_refused_is_done(case):
    """Else the table above would prove little."""
    before = case.everything()
    case.run()()
    (objects, rows), (objects_then, rows_then) = before, case.everything()
    assert not objects.items() <= objects_then.items() or case.job is expiration.job
    assert rows != rows_then
