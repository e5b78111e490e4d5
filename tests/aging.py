"""The lake's model with time that passes, and lifecycle runs of every kind; a store that fails now and then."""

import tempfile
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from desilt.domain.entry import shown_path
from desilt.domain.policy import KeepRule, Policy, Rule, Tags, parse
from desilt.errors import Gone, MergeConflict, NotFound, NothingToCommit, StalePlan
from desilt.executors.executor import HERE
from desilt.jobs import trash
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.runner import plan, run, sweep
from desilt.lake import Lake, schema
from desilt.lake.fsck import check
from desilt.objects import open_store
from desilt.objects.store import Outcome, Result
from desilt.records import watermarks
from desilt.records.database import open_database
from desilt.records.holds import Hold, HoldKind
from desilt.runs.steps import CHOICES, Action
from desilt.sweep.limits import Limits
from desilt.testing import oracle
from lake_model import NAMES, PATHS, LakeModel, ModelBranch, ModelCommit, three_way
from plan_rows import named
from words import add_hold, lift_hold


class Stubborn:
    """A store with small batches that does not delete or move what it is told to keep."""

    delete_batch = 3

    def __init__(self, store):
        self._store, self.keeps = store, set()

    def __getattr__(self, name):
        return getattr(self._store, name)

    def delete_many(self, keys, **_):
        free = iter(self._store.delete_many([key for key in keys if key not in self.keeps]))
        return [Outcome(key, Result.FAILED, "no") if key in self.keeps else next(free) for key in keys]

    def move_many(self, pairs, **_):
        free = iter(self._store.move_many([pair for pair in pairs if pair[0] not in self.keeps]))
        return [Outcome(key, Result.FAILED, "no") if key in self.keeps else next(free) for key, _ in pairs]


ALL = Limits(max_share=1.0, confirm=True, allow_empty=True)
START = datetime(2026, 1, 1, tzinfo=UTC)
PREFIXES = st.sampled_from(["", "", "", "", "a", "a/", "b"])
DAYS = st.sampled_from([0, 1, 1, 2, 3, 5, 8])
OF_BRANCHES = st.dictionaries(st.sampled_from(["main", "dev", "d*", "*", "?e*", "[qt]*", "main-*"]), DAYS, max_size=3)
RULES = st.builds(
    Rule,
    id=st.just(""),
    prefix=PREFIXES,
    days=st.one_of(DAYS, DAYS, DAYS, st.none()),
    enabled=st.sampled_from([True, True, True, True, False]),
    branch_days=st.one_of(st.just({}), OF_BRANCHES),
    noncurrent_only=st.sampled_from([False, False, True]),
).filter(lambda one: one.days is not None or one.branch_days)
KEEPS = st.one_of(
    st.builds(KeepRule, id=st.just("k"), prefix=st.sampled_from(["a/", "b/x/2", "nothing"])),
    st.builds(KeepRule, id=st.just("k"), glob=st.sampled_from(["*b", "?", "b/*/1"])),
)
POLICIES = st.builds(
    Policy,
    rules=st.lists(RULES, min_size=1, max_size=3).map(
        lambda rules: tuple(replace(one, id=f"r{number}") for number, one in enumerate(rules))
    ),
    tags=st.sampled_from(Tags),
    keep=st.one_of(st.just(()), st.just(()), st.tuples(KEEPS)),
)
AT_LAST = [  # whatever an earlier run has passed over is found by these
    parse({"r": {"prefix": "", "days": 8, "noncurrent_only": True}}),
    parse({"r": {"prefix": "", "days": 8, "noncurrent_only": True}, "tags": "ignore"}),
    parse({"r": {"prefix": "", "days": 8, "branch_days": {"main": 1}}, "tags": "ignore"}),
]


def order(repo, kind, value, *, until=None):
    """A hold, and its id."""
    hold = Hold(uuid.uuid4().hex, kind, value, "because", repo.clock(), until)
    add_hold(repo, hold)
    return hold.id


class Aging(LakeModel):
    """The lake's model, with time that passes, policies, holds, tags, and lifecycle runs of every kind."""

    list_folded = diff_any_two = look = reset_all = garbage_is_what_nothing_holds = None  # nothing new here

    @initialize(policy=POLICIES, early=st.lists(PATHS, min_size=3, max_size=8, unique=True))
    def begin(self, policy, early):
        self.directory = tempfile.TemporaryDirectory()
        database = open_database(f"sqlite://{self.directory.name}/lake.db", create=True)
        schema.create(database, storage="")
        store = open_store(f"memory://{uuid.uuid4().hex}")
        self.repo = Lake(database, store, raggedness=3).create_repository("model", clock_at=START)
        self.repo.store = Stubborn(self.repo.store)  # for the sweep, which asks the repository for it
        first = self.repo.resolve("main").commit.id
        self.commits = {first: ModelCommit({}, ())}
        self.branches = {"main": ModelBranch(first)}
        self.policy, self.bodies, self.texts = policy, {}, {}
        self.tags, self.holds, self.plans, self.trashed = set(), [], [], []
        self.write("main", early)

    def teardown(self):
        if hasattr(self, "repo"):
            self.expire_everything()
            while self.holds:
                self.release_one(0)
            for policy in AT_LAST:
                self.policy = policy
                self.wait(9, 0)
                self.expire_everything()
        super().teardown()

    def check_soundness(self):
        found = check(self.repo)
        assert found.sound, found.findings

    # ---- what may happen between runs

    @rule(days=st.sampled_from([1, 2, 3, 5, 8, 12]), hours=st.sampled_from([0, 0, 1]))
    def wait(self, days, hours):
        self.repo.set_clock(self.repo.clock() + timedelta(days=days, hours=hours))

    @rule(policy=POLICIES)
    def another_policy(self, policy):
        self.policy = policy

    @rule(data=st.data(), changed=RULES)
    def another_rule(self, data, changed):
        """One rule is other than before, in all or only in its period."""
        rules = list(self.policy.rules)
        at = data.draw(st.integers(0, len(rules) - 1), label="rule")
        if data.draw(st.booleans(), label="only its period"):
            rules[at] = replace(rules[at], days=changed.days, branch_days=changed.branch_days)
        else:
            rules[at] = replace(changed, id=rules[at].id)
        self.policy = replace(self.policy, rules=tuple(rules))

    @rule()
    def switch_a_rule(self):
        first, *others = self.policy.rules
        self.policy = replace(self.policy, rules=(*others, replace(first, enabled=not first.enabled)))

    @rule(data=st.data(), paths=st.lists(PATHS, min_size=1, max_size=3, unique=True))
    def put_and_commit(self, data, paths):
        self.write(self.any_branch(data), paths)

    @rule(data=st.data(), paths=st.lists(PATHS, min_size=1, max_size=3, unique=True), days=st.sampled_from([1, 4, 9]))
    def put_and_commit_and_wait(self, data, paths, days):
        self.write(self.any_branch(data), paths)
        self.wait(days, 0)

    @rule(data=st.data())
    def commit_nothing(self, data):
        """The same files in another commit."""
        self.commit_as_it_is(self.any_branch(data))

    def write(self, name, paths):
        for path in paths:
            entry = self.repo.put(name, path, shown_path(path).encode())
            self.bodies[entry.address] = shown_path(path)
            self.branches[name].staged[path] = entry
        self.commit_as_it_is(name)

    def commit_as_it_is(self, name):
        files = self.files(name)
        self.moved(name, self.repo.commit(name, "some", allow_empty=True), files)
        self.branches[name].staged = {}

    @rule(data=st.data())
    def revert(self, data):
        """Any commit, of whatever branch: what it took away may come to a branch that never had it."""
        name, reverted = self.any_branch(data), self.any_commit(data)
        parents, head = self.commits[reverted].parents, self.commits[self.branches[name].head].files
        if not parents or self.branches[name].staged:
            return
        base, before = self.commits[reverted].files, self.commits[parents[0]].files
        files, conflicts = three_way(base, before, head, None)
        if conflicts or files == head:
            with pytest.raises((MergeConflict, NothingToCommit)):
                self.repo.revert(name, reverted, parent=1)
        else:
            self.moved(name, self.repo.revert(name, reverted, parent=1), files)

    @rule(data=st.data(), source=PATHS, goal=PATHS, move=st.booleans())
    def copy_or_move(self, data, source, goal, move):
        name = self.any_branch(data)
        act = self.repo.move if move else lambda branch, a, b: self.repo.copy(branch, a, branch, b)
        before = self.files(name).get(source)
        if before is None or self.is_gone(before):
            with pytest.raises(NotFound if before is None else Gone):
                act(name, source, goal)
            return
        if move:
            self.branches[name].staged[source] = None
        self.branches[name].staged[goal] = act(name, source, goal)

    @rule(data=st.data(), source=PATHS, goal=PATHS)
    def copy_across(self, data, source, goal):
        origin, name = self.any_branch(data), self.any_branch(data)
        before = self.files(origin).get(source)
        if origin == name or before is None:
            return
        if self.is_gone(before):
            with pytest.raises(Gone):
                self.repo.copy(origin, source, name, goal)
            return
        entry = self.repo.copy(origin, source, name, goal)
        self.bodies[entry.address] = self.bodies[before.address]
        self.branches[name].staged[goal] = entry

    @rule(data=st.data(), name=NAMES)
    def branch_off_an_old_commit(self, data, name):
        if name not in self.branches:
            source = self.any_commit(data)
            self.repo.create_branch(name, source)
            self.branches[name] = ModelBranch(source)

    @rule(data=st.data(), name=st.sampled_from(["v1", "v2"]))
    def tag_or_untag(self, data, name):
        if name in self.tags:
            self.repo.delete_tag(name)
        else:
            self.repo.create_tag(name, self.any_commit(data))
        self.tags ^= {name}

    @rule(name=NAMES, seldom=st.sampled_from([False, False, True]))
    def delete_branch(self, name, seldom):
        """Its commits hold what they have, for good: too many of them, and nothing ever goes."""
        if seldom and name in self.branches:
            self.repo.delete_branch(name, force=True)
            del self.branches[name]

    @rule(data=st.data(), kind=st.sampled_from(HoldKind), days=st.sampled_from([1, 2, 4, None]))
    def hold(self, data, kind, days):
        values = {
            HoldKind.PREFIX: ["a/b", "b/x/", "é"],
            HoldKind.REF: list(self.commits),
            HoldKind.ADDRESS: list(self.bodies),
        }
        if values[kind]:
            value = data.draw(st.sampled_from(values[kind]), label="held")
            until = days and self.repo.clock() + timedelta(days=days)
            self.holds.append(order(self.repo, kind, value, until=until))

    @precondition(lambda self: self.holds)
    @rule(data=st.data())
    def release(self, data):
        self.release_one(data.draw(st.integers(0, len(self.holds) - 1), label="hold"))

    def release_one(self, number):
        lift_hold(self.repo, self.holds.pop(number))

    # ---- runs

    @rule()
    def expire(self):
        self.expire_everything()

    @rule(days=st.sampled_from([1, 3, 12]))
    def wait_and_expire(self, days):
        self.wait(days, 0)
        self.expire_everything()

    @rule(action=st.sampled_from(CHOICES), full=st.booleans())
    def expire_in_some_way(self, action, full):
        self.expire_everything(action=action, full=full)

    @rule(often=st.sampled_from([1, 2, 3]), action=st.sampled_from(CHOICES))
    def expire_in_part(self, often, action):
        """Some deletes fail; what failed reads as gone, and is tried again by the next run."""
        wanted = [address for address in self.bodies if address in self.expired()]
        self.expire_everything(action=action, keeps=set(wanted[::often]))

    @rule(full=st.booleans())
    def plan_moves_nothing(self, full):
        with self.repo.database.read() as tx:
            before = watermarks.find(tx, self.repo.uid, lifecycle.JOB)
        there = set(oracle.stored(self.repo))
        report = plan(lifecycle.job, self.repo, HERE, lifecycle.job.ask(policy=self.policy, full=full))
        assert named(self.repo, report) == self.expired()
        assert set(oracle.stored(self.repo)) == there
        with self.repo.database.read() as tx:
            assert watermarks.find(tx, self.repo.uid, lifecycle.JOB) == before
        self.plans.append((report.run, self.repo.clock(), self.policy))

    @precondition(lambda self: self.plans)
    @rule(data=st.data())
    def sweep_what_was_planned(self, data):
        """Life went on since: nothing goes that the rules of the plan would keep now; the next run takes the rest."""
        run_id, at, policy = self.plans.pop(data.draw(st.integers(0, len(self.plans) - 1), label="plan"))
        if self.repo.clock() - at > ALL.max_plan_age:
            with pytest.raises(StalePlan):
                sweep(self.repo, HERE, run_id, ALL)
            return
        may = oracle.expired(self.repo, policy, self.repo.clock())
        assert self.swept_by(lambda: [sweep(self.repo, HERE, run_id, ALL)]) <= may

    @precondition(lambda self: self.trashed)
    @rule(data=st.data())
    def bring_back(self, data):
        run_id, moved = self.trashed.pop(data.draw(st.integers(0, len(self.trashed) - 1), label="trash"))
        self.texts |= self.bodies
        before = set(oracle.stored(self.repo))
        trash.bring_back(self.repo, HERE, run_id)
        there = set(oracle.stored(self.repo))
        assert there == before | moved
        self.bodies = {address: self.texts[address] for address in self.texts if address in there}
        assert not self.repo.tombstones(sorted(moved))
        self.check_readable()

    @rule()
    def collect_garbage(self):
        wanted = oracle.collectable(self.repo, self.repo.clock())
        assert self.swept_by(lambda: run(uncommitted.job, self.repo, HERE, uncommitted.job.ask(), ALL)) == wanted

    # ---- what must hold

    def expire_everything(self, *, action=Action.DELETE, full=False, keeps=frozenset()):
        wanted = self.expired()
        assert self.named_by_a_clean_plan() == wanted
        self.repo.store.keeps = {self.repo.prefix + address for address in keeps}
        ask, reports = lifecycle.job.ask(policy=self.policy, full=full, action=action), []
        removed = self.swept_by(lambda: reports.extend(run(lifecycle.job, self.repo, HERE, ask, ALL)) or reports)
        self.repo.store.keeps = set()
        assert removed == wanted - keeps
        assert reports[-1].swept.failed == len(keeps)
        assert self.named_by_a_clean_plan() == self.expired() == keeps
        if action is Action.TRASH and removed:
            self.trashed.append((reports[-1].run, removed))

    def swept_by(self, act):
        """What ``act`` removed; whatever anybody can read, or count, agrees with that."""
        self.texts |= self.bodies
        before, gone = set(oracle.stored(self.repo)), self.gone()
        reports = act()
        there = set(oracle.stored(self.repo))
        removed = before - there
        assert there <= before
        assert removed <= self.gone()
        assert not gone - self.gone()
        for report in reports:
            told = report.swept
            assert told.asked == told.removed + told.gone + told.failed
        for address in removed:
            del self.bodies[address]
        self.check_soundness()
        self.check_readable()
        return removed

    def check_readable(self):
        """Every entry of every commit and staging area that has no tombstone, by its bytes."""
        gone, there = self.gone(), set(oracle.stored(self.repo))
        held = oracle.committed(self.repo) | oracle.staged(self.repo)
        assert held - gone <= there
        assert not oracle.staged(self.repo) & gone
        for address in held - gone:
            assert self.repo.store.get(self.repo.prefix + address).decode() == self.bodies[address]
        for name in self.branches:
            self.check(name)

    def check(self, name):
        files, gone = self.files(name), self.gone()
        assert {entry.path: entry for entry in self.repo.list(name)} == files
        for path, entry in files.items():
            if entry.address in gone:
                with pytest.raises(Gone):
                    self.repo.stat(name, path)
            else:
                assert self.repo.stat(name, path) == entry
                assert b"".join(self.repo.get(name, path)).decode() == self.bodies[entry.address]

    def expired(self):
        return oracle.expired(self.repo, self.policy, self.repo.clock())

    def named_by_a_clean_plan(self):
        return named(self.repo, plan(lifecycle.job, self.repo, HERE, lifecycle.job.ask(policy=self.policy, full=True)))

    def gone(self):
        return set(self.repo.tombstones([*self.texts.keys(), *self.bodies.keys()]))

    def is_gone(self, entry):
        return bool(self.repo.tombstones([entry.address]))

    def any_commit(self, data):
        return data.draw(st.sampled_from(list(self.commits)), label="commit")
