"""A retention plan, and what happens before or while it is swept: what the rules would keep by then is kept.

The oracle is asked at the very moment after the event. What a plan leaves behind
for it, the next run finds again.
"""

import tempfile
import uuid
from contextlib import nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import cycle, product

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from aging import Stubborn, order
from desilt.domain.policy import KeepRule
from desilt.domain.policy import parse as parse_policy
from desilt.domain.retention import parse
from desilt.errors import DesiltError, PlanOutdated
from desilt.executors.executor import HERE
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.lifecycle import kept_policy
from desilt.jobs.retention import document as documents
from desilt.jobs.retention import job as retention
from desilt.jobs.retention.restore import restore
from desilt.jobs.runner import plan, run, sweep
from desilt.lake import Lake, schema
from desilt.lake.fsck import check
from desilt.lake.gate import LakeGate
from desilt.lake.held import LakeHeld
from desilt.objects import open_store
from desilt.records.database import open_database
from desilt.records.holds import HoldKind
from desilt.records.removals import MARKS, State
from desilt.sweep import follow
from desilt.sweep.limits import Limits
from desilt.testing import oracle, retained
from plan_rows import named
from retaining import NO_RULES, WithTags, marks, spared
from words import days, later, stage

ALL = Limits(max_share=1.0, confirm=True, allow_empty=True, max_plan_age=timedelta(days=900))
START = datetime(2026, 1, 1, tzinfo=UTC)


def document(**rules):
    """Prefixes with what they say, in days."""
    return parse(
        {
            "rules": [
                {
                    "status": "enabled",
                    "filter": {"prefix": prefix} if prefix else {},
                    "expiration": {kind: {"days": days} for kind, days in said.items()},
                }
                for prefix, said in rules.items()
            ]
        }
    )


DOCUMENTS = {
    "all of some branches": document(**{"main": {"all": 10}, "dev": {"all": 10}, "old/": {"all": 10}}),
    "all below a prefix": document(
        **{f"{name}/tmp/": {"all": 10} for name in ("main", "main-2", "dev", "dev-2", "dev-other", "old")},
        **{"main/staged/": {"uncommitted": 5}},
    ),
    "noncurrent": document(**{"": {"noncurrent": 10}}),
    "noncurrent and uncommitted": document(**{"": {"noncurrent": 10, "uncommitted": 10}}),
    "noncurrent on some": document(**{"dev": {"noncurrent": 10}, "old/": {"noncurrent": 4}, "main": {"all": 10}}),
    "with several periods": document(
        **{"": {"noncurrent": 15, "uncommitted": 12}, "main/tmp/": {"noncurrent": 3}, "dev": {"all": 18}}
    ),
}


class Scene:
    """Old files: in heads, only in history, only staged; branches that reach them, and some that do not."""

    def __init__(self, directory, raggedness, tagged):
        self.database = open_database(f"sqlite://{directory}/lake.db", create=True)
        schema.create(self.database, storage="")
        store = open_store(f"memory://{uuid.uuid4().hex}")
        self.repo = repo = Lake(self.database, store, raggedness=raggedness).create_repository("race", clock_at=START)
        repo.store = (WithTags if tagged else Stubborn)(repo.store)
        repo.store.delete_batch = 1
        for name in ("long", "free", "old", "dev-other"):
            repo.create_branch(name, "main")
        self.commit("long", "other/x")
        self.first = self.commit("main", "tmp/a", "tmp/b", "tmp/c", "tmp/d", "z")
        self.second = self.removing("main", "tmp/b")
        repo.create_branch("dev", "main")
        repo.merge("main", "old")
        for name in ("dev", "old"):
            self.removing(name, "tmp/c")
            self.removing(name, "tmp/d")
        self.commit("dev", "tmp/e", "y")
        self.third = self.commit("main", "tmp/a")
        repo.create_branch("main-2", "main")
        for name in ("main", "dev", "free"):
            repo.put(name, f"staged/{name}", name.encode())
            repo.put(name, "tmp/a", f"{name}, staged".encode())
        self.days(18)
        self.removing("main-2", "tmp/d")
        self.days(2)
        self.texts = {}
        self.seen()

    def seen(self):
        """What is stored is remembered."""
        there = oracle.stored(self.repo)
        self.texts |= {one: self.repo.store.get(self.repo.prefix + one) for one in there if one not in self.texts}

    def commit(self, branch, *paths):
        for path in paths:
            self.repo.put(branch, path, path.encode())
        return self.repo.commit(branch, "some", allow_empty=True).id

    def said_to_be(self, branch, path):
        """An entry as old as it can be, at a place that no rule is about; or on a new branch, where one may be."""
        entry = self.repo.stat("main", "staged/main")
        if branch == "new":
            self.repo.create_branch("new", "free@")
        stage(self.repo, branch, replace(entry, path=path))

    def removing(self, branch, path):
        self.repo.remove(branch, path)
        return self.repo.commit(branch, "one less").id

    def copied(self, branch, source, goal):
        self.repo.copy(branch, source, branch, goal)
        return self.repo.commit(branch, "a copy").id

    def days(self, count):
        self.repo.set_clock(self.repo.clock() + timedelta(days=count))

    def address(self, path, ref=None):
        return self.repo.stat(ref or self.first, path).address

    def hold(self, kind, value, **more):
        order(self.repo, kind, value, **more)

    def keep(self, *rules):
        self.kept = rules
        kept_policy.keep(self.repo, replace(NO_RULES, keep=rules))

    kept = ()

    def in_short_lived_branch(self, name, source, act=None):
        self.repo.create_branch(name, source)
        if act:
            act(name)
        self.repo.delete_branch(name, force=True)

    def again(self, name, source):
        self.repo.delete_branch(name, force=True)
        self.repo.create_branch(name, source)

    def there_and_back(self, name, source):
        """For a moment the head of a branch is an older commit."""
        head = self.repo.resolve(f"{name}@").commit.id
        self.again(name, source)
        self.again(name, head)

    def reset_and(self, name, act):
        self.repo.reset(name)
        return act()

    def nothing_visible_is_lost(self):
        self.seen()
        held = oracle.committed(self.repo) | oracle.staged(self.repo)
        visible = held - set(self.repo.tombstones(sorted(held)))
        assert visible <= set(oracle.stored(self.repo))
        assert all(self.repo.store.get(self.repo.prefix + one) == self.texts[one] for one in visible)
        if self.repo.store.tagging is not None:
            carrying = {key.removeprefix(self.repo.prefix) for key in self.repo.store.tagging.carrying()}
            assert not visible & carrying
        found = check(self.repo)
        assert found.sound, found.findings


def marked_and_restored(one, said):
    run(retention.job, one.repo, HERE, retention.job.ask(document=said, wait=timedelta(days=1)), ALL)
    later(one.repo, minutes=11)  # until then, a tag of that run may still be on its way
    restore(one.repo, HERE, prefix="")


def some_restored(one, said):
    run(retention.job, one.repo, HERE, retention.job.ask(document=said, wait=timedelta(days=1)), ALL)
    later(one.repo, minutes=11)
    restore(one.repo, HERE, addresses=tuple(sorted(marks(one.repo))[::2]))


def merged(one, source, goal, **how):
    one.repo.reset(goal)
    one.repo.merge(source, goal, **how)


EVENTS = {
    "nothing": lambda *_: None,
    "a day passes": lambda one, _: one.days(1),
    "an empty commit elsewhere": lambda one, _: one.commit("old"),
    "an unrelated commit": lambda one, _: one.reset_and("dev", lambda: one.commit("dev", "other/new")),
    # ---- what is staged
    "what is staged is committed": lambda one, _: one.commit("main"),
    "what is staged elsewhere is committed": lambda one, _: one.commit("dev"),
    "what is staged is committed, and taken back": lambda one, _: (one.commit("dev"), one.repo.revert("dev", "dev")),
    "what is staged is overwritten": lambda one, _: one.repo.put("main", "staged/main", b"new"),
    "what is staged is staged anew": lambda one, _: one.repo.copy("main", "staged/main", "main", "staged/main"),
    "what is staged is copied": lambda one, _: one.repo.copy("dev", "staged/dev", "dev", "staged/copy"),
    "what is staged is said to be there, too": lambda one, _: one.said_to_be("new", "staged/main"),
    "what is staged is said to be elsewhere, too": lambda one, _: one.said_to_be("main", "elsewhere"),
    "what is staged is copied, and the copy reset": lambda one, _: (
        one.repo.copy("dev", "staged/dev", "dev", "staged/copy"),
        one.repo.reset("dev", path="staged/copy"),
    ),
    "what is staged is copied over what is staged": lambda one, _: one.repo.copy("dev", "staged/dev", "dev", "tmp/a"),
    "what is staged is moved": lambda one, _: one.repo.move("main", "staged/main", "elsewhere"),
    "what is staged is moved, and committed": lambda one, _: (
        one.repo.move("main", "staged/main", "staged/x"),
        one.commit("main"),
    ),
    "what is staged is copied to another branch": lambda one, _: one.repo.copy("dev", "staged/dev", "free", "x"),
    "what is staged is removed": lambda one, _: one.repo.remove("main", "staged/main"),
    "what is staged is reset": lambda one, _: one.repo.reset("main"),
    "what is staged goes with its branch": lambda one, _: one.repo.delete_branch("dev", force=True),
    "what is staged goes with its branch, made anew": lambda one, _: one.again("dev", "main"),
    "what is staged is held": lambda one, _: one.hold(HoldKind.PREFIX, "staged/"),
    "a staged object is held": lambda one, _: one.hold(HoldKind.ADDRESS, one.address("staged/dev", "dev")),
    "an old file is staged again": lambda one, _: one.repo.copy("main@", "tmp/c", "main", "tmp/c"),
    "an old file is staged in a new branch": lambda one, _: (
        one.repo.create_branch("dev-2", one.first),
        one.repo.copy("dev-2", "tmp/b", "dev-2", "tmp/b"),
    ),
    "an old file is staged in a new branch, and reset": lambda one, _: (
        one.repo.create_branch("dev-2", one.first),
        one.repo.copy("dev-2", "tmp/b", "dev-2", "tmp/b2"),
        one.repo.reset("dev-2"),
    ),
    "an old file is committed under another name": lambda one, _: (
        one.repo.create_branch("dev-2", one.first),
        one.copied("dev-2", "tmp/b", "tmp/b2"),
    ),
    # ---- what is current
    "a new version": lambda one, _: one.reset_and("main", lambda: one.commit("main", "z")),
    "a revert": lambda one, _: one.reset_and("main", lambda: one.repo.revert("main", one.second)),
    "a revert that is reverted": lambda one, _: one.reset_and(
        "main", lambda: (one.repo.revert("main", one.second), one.repo.revert("main", "main"))
    ),
    "an old version comes back": lambda one, _: one.reset_and("main", lambda: one.repo.revert("main", one.third)),
    "an old version comes back for a moment": lambda one, _: one.reset_and(
        "main", lambda: (one.repo.revert("main", one.third), one.repo.revert("main", "main"))
    ),
    "a revert on another that reaches it": lambda one, _: one.repo.revert("old", "old"),
    "a revert on one that never had it": lambda one, _: one.repo.revert("dev-other", one.second),
    "a revert on one that never had it and has no rules": lambda one, _: one.reset_and(
        "free", lambda: one.repo.revert("free", one.second)
    ),
    "a revert there that is reverted": lambda one, _: one.reset_and(
        "free", lambda: (one.repo.revert("free", one.second), one.repo.revert("free", "free"))
    ),
    "a branch made anew further back": lambda one, _: one.again("dev", one.first),
    "a branch further back for a moment": lambda one, _: one.there_and_back("old", one.first),
    "an empty branch made anew at an old commit": lambda one, _: one.again("free", one.first),
    "an empty branch made anew at an old commit, and a commit on it": lambda one, _: (
        one.again("dev-other", one.first),
        one.commit("dev-other", "new"),
    ),
    # ---- refs
    "a tag on an old commit": lambda one, _: one.repo.create_tag("v1", one.first),
    "a tag on a head": lambda one, _: one.repo.create_tag("v1", "main@"),
    "a tag comes and goes": lambda one, _: (one.repo.create_tag("v1", one.first), one.repo.delete_tag("v1")),
    "a new branch": lambda one, _: one.repo.create_branch("new", one.first),
    "a new branch with the same rules": lambda one, _: one.repo.create_branch("dev-2", one.first),
    "a new branch at a head": lambda one, _: one.repo.create_branch("dev-2", "main@"),
    "a new branch on another head": lambda one, _: one.repo.create_branch("new", "dev@"),
    "a branch comes and goes": lambda one, _: one.in_short_lived_branch("new", one.first),
    "a branch with a commit comes and goes": lambda one, _: one.in_short_lived_branch(
        "new", one.first, lambda name: one.commit(name, "other/new")
    ),
    "a branch with an empty commit comes and goes": lambda one, _: one.in_short_lived_branch(
        "dev-2", one.first, one.commit
    ),
    "a branch with an empty commit": lambda one, _: (
        one.repo.create_branch("dev-2", one.first),
        one.commit("dev-2"),
    ),
    "a tagged empty commit of a branch that is gone": lambda one, _: one.in_short_lived_branch(
        "new", one.first, lambda name: (one.commit(name), one.repo.create_tag("v1", name))
    ),
    "a branch deleted": lambda one, _: one.repo.delete_branch("old"),
    "a merge into a branch without rules": lambda one, _: merged(one, "dev", "free"),
    "a merge of an old commit": lambda one, _: merged(one, one.first, "long"),
    "a merge into a branch like it": lambda one, _: merged(one, "main", "dev-other"),
    "a merge of an old commit into a branch like it": lambda one, _: merged(one, one.first, "dev-other"),
    "a merge into an old branch": lambda one, _: merged(one, "main", "old", strategy="source-wins"),
    "a merge between those that have it": lambda one, _: merged(one, "main", "dev", strategy="source-wins"),
    "a merge of one that had it until lately": lambda one, _: merged(one, "main-2", "dev", strategy="source-wins"),
    "a merge undone by a new version": lambda one, _: (
        merged(one, one.first, "free"),
        one.commit("free", "tmp/a", "tmp/b", "tmp/c", "z"),
    ),
    # ---- orders
    "a hold on a prefix": lambda one, _: one.hold(HoldKind.PREFIX, "tmp/b"),
    "a hold on everything": lambda one, _: one.hold(HoldKind.PREFIX, ""),
    "a hold on a commit": lambda one, _: one.hold(HoldKind.REF, one.first),
    "a hold on an object": lambda one, _: one.hold(HoldKind.ADDRESS, one.address("tmp/b")),
    "a hold for a day": lambda one, _: one.hold(HoldKind.PREFIX, "tmp/", until=one.repo.clock() + timedelta(days=1)),
    "a hold that is over": lambda one, _: one.hold(HoldKind.PREFIX, "tmp/", until=one.repo.clock()),
    "another document": lambda one, _: documents.keep(one.repo, document(**{"main/": {"noncurrent": 300}})),
    "the same document again": lambda one, said: documents.keep(one.repo, said),
    "a keep rule": lambda one, _: one.keep(KeepRule("k", prefix="tmp/")),
    "a keep rule that comes and goes": lambda one, _: (one.keep(KeepRule("k", glob="*")), one.keep()),
    # ---- other runs
    "garbage is collected": lambda one, _: run(uncommitted.job, one.repo, HERE, uncommitted.job.ask(), ALL),
    "a lifecycle run": lambda one, _: run(
        lifecycle.job,
        one.repo,
        HERE,
        lifecycle.job.ask(policy=parse_policy({"r": {"prefix": "tmp/", "days": 10, "noncurrent_only": True}})),
        ALL,
    ),
    "another run": lambda one, said: run(retention.job, one.repo, HERE, retention.job.ask(document=said), ALL),
    "another run, and all of it restored": marked_and_restored,
    "another run, and some of it restored": some_restored,
}
BETWEEN_ONLY_WRITERS = set(list(EVENTS)[list(EVENTS).index("garbage is collected") :])  # a sweep has the lock
BEFORE, LOOKED, BATCHES, FOLLOWING = MOMENTS = (
    "before the sweep",
    "after it looked again",
    "between its batches",
    "before it follows",
)


def race(said, events, moment, raggedness, *, tagged=False, given=False):
    """Plan, let it happen, sweep. All that is marked after it happened is what may be by then; then the next run."""
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        for job in (lifecycle, retention):
            patch.setattr(job, "findings", lambda *_: [])  # what speaks against a document is told elsewhere
        one = Scene(directory, raggedness, tagged)
        try:
            _race(one, DOCUMENTS[said], events, moment, given)
        finally:
            one.database.close()


def _race(one, said, events, moment, given):
    repo = one.repo
    documents.keep(repo, said)
    asked = {"document": said} if given else {}
    report = plan(retention.job, repo, HERE, retention.job.ask(wait=timedelta(0), **asked))
    planned = named(repo, report)
    assert planned == retained.marked(repo, said, repo.clock()) != set()
    seen = {}

    def happen():
        earlier = marks(repo)
        for event in events:
            with suppress(DesiltError) if len(events) > 1 or moment in (BATCHES, FOLLOWING) else nullcontext():
                EVENTS[event](one, said)  # of several, some make no sense after the others
        seen["may"] = retained.marked(repo, said, repo.clock(), keep=one.kept) | earlier.keys()
        seen["held"] = spared(repo) & {name for name, stone in marks(repo).items() if stone.state is State.MARKED}
        seen["there"] = set(oracle.stored(repo))
        one.nothing_visible_is_lost()

    with pytest.MonkeyPatch.context() as patch:
        if moment == BEFORE:
            happen()
        elif moment == LOOKED:
            patch.setattr(LakeHeld, "catch_up", once_after(LakeHeld.catch_up, happen))
        elif moment == BATCHES:
            patch.setattr(LakeGate, "condemn", once_after(LakeGate.condemn, happen))
        else:
            for name in ("_remove", "_tag"):
                patch.setattr(follow, name, after(happen, getattr(follow, name)))
        try:
            sweep(repo, HERE, report.run, ALL)
        except PlanOutdated:
            assert {"another document", "a keep rule", "a keep rule that comes and goes"} & set(events)
    found = marks(repo)
    new = {name for name, stone in found.items() if stone.run == report.run}
    assert new <= planned
    assert new <= seen["may"]
    assert seen["held"] & seen["there"] <= set(oracle.stored(repo))
    one.nothing_visible_is_lost()
    rest = retained.marked(repo, said, repo.clock(), keep=one.kept)
    before = {name for name, stone in found.items() if stone.state is not State.RESTORED}
    run(retention.job, repo, HERE, retention.job.ask(document=said, wait=timedelta(0)), ALL)
    now = {name for name, stone in marks(repo).items() if stone.state is not State.RESTORED}
    assert now - before == rest - before
    assert not {stone.state for stone in marks(repo).values()} & {State.CONDEMNED, State.REMOVING}
    if not oracle.held(repo, HoldKind.PREFIX) | oracle.held(repo, HoldKind.REF) | oracle.held(repo, HoldKind.ADDRESS):
        assert repo.store.tagging or not {stone.state for stone in marks(repo).values()} & set(MARKS)
    one.nothing_visible_is_lost()


def once_after(act, happen):
    waiting = [happen]

    def acting(self, *args, **kwargs):
        found = act(self, *args, **kwargs)
        if waiting:
            waiting.pop()()
        return found

    return acting


def after(happen, act):
    def acting(*args, **kwargs):
        happen()
        return act(*args, **kwargs)

    return acting


def possible(moment, event):
    return moment == BEFORE or event not in BETWEEN_ONLY_WRITERS


EVERY = list(product(DOCUMENTS, EVENTS))
BOTH, SOME = "noncurrent and uncommitted", "noncurrent on some"
TOLD_APART = [  # where nothing but what looks again at the moment of removal keeps it
    (BOTH, "nothing"),
    (BOTH, "what is staged is committed"),
    (BOTH, "what is staged is copied"),
    (BOTH, "what is staged is copied, and the copy reset"),
    (BOTH, "what is staged is said to be there, too"),
    ("all below a prefix", "what is staged is said to be elsewhere, too"),
    (BOTH, "what is staged is moved, and committed"),
    (BOTH, "what is staged is reset"),
    (BOTH, "what is staged goes with its branch"),
    (BOTH, "what is staged is held"),
    (BOTH, "an old file is committed under another name"),
    (BOTH, "an old version comes back for a moment"),
    (SOME, "a revert on another that reaches it"),
    (SOME, "a merge of one that had it until lately"),
    ("noncurrent", "a revert there that is reverted"),
    ("noncurrent", "an empty branch made anew at an old commit"),
    ("noncurrent", "a merge of an old commit into a branch like it"),
    ("all of some branches", "a new branch"),
    ("all of some branches", "a tag on an old commit"),
    ("all below a prefix", "a branch deleted"),
    ("with several periods", "a branch made anew further back"),
    ("all below a prefix", "a hold on a commit"),
    (BOTH, "a hold on an object"),
    (BOTH, "another document"),
    (BOTH, "a keep rule"),
    (BOTH, "another run"),
    (BOTH, "another run, and some of it restored"),
]


@pytest.fixture
def repo(tmp_path):
    database = open_database(f"sqlite://{tmp_path}/lake.db", create=True)
    schema.create(database, storage="")
    store = open_store(f"memory://{uuid.uuid4().hex}")
    yield Lake(database, store, raggedness=1).create_repository("race", clock_at=START)
    database.close()


def test_what_a_branch_came_by_since_a_plan_was_current_there_for_a_moment(repo):
    """It reached the old commit before; that this was a head until lately, it learns by a merge."""
    old = repo.put("main", "x", b"x").address
    repo.commit("main", "with it")
    for name in ("dev", "late"):
        repo.create_branch(name, "main")
    repo.remove("dev", "x")
    repo.commit("dev", "long without it")
    days(repo, 18)
    repo.remove("late", "x")
    repo.commit("late", "without it for days")
    days(repo, 2)
    said = document(**{"main/": {"all": 10}, "late/": {"all": 10}, "dev/": {"noncurrent": 10}})
    report = plan(retention.job, repo, HERE, retention.job.ask(document=said))
    assert named(repo, report) == {old}
    repo.merge("late", "dev")
    assert retained.marked(repo, said, repo.clock()) == set()
    sweep(repo, HERE, report.run, ALL)
    assert marks(repo) == {}


@pytest.mark.parametrize(("said", "event"), TOLD_APART)
def test_what_happens_before_a_sweep_counts(said, event):
    race(said, [event], BEFORE, raggedness=3)


@pytest.mark.parametrize(
    ("event", "moment", "tagged"),
    list(
        zip(
            [
                "what is staged is committed",
                "what is staged is copied",
                "a hold on a prefix",
                "an old version comes back for a moment",
                "a keep rule",
                "a hold on a commit",
            ],
            cycle([LOOKED, BATCHES, FOLLOWING]),
            cycle([False, True]),
        )
    ),
)
def test_what_happens_while_it_sweeps_counts(event, moment, tagged):
    race("noncurrent and uncommitted", [event], moment, raggedness=1, tagged=tagged)


@pytest.mark.slow
@pytest.mark.parametrize("raggedness", [1, 50_000])
@pytest.mark.parametrize("tagged", [False, True])
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize(("said", "event"), EVERY)
def test_whatever_happens_at_any_moment_counts(said, event, moment, tagged, raggedness):
    if possible(moment, event):
        race(said, [event], moment, raggedness, tagged=tagged)


def several(examples):
    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    @given(
        said=st.sampled_from(list(DOCUMENTS)),
        events=st.lists(st.sampled_from(list(EVENTS)), min_size=2, max_size=5),
        moment=st.sampled_from(MOMENTS),
        raggedness=st.sampled_from([1, 2, 50_000]),
        tagged=st.booleans(),
    )
    def racing(said, events, moment, raggedness, tagged):
        some = [event for event in events if possible(moment, event)] or ["nothing"]
        race(said, some, moment, raggedness, tagged=tagged)

    racing()


def test_several_things_that_happen_count():
    several(examples=3)


@pytest.mark.slow
def test_many_things_that_happen_count():
    several(examples=1500)
