"""The lake's model with retention: rules, marks that hide, tags, a worker that removes, and the way back."""

import tempfile
import uuid
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from aging import ALL, KEEPS, POLICIES, START, Aging, Stubborn
from desilt.domain.expiry import Expiry
from desilt.domain.history import merge_base
from desilt.domain.policy import parse as parse_policy
from desilt.domain.retention import Kind, RetentionRule, parse
from desilt.errors import (
    BaseAbandoned,
    BeingCollected,
    Dirty,
    Gone,
    MergeConflict,
    NotFound,
    NothingToCommit,
    PlanOutdated,
    StalePlan,
)
from desilt.executors.executor import HERE
from desilt.jobs import trash
from desilt.jobs.collect import job as collection
from desilt.jobs.expire import job as expiration
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.lifecycle import kept_policy
from desilt.jobs.retention import document as documents
from desilt.jobs.retention import job as retention
from desilt.jobs.retention.restore import restore
from desilt.jobs.retention.vacuum import vacuum
from desilt.jobs.runner import plan, run, sweep
from desilt.lake import Lake, commits, refs, schema, staging
from desilt.objects import open_store
from desilt.objects.store import nothing
from desilt.objects.tags import EXPIRE_NOW, TagOutcome, TagResult
from desilt.records import ledger
from desilt.records import removals as tombstones
from desilt.records.database import open_database
from desilt.records.holds import HoldKind
from desilt.records.removals import MARKS, State
from desilt.runs.steps import CHOICES, Action
from desilt.sstable.values import decode_entry
from desilt.sweep.follow import LOOK_AGAIN
from desilt.sweep.unmark import COMES_BACK, TOO_LATE
from desilt.testing import oracle, retained
from lake_model import PATHS, ModelBranch, ModelCommit, three_way
from plan_rows import named
from words import collecting, later


class Tags:
    """Tags beside the objects of a memory store; some it refuses to set or to take off."""

    def __init__(self, store):
        self._store, self._of, self.refuses = store, {}, set()

    def tag_many(self, keys, tag, *, between=nothing):
        between()
        return [self._told(key, TagResult.TAGGED, lambda had: had.__setitem__(tag.key, tag.value)) for key in keys]

    def untag_many(self, keys, tag, *, between=nothing):
        between()
        had = {key for key in keys if tag.key in self._of.get(key, {})}
        return [
            self._told(key, TagResult.UNTAGGED if key in had else TagResult.BARE, lambda had: had.pop(tag.key, None))
            for key in keys
        ]

    def tagless(self, keys, *, between=nothing):
        between()
        return [self._told(key, TagResult.TAGGED if self._of.get(key) else TagResult.BARE, len) for key in keys]

    def forget(self, keys):
        """What is no longer there, or is another object, has no tags; neither has a copy."""
        for key in keys:
            self._of.pop(key, None)

    def carrying(self, tag=EXPIRE_NOW):
        """The keys of all objects with a tag."""
        return {key for key, had in self._of.items() if had.get(tag.key) == tag.value and key in self._store._objects}

    def _told(self, key, result, act):
        if key not in self._store._objects:
            return TagOutcome(key, TagResult.GONE)
        if key in self.refuses:
            return TagOutcome(key, TagResult.FAILED, "no")
        act(self._of.setdefault(key, {}))
        return TagOutcome(key, result)


class WithTags(Stubborn):
    """A store whose objects can be tagged."""

    def __init__(self, store):
        super().__init__(store)
        self.tagging = Tags(store)

    def delete_many(self, keys, **_):
        outcomes = super().delete_many(keys)
        self.tagging.forget(key for key in keys if key not in self._store._objects)
        return outcomes

    def move_many(self, pairs, **_):
        outcomes = super().move_many(pairs)
        self.tagging.forget(key for pair in pairs for key in pair if pair[0] not in self._store._objects)
        return outcomes


DAYS = st.sampled_from([0.5, 0.5, 1, 1, 2, 3, 5, 8])
PREFIXES = st.sampled_from(["", "", "", "main", "main/", "main/a", "main/b/x", "d", "dev/", "dev/b", "t", "qa/a/"])
RULES = st.fixed_dictionaries(
    {
        "status": st.sampled_from(["enabled"] * 5 + ["disabled"]),
        "filter": PREFIXES.map(lambda prefix: {"prefix": prefix} if prefix else {}),
        "expiration": st.dictionaries(
            st.sampled_from([one.value for one in Kind]), DAYS.map(lambda days: {"days": days}), min_size=1, max_size=3
        ),
    }
)
DOCUMENTS = st.builds(lambda rules: parse({"rules": rules}), st.lists(RULES, min_size=1, max_size=4))
EVERYTHING = parse({"rules": [{"status": "enabled", "filter": {}, "expiration": {"all": {"days": 1}}}]})
NO_RULES = parse_policy({"r": {"prefix": "nowhere/", "days": 900}})
WAITS = st.sampled_from([0, 1, 1, 3])
BELOW = st.sampled_from(["", "main", "main/", "main/a", "main/b/", "d", "dev/b", "qa/", "nothing/"])


@dataclass(frozen=True)
class Stone:
    """What the ledger says of an object that a run marked."""

    run: str
    state: str
    condemned_at: datetime
    restored_at: datetime | None


def marks(repo):
    """All that runs of retention ever marked, as far as the ledger knows."""
    with repo.database.read() as tx:
        runs = [row.id for row in ledger.every(tx, repo.uid) if row.action == Action.MARK]
        return {
            one.address: Stone(run_id, one.state, one.condemned_at, one.restored_at)
            for run_id in runs
            for one in tombstones.of_run(tx, repo.uid, run_id)
        }


def paths_of(repo):
    """Branch (None: of a commit that none reaches), path and address of all entries, committed and staged."""
    made = oracle.history(repo)
    entries = oracle.contents(repo, {commit.metarange for commit in made.values()})
    with repo.database.read() as tx:
        branches = list(refs.branches(tx, repo.uid))
        areas = [(one.name, pair) for one in branches for token in one.tokens for pair in staging.scan(tx, [token])]
    past = {one.name: oracle.below(made, [one.head]) for one in branches}
    found = {(branch, key.decode(errors="surrogateescape"), decode_entry(key, value).address)
             for branch, (key, value) in areas if value is not None}  # fmt: skip
    for name, commit in made.items():
        for branch in [branch for branch in past if name in past[branch]] or [None]:
            found |= {(branch, one.path, one.address) for one in entries[commit.metarange]}
    return found


def below(repo, prefix):
    """The addresses of all entries that a rule with ``prefix`` would be about."""
    one = RetentionRule(1, True, prefix, {})
    return {
        address
        for branch, path, address in paths_of(repo)
        if branch is not None and (start := one.path_on(branch)) is not None and path.startswith(start)
    }


def spared(repo):
    """What people ordered to be kept: by path, by commit, by address."""
    prefixes, made = tuple(oracle.held(repo, HoldKind.PREFIX)), oracle.history(repo)
    found = oracle.held(repo, HoldKind.ADDRESS)
    found |= {address for _, path, address in paths_of(repo) if path.startswith(prefixes)}
    held = {made[name].metarange for name in oracle.held(repo, HoldKind.REF)}
    return found | {entry.address for some in oracle.contents(repo, held).values() for entry in some}


def tagged_after(state, *, there, held, refused):
    """What becomes of a mark where a store has tags: what is held by now loses its tag again."""
    if state is State.TAGGED:
        return State.REMOVED if not there else State.MARKED if held and not refused else State.TAGGED
    if state in (State.MARKED, State.TAG_FAILED) and not held:
        return State.REMOVED if not there else State.TAG_FAILED if refused else State.TAGGED
    return state


class Retaining(Aging):
    """The aging lake under a retention document, whose store has no tags."""

    another_rule = switch_a_rule = plan_moves_nothing = expire_in_some_way = expire_in_part = None  # told elsewhere
    expire = wait_and_expire = commit_nothing = None
    tagged = False

    @initialize(document=DOCUMENTS, policy=POLICIES, early=st.lists(PATHS, min_size=3, max_size=8, unique=True))
    def begin(self, document, policy, early):
        self.directory = tempfile.TemporaryDirectory()
        database = open_database(f"sqlite://{self.directory.name}/lake.db", create=True)
        schema.create(database, storage="")
        store = open_store(f"memory://{uuid.uuid4().hex}")
        self.repo = Lake(database, store, raggedness=3).create_repository("model", clock_at=START)
        self.repo.store = (WithTags if self.tagged else Stubborn)(self.repo.store)
        first = self.repo.resolve("main").commit.id
        self.commits = {first: ModelCommit({}, ())}
        self.branches = {"main": ModelBranch(first)}
        self.document, self.policy, self.bodies, self.texts, self.kept = document, policy, {}, {}, ()
        self.tags, self.holds, self.plans, self.trashed, self.collected = set(), [], [], [], set()
        self.write("main", early)

    def teardown(self):
        """At last everything expires, and goes."""
        if hasattr(self, "repo"):
            while self.holds:
                self.release_one(0)
            self.document = EVERYTHING
            for _ in range(2):
                self.wait(9, 0)
                self.retain(0)
                self.remove_what_is_tagged(1)
            self.retain(0)
            left = {one for one, stone in marks(self.repo).items() if stone.state in MARKS}
            assert not left
        super(Aging, self).teardown()

    # ---- what people order

    @rule(document=DOCUMENTS)
    def another_document(self, document):
        self.document = document

    @rule(keep=st.one_of(st.just(()), st.tuples(KEEPS)))
    def keep_rules(self, keep):
        """Of the lifecycle policy that is set; no run goes by its only rule."""
        self.kept = keep
        kept_policy.keep(self.repo, replace(NO_RULES, keep=keep))

    # ---- what people do, once history is edited

    def tried(self, act):
        """What ``act`` gives; if a table that it needs was just collected, what it gives ten minutes later."""
        try:
            return act()
        except BeingCollected:
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

    @rule(data=st.data(), strategy=st.sampled_from([None, "source-wins", "dest-wins"]), old=st.booleans())
    def merge(self, data, strategy, old):
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
        files, conflicts = three_way(self.commits[reverted].files, self.commits[parents[0]].files, head, None)
        if conflicts or files == head:
            with pytest.raises((MergeConflict, NothingToCommit)):
                act()
        else:
            self.moved(name, act(), files)

    def base(self, left, right):
        with self.repo.database.read() as tx:
            fetch = commits.as_made(tx, self.repo.uid, commits.fetching(tx, self.repo.uid))
            return merge_base(fetch, left, right).id

    def any_commit(self, data):
        return data.draw(st.sampled_from([one for one in self.commits if one not in self.collected]), label="commit")

    # ---- other jobs

    @rule(action=st.sampled_from(CHOICES), full=st.booleans())
    def expire_objects(self, action, full):
        """A lifecycle run leaves alone what is marked."""
        wanted, ask, reports = self.expired(), lifecycle.job.ask(policy=self.policy, full=full, action=action), []
        removed = self.swept_by(lambda: reports.extend(run(lifecycle.job, self.repo, HERE, ask, ALL)) or reports)
        assert removed == wanted
        if action is Action.TRASH and removed:
            self.trashed.append((reports[-1].run, removed))

    def expired(self):
        return super().expired() - self.marked()

    @rule()
    def collect_garbage(self):
        wanted = oracle.collectable(self.repo, self.repo.clock()) - self.marked()
        assert self.swept_by(lambda: run(uncommitted.job, self.repo, HERE, uncommitted.job.ask(), ALL)) == wanted

    @precondition(lambda self: self.trashed)
    @rule(data=st.data())
    def bring_back(self, data):
        run_id, moved = self.trashed.pop(data.draw(st.integers(0, len(self.trashed) - 1), label="trash"))
        before = set(oracle.stored(self.repo))
        trash.bring_back(self.repo, HERE, run_id)
        there = set(oracle.stored(self.repo))
        assert there == before | moved
        self.bodies = {address: self.texts[address] for address in self.texts if address in there}
        self.judge()

    @rule(days=st.sampled_from([1, 3, 6]), wait=st.sampled_from([0, 2]))
    def forget_history(self, days, wait):
        """Old commits are hidden, and after a while collected, with what only they had."""
        wish = Expiry(self.repo.clock() - timedelta(days=days))
        run(expiration.job, self.repo, HERE, expiration.job.ask(wish=wish), ALL)
        self.wait(wait, 0)
        before = oracle.old(self.repo, self.repo.clock())
        wanted, made = oracle.collectable_objects(self.repo, before) - self.marked(), oracle.history(self.repo).keys()
        removed = self.swept_by(lambda: run(collection.job, self.repo, HERE, collecting(), ALL))
        self.collected |= made - oracle.history(self.repo).keys()
        if not oracle.held(self.repo, HoldKind.PREFIX):  # else a range is kept as a whole
            assert removed == wanted
        assert removed <= wanted

    @rule(days=st.sampled_from([0, 3, 9]))
    def shorten_the_ledger(self, days):
        with self.repo.database.read() as tx:
            runs = [row.id for row in ledger.every(tx, self.repo.uid)]
            every = [one for run_id in runs for one in tombstones.of_run(tx, self.repo.uid, run_id)]
        old = [one for one in every if one.condemned_at < self.repo.clock() - timedelta(days=days)]
        over = [one.address for one in old if one.state in (State.REMOVED, State.GONE)]
        in_trash = {key.partition("/")[2] for key in self.below_trash()}
        used = oracle.committed(self.repo) | oracle.staged(self.repo) | in_trash
        objects = {one for one in over if not one.startswith("_")}
        before = self.gone()
        done = vacuum(self.repo, HERE, older_than=timedelta(days=days))
        assert done.tombstones == len(objects - used)
        assert before - self.gone() == (objects - used) & before
        self.judge()

    def below_trash(self):
        root = f"{self.repo.prefix}_desilt/trash/"
        keys = [key for batch in self.repo.store.list(root) for key in batch["key"].to_pylist()]
        return [key.removeprefix(root) for key in keys]

    # ---- retention

    @rule(wait=WAITS)
    def mark_and_follow(self, wait):
        self.retain(wait)

    @rule(days=st.sampled_from([0.5, 1, 3, 9]), wait=WAITS)
    def wait_and_mark(self, days, wait):
        self.wait(days, 0)
        self.retain(wait)

    @rule(wait=WAITS)
    def mark_by_what_is_set(self, wait):
        documents.keep(self.repo, self.document)
        self.retain(wait, given=False)

    @rule(often=st.sampled_from([1, 2, 3]), wait=st.sampled_from([0, 1]))
    def mark_on_a_bad_day(self, often, wait):
        """The store refuses some of it; the next run tries again."""
        self.retain(wait, refuses=set(self.in_order(self.bodies)[::often]))

    def ask(self, wait, *, given=True):
        more = {"document": self.document} if given else {}
        return retention.job.ask(wait=timedelta(days=wait), **more)

    def wanted(self):
        return retained.marked(self.repo, self.document, self.repo.clock(), keep=self.kept)

    def retain(self, wait, *, given=True, refuses=frozenset()):
        """A plan names what the oracle names, and a run marks that, and follows all marks there are."""
        wanted, ask = self.wanted(), self.ask(wait, given=given)
        assert named(self.repo, plan(retention.job, self.repo, HERE, ask)) == wanted
        told, there = self.told_after(wanted, wait, refuses), set(oracle.stored(self.repo))
        before = {stone.run for stone in marks(self.repo).values()}
        with self.refusing(refuses):
            removed = self.swept_by(lambda: run(retention.job, self.repo, HERE, ask, ALL))
        after = marks(self.repo)
        assert {one: stone.state for one, stone in after.items()} == told
        assert {one for one, stone in after.items() if stone.run not in before} == wanted
        assert removed == {one for one, state in told.items() if state is State.REMOVED} & there
        self.nothing_else_is_tagged()
        assert self.wanted() == set()

    def told_after(self, wanted, wait, refuses):
        """What a run leaves in the ledger, of all that was ever marked."""
        now, there, kept = self.repo.clock(), set(oracle.stored(self.repo)), spared(self.repo)
        before = {one: stone.state for one, stone in marks(self.repo).items()}
        since = {one: stone.condemned_at for one, stone in marks(self.repo).items()} | dict.fromkeys(wanted, now)
        told = before | dict.fromkeys(wanted, State.MARKED)
        for one, state in told.items():
            if self.tagged:
                told[one] = tagged_after(state, there=one in there, held=one in kept, refused=one in refuses)
            elif state is State.REMOVING or (
                state is State.MARKED and since[one] <= now - timedelta(days=wait) and one not in kept
            ):
                told[one] = State.REMOVING if one in refuses else State.REMOVED
        return told

    def refusing(self, addresses):
        store, keys = self.repo.store, {self.repo.prefix + address for address in addresses}
        return Refusing(store, keys)

    @rule(wait=WAITS)
    def plan_for_later(self, wait):
        documents.keep(self.repo, self.document)
        wanted, there = self.wanted(), set(oracle.stored(self.repo))
        report = plan(retention.job, self.repo, HERE, self.ask(wait, given=False))
        assert named(self.repo, report) == wanted
        assert set(oracle.stored(self.repo)) == there
        self.plans.append((report.run, self.repo.clock(), self.document))

    @precondition(lambda self: self.plans)
    @rule(data=st.data())
    def sweep_what_was_planned(self, data):
        """Life went on since: nothing is marked that the rules would keep now, nothing goes that is held by now."""
        run_id, at, document = self.plans.pop(data.draw(st.integers(0, len(self.plans) - 1), label="plan"))
        may = retained.marked(self.repo, document, self.repo.clock(), keep=self.kept)
        before, kept = marks(self.repo), spared(self.repo)
        try:
            removed = self.swept_by(lambda: [sweep(self.repo, HERE, run_id, ALL)])
        except StalePlan:
            assert self.repo.clock() - at > ALL.max_plan_age
            return
        except (PlanOutdated, NotFound):
            return  # another document is set, history was edited, or its folder was tidied up
        new = {one for one, stone in marks(self.repo).items() if stone.run == run_id}
        assert new <= may
        held = {one for one in kept & before.keys() if before[one].state is State.MARKED}
        assert not removed & held
        self.nothing_else_is_tagged()

    # ---- the way back

    @rule(data=st.data(), often=st.sampled_from([0, 0, 1, 2]))
    def restore_a_run(self, data, often):
        runs = list(dict.fromkeys(marks(self.repo)[one].run for one in self.in_order(marks(self.repo))))
        if runs:
            wanted = data.draw(st.sampled_from(runs), label="run")
            chosen = {one for one, stone in marks(self.repo).items() if stone.run == wanted}
            self.brought_back(chosen, often, run=wanted)

    @rule(prefix=BELOW, often=st.sampled_from([0, 0, 1, 2]))
    def restore_below(self, prefix, often):
        self.brought_back(below(self.repo, prefix), often, prefix=prefix)

    @rule(data=st.data(), often=st.sampled_from([0, 0, 1]))
    def restore_addresses(self, data, often):
        if self.texts:
            some = data.draw(
                st.lists(st.sampled_from(self.in_order(self.texts)), min_size=1, max_size=4), label="addresses"
            )
            self.brought_back(set(some), often, addresses=tuple(some))

    def brought_back(self, chosen, often, **asked):
        """What is there is visible again and reads as ever; what the store refused, or removed, stays gone."""
        later(self.repo, minutes=11)  # until then, a tag of the last run may still be on its way
        before, there = marks(self.repo), set(oracle.stored(self.repo))
        mine = {one for one in chosen if one in before and before[one].state in COMES_BACK}
        late = {one for one in chosen if one in before and before[one].state in TOO_LATE}
        refused = set(self.in_order(mine & there)[::often]) if often and self.tagged else set()
        with self.refusing(refused):
            done = restore(self.repo, HERE, **asked)
        after = marks(self.repo)
        told = {one: stone.state for one, stone in before.items()}
        told |= dict.fromkeys(mine & there - refused, State.RESTORED)
        told |= dict.fromkeys(mine - there, State.REMOVED) | dict.fromkeys(refused, State.RESTORING)
        assert {one: stone.state for one, stone in after.items()} == told
        assert (done.restored, done.gone, done.failed) == (
            len(mine & there - refused),
            len(late) + len(mine - there),
            len(refused),
        )
        assert set(oracle.stored(self.repo)) == there
        self.bodies |= {one: self.texts[one] for one in mine & there}
        assert self.gone().isdisjoint(mine & there - refused)
        self.judge()

    # ---- the store's own worker

    @rule(often=st.sampled_from([1, 2, 3]))
    def remove_what_is_tagged(self, often):
        """By the bucket's rule, whenever it likes."""
        if self.tagged:
            self.texts |= self.bodies
            going = self.in_order(self.carrying())[::often]
            assert set(going) <= self.gone()
            self.repo.store.delete_many([self.repo.prefix + one for one in going])
            for one in going:
                del self.bodies[one]
            self.judge()

    @rule(data=st.data(), days=st.sampled_from([0, 0, 1]), wait=WAITS)
    def a_tag_comes_late(self, data, days, wait):
        """A request of an owner that was taken over comes through once the object is visible again."""
        since = self.repo.clock() - LOOK_AGAIN + timedelta(days=days)
        back = [
            one
            for one, stone in marks(self.repo).items()
            if stone.state is State.RESTORED and stone.restored_at >= since and one in self.bodies
        ]
        if self.tagged and back:
            late = data.draw(st.sampled_from(self.in_order(back)), label="late")
            self.repo.store.tagging.tag_many([self.repo.prefix + late], EXPIRE_NOW)
            self.wait(days, 0)
            self.retain(wait)

    # ---- what must hold

    @invariant()
    def nothing_visible_is_tagged(self):
        if hasattr(self, "repo") and self.tagged:
            assert self.carrying() <= self.gone()

    def nothing_else_is_tagged(self):
        """What carries the tag is what the ledger says; of what is on its way back, it may."""
        if self.tagged:
            states = {one: stone.state for one, stone in marks(self.repo).items()}
            there = set(oracle.stored(self.repo))
            assert {one for one in there if states.get(one) is State.TAGGED} <= self.carrying()
            maybe = (State.TAGGED, State.TAG_FAILED, State.RESTORING)
            assert all(states.get(one) in maybe for one in self.carrying())

    def judge(self):
        self.check_soundness()
        self.check_readable()

    def check_readable(self):
        """Every entry of every commit and staging area that has no tombstone, by its bytes."""
        gone, there = self.gone(), set(oracle.stored(self.repo))
        held = oracle.committed(self.repo) | oracle.staged(self.repo)
        assert held - gone <= there
        texts = self.texts | self.bodies
        for address in held - gone:
            assert self.repo.store.get(self.repo.prefix + address).decode() == texts[address]
        for name in self.branches:
            self.check(name)

    def check(self, name):
        files, gone, hidden = self.files(name), self.gone(), self.hidden()
        assert {entry.path: entry for entry in self.repo.list(name, gone=True)} == files
        shown = {path: entry for path, entry in files.items() if entry.address not in hidden}
        assert {entry.path: entry for entry in self.repo.list(name)} == shown
        for path, entry in files.items():
            if entry.address in gone:
                with pytest.raises(Gone):
                    self.repo.stat(name, path)
                with pytest.raises(Gone):
                    b"".join(self.repo.get(name, path))
            else:
                assert self.repo.stat(name, path) == entry
                assert b"".join(self.repo.get(name, path)).decode() == (self.texts | self.bodies)[entry.address]

    def in_order(self, addresses):
        """As they came to be: names are drawn by chance, and the same history must go the same way again."""
        return [one for one in dict.fromkeys([*self.texts, *self.bodies]) if one in addresses]

    def carrying(self):
        return {key.removeprefix(self.repo.prefix) for key in self.repo.store.tagging.carrying()}

    def hidden(self):
        return {one for one, stone in marks(self.repo).items() if stone.state is not State.RESTORED}

    def marked(self):
        return {one for one, stone in marks(self.repo).items() if stone.state in MARKS}


class RetainingWithTags(Retaining):
    """The same, on a store with tags, and a worker that removes what is tagged."""

    tagged = True


class Refusing:
    """For a while, a store that refuses to remove, tag or untag some objects."""

    def __init__(self, store, keys):
        self._store, self._keys = store, keys

    def __enter__(self):
        self._set(self._keys)

    def __exit__(self, *_):
        self._set(set())

    def _set(self, keys):
        self._store.keeps = keys
        if getattr(self._store, "tagging", None) is not None:
            self._store.tagging.refuses = keys
