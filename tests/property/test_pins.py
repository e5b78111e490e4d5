"""Random histories: each branch, tag, hold and staging area keeps what the naive oracle says, and each set of them."""

import random
import tempfile
import uuid
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from desilt.domain.entry import decode_path
from desilt.domain.policy import parse
from desilt.errors import BadRequest, Conflict, Gone, NotFound, NothingToCommit
from desilt.executors.executor import Here
from desilt.jobs import holds, trash
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.pins.pins import pins
from desilt.jobs.runner import run
from desilt.lake import Lake, commits, refs, schema
from desilt.objects import open_store
from desilt.records.database import open_database
from desilt.records.holds import HoldKind
from desilt.runs.report import Amount
from desilt.runs.steps import CHOICES
from desilt.sweep.limits import Limits
from desilt.testing import oracle, pinned

ALL = Limits(max_share=1.0, confirm=True, allow_empty=True)
START = datetime(2026, 1, 1, tzinfo=UTC)
PATHS = ("a/1", "a/2", "b/1", "b/2", "c", decode_path(b"a/\xff"))
NAMES = ("main", "dev", "qa")


class Life:
    """A repository in which things happen; ``pick`` chooses among what there is."""

    def __init__(self, repo, pick):
        self.repo, self.pick = repo, pick

    def branch(self):
        return self.pick([branch.name for branch in self.repo.branches()])

    def commit_of_any(self):
        with self.repo.database.read() as tx:
            return self.pick(sorted(commit.id for commit in commits.every(tx, self.repo.uid)))

    def put(self):
        self.repo.put(self.branch(), self.pick(PATHS), b"x" * self.pick(range(9)))

    def put_and_commit(self):
        self.put()
        self.commit()

    def put_and_hide_below_a_commit(self):
        """A commit under way has sealed its area; a newer entry hides what it has."""
        name = self.branch()
        self.repo.put(name, PATHS[0], b"sealed")
        with self.repo.database.write() as tx:
            refs.seal(tx, refs.branch(tx, self.repo.uid, name), token=uuid.uuid4().hex)
        self.repo.put(name, PATHS[0], b"newer")

    def commit(self):
        self.repo.commit(self.branch(), "some")

    def copy(self):
        name = self.branch()
        self.repo.copy(name, self.pick(PATHS), name, self.pick(PATHS))

    def copy_across(self):
        self.repo.copy(self.branch(), self.pick(PATHS), self.branch(), self.pick(PATHS))

    def remove(self):
        self.repo.remove(self.branch(), self.pick(PATHS))

    def point_outside(self):
        self.repo.stage(self.branch(), self.pick(PATHS[:5]), "s3://elsewhere/far", size=3, checksum="123")

    def reset(self):
        self.repo.reset(self.branch(), prefix="")

    def merge(self):
        self.repo.merge(self.commit_of_any(), self.branch())

    def make_branch(self):
        self.repo.create_branch(self.pick(NAMES), self.commit_of_any())

    def delete_branch(self):
        self.repo.delete_branch(self.pick(NAMES), force=True)

    def tag(self):
        self.repo.create_tag(self.pick(["v1", "v2", "v3"]), self.commit_of_any())

    def untag(self):
        self.repo.delete_tag(self.pick(["v1", "v2", "v3"]))

    def edit_history(self):
        """A commit gets the root as its parent, as expiration does it."""
        with self.repo.database.write() as tx:
            made = {commit.id: commit for commit in commits.every(tx, self.repo.uid)}
            edited = self.pick(sorted(one.id for one in made.values()))
            root = next(one.id for one in made.values() if not one.parents)
            if edited != root:
                commits.edit(tx, self.repo.uid, edited, seen=made[edited].parents, parents=[root])

    def hold(self):
        kind = self.pick(list(HoldKind))
        value = {
            HoldKind.PREFIX: lambda: self.pick(["a", "a/1", "b/", "nowhere", ""]),
            HoldKind.REF: self.commit_of_any,
            HoldKind.ADDRESS: lambda: self.pick(sorted(oracle.stored(self.repo)) or ["none"]),
        }[kind]()
        until = self.pick([None, None, timedelta(days=2)])
        holds.hold(self.repo, kind, value, reason=self.pick(["audit", "<b>"]), until=until)

    def lift(self):
        holds.lift(self.repo, self.pick([hold.id for hold in holds.every(self.repo)] or ["none"]))

    def wait(self):
        self.repo.set_clock(self.repo.clock() + timedelta(days=self.pick([1, 3])))

    def expire(self):
        rules = {"r": {"prefix": self.pick(["a", "b/", ""]), "days": self.pick([0, 1])}}
        ask = lifecycle.job.ask(policy=parse(rules), action=self.pick(list(CHOICES)))
        run(lifecycle.job, self.repo, Here(), ask, ALL)

    def bring_back(self):
        trash.bring_back(self.repo, Here(), "last")

    def collect_garbage(self):
        run(uncommitted.job, self.repo, Here(), uncommitted.job.ask(), ALL)


HAPPENINGS = sorted(name for name in vars(Life) if not name.startswith("_") and name not in ("branch", "commit_of_any"))
OFTEN = ["put_and_commit", "put_and_commit", "put", "copy", "make_branch", "tag", "hold", "delete_branch", "wait"]


def kept(found):
    """What each set of pins keeps, by a report."""
    sets = {frozenset([pin.name]): pin.alone for pin in found.pins}
    sets |= {frozenset(group.pins): group.amount for group in found.groups}
    sets[frozenset()] = found.nothing
    return {names: (amount.objects, amount.bytes) for names, amount in sets.items() if amount.objects}


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    happenings=st.lists(st.sampled_from(HAPPENINGS + 2 * OFTEN), min_size=25, max_size=60),
    raggedness=st.sampled_from([1, 3, 50_000]),
    width=st.sampled_from([1, 3]),
    seed=st.integers(0, 2**32),
)
def test_every_set_of_pins_keeps_what_the_oracle_says(happenings, raggedness, width, seed):
    with tempfile.TemporaryDirectory() as directory:
        database = open_database(f"sqlite://{directory}/lake.db", create=True)
        schema.create(database, storage="")
        store = open_store(f"memory://{uuid.uuid4().hex}")
        repo = Lake(database, store, raggedness=raggedness).create_repository("model", clock_at=START)
        life = Life(repo, random.Random(seed).choice)
        for number, happening in enumerate(happenings):
            with suppress(BadRequest, Conflict, Gone, NotFound, NothingToCommit):
                getattr(life, happening)()
            if number % 15 == 14 or number == len(happenings) - 1:
                check(repo, width)
        database.close()


def check(repo, width):
    executor = Here()
    executor.width = width
    there, wanted = set(oracle.stored(repo)), pinned.kept(repo)
    found = pins(repo, executor, limit=10**6)
    assert kept(found) == wanted
    assert set(oracle.stored(repo)) == there
    assert found.total == found.alone + found.together + found.nothing
    assert found.total == sum((Amount(*amount) for amount in wanted.values()), Amount())
    for pin in found.pins:
        reached = (Amount(*amount) for names, amount in wanted.items() if pin.name in names)
        assert pin.reaches == sum(reached, Amount()), pin.name
    assert {name for names in wanted for name in names} <= {pin.name for pin in found.pins}
    few = pins(repo, executor, limit=1)
    assert few.groups == found.groups[:1]
    assert (few.groups_left, few.together) == (max(0, len(found.groups) - 1), found.together)
