"""What happens between two looks of gc: an address on its way from a ticket to a staging area to a commit is held.

Runs judge by a time that is days ahead, so that whatever they believe to be unused is old enough to go.
"""

import uuid
from datetime import UTC, datetime, timedelta

import pytest

from desilt.clock import ManualClock
from desilt.domain.times import CLOCK_MARGIN
from desilt.executors.executor import HERE
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.runner import plan, sweep
from desilt.lake import Lake, schema
from desilt.lake.source import LakeSource
from desilt.objects import open_store
from desilt.records.database import open_database
from desilt.sweep.limits import Limits
from desilt.testing import oracle
from words import contents, stage

SURE = Limits(max_share=1.0, confirm=True, allow_empty=True, max_plan_age=timedelta(days=9))
LIFE, SECOND = timedelta(hours=24), timedelta(seconds=1)


@pytest.fixture
def repo(tmp_path):
    clock = ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
    database, store = open_database(f"sqlite://{tmp_path}/lake.db", create=True), open_store(f"memory://{uuid.uuid4()}")
    schema.create(database, storage="")
    store.clock = clock
    yield Lake(database, store, clock=clock).create_repository("demo")
    database.close()


def ahead(repo):
    return uncommitted.job.ask(now=repo.clock() + timedelta(days=5))


def test_what_is_committed_while_a_plan_is_made_is_not_in_it(repo, monkeypatch):
    """An address moves from staged to committed, never back: read in that order, one of them has it."""
    repo.put("main", "a", b"a")
    looks = {name: getattr(LakeSource, name) for name in ("staged", "snapshot")}
    looked = []

    def looking(name):
        def look(self, *words, **more):
            found = looks[name](self, *words, **more)
            if not looked:
                repo.commit("main", "between two looks")
            looked.append(name)
            return found

        return look

    for name in looks:
        monkeypatch.setattr(LakeSource, name, looking(name))
    report = plan(uncommitted.job, repo, HERE, ahead(repo))
    assert looked[:2] == ["staged", "snapshot"]
    assert report.removed.objects == 0


def test_read_the_other_way_round_it_is_in_the_plan_and_no_sweep_takes_it(repo, monkeypatch):
    """The order keeps a plan true. The object is kept by the sweep: it reads the commits that a plan has not seen."""
    kept = repo.put("main", "a", b"a").address
    staged, snapshot, early = LakeSource.staged, LakeSource.snapshot, []

    def too_late(self, run):
        early.append(snapshot(self, repo.clock()))
        repo.commit("main", "between two looks")
        return staged(self, run)

    monkeypatch.setattr(LakeSource, "staged", too_late)
    monkeypatch.setattr(LakeSource, "snapshot", lambda self, now: early.pop() if early else snapshot(self, now))
    made = plan(uncommitted.job, repo, HERE, ahead(repo))
    assert made.removed.objects == 1
    assert held_again(repo, made) == 1
    assert kept in oracle.stored(repo)
    assert contents(repo, "main") == {"a": "a"}


@pytest.fixture
def begun(repo, monkeypatch):
    """An upload that began after a plan looked for uploads, and before it listed the store: the plan, and its token."""
    real, handed = LakeSource.uploads, []

    def looked(self, run, now):
        found = real(self, run, now)
        handed.append(repo.physical_address("main", "direct"))
        repo.store.put(repo.prefix + handed[0].ticket.address, [b"sent directly"])
        return found

    monkeypatch.setattr(LakeSource, "uploads", looked)
    made = plan(uncommitted.job, repo, HERE, ahead(repo))
    assert made.removed.objects == 1
    return made, handed[0]


def test_an_upload_that_begins_while_a_plan_is_made_is_kept_by_its_ticket(repo, begun):
    made, handed = begun
    assert held_again(repo, made) == 1
    repo.link("main", "direct", handed.token)
    assert contents(repo, "main") == {"direct": "sent directly"}


@pytest.mark.parametrize(("over", "kept"), [(-SECOND, 1), (CLOCK_MARGIN - SECOND, 1), (CLOCK_MARGIN, 0)])
def test_a_ticket_keeps_its_object_until_every_clock_calls_it_over(repo, begun, over, kept):
    repo.core.clock.now += LIFE + over
    assert held_again(repo, begun[0]) == kept
    assert len(oracle.stored(repo)) == kept


def held_again(repo, made):
    """How many objects of a plan its sweep leaves alone."""
    swept = sweep(repo, HERE, made.run, SURE).swept
    assert swept.asked + swept.held_again == made.removed.objects
    return swept.held_again


@pytest.mark.parametrize("rewritten", [False, True], ids=["", "rewritten"])
def test_what_a_later_commit_has_is_kept_whatever_the_list_of_judged_ranges_says(repo, rewritten):
    """What the list names is not read again: whoever could write there would name the ranges of that commit."""
    repo.put("main", "kept", b"kept")
    repo.commit("main", "kept")
    entry = repo.put("main", "a", b"a")
    repo.reset("main")
    made = plan(uncommitted.job, repo, HERE, uncommitted.job.ask(now=ahead(repo).now, dropped_for=timedelta(0))).run
    stage(repo, "main", entry)
    later = repo.commit("main", "wanted after all")
    key = f"{repo.prefix}_desilt/runs/gc/{made}/inputs/ranges.txt"
    assert repo.store.get(key)
    if rewritten:
        ranges = [listed.id for listed in repo.ranges.metarange(later.metarange)]
        repo.store.put(key, ["\n".join(ranges).encode()])
    sweep(repo, HERE, made, SURE)
    assert contents(repo, "main") == {"a": "a", "kept": "kept"}
