"""Random histories with chains of expirations and collections: what anything reaches stays whole, the rest goes.

A plain model knows what every commit showed when it was made. Commits are hidden,
abandoned, saved by new refs, held, collected; lifecycle and garbage runs come
between. Each collection removes what the naive oracle names, and a second one nothing.
"""

import tempfile
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule, run_state_machine_as_test

from aging import POLICIES, Aging, Stubborn, order
from desilt.clock import ManualClock
from desilt.domain.expiry import Expiry, Omission
from desilt.domain.history import merge_base
from desilt.domain.policy import parse
from desilt.errors import (
    BadRequest,
    BaseAbandoned,
    BeingCollected,
    CommitGone,
    Dirty,
    MergeConflict,
    NotFound,
    NothingToCommit,
    PlanOutdated,
    StalePlan,
)
from desilt.executors.executor import HERE
from desilt.jobs import trash
from desilt.jobs.collect import job as collection
from desilt.jobs.collect.options import limit
from desilt.jobs.expire import job as expiration
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.runner import plan, run, sweep
from desilt.lake import Lake, commits, schema
from desilt.lake.fsck import check
from desilt.objects import open_store
from desilt.records import ledger
from desilt.records.database import open_database
from desilt.records.holds import HoldKind
from desilt.runs.steps import CHOICES, Action
from desilt.sweep import delete as removing
from desilt.sweep.limits import Limits
from desilt.testing import oracle
from expirations import KEEPS, Before, below
from lake_model import NAMES, PATHS, PLAIN, ModelBranch, ModelCommit, three_way
from words import collecting, days, lift_hold

ALL = Limits(max_share=1.0, confirm=True, allow_empty=True)
START = datetime(2026, 1, 1, tzinfo=UTC)
TABLES = "_lakefs/"
TOLD = "commits collected"
FEW_RULES = st.one_of(POLICIES, st.just(parse({"r": {"prefix": "", "days": 5, "noncurrent_only": True}})))


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr(removing, "PAUSES", (0.0,))


class Forgetting(Aging):
    """The aging lake, whose history is edited and whose dead commits are collected."""

    another_rule = switch_a_rule = another_policy = commit_nothing = put = None  # told elsewhere
    expire = wait_and_expire = plan_moves_nothing = None

    @initialize(
        policy=FEW_RULES, early=st.lists(PATHS, min_size=3, max_size=8, unique=True), cut=st.sampled_from([1, 1, 3])
    )
    def begin(self, policy, early, cut):
        self.directory = tempfile.TemporaryDirectory()
        database = open_database(f"sqlite://{self.directory.name}/lake.db", create=True)
        schema.create(database, storage="")
        store = open_store(f"memory://{uuid.uuid4().hex}")
        self.repo = Lake(database, store, raggedness=cut).create_repository("model", clock_at=START)
        self.repo.store = Stubborn(self.repo.store)  # for the sweep, which asks the repository for it
        first = self.repo.resolve("main").commit.id
        self.commits = {first: ModelCommit({}, ())}
        self.branches = {"main": ModelBranch(first)}
        self.policy, self.bodies, self.texts, self.cut = policy, {}, {}, cut
        self.tags, self.holds, self.plans, self.trashed = {}, [], [], []
        self.collected, self.unclean = set(), False
        self.write("main", early)

    def teardown(self):
        if hasattr(self, "repo"):
            self.forget_everything()
        super(Aging, self).teardown()

    def forget_everything(self):
        """Nothing is held, nothing is young: what is left afterwards is what main shows, and its root."""
        while self.holds:
            self.release_one(0)
        for name in list(self.tags):
            self.repo.delete_tag(name)
        for name in self.branches.keys() - {"main"}:
            self.repo.delete_branch(name, force=True)
            del self.branches[name]
        self.tags = {}
        self.repo.reset("main")
        self.branches["main"].staged = {}
        self.wait(10, 0)
        self.commit_as_it_is("main")
        self.expire_history(0, None, True, True)
        self.wait(10, 0)
        self.collect()
        self.collect_garbage()
        assert len(oracle.history(self.repo)) <= 2
        assert oracle.garbage(self.repo) == {}
        head = oracle.history(self.repo)[self.branches["main"].head].metarange
        needed = {head, *(listed.id for listed in self.repo.ranges.metarange(head))} - {""}
        assert oracle.tables(self.repo).keys() == needed

    # ---- commits, whose tables may be on their way out

    def tried(self, act):
        """What ``act`` gives; if a table that it needs was just collected, what it gives ten minutes later."""
        try:
            return act()
        except BeingCollected as error:
            refused = error.table
        assert self.repo.tombstones([TABLES + refused])
        self.repo.set_clock(self.repo.clock() + timedelta(minutes=11))
        return act()

    def commit_as_it_is(self, name):
        files = self.files(name)
        self.moved(name, self.tried(lambda: self.repo.commit(name, "some", allow_empty=True)), files)
        self.branches[name].staged = {}

    @rule(data=st.data())
    def commit(self, data):
        name = self.any_branch(data)
        if self.files(name) == self.commits[self.branches[name].head].files:
            with pytest.raises(NothingToCommit):
                self.tried(lambda: self.repo.commit(name, "nothing"))
            self.branches[name].staged = {}
        else:
            self.commit_as_it_is(name)

    @rule(data=st.data(), path=PATHS)
    def remove_and_commit(self, data, path):
        """The ranges of an older commit come back."""
        name = self.any_branch(data)
        if path in self.files(name):
            self.repo.remove(name, path)
            self.branches[name].staged[path] = None
            self.commit_as_it_is(name)

    @rule(data=st.data(), path=PATHS)
    def tables_come_back(self, data, path):
        """A commit shows what one showed that was just collected."""
        name = self.any_branch(data)
        if path not in self.files(name):
            self.wait(2, 0)
            self.write(name, [path])
            self.expire_history(0, None, False, False)
            self.collect()
            self.repo.remove(name, path)
            self.branches[name].staged[path] = None
            self.commit_as_it_is(name)

    @rule(
        data=st.data(), strategy=st.sampled_from([None, "source-wins", "dest-wins"]), old=st.sampled_from([False, True])
    )
    def merge(self, data, strategy, old):
        """From a branch, or from any commit there is."""
        name = self.any_branch(data)
        theirs = self.any_commit(data) if old else self.branches[self.any_branch(data)].head
        ours = self.branches[name].head

        def act():
            return self.tried(lambda: self.repo.merge(theirs, name, strategy=strategy))

        if self.branches[name].staged:
            with pytest.raises(Dirty):
                act()
            return
        if theirs in self.ancestors(ours):
            assert act() is None
            return
        base = self.base(theirs, ours)
        if base not in oracle.reached(self.repo):
            with pytest.raises(BaseAbandoned):
                act()
            return
        files, conflicts = three_way(
            self.commits[base].files, self.commits[theirs].files, self.commits[ours].files, strategy
        )
        if conflicts:
            with pytest.raises(MergeConflict):
                act()
        else:
            self.moved(name, act(), files, theirs)

    @rule(data=st.data())
    def revert(self, data):
        name, reverted = self.any_branch(data), self.any_commit(data)
        parents, head = self.commits[reverted].parents, self.commits[self.branches[name].head].files
        if not parents or self.branches[name].staged:
            return

        def act():
            return self.tried(lambda: self.repo.revert(name, reverted, parent=1))

        if parents[0] not in {*oracle.history(self.repo)[reverted].parents, *oracle.reached(self.repo)}:
            with pytest.raises(BaseAbandoned):
                act()
            return
        base, before = self.commits[reverted].files, self.commits[parents[0]].files
        files, conflicts = three_way(base, before, head, None)
        if conflicts or files == head:
            with pytest.raises((MergeConflict, NothingToCommit)):
                act()
        else:
            self.moved(name, act(), files)

    def base(self, left, right):
        """As history was made; where two are equally good, the one the lake takes, if it is one of them."""
        common = self.ancestors(left) & self.ancestors(right)
        best = [one for one in common if not any(one in self.ancestors(other) - {other} for other in common)]
        with self.repo.database.read() as tx:
            fetch = commits.as_made(tx, self.repo.uid, commits.fetching(tx, self.repo.uid))
            chosen = merge_base(fetch, left, right).id
        assert chosen in best
        return chosen

    # ---- refs and holds

    @rule(data=st.data(), name=st.sampled_from(["v1", "v2"]))
    def tag_or_untag(self, data, name):
        if self.tags.pop(name, None):
            self.repo.delete_tag(name)
        else:
            self.tags[name] = self.any_commit(data)
            self.repo.create_tag(name, self.tags[name])

    @rule(name=NAMES)
    def delete_branch(self, name):
        if name in self.branches:
            self.repo.delete_branch(name, force=True)
            del self.branches[name]

    @rule(
        data=st.data(),
        name=NAMES,
        paths=st.lists(PATHS, min_size=1, max_size=2, unique=True),
        days=st.sampled_from([0, 2]),
    )
    def commits_that_nobody_keeps(self, data, name, paths, days):
        if name not in self.branches:
            source = self.any_commit(data)
            self.repo.create_branch(name, source)
            self.branches[name] = ModelBranch(source)
            self.write(name, paths)
            self.delete_branch(name)
            self.wait(days, 0)

    @rule(data=st.data(), kind=st.sampled_from(HoldKind), days=st.sampled_from([1, 2, 4, None]))
    def hold(self, data, kind, days):
        values = {
            HoldKind.PREFIX: ["a/b", "b/x/", "é"],
            HoldKind.REF: self.there(),
            HoldKind.ADDRESS: list(self.bodies),
        }
        value = data.draw(st.sampled_from(values[kind]), label="held")
        self.holds.append(order(self.repo, kind, value, until=days and self.repo.clock() + timedelta(days=days)))

    @precondition(lambda self: self.holds)
    @rule(data=st.data())
    def release(self, data):
        self.release_one(data.draw(st.integers(0, len(self.holds) - 1), label="hold"))

    @rule(data=st.data(), path=PLAIN, linked=st.booleans())
    def upload_directly(self, data, path, linked):
        name = self.any_branch(data)
        handed = self.repo.physical_address(name, path)
        self.repo.store.put(self.repo.prefix + handed.ticket.address, [b"direct"])
        self.bodies[handed.ticket.address] = "direct"
        if linked:
            self.branches[name].staged[path] = self.repo.link(name, path, handed.token)

    # ---- history edited

    @rule(days=st.sampled_from([0, 1, 2, 4, 8]), keep=KEEPS, tags=st.booleans(), branches=st.booleans())
    def expire_history(self, days, keep, tags, branches):
        wish, before = Expiry(self.repo.clock() - timedelta(days=days), keep, tags, branches), Before(self.repo)
        report = run(expiration.job, self.repo, HERE, expiration.job.ask(wish=wish), ALL)[-1]
        gone = [name for name, fate in report.refs.items() if fate == "deleted"]
        before.compare(wish, told=gone)
        for name in gone:
            self.branches.pop(name, None)
            self.tags.pop(name, None)
        self.check_everything()

    @rule(data=st.data())
    def abandon(self, data):
        name, made, before = self.any_branch(data), oracle.history(self.repo), Before(self.repo)
        line = [made[self.branches[name].head]]
        while line[-1].parents:
            line.append(made[line[-1].parents[0]])
        first = data.draw(st.integers(0, len(line) - 1), label="first")
        last = data.draw(st.integers(first, len(line) - 1), label="last")
        wish = Omission(name, line[first].id, line[last].id)
        inside = {one.id for one in line[first : last + 1]}
        if first == 0 or last == len(line) - 1 or inside & set(before.refs.values()):
            with pytest.raises(BadRequest):
                run(expiration.job, self.repo, HERE, expiration.job.ask(wish=wish), ALL)
            return
        run(expiration.job, self.repo, HERE, expiration.job.ask(wish=wish), ALL)
        before.compare()
        after = below(oracle.history(self.repo), line[0].id)
        assert below(made, line[0].id) - after <= inside
        self.check_everything()

    # ---- collections

    @rule(days=st.sampled_from([0, 0, 2]), keep_runs=st.sampled_from([2, 90]))
    def wait_and_collect(self, days, keep_runs):
        self.wait(days, 0)
        self.collect(keep_runs=timedelta(days=keep_runs))

    @rule(hours=st.sampled_from([1, 30, 100]))
    def collect_what_is_older(self, hours):
        self.collect(older_than=timedelta(hours=hours))

    @rule(often=st.sampled_from([1, 2, 3]))
    def collect_in_part(self, often):
        """Some deletes fail: objects are left to the garbage run, tables to the next collection."""
        before = oracle.old(self.repo, self.repo.clock())
        objects = [one for one in self.bodies if one in oracle.collectable_objects(self.repo, before)]
        self.collect(
            keeps={*objects[::often], *sorted(TABLES + one for one in oracle.dead_tables(self.repo, before))[::often]}
        )

    def collect(self, keeps=frozenset(), **ask):
        before = self.repo.clock() - limit(collection.Options(**ask), self.repo)
        wanted = (
            oracle.collectable_commits(self.repo, before),
            oracle.collectable_objects(self.repo, before),
            {TABLES + name for name in oracle.dead_tables(self.repo, before)},
        )
        self.repo.store.keeps = {self.repo.prefix + name for name in keeps}
        removed = self.collected_by(lambda: run(collection.job, self.repo, HERE, collecting(**ask), ALL))
        self.repo.store.keeps = set()
        self.compare(removed, (wanted[0], wanted[1] - keeps, wanted[2] - keeps))
        again = self.collected_by(lambda: run(collection.job, self.repo, HERE, collecting(**ask), ALL))
        assert again == (set(), set(), (wanted[2] & keeps) - removed[2])

    def compare(self, removed, wanted):
        if self.cut == 1 or not oracle.held(self.repo, HoldKind.PREFIX):
            assert removed == wanted
        else:  # a range that may have something below a held prefix is kept as a whole
            assert all(some <= every for some, every in zip(removed, wanted, strict=True))

    def collected_by(self, act):
        """What ``act`` took: commits, objects and tables."""
        made, tables, reports = oracle.history(self.repo).keys(), oracle.tables(self.repo).keys(), []
        removed = self.swept_by(lambda: reports.extend(act()) or reports)
        gone = made - oracle.history(self.repo).keys()
        files = {TABLES + name for name in tables - oracle.tables(self.repo).keys()}
        assert reports[-1].history["commits collected"] == len(gone)
        assert reports[-1].swept.removed == len(removed) + len(files)
        self.collected |= gone
        self.unclean |= bool(gone)
        for one in sorted(gone)[:2]:
            for ask in (
                self.repo.resolve,
                lambda one: list(self.repo.list(one)),
                lambda one: self.repo.create_tag("v9", one),
            ):
                with pytest.raises(CommitGone):
                    ask(one)
        self.check_everything()
        return gone, removed, files

    @rule()
    def plan_a_collection(self):
        before = oracle.old(self.repo, self.repo.clock())
        there = set(oracle.stored(self.repo)), oracle.tables(self.repo).keys(), oracle.history(self.repo)
        report = plan(collection.job, self.repo, HERE, collecting())
        assert (set(oracle.stored(self.repo)), oracle.tables(self.repo).keys(), oracle.history(self.repo)) == there
        if self.cut == 1 or not oracle.held(self.repo, HoldKind.PREFIX):
            assert report.history["commits collected"] == len(oracle.collectable_commits(self.repo, before))
        self.plans.append((report.run, self.repo.clock(), set()))

    @rule()
    def plan_a_garbage_run(self):
        run_id = plan(uncommitted.job, self.repo, HERE).run
        self.plans.append((run_id, self.repo.clock(), self.collected.copy()))

    @rule()
    def plan_a_lifecycle_run(self):
        run_id = plan(lifecycle.job, self.repo, HERE, lifecycle.job.ask(policy=self.policy)).run
        self.plans.append((run_id, self.repo.clock(), set()))

    @precondition(lambda self: self.plans)
    @rule(data=st.data())
    def sweep_what_was_planned(self, data):
        """Life went on since: what goes is what may go by now, or the plan is refused."""
        run_id, at, collected = self.plans.pop(data.draw(st.integers(0, len(self.plans) - 1), label="plan"))
        before = oracle.old(self.repo, self.repo.clock())
        may = (
            oracle.collectable_objects(self.repo, before)
            | oracle.collectable(self.repo, self.repo.clock())
            | oracle.expired(self.repo, self.policy, self.repo.clock())
        )
        dead, made = oracle.collectable_commits(self.repo, before), oracle.history(self.repo).keys()
        try:
            removed = self.swept_by(lambda: [sweep(self.repo, HERE, run_id, ALL)])
        except StalePlan:
            assert self.repo.clock() - at > ALL.max_plan_age
            return
        except NotFound:
            assert self.repo.clock() - at > timedelta(days=2)  # its folder was tidied up
            return
        except PlanOutdated:
            return
        gone = made - oracle.history(self.repo).keys()
        if not oracle.held(self.repo, HoldKind.PREFIX):  # of two commits that have the same below it, one may go
            assert removed <= may
            assert gone <= dead
        self.unclean &= collected != self.collected  # or a garbage run has looked at everything since
        self.collected |= gone
        self.unclean |= bool(gone)
        self.check_everything()

    @rule()
    def collect_garbage(self):
        """After commits were collected, the next run is a clean one."""
        wanted, reports = oracle.collectable(self.repo, self.repo.clock()), []
        removed = self.swept_by(
            lambda: reports.extend(run(uncommitted.job, self.repo, HERE, uncommitted.job.ask(), ALL)) or reports
        )
        assert removed == wanted
        if self.unclean:
            assert reports[-1].inputs["known from before"] == 0
        self.unclean = False

    @rule(days=st.sampled_from([0, 3]), action=st.sampled_from(CHOICES))
    def expire_objects(self, days, action):
        self.wait(days, 0)
        self.expire_everything(action=action)

    # ---- what must hold

    @invariant()
    def commits_and_tags_are_where_they_should_be(self):
        if hasattr(self, "repo"):
            assert oracle.history(self.repo).keys() == self.commits.keys() - self.collected
            assert {one.name: one.target for one in self.repo.tags()} == self.tags

    def check_everything(self):
        """Every commit that is there shows what it showed when it was made, but for what a lifecycle run took."""
        self.check_readable()
        for name in self.there():
            assert {entry.path: entry for entry in self.repo.list(name)} == self.commits[name].files
        with self.repo.database.read() as tx:
            jobs = {row.id: row.job for row in ledger.every(tx, self.repo.uid)}
        stones = self.repo.tombstones(sorted(oracle.committed(self.repo)))
        assert {jobs[stone.run] for stone in stones.values()} <= {lifecycle.JOB}
        self.check_soundness()

    def there(self):
        return [name for name in self.commits if name not in self.collected]

    def any_commit(self, data):
        return data.draw(st.sampled_from(self.there()), label="commit")


def forgetting(examples, steps):
    run_state_machine_as_test(
        Forgetting,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],  # to make a history smaller would take minutes
        ),
    )


def test_a_chain_of_runs_forgets_what_nothing_reaches_and_nothing_else():
    forgetting(examples=2, steps=20)


@pytest.mark.slow
def test_a_long_chain_of_runs_forgets_what_nothing_reaches_and_nothing_else():
    forgetting(examples=300, steps=50)


# ---- orders of events that random chains seldom hit


@pytest.fixture
def repo(tmp_path):
    database = open_database(f"sqlite://{tmp_path}/lake.db", create=True)
    schema.create(database, storage="")
    store = open_store(f"memory://{uuid.uuid4().hex}")
    yield Lake(database, store, raggedness=1).create_repository("chain", clock_at=START)
    database.close()


def dead(repo, *paths, source="main"):
    """A branch with a commit for each of ``paths``, deleted; its commits, oldest first."""
    repo.create_branch("short", source)
    made = []
    for path in paths:
        repo.put("short", path, path.encode())
        made.append(repo.commit("short", path).id)
    repo.delete_branch("short")
    return made


def gone_by(repo, **ask):
    """The commits and objects that a collection removes, which are those that the oracle names."""
    before = repo.clock() - limit(collection.Options(**ask), repo)
    wanted = oracle.collectable_commits(repo, before), oracle.collectable_objects(repo, before)
    tables = oracle.dead_tables(repo, before)
    made, there, files = oracle.history(repo).keys(), set(oracle.stored(repo)), oracle.tables(repo).keys()
    run(collection.job, repo, HERE, collecting(**ask), ALL)
    gone = made - oracle.history(repo).keys(), there - set(oracle.stored(repo))
    assert gone == wanted
    assert files - oracle.tables(repo).keys() == tables
    found = check(repo)
    assert found.sound, found.findings
    return gone


def lift(repo, hold):
    lift_hold(repo, hold)


def collected_garbage(repo):
    there = set(oracle.stored(repo))
    report = run(uncommitted.job, repo, HERE, uncommitted.job.ask(), ALL)[-1]
    return there - set(oracle.stored(repo)), report.inputs["known from before"]


def test_a_held_commit_stays_with_its_ancestors_until_the_hold_is_lifted(repo):
    first, second, third = dead(repo, "a", "b", "c")
    days(repo, 3)
    hold = order(repo, HoldKind.REF, second)
    assert gone_by(repo)[0] == {third}
    assert gone_by(repo)[0] == set()
    lift(repo, hold)
    assert gone_by(repo)[0] == {first, second}


def test_a_held_commit_goes_once_the_day_of_its_hold_is_over(repo):
    (old,) = dead(repo, "a")
    order(repo, HoldKind.REF, old, until=repo.clock() + timedelta(days=5))
    days(repo, 4)
    assert gone_by(repo)[0] == set()
    days(repo, 1)
    assert gone_by(repo)[0] == {old}


def test_what_a_young_commit_descends_from_stays_with_it(repo):
    first, *_ = dead(repo, "a", "b")
    days(repo, 3)
    (young,) = dead(repo, "c", source=first)
    assert len(gone_by(repo)[0]) == 1
    assert first in oracle.history(repo)
    days(repo, 2)
    assert gone_by(repo)[0] == {first, young}


def test_what_is_just_as_old_as_the_limit_stays_one_moment_more(repo):
    (old,) = dead(repo, "a")
    repo.set_clock(repo.resolve(old).commit.created_at + timedelta(hours=24, minutes=10))
    assert gone_by(repo) == (set(), set())
    repo.set_clock(repo.clock() + timedelta(microseconds=1))
    assert gone_by(repo)[0] == {old}


def test_an_object_that_is_young_by_its_name_is_left_to_the_garbage_run(tmp_path):
    """Whoever wrote it had a clock ahead of the one by which it was committed."""
    database = open_database(f"sqlite://{tmp_path}/lake.db", create=True)
    schema.create(database, storage="")
    store = open_store(f"memory://{uuid.uuid4().hex}")
    store.clock = clock = ManualClock(START)
    repo = Lake(database, store, clock=clock, raggedness=1).create_repository("chain")
    repo.create_branch("short", "main")
    clock.now += timedelta(minutes=8)
    address = repo.put("short", "a", b"a").address
    clock.now -= timedelta(minutes=8)
    old = repo.commit("short", "a").id
    repo.delete_branch("short")
    clock.now += timedelta(hours=24, minutes=15)
    assert gone_by(repo) == ({old}, set())
    assert address in oracle.stored(repo)
    clock.now += timedelta(hours=1)
    assert collected_garbage(repo)[0] == {address}
    database.close()


def test_what_is_below_a_held_prefix_in_no_other_commit_stays(repo):
    kept, other = dead(repo, "p/a", "b")
    (free,) = dead(repo, "q")
    days(repo, 3)
    hold = order(repo, HoldKind.PREFIX, "p/")
    assert gone_by(repo)[0] == {free}
    lift(repo, hold)
    assert gone_by(repo)[0] == {kept, other}


def test_what_is_below_a_held_prefix_in_a_living_commit_keeps_no_dead_one(repo):
    repo.put("main", "p/a", b"a")
    repo.commit("main", "a")
    (free,) = dead(repo, "q")
    days(repo, 3)
    order(repo, HoldKind.PREFIX, "p/")
    assert gone_by(repo)[0] == {free}


def test_a_held_object_stays_though_its_commit_goes_and_is_garbage_afterwards(repo):
    (old,) = dead(repo, "a")
    address = repo.stat(old, "a").address
    days(repo, 5)
    collected_garbage(repo)
    assert collected_garbage(repo)[1] == 1
    hold = order(repo, HoldKind.ADDRESS, address)
    assert gone_by(repo) == ({old}, set())
    assert collected_garbage(repo) == (set(), 0)
    lift(repo, hold)
    assert collected_garbage(repo)[0] == {address}


def test_an_object_that_another_path_or_branch_still_has_stays(repo):
    """A copy inside a branch shares the object; so does a merge."""
    repo.create_branch("dev", "main")
    for path in ("copied", "merged", "both"):
        repo.put("dev", path, b"text")
    repo.commit("dev", "three")
    repo.copy("dev", "copied", "dev", "copy")
    repo.remove("dev", "copied")
    repo.commit("dev", "moved")
    repo.merge("dev", "main")
    repo.remove("main", "both")
    repo.commit("main", "one less")
    repo.delete_branch("dev")
    days(repo, 2)
    repo.commit("main", "young", allow_empty=True)
    days(repo, 2)
    both = repo.stat("main~2", "both").address
    wish = Expiry(repo.clock() - timedelta(days=3))
    run(expiration.job, repo, HERE, expiration.job.ask(wish=wish), ALL)
    assert gone_by(repo)[1] == {both}
    assert shown(repo, "main") == {"copy": b"text", "merged": b"text"}


def shown(repo, ref):
    return {one.path: b"".join(repo.get(ref, one.path)) for one in repo.list(ref)}


def test_what_was_brought_back_from_the_trash_stays_for_a_while(repo):
    repo.put("main", "a", b"old")
    old = repo.commit("main", "a").id
    address = repo.stat(old, "a").address
    repo.put("main", "a", b"new")
    repo.commit("main", "a")
    days(repo, 5)
    policy = parse({"r": {"prefix": "", "days": 2, "noncurrent_only": True}})
    repo.commit("main", "young", allow_empty=True)
    run(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=policy, action=Action.TRASH), ALL)
    assert address not in oracle.stored(repo)
    trash.bring_back(repo, HERE, "last")
    repo.set_clock(repo.clock() + timedelta(hours=1))
    run(expiration.job, repo, HERE, expiration.job.ask(wish=Expiry(repo.clock() - timedelta(hours=2))), ALL)
    assert gone_by(repo) == ({old, repo.resolve("main").commit.made_from[0]}, set())
    assert address in oracle.stored(repo)
    days(repo, 3)
    assert collected_garbage(repo)[0] == {address}


def test_what_a_lifecycle_run_removed_is_not_asked_for_again(repo):
    (old,) = dead(repo, "a")
    repo.create_branch("again", old)
    days(repo, 5)
    policy = parse({"r": {"prefix": "", "days": 2}})
    assert run(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=policy), ALL)[-1].swept.removed == 1
    repo.delete_branch("again")
    report = run(collection.job, repo, HERE, collecting(), ALL)[-1]
    assert report.history[TOLD] == 1
    assert (report.swept.gone, report.swept.held_again) == (0, 0)


def test_a_table_that_was_written_lately_stays(repo):
    """Tables are written before the commit that has them."""
    dead(repo, "a")
    days(repo, 3)
    repo.put("main", "b", b"b")
    early = set(oracle.tables(repo))
    metarange = repo.commit("main", "b").metarange
    with repo.database.write() as tx:  # as if its commit were still to come
        tx.execute("UPDATE branches SET head = (SELECT id FROM commits WHERE parents = '[]')")
        tx.execute("DELETE FROM commits WHERE metarange = ?", metarange)
        tx.execute("UPDATE repositories SET commit_rows = commit_rows - 1")
    late = oracle.tables(repo).keys() - early
    gone_by(repo)
    assert oracle.tables(repo).keys() == late
    days(repo, 2)
    gone_by(repo)
    assert oracle.tables(repo) == {}


def test_what_the_next_garbage_run_begins_with_is_not_tidied_up(repo):
    """Its folder is old, and newer ones of its job are there."""
    repo.put("main", "kept", b"kept")
    repo.commit("main", "kept")
    lost = repo.put("main", "staged", b"staged").address
    days(repo, 5)
    collected_garbage(repo)
    days(repo, 1)
    plan(uncommitted.job, repo, HERE)
    days(repo, 9)
    dead(repo, "a")  # too young to go
    assert gone_by(repo, keep_runs=timedelta(days=2)) == (set(), set())
    repo.reset("main")
    days(repo, 2)
    assert collected_garbage(repo) == ({lost}, 1)


def test_a_run_whose_objects_are_in_the_trash_is_not_tidied_up(repo):
    repo.put("main", "a", b"old")
    repo.commit("main", "a")
    days(repo, 5)
    ask = lifecycle.job.ask(policy=parse({"r": {"prefix": "", "days": 2}}), action=Action.TRASH)
    trashed = run(lifecycle.job, repo, HERE, ask, ALL)[-1].run
    days(repo, 1)
    repo.put("main", "b", b"new")
    repo.commit("main", "b")
    for _ in range(2):
        days(repo, 3)
        run(lifecycle.job, repo, HERE, ask, ALL)
    gone_by(repo, keep_runs=timedelta(days=2))
    folders = [
        key for batch in repo.store.list(f"{repo.prefix}_desilt/runs/lifecycle/") for key in batch["key"].to_pylist()
    ]
    assert any(f"/{trashed}/outcome" in key for key in folders)
    trash.bring_back(repo, HERE, trashed)
    assert shown(repo, "main~1") == {"a": b"old"}
