"""Rows of history that are missing, emptied or do not add up: whatever judges stops, fsck tells and goes on."""

import shutil
from datetime import UTC, datetime, timedelta

import pytest

from desilt.domain.expiry import Expiry
from desilt.domain.policy import parse
from desilt.errors import Unreadable
from desilt.executors.executor import HERE
from desilt.jobs import holds, purge
from desilt.jobs.collect import job as collection
from desilt.jobs.expire import job as expiration
from desilt.jobs.explain.explain import explain
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.lifecycle.simulate import Rehearsal, simulate
from desilt.jobs.pins.pins import pins
from desilt.jobs.runner import plan, run
from desilt.lake import Lake
from desilt.lake.fsck import check
from desilt.lake.lake import locate
from desilt.records.holds import HoldKind
from desilt.runs.steps import Action
from desilt.sweep.limits import Limits
from words import committed, days, put

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
SURE = Limits(confirm=True, max_share=1.0)
POLICY = parse({"logs": {"prefix": "logs/", "days": 3}})


def full(repo):
    """Something of everything: a dead commit, a tag, holds, what is staged, and what is in the trash."""
    committed(repo, "main", a="1")
    repo.create_branch("dev", "main")
    committed(repo, "dev", "on dev", b="2")
    repo.create_branch("side", "main")
    committed(repo, "side", "dead", c="3")
    repo.delete_branch("side")
    repo.create_branch("quiet", "dev")
    repo.create_tag("v1", "main")
    repo.merge("dev", "main")
    holds.hold(repo, HoldKind.PREFIX, "evidence/", reason="a court")
    holds.hold(repo, HoldKind.REF, "main", reason="a release")
    put(repo, "main", "lost")
    repo.reset("main")
    put(repo, "dev", "staged")
    days(repo, 5)
    run(uncommitted.job, repo, HERE, uncommitted.job.ask(action=Action.TRASH), SURE)
    days(repo, 8)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    place = tmp_path_factory.mktemp("whole")
    lake = Lake.create(locate(f"{place}/lake"))
    full(lake.create_repository("demo", clock_at=START))
    lake.close()
    return place


@pytest.fixture
def repo(whole, tmp_path):
    shutil.copytree(whole / "lake", tmp_path / "lake")
    lake = Lake.open(locate(f"{tmp_path}/lake"))
    yield lake.repository("demo")
    lake.close()


ACTS = {
    "gc": lambda repo: plan(uncommitted.job, repo, HERE),
    "lifecycle": lambda repo: plan(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=POLICY)),
    "expire": lambda repo: plan(expiration.job, repo, HERE, expiration.job.ask(wish=Expiry(START + 2 * DAY))),
    "collect": lambda repo: plan(collection.job, repo, HERE),
    "pins": lambda repo: pins(repo, HERE),
    "explain": lambda repo: explain(repo, "b"),
    "simulate": lambda repo: simulate(repo, HERE, Rehearsal(POLICY, None, START + 9 * DAY, None, DAY)),
    "purge": lambda repo: purge.empty(repo, HERE),
}
DAMAGES = {
    "all commits": "DELETE FROM commits",
    "the first commit": "DELETE FROM commits WHERE parents = '[]'",
    "the head of a branch": "DELETE FROM commits WHERE id = (SELECT head FROM branches WHERE name = 'main')",
    "a commit that nothing reaches": "DELETE FROM commits WHERE message = 'dead'",
    "a branch with nothing staged": "DELETE FROM branches WHERE name = 'quiet'",
    "a branch with something staged": "DELETE FROM branches WHERE name = 'dev'",
    "the default branch": "DELETE FROM branches WHERE name = 'main'",
    "all branches": "DELETE FROM branches",
    "a tag": "DELETE FROM tags",
    "a hold": "DELETE FROM holds WHERE kind = 'prefix'",
    "the parents of a commit": "UPDATE commits SET parents = '[]' WHERE message = 'on dev'",
    "a parent that never was": f"UPDATE commits SET parents = '[\"{'f' * 64}\"]' WHERE message = 'on dev'",
    "a tag on nothing": f"UPDATE tags SET target = '{'f' * 64}'",
    "a row that cannot be read": "UPDATE commits SET parents = 'nonsense' WHERE message = 'dead'",
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_on_a_sound_history_everything_works(repo, act):
    act(repo)
    assert check(repo).sound


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_it_stops_everything(repo, act, damage):
    with repo.database.write() as tx:
        assert tx.execute(damage)
    before = {key for batch in repo.store.list(repo.prefix) for key in batch["key"].to_pylist()}
    with pytest.raises(Unreadable, match=r"desilt fsck|from a copy"):
        act(repo)
    assert before <= {key for batch in repo.store.list(repo.prefix) for key in batch["key"].to_pylist()}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_fsck_tells_it_and_goes_on(repo, damage):
    with repo.database.write() as tx:
        tx.execute(damage)
    found = check(repo)
    assert not found.sound
    assert found.totals.objects  # it went on to what is stored


def test_what_is_made_and_taken_again_adds_up(repo):
    """Whatever people and runs do: the numbers follow."""
    repo.create_tag("v2", "main")
    repo.delete_tag("v2")
    made = holds.hold(repo, HoldKind.PREFIX, "x/", reason="for a moment")
    holds.lift(repo, made.id)
    repo.delete_branch("quiet")
    run(expiration.job, repo, HERE, expiration.job.ask(wish=Expiry(START + 2 * DAY)), SURE)
    days(repo, 3)
    report = run(collection.job, repo, HERE, None, SURE)[-1]
    assert report.history["commits collected"] > 0
    for act in ACTS.values():
        act(repo)
    assert check(repo).sound
