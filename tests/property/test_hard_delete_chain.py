"""Random lives of a lake with hard delete, on and off: judged after every step by sets of addresses."""

import inspect
import secrets
from datetime import timedelta
from random import Random

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from desilt.executors.executor import HERE
from desilt.jobs import holds
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.harddelete.worker import remove
from desilt.jobs.runner import run
from desilt.lake import discards
from desilt.lake.fsck import check
from desilt.records import removals as tombstones
from desilt.records.holds import HoldKind
from desilt.repository.hard_delete import HardDeleteSetting, WantedBack
from desilt.sstable.values import decode_entry
from desilt.sweep.limits import Limits
from desilt.testing import oracle
from lake_model import LakeModel
from words import seal

FEW = st.sampled_from(["a", "b", "a/b"])
ON = HardDeleteSetting(timedelta(0), 1.0)
ALL = Limits(max_share=1.0, confirm=True, allow_empty=True)
DAY = timedelta(days=1)


class HardDeleteModel(LakeModel):
    """What must be watched and what must be condemned is worked out from what is staged and committed, each time."""

    on = False

    def __init__(self):
        super().__init__()
        self.seen, self.watched, self.condemned = set(), set(), set()

    # ---- what may happen besides; most of it at few paths, so that things meet

    @initialize()
    def begin(self):
        super().begin()
        self.repo.hard_delete.switch(ON)
        self.on = True

    @rule(path=FEW)
    def put_here(self, path):
        entry = self.repo.put("main", path, b"here")
        self.bodies[entry.address] = "here"
        self.branches["main"].staged[path] = entry

    @rule(source=FEW, goal=FEW, move=st.booleans())
    def copy_or_move_here(self, source, goal, move):
        files, staged = self.files("main"), self.branches["main"].staged
        if source in files:
            act = self.repo.move if move else lambda branch, a, b: self.repo.copy(branch, a, branch, b)
            entry = act("main", source, goal)
            if move:
                staged[source] = None
            staged[goal] = entry

    @rule(path=FEW)
    def remove_here(self, path):
        if path in self.files("main"):
            self.repo.remove("main", path)
            self.branches["main"].staged[path] = None

    @rule()
    def commit_here_is_killed(self):
        self.killed("main")

    @rule(on=st.booleans())
    def switch(self, on):
        self.repo.hard_delete.switch(ON if on else None)
        self.on = on
        if not on:
            self.watched = set()

    @rule(data=st.data())
    def commit_is_killed(self, data):
        self.killed(self.any_branch(data))

    @rule(data=st.data())
    def reset_all(self, data):
        name = self.any_branch(data)
        self.repo.reset(name)
        self.branches[name].staged = {}

    @rule(data=st.data())
    def hold(self, data):
        there = sorted(self.bodies.keys() - self.condemned)
        if there:
            holds.hold(self.repo, HoldKind.ADDRESS, data.draw(st.sampled_from(there), label="held"), reason="x")

    @rule(prefix=st.sampled_from(["a", "b/x"]))
    def hold_prefix(self, prefix):
        holds.hold(self.repo, HoldKind.PREFIX, prefix, reason="x")

    @rule()
    def lift_holds(self):
        for one in holds.every(self.repo):
            holds.lift(self.repo, one.id)

    @precondition(lambda self: self.condemned)
    @rule()
    def worker(self):
        self.passed += timedelta(hours=1)  # what was held is looked at again
        kept = self.held(self.condemned)
        before = set(oracle.stored(self.repo))
        remove(self.repo, max_share=1.0)
        went = before - set(oracle.stored(self.repo))
        assert went == self.condemned - kept
        self.forget(went)

    @precondition(lambda self: self.condemned)
    @rule(data=st.data())
    def restore(self, data):
        name = self.any_branch(data)
        with self.repo.database.read() as tx:
            rows = list(discards.every(tx, self.repo.uid))
        before, staged = self.files(name), dict(self.branches[name].staged)
        self.repo.hard_delete.restore(WantedBack(name))
        with self.repo.database.read() as tx:
            left = {(row.address, row.path) for row in discards.every(tx, self.repo.uid)}
        back = [row for row in rows if (row.address, row.path) not in left]
        entries = [decode_entry(row.path, row.value) for row in back]
        now = {entry.path: entry for entry in self.repo.list(name)}
        for entry in entries:
            if now.get(entry.path) == entry:
                assert staged.get(entry.path) is None, "something newer was staged there"
                self.branches[name].staged[entry.path] = entry
        assert now == self.files(name)
        assert {path for path in now if now[path] != before.get(path)} <= {entry.path for entry in entries}
        addresses = {entry.address for entry in entries}
        self.condemned -= addresses
        self.watched |= addresses if self.on else set()

    @rule()
    def gc(self):
        """What was watched, and dropped, is never left to the collector, unless somebody held it."""
        self.passed += 3 * DAY
        before = set(oracle.stored(self.repo))
        run(uncommitted.job, self.repo, HERE, uncommitted.job.ask(), ALL)
        went = before - set(oracle.stored(self.repo))
        assert not went & (self.watched | self.condemned)
        assert went <= self.left_to_gc
        self.forget(went)

    # ---- what must hold

    @invariant()
    def the_rule(self):
        if not hasattr(self, "repo"):
            return
        new = set(self.bodies) - self.seen
        self.seen |= new
        self.watched |= new if self.on else set()
        staged, committed = oracle.staged(self.repo), oracle.committed(self.repo)
        self.watched -= committed
        dropped = self.watched - staged
        self.watched -= dropped
        self.condemned |= dropped - self.held(dropped)
        with self.repo.database.read() as tx:
            fresh = {str(row[0]) for row in tx.rows("SELECT address FROM fresh")}
            stones = set(tombstones.left_to_hard_delete(tx, self.repo.uid))
            rows = {row.address for row in discards.every(tx, self.repo.uid)}
        assert fresh == self.watched
        assert stones == rows == self.condemned
        assert not stones & (staged | committed)
        assert {one for one in staged | committed if "://" not in one} <= set(oracle.stored(self.repo))

    def check_soundness(self):
        found = check(self.repo, deep=True)
        assert found.sound, found.findings
        loose = {one.about["address"] for one in found.of("unreferenced-object")}
        assert loose == set(oracle.garbage(self.repo)) - self.condemned

    @rule()
    def garbage_is_what_nothing_holds(self):
        """Sealed areas hold what newer ones hide."""
        held = oracle.staged(self.repo) | oracle.committed(self.repo)
        assert set(oracle.garbage(self.repo)) == set(self.bodies) - held

    # ---- the model

    def killed(self, name):
        """A commit that seals what is staged, and is cut off."""
        branch = self.branches[name]
        if branch.staged and self.files(name) != self.commits[branch.head].files:
            seal(self.repo, name)

    @property
    def left_to_gc(self):
        return self.seen - self.watched - self.condemned

    def held(self, addresses):
        """Those of which an order names the address, or a path that they were dropped from."""
        orders = [one for one in holds.every(self.repo) if one.counts(self.repo.clock())]
        with self.repo.database.read() as tx:
            return discards.held_among(tx, self.repo.uid, sorted(addresses), orders)

    def forget(self, gone):
        self.condemned -= gone
        for address in gone:
            del self.bodies[address]
            self.seen.discard(address)


class Chance:
    """Draws as a test's data does, from a seed."""

    def __init__(self, random):
        self._random = random

    def draw(self, strategy, label=""):  # noqa: ARG002
        return self._random.choice(list(strategy.elements))


OFTEN = {
    "put_here": 9, "copy_or_move_here": 6, "remove_here": 3, "commit": 4, "commit_here_is_killed": 3, "put": 2,
    "copy_across": 2, "reset_all": 2, "reset_prefix": 3, "worker": 2, "restore": 3, "hold": 1, "hold_prefix": 1,
    "lift_holds": 1, "switch": 1, "gc": 1, "branch_off": 2, "delete_branch": 1, "merge": 2, "revert": 1, "look": 1,
}  # fmt: skip
DRAWN = {"path": ["a", "b", "a/b"], "source": ["a", "b", "a/b"], "goal": ["a", "b", "a/b"], "name": ["dev", "qa"]}
DRAWN |= {"text": ["one", "two"], "prefix": ["", "a", "b"], "move": [True, False], "strategy": [None, "source-wins"]}
DRAWN |= {"on": [True, True, False]}


def live(random, steps):
    """One life: what was done, in order, is told where it fails."""
    model, done = HardDeleteModel(), []
    model.begin()
    try:
        for _ in range(steps):
            name = random.choices(list(OFTEN), list(OFTEN.values()))[0]
            if name in ("worker", "restore") and not model.condemned:
                continue
            wanted = list(inspect.signature(getattr(model, name)).parameters)
            drawn = {one: random.choice(DRAWN[one]) for one in wanted if one != "data"}
            done.append((name, drawn))
            getattr(model, name)(**({"data": Chance(random)} if "data" in wanted else {}), **drawn)
            model.the_rule()
    except AssertionError as error:
        raise AssertionError("\n".join(f"{name} {drawn}" for name, drawn in done)) from error
    finally:
        model.teardown()


def lives(count, steps, seed):
    for number in range(count):
        live(Random(f"{seed} {number}"), steps)


def test_the_rule_agrees_with_sets_of_addresses():
    lives(20, 60, "hard delete")


def test_on_postgresql_too(fresh_postgres_url, monkeypatch):
    monkeypatch.setattr(HardDeleteModel, "database_url", staticmethod(fresh_postgres_url))
    lives(3, 40, "on a server")


@pytest.mark.slow
def test_the_rule_agrees_with_sets_of_addresses_for_long():
    lives(1_000, 80, secrets.token_hex(8))
