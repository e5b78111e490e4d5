"""Random histories with chains of collections: together they remove what the naive oracle names, and nothing else ever.

A chain mixes whole runs, runs of one branch, clean ones, plans that are swept
later or never, and runs whose deletes fail in part. Between them life goes on.
"""

import tempfile
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule, run_state_machine_as_test

from aging import Stubborn
from desilt.domain.address import branch_prefix
from desilt.domain.times import moment
from desilt.errors import BadTicket, NotFound, StalePlan
from desilt.executors.executor import HERE
from desilt.inventory.listing import branch_uids
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.runner import plan, run, sweep
from desilt.lake import Lake, schema
from desilt.lake.fsck import check
from desilt.lake.layout import DATA
from desilt.lake.links import PhysicalAddress
from desilt.objects import open_store
from desilt.records import ledger, watermarks
from desilt.records.database import open_database
from desilt.runs.steps import CHOICES
from desilt.sweep import delete as removing
from desilt.sweep.limits import Limits
from desilt.testing import oracle
from lake_model import NAMES, PATHS, PLAIN, LakeModel, ModelBranch, ModelCommit
from plan_rows import removals
from words import days

ALL = Limits(max_share=1.0, confirm=True, allow_empty=True)
START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr(removing, "PAUSES", (0.0,))


@dataclass
class Handed:
    """An address for a direct upload, and what was done with it."""

    branch: str
    uid: str
    path: str
    address: PhysicalAddress
    uploaded: bool = False
    linked: bool = False


class Chained(LakeModel):
    """The lake's model, with time that passes, direct uploads, tags, and collections of every kind."""

    @initialize()
    def begin(self):
        self.directory = tempfile.TemporaryDirectory()
        database = open_database(f"sqlite://{self.directory.name}/lake.db", create=True)
        schema.create(database, storage="")
        store = open_store(f"memory://{uuid.uuid4().hex}")
        self.repo = Lake(database, store, raggedness=3).create_repository("model", clock_at=START)
        self.repo.store = Stubborn(self.repo.store)  # for the sweep, which asks the repository for it
        first = self.repo.resolve("main").commit.id
        self.commits = {first: ModelCommit({}, ())}
        self.branches = {"main": ModelBranch(first)}
        self.bodies, self.handed, self.plans, self.tags = {}, [], [], set()

    def teardown(self):
        if hasattr(self, "repo"):
            self.collect_everything(uncommitted.job.ask())
        super().teardown()

    def check_soundness(self):
        assert check(self.repo).sound

    # ---- what may happen between runs

    @rule(hours=st.sampled_from([1, 6, 23, 25, 50, 24 * 7]))
    def wait(self, hours):
        self.repo.set_clock(self.repo.clock() + timedelta(hours=hours))

    @rule(data=st.data(), path=PLAIN, uploaded=st.booleans())
    def hand_out(self, data, path, uploaded):
        name = self.any_branch(data)
        uid = next(one.uid for one in self.repo.branches() if one.name == name)
        self.handed.append(Handed(name, uid, path, self.repo.physical_address(name, path)))
        if uploaded:
            self.upload(self.handed[-1])

    @rule(data=st.data())
    def upload_directly(self, data):
        open_ones = [one for one in self.handed if self.is_open(one)]  # later than that nobody may
        if open_ones:
            self.upload(data.draw(st.sampled_from(open_ones), label="ticket"))

    @rule(data=st.data())
    def link(self, data):
        if not self.handed:
            return
        one = data.draw(st.sampled_from(self.handed), label="ticket")
        there = {branch.name: branch.uid for branch in self.repo.branches()}.get(one.branch) == one.uid
        if there and one.uploaded and self.is_open(one) and not one.linked:
            self.branches[one.branch].staged[one.path] = self.repo.link(one.branch, one.path, one.address.token)
            one.linked = True
        else:
            with pytest.raises((BadTicket, NotFound)):
                self.repo.link(one.branch, one.path, one.address.token)

    def is_open(self, one):
        return self.repo.clock() < moment(one.address.ticket.expires_at)

    def upload(self, one):
        if not one.linked:
            address = one.address.ticket.address
            self.repo.store.put(self.repo.prefix + address, [b"direct"])
            self.bodies[address], one.uploaded = "direct", True

    @rule(data=st.data(), name=st.sampled_from(["v1", "v2"]))
    def tag_or_untag(self, data, name):
        if name in self.tags:
            self.repo.delete_tag(name)
        else:
            self.repo.create_tag(name, self.any_branch(data))
        self.tags ^= {name}

    @rule(data=st.data(), name=NAMES, path=PATHS, merged=st.booleans())
    def branch_that_comes_and_goes(self, data, name, path, merged):
        """Another branch may hold by then what was written here; the path of a deleted one is full of objects."""
        if name in self.branches:
            return
        source = self.any_branch(data)
        self.branch_off_here(name, source)
        for text in ("first", "second"):  # the first one is garbage
            entry = self.repo.put(name, path, text.encode())
            self.bodies[entry.address] = text
            self.branches[name].staged[path] = entry
        if merged:
            files = self.files(name)
            self.moved(name, self.repo.commit(name, "short-lived"), files)
            self.branches[name].staged = {}
            if not self.branches[source].staged:
                theirs = self.branches[name].head
                self.moved(source, self.repo.merge(name, source), files, theirs)
        self.repo.delete_branch(name, force=True)
        del self.branches[name]

    def branch_off_here(self, name, source):
        self.repo.create_branch(name, source)
        self.branches[name] = ModelBranch(self.branches[source].head)

    # ---- collections

    @rule(full=st.booleans(), action=st.sampled_from(CHOICES))
    def collect(self, full, action):
        self.collect_everything(uncommitted.job.ask(full=full, action=action))

    @rule()
    def collect_as_usual(self):
        self.collect_everything(uncommitted.job.ask())

    @rule(data=st.data(), full=st.sampled_from([False, False, True]), action=st.sampled_from(CHOICES))
    def collect_a_branch(self, data, full, action):
        """One that has objects: a living one by its name, a deleted one by its uid."""
        if uids := self.with_objects():
            uid = data.draw(st.sampled_from(uids), label="branch")
            wanted, ask = (
                self.collectable(branch_prefix(uid)),
                uncommitted.job.ask(branch=self.name_of(uid), full=full, action=action),
            )
            assert self.swept_by(lambda: run(uncommitted.job, self.repo, HERE, ask, ALL)) == wanted

    @rule(full=st.booleans(), action=st.sampled_from(CHOICES), often=st.sampled_from([1, 2]), branch=st.booleans())
    def collect_in_part(self, full, action, often, branch):
        """Some deletes fail, and are made up for by a later run."""
        wanted = [address for address in self.bodies if address in self.collectable()]
        if not wanted:
            return
        kept = set(wanted[::often])
        uid = branch and wanted[0].split("/")[1]
        ask = uncommitted.job.ask(branch=self.name_of(uid) if uid else None, full=full, action=action)
        self.repo.store.keeps = {self.repo.prefix + address for address in kept}
        removed = self.swept_by(lambda: run(uncommitted.job, self.repo, HERE, ask, ALL))
        self.repo.store.keeps = set()
        assert removed == {one for one in wanted if one.startswith(branch_prefix(uid) if uid else "")} - kept
        assert self.named_by_a_clean_plan() == self.collectable() == set(wanted) - removed

    @rule(full=st.booleans(), action=st.sampled_from(CHOICES))
    def plan_for_later(self, full, action):
        report = plan(uncommitted.job, self.repo, HERE, uncommitted.job.ask(full=full, action=action))
        names = removals(self.repo, report)
        assert names == self.collectable()
        self.plans.append((report.run, self.repo.clock(), names))

    @rule(data=st.data())
    def plan_a_branch_for_later(self, data):
        if uids := self.with_objects():
            uid = data.draw(st.sampled_from(uids), label="branch")
            report = plan(uncommitted.job, self.repo, HERE, uncommitted.job.ask(branch=self.name_of(uid)))
            self.plans.append((report.run, self.repo.clock(), self.collectable(branch_prefix(uid))))

    @rule(data=st.data())
    def sweep_what_was_planned(self, data):
        if not self.plans:
            return
        run_id, at, names = data.draw(st.sampled_from(self.plans), label="plan")
        with self.repo.database.read() as tx:
            swept = ledger.find(tx, self.repo.uid, run_id) is not None
        if not swept and self.repo.clock() - at > ALL.max_plan_age:
            with pytest.raises(StalePlan):
                sweep(self.repo, HERE, run_id, ALL)
            return
        wanted = set() if swept else names & set(oracle.stored(self.repo))
        assert wanted <= self.collectable()  # what was garbage once never comes back
        assert self.swept_by(lambda: [sweep(self.repo, HERE, run_id, ALL)]) == wanted

    @rule()
    def plan_moves_nothing(self):
        with self.repo.database.read() as tx:
            before = watermarks.find(tx, self.repo.uid, uncommitted.JOB)
        assert self.named_by_a_clean_plan() == self.collectable()
        with self.repo.database.read() as tx:
            assert watermarks.find(tx, self.repo.uid, uncommitted.JOB) == before

    # ---- what must hold

    def collect_everything(self, ask):
        wanted = self.collectable()
        assert self.named_by_a_clean_plan() == wanted
        removed = self.swept_by(lambda: run(uncommitted.job, self.repo, HERE, ask, ALL))
        assert removed == wanted
        assert self.named_by_a_clean_plan() == set()

    def swept_by(self, act):
        """What ``act`` removed; whatever anybody can read, or count, agrees with that."""
        before, held = set(oracle.stored(self.repo)), self.held()
        reports = act()
        removed = before - set(oracle.stored(self.repo))
        assert not removed & held
        assert self.held() == held <= set(oracle.stored(self.repo))
        assert self.repo.tombstones(sorted(held)) == {}
        assert removed <= self.repo.tombstones(sorted(removed)).keys()
        for report in reports:
            told = report.swept
            assert told.asked == told.removed + told.gone + told.failed
        assert check(self.repo).sound
        for address in removed:
            del self.bodies[address]
        for name in self.branches:
            self.check(name)
        return removed

    def collectable(self, prefix=""):
        found = oracle.collectable(self.repo, self.repo.clock())
        return {address for address in found if address.startswith(prefix)}

    def held(self):
        return oracle.committed(self.repo) | oracle.staged(self.repo)

    def named_by_a_clean_plan(self):
        return removals(self.repo, plan(uncommitted.job, self.repo, HERE, uncommitted.job.ask(full=True)))

    def with_objects(self):
        """The uids of branches that have objects, deleted ones too, in the same order whenever this is replayed."""
        found = list(dict.fromkeys(address.split("/")[1] for address in self.bodies))
        assert sorted(found) == sorted(branch_uids(self.repo.store, self.repo.prefix + DATA))
        return found

    def name_of(self, uid):
        return {one.uid: one.name for one in self.repo.branches()}.get(uid, uid)


def chained(examples, steps):
    run_state_machine_as_test(
        Chained,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],  # to make a history smaller would take minutes
        ),
    )


def test_a_chain_of_runs_keeps_all_that_is_held_and_leaves_nothing_else():
    chained(examples=2, steps=40)


@pytest.mark.slow
def test_a_long_chain_of_runs_keeps_all_that_is_held_and_leaves_nothing_else():
    chained(examples=300, steps=80)


# ---- orders of events that random chains seldom hit


@pytest.fixture
def repo(tmp_path):
    database = open_database(f"sqlite://{tmp_path}/lake.db", create=True)
    schema.create(database, storage="")
    store = open_store(f"memory://{uuid.uuid4().hex}")
    yield Lake(database, store).create_repository("chain", clock_at=START)
    database.close()


def removed_by(repo, **ask):
    """What a run removes, all of which the oracle names."""
    before, wanted = set(oracle.stored(repo)), oracle.collectable(repo, repo.clock())
    run(uncommitted.job, repo, HERE, uncommitted.job.ask(**ask), ALL)
    removed = before - set(oracle.stored(repo))
    assert removed <= wanted if ask else removed == wanted
    return removed


def test_an_idle_lake_is_collected_again_and_again(repo):
    repo.put("main", "kept", b"kept")
    repo.commit("main", "kept")
    days(repo, 5)
    for _ in range(3):
        assert removed_by(repo) == set()
    assert plan(uncommitted.job, repo, HERE).stored.objects == 1


def test_what_was_staged_while_runs_passed_goes_once_it_is_reset(repo):
    repo.create_branch("dev", "main")
    staged = {repo.put(name, "staged", b"staged").address for name in ("main", "dev")}
    days(repo, 5)
    assert removed_by(repo) == removed_by(repo) == set()
    days(repo, 5)
    assert removed_by(repo, branch="dev") == set()  # the other branch is passed on as it is
    for name in ("main", "dev"):
        repo.reset(name)
    assert removed_by(repo) == set()  # somebody may be reading it
    days(repo, 2)
    assert removed_by(repo) == staged


def test_what_comes_into_a_partition_after_a_run_goes_too(repo):
    repo.put("main", "early", b"early")
    assert removed_by(repo) == set()
    late = repo.put("main", "late", b"late").address
    handed = repo.physical_address("main", "direct").ticket.address
    repo.reset("main", path="late")
    days(repo, 0.99)
    repo.store.put(repo.prefix + handed, [b"just in time, and never linked"])
    assert removed_by(repo) == set()
    days(repo, 5)
    assert removed_by(repo) == {late, handed}


def test_a_plan_that_nobody_sweeps_hides_nothing_from_later_runs(repo):
    lost = repo.put("main", "lost", b"lost").address
    repo.reset("main")
    days(repo, 5)
    assert plan(uncommitted.job, repo, HERE).removed.objects == 1
    with repo.database.read() as tx:
        assert watermarks.find(tx, repo.uid, uncommitted.JOB) is None
    assert removed_by(repo) == {lost}
