"""Random histories with chains of lifecycle runs: each removes what the naive oracle names, no more and no less.

Policies, holds and refs change between the runs, deletes fail, the trash gives
back, other jobs run. An incremental run must name what a clean one names.
"""

import tempfile
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule, run_state_machine_as_test
from test_gc_chain import Stubborn
from test_lake_model import NAMES, PATHS, LakeModel, ModelBranch, ModelCommit, three_way

from desilt.domain.entry import shown_path
from desilt.domain.policy import Keep, Policy, Rule, Tags, parse
from desilt.errors import Gone, MergeConflict, NotFound, NothingToCommit, StalePlan
from desilt.jobs import lifecycle, trash, uncommitted
from desilt.jobs.job import Ask
from desilt.jobs.running import plan, run, sweep
from desilt.lake import Lake, schema, watermarks
from desilt.lake.database import open_database
from desilt.lake.fsck import check
from desilt.lake.holds import Hold, Kind
from desilt.objects import open_store
from desilt.objects.file import ObjectFile
from desilt.runs.plan import Action
from desilt.sources.spread import in_process
from desilt.sweep import removing
from desilt.sweep.guard import Limits
from desilt.testing import oracle
from editing import add_hold, lift_hold

ALL = Limits(max_share=1.0, confirm=True, allow_empty=True)
START = datetime(2026, 1, 1, tzinfo=UTC)
FAST = "/dev/shm" if Path("/dev/shm").is_dir() else None  # a database that need not survive a power cut

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
    st.builds(Keep, id=st.just("k"), prefix=st.sampled_from(["a/", "b/x/2", "nothing"])),
    st.builds(Keep, id=st.just("k"), glob=st.sampled_from(["*b", "?", "b/*/1"])),
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


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr(removing, "PAUSES", (0.0,))


@pytest.fixture(autouse=True)
def _any_policy_fits(monkeypatch):
    """Drawn by chance, few make sense; that those are refused is told elsewhere."""
    monkeypatch.setattr(lifecycle, "findings", lambda *_: [])


def named(repo, report):
    """The addresses that a plan names, read from its own files."""
    folder = f"{repo.prefix}_desilt/runs/{report.job}/{report.run}/plan/"
    keys = [key for batch in repo.store.list(folder) for key in batch["key"].to_pylist()]
    rows = [row for key in keys for row in pq.read_table(ObjectFile(repo.store, key)).to_pylist()]
    assert all((row["verdict"], row["reason"]) == ("remove", "expired") for row in rows)
    found = [row["address"] for row in rows]
    assert len(found) == len(set(found)) == report.removed.objects
    return set(found)


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
        self.directory = tempfile.TemporaryDirectory(dir=FAST)
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

    @rule(data=st.data(), kind=st.sampled_from(Kind), days=st.sampled_from([1, 2, 4, None]))
    def hold(self, data, kind, days):
        values = {Kind.PREFIX: ["a/b", "b/x/", "é"], Kind.REF: list(self.commits), Kind.ADDRESS: list(self.bodies)}
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

    @rule(action=st.sampled_from(Action), full=st.booleans())
    def expire_in_some_way(self, action, full):
        self.expire_everything(action=action, full=full)

    @rule(often=st.sampled_from([1, 2, 3]), action=st.sampled_from(Action))
    def expire_in_part(self, often, action):
        """Some deletes fail; what failed reads as gone, and is tried again by the next run."""
        wanted = [address for address in self.bodies if address in self.expired()]
        self.expire_everything(action=action, keeps=set(wanted[::often]))

    @rule(full=st.booleans())
    def plan_moves_nothing(self, full):
        with self.repo.database.read() as tx:
            before = watermarks.find(tx, self.repo.uid, lifecycle.JOB)
        there = set(oracle.stored(self.repo))
        report = plan(lifecycle.job, self.repo, in_process, Ask(policy=self.policy, full=full))
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
                sweep(self.repo, in_process, run_id, ALL)
            return
        may = oracle.expired(self.repo, policy, self.repo.clock())
        assert self.swept_by(lambda: [sweep(self.repo, in_process, run_id, ALL)]) <= may

    @precondition(lambda self: self.trashed)
    @rule(data=st.data())
    def bring_back(self, data):
        run_id, moved = self.trashed.pop(data.draw(st.integers(0, len(self.trashed) - 1), label="trash"))
        self.texts |= self.bodies
        before = set(oracle.stored(self.repo))
        trash.bring_back(self.repo, in_process, run_id)
        there = set(oracle.stored(self.repo))
        assert there == before | moved
        self.bodies = {address: self.texts[address] for address in self.texts if address in there}
        assert not self.repo.tombstones(sorted(moved))
        self.check_readable()

    @rule()
    def collect_garbage(self):
        wanted = oracle.collectable(self.repo, self.repo.clock())
        assert self.swept_by(lambda: run(uncommitted.job, self.repo, in_process, Ask(), ALL)) == wanted

    # ---- what must hold

    def expire_everything(self, *, action=Action.DELETE, full=False, keeps=frozenset()):
        wanted = self.expired()
        assert self.named_by_a_clean_plan() == wanted
        self.repo.store.keeps = {self.repo.prefix + address for address in keeps}
        ask, reports = Ask(policy=self.policy, full=full, action=action), []
        removed = self.swept_by(lambda: reports.extend(run(lifecycle.job, self.repo, in_process, ask, ALL)) or reports)
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
        return named(self.repo, plan(lifecycle.job, self.repo, in_process, Ask(policy=self.policy, full=True)))

    def gone(self):
        return set(self.repo.tombstones([*self.texts.keys(), *self.bodies.keys()]))

    def is_gone(self, entry):
        return bool(self.repo.tombstones([entry.address]))

    def any_commit(self, data):
        return data.draw(st.sampled_from(list(self.commits)), label="commit")


def aging(examples, steps):
    run_state_machine_as_test(
        Aging,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],  # to make a history smaller would take minutes
        ),
    )


def test_a_chain_of_runs_removes_what_is_expired_and_nothing_else():
    aging(examples=4, steps=40)


@pytest.mark.slow
def test_a_long_chain_of_runs_removes_what_is_expired_and_nothing_else():
    aging(examples=300, steps=60)


# ---- orders of events that random chains seldom hit


TMP = parse({"r": {"prefix": "tmp/", "days": 10}})


@pytest.fixture
def repo(tmp_path):
    database = open_database(f"sqlite://{tmp_path}/lake.db", create=True)
    schema.create(database, storage="")
    store = open_store(f"memory://{uuid.uuid4().hex}")
    yield Lake(database, store, raggedness=1).create_repository("chain", clock_at=START)
    database.close()


def days(repo, count):
    repo.set_clock(repo.clock() + timedelta(days=count))


def written(repo, branch, *paths):
    found = [repo.put(branch, path, path.encode()).address for path in paths]
    repo.commit(branch, "some")
    return found


def removed_by(repo, policy=TMP, **ask):
    """What an incremental run removes: what the oracle and a clean plan name."""
    before, wanted = set(oracle.stored(repo)), oracle.expired(repo, policy, repo.clock())
    assert named(repo, plan(lifecycle.job, repo, in_process, Ask(policy=policy, full=True))) == wanted
    run(lifecycle.job, repo, in_process, Ask(policy=policy, **ask), ALL)
    removed = before - set(oracle.stored(repo))
    assert removed == wanted
    return removed


def test_what_is_just_as_old_as_its_rule_says_stays_one_moment_more(repo):
    (old,) = written(repo, "main", "tmp/a")
    days(repo, 10)
    assert removed_by(repo) == set()
    repo.set_clock(repo.clock() + timedelta(microseconds=1))
    assert removed_by(repo) == {old}


def test_on_each_branch_what_is_just_as_old_as_its_rule_says_stays_one_moment_more(repo):
    policy = parse({"r": {"prefix": "tmp/", "days": 10, "branch_days": {"dev": 5}}})
    (old,) = written(repo, "main", "tmp/a")
    repo.create_branch("dev", "main")
    days(repo, 10)
    assert removed_by(repo, policy) == set()
    repo.set_clock(repo.clock() + timedelta(microseconds=1))
    assert removed_by(repo, policy) == {old}


def test_what_comes_of_age_in_a_commit_that_was_seen_goes(repo):
    (first,) = written(repo, "main", "tmp/a")
    days(repo, 5)
    (second,) = written(repo, "main", "tmp/b")
    days(repo, 6)
    assert removed_by(repo) == {first}
    assert removed_by(repo) == set()  # gone once is gone for good
    days(repo, 5)
    assert removed_by(repo) == {second}


def test_a_tag_holds_the_commit_it_names_and_not_those_before(repo):
    gone, kept = written(repo, "main", "tmp/a", "tmp/b")
    repo.remove("main", "tmp/a")
    repo.commit("main", "one less")
    repo.create_tag("v1", "main")
    days(repo, 11)
    assert removed_by(repo) == {gone}
    repo.delete_tag("v1")
    assert removed_by(repo) == {kept}


@pytest.mark.parametrize("kind", Kind)
def test_what_a_hold_kept_goes_once_it_is_released(repo, kind):
    (old,) = written(repo, "main", "tmp/a")
    days(repo, 11)
    value = {Kind.PREFIX: "tmp/", Kind.REF: repo.resolve("main").commit.id, Kind.ADDRESS: old}[kind]
    hold = order(repo, kind, value)
    assert removed_by(repo) == removed_by(repo) == set()
    lift_hold(repo, hold)
    assert removed_by(repo) == {old}


def test_a_hold_with_a_day_holds_until_then(repo):
    (old,) = written(repo, "main", "tmp/a")
    order(repo, Kind.PREFIX, "tmp/", until=repo.clock() + timedelta(days=20))
    days(repo, 19)
    assert removed_by(repo) == set()
    days(repo, 1)
    assert removed_by(repo) == {old}


def test_a_commit_that_no_branch_reaches_holds_though_another_one_has_the_same(repo):
    kept, gone = written(repo, "main", "tmp/a", "tmp/b")
    repo.create_branch("dev", "main")
    repo.remove("dev", "tmp/b")
    repo.commit("dev", "one less")
    repo.delete_branch("dev")
    days(repo, 11)
    assert removed_by(repo, replace(TMP, tags=Tags.IGNORE)) == {gone}
    assert kept in oracle.stored(repo)


def test_every_path_of_an_object_has_a_say(repo):
    kept, gone, first = written(repo, "main", "tmp/a", "tmp/b", "kept/c")
    repo.copy("main", "tmp/a", "main", "kept/a")
    repo.copy("main", "kept/c", "main", "tmp/c")
    repo.commit("main", "second paths")
    days(repo, 5)
    repo.copy("main", "tmp/b", "main", "tmp/b2")
    repo.commit("main", "a younger one")
    days(repo, 6)
    assert removed_by(repo) == set()
    days(repo, 5)
    assert removed_by(repo) == {gone}
    assert removed_by(repo, parse({"r": {"prefix": "", "days": 10}})) == {kept, first}


def test_every_branch_has_a_say_and_a_rule_may_come_to_one_after_the_other(repo):
    (old,) = written(repo, "main", "tmp/a")
    repo.create_branch("dev", "main")
    days(repo, 11)
    only = {name: parse({"r": {"prefix": "tmp/", "branch_days": {name: 10}}}) for name in ("main", "dev")}
    for name in ("main", "dev", "main", "dev"):
        assert removed_by(repo, only[name]) == set()
    assert removed_by(repo, TMP) == {old}


def test_what_a_head_has_goes_once_it_is_replaced(repo):
    policy = parse({"r": {"prefix": "", "days": 10, "noncurrent_only": True}})
    (old,) = written(repo, "main", "tmp/a")
    days(repo, 11)
    assert removed_by(repo, policy) == removed_by(repo, policy) == set()
    written(repo, "main", "tmp/a")
    assert removed_by(repo, policy) == {old}


def test_what_was_staged_goes_once_it_is_reset(repo):
    (old,) = written(repo, "main", "tmp/a")
    days(repo, 11)
    repo.copy("main", "tmp/a", "main", "kept")
    assert removed_by(repo) == removed_by(repo) == set()
    repo.reset("main")
    assert removed_by(repo) == set()  # somebody may still be reading it
    days(repo, 1)
    days(repo, 1)
    assert removed_by(repo) == {old}


def test_a_delete_that_failed_is_tried_again_by_every_run(repo):
    old, other = written(repo, "main", "tmp/a", "tmp/b")
    days(repo, 11)
    repo.store = Stubborn(repo.store)
    repo.store.keeps = {repo.prefix + old}
    for asked in ({old, other}, {old}, {old}):
        assert oracle.expired(repo, TMP, repo.clock()) == asked
        report = run(lifecycle.job, repo, in_process, Ask(policy=TMP), ALL)[-1]
        assert (report.swept.asked, report.swept.failed) == (len(asked), 1)
        with pytest.raises(Gone):
            repo.stat("main", "tmp/a")
    repo.store.keeps = set()
    assert removed_by(repo) == {old}


def test_what_was_brought_back_is_left_alone_for_a_while(repo):
    (old,) = written(repo, "main", "tmp/a")
    days(repo, 11)
    assert removed_by(repo, action=Action.TRASH) == {old}
    trash.bring_back(repo, in_process, "last")
    assert removed_by(repo) == set()
    assert b"".join(repo.get("main", "tmp/a")) == b"tmp/a"
    days(repo, 2)
    assert removed_by(repo) == {old}


def test_an_entry_that_points_outside_of_the_lake_stops_nothing(repo):
    (old,) = written(repo, "main", "tmp/a")
    repo.stage("main", "tmp/far", "s3://elsewhere/far", size=3, checksum="123")
    repo.commit("main", "from elsewhere")
    days(repo, 11)
    assert removed_by(repo) == {old}
