"""Clocks that jump ahead: whatever is old by them alone stays, until somebody says that they are right."""

from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from desilt.domain.expiry import Expiry
from desilt.domain.policy import parse
from desilt.domain.times import moment
from desilt.errors import WrongTime
from desilt.executors.executor import HERE
from desilt.jobs import purge
from desilt.jobs.expire import job as expiration
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.lifecycle import kept_policy
from desilt.jobs.runner import plan, run
from desilt.lake import Lake
from desilt.lake.lake import locate
from desilt.objects.local import LocalStore
from desilt.records.database import open_database
from desilt.runs.steps import Action
from desilt.sweep.limits import Limits
from words import stored

DAY = timedelta(days=1)
ALL = Limits(confirm=True, max_share=1.0, allow_empty=True)
RIGHT = replace(ALL, clock_is_right=True)


class Machine:
    """A lake in a directory: one clock for the machine and its files."""

    def __init__(self, folder):
        self.off = timedelta(0)
        Lake.create(locate(str(folder / "lake"))).close()
        self.database = open_database(f"sqlite://{folder}/lake/desilt.db")
        store = LocalStore(folder / "lake", clock=self.clock)
        self.repo = Lake(self.database, store, clock=self.clock).create_repository("demo")

    def clock(self):
        return datetime.now(UTC) + self.off


@pytest.fixture
def machine(tmp_path):
    made = Machine(tmp_path)
    yield made
    made.database.close()


def lifecycle_run(repo, limits=ALL, **ask):
    return run(lifecycle.job, repo, HERE, lifecycle.job.ask(**ask), limits)[-1]


def test_a_year_ahead_nothing_is_old_until_somebody_says_so(machine):
    repo = machine.repo
    repo.put("main", "logs/new", b"written seconds ago")
    repo.put("main", "data/new", b"written seconds ago")
    repo.commit("main", "new")
    kept_policy.keep(repo, parse({"logs": {"prefix": "logs/", "days": 90}}))
    machine.off = 365 * DAY
    for _ in range(3):  # a refusal leaves no trace that the next one could take for life
        with pytest.raises(WrongTime, match="--clock-is-right"):
            lifecycle_run(repo, ALL)
    assert len(stored(repo)) == 2
    assert lifecycle_run(repo, RIGHT).swept.removed == 1
    repo.put("main", "logs/newer", b"x")
    repo.commit("main", "newer")
    assert lifecycle_run(repo, ALL).swept.removed == 0  # said once, it is on record


def test_what_is_done_by_a_clock_that_has_jumped_does_not_speak_for_it(machine):
    """A writer was first: its commit is as new as the clock says."""
    repo = machine.repo
    repo.put("main", "logs/new", b"written seconds ago")
    repo.commit("main", "new")
    kept_policy.keep(repo, parse({"logs": {"prefix": "logs/", "days": 90}}))
    machine.off = 365 * DAY
    repo.put("main", "data/ahead", b"x")
    repo.commit("main", "by the clock that jumped")
    repo.create_tag("v1", "main")
    with pytest.raises(WrongTime, match="--clock-is-right"):
        lifecycle_run(repo, ALL)
    assert len(stored(repo)) == 2


def test_the_trash_is_not_emptied_by_a_clock_that_has_jumped(machine):
    repo = machine.repo
    repo.put("main", "logs/new", b"x")
    repo.put("main", "data/new", b"x")
    repo.commit("main", "new")
    machine.off = 20 * DAY
    run(
        lifecycle.job,
        repo,
        HERE,
        lifecycle.job.ask(policy=parse({"l": {"prefix": "logs/", "days": 9}}), action=Action.TRASH),
        ALL,
    )
    machine.off = 400 * DAY
    for _ in range(2):
        with pytest.raises(WrongTime, match="--clock-is-right"):
            purge.empty(repo, HERE)
    (gone,) = purge.empty(repo, HERE, clock_is_right=True).values()
    assert gone.objects == 1


def test_the_trash_is_not_emptied_early_because_a_clock_was_behind(machine):
    """What a run by such a clock moves there is dated too early: neither that nor the emptying passes unasked."""
    repo, by_rule = machine.repo, parse({"l": {"prefix": "logs/", "days": 9}})
    repo.put("main", "logs/new", b"x")
    repo.put("main", "data/new", b"x")
    repo.commit("main", "new")
    machine.off = 20 * DAY
    repo.put("main", "data/newer", b"x")
    repo.commit("main", "newer")
    machine.off = 12 * DAY
    with pytest.raises(WrongTime, match="something was done here at"):
        run(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=by_rule, action=Action.TRASH), ALL)
    with pytest.raises(WrongTime, match="something was done here at"):
        purge.empty(repo, HERE)
    machine.off = 21 * DAY
    run(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=by_rule, action=Action.TRASH), ALL)
    assert purge.empty(repo, HERE) == {}


def test_a_month_of_quiet_is_no_jump_and_neither_is_a_lake_that_plans_alone(machine):
    repo = machine.repo
    repo.put("main", "logs/new", b"x")
    repo.put("main", "data/new", b"x")
    repo.commit("main", "new")
    kept_policy.keep(repo, parse({"logs": {"prefix": "logs/", "days": 20}}))
    machine.off = 29 * DAY
    plan(lifecycle.job, repo, HERE)  # asks the store for the time, and nothing else
    machine.off = 45 * DAY
    assert lifecycle_run(repo, ALL).swept.removed == 1


# ---- what was seen once


@pytest.fixture
def written(machine):
    """A lake whose logs go after ninety days, and that was made a moment ago."""
    repo = machine.repo
    repo.put("main", "logs/new", b"written seconds ago")
    repo.put("main", "data/new", b"written seconds ago")
    repo.commit("main", "new")
    kept_policy.keep(repo, parse({"logs": {"prefix": "logs/", "days": 90}}))
    return machine


def refused(machine, day):
    machine.off = day * DAY
    with pytest.raises(WrongTime, match="--clock-is-right"):
        lifecycle_run(machine.repo)
    assert len(stored(machine.repo)) >= 2


def write(machine, day):
    machine.off = day * DAY
    machine.repo.put("main", f"data/{day}", b"x")
    machine.repo.commit("main", f"day {day}")


def expired(repo):
    return run(expiration.job, repo, HERE, expiration.job.ask(wish=Expiry(repo.clock() - 30 * DAY)), ALL)


@pytest.mark.parametrize(
    ("look", "says"),
    [
        (lifecycle_run, True),
        (expired, True),
        (lambda repo: purge.empty(repo, HERE), True),
        (lambda repo: plan(lifecycle.job, repo, HERE), False),
    ],
    ids=["run", "expire", "purge", "plan"],
)
def test_whoever_saw_a_jump_has_it_remembered(written, look, says):
    """What asked the store for the time has left a trace, a week later an old one."""
    written.off = 365 * DAY
    with pytest.raises(WrongTime, match="--clock-is-right") if says else nullcontext():
        look(written.repo)
    for day in (372, 373, 395, 500):
        refused(written, day)
    assert lifecycle_run(written.repo, RIGHT).swept.removed == 1
    written.off += 20 * DAY
    assert lifecycle_run(written.repo).swept.removed == 0


def test_a_writer_that_goes_on_by_a_clock_that_has_jumped_does_not_tire_it_out(written):
    for day in range(365, 376):
        write(written, day)
        refused(written, day)


def test_a_jump_between_two_runs_is_seen_however_long_ago(written):
    lifecycle_run(written.repo)
    for day in range(365, 380, 3):
        write(written, day)
    refused(written, 380)


def test_a_clock_that_is_mended_is_believed_again(written):
    refused(written, 365)
    written.off = DAY
    for day in (1, 21, 41):
        written.off = day * DAY
        assert lifecycle_run(written.repo).swept.removed == 0
    refused(written, 365)


def test_a_clock_that_is_mended_by_halves_is_not(written):
    refused(written, 365)
    refused(written, 100)
    with written.database.read() as tx:
        (seen_at,) = tx.one("SELECT quiet_seen_at FROM repositories")
    assert moment(seen_at) - datetime.now(UTC) > 364 * DAY


def test_what_was_said_of_a_wrong_clock_says_nothing_of_the_next_jump(written):
    repo = written.repo
    written.off = 365 * DAY
    run(uncommitted.job, repo, HERE, uncommitted.job.ask(), RIGHT)  # a mistake
    written.off = timedelta(0)
    repo.put("main", "data/after", b"x")
    repo.commit("main", "mended")
    refused(written, 100)
    written.off = DAY
    run(uncommitted.job, repo, HERE, uncommitted.job.ask(), RIGHT)
    refused(written, 370)  # where it was before
