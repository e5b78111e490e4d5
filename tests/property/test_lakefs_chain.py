"""Random histories on the model of a lakeFS server, with chains of runs: each removes what the naive oracle names.

Uploads of equal bytes, addresses staged again or linked, merges, reverts, tags, resets, branches that come and go; in
between, collections of every kind, lifecycle, the trash, holds, and plans that are swept later.
"""

import os
import tempfile
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from desilt.api.repository import OpenRepository
from desilt.api.workplace import Workplace
from desilt.domain.policy import parse
from desilt.errors import NotFound, PolicyReplaced, StalePlan
from desilt.executors.executor import HERE
from desilt.jobs.lifecycle import job as lifecycle
from desilt.records.holds import HoldKind
from desilt.repository.opening import Opened
from lakefs_collecting import set_rules
from lakefs_model import LakefsModel
from lakefs_oracle import Oracle
from lakefs_state import Refused
from lakefs_subject import LakefsSubject, of_model
from lakefs_world import opened

ALL = {"confirm": True, "max_share": 1.0, "allow_empty": True}
PATHS = st.sampled_from(["a", "a/1", "a/2", "b", "b/x/1", "c"])
BODIES = st.sampled_from([b"1", b"2", b"333", b"4444"])  # few, so that sizes and contents meet
NAMES = st.sampled_from(["dev", "other"])
HOURS = st.sampled_from([1, 23, 25, 49, 24 * 4])
POLICIES = st.sampled_from(
    [
        {"rules": {"r": {"prefix": "a/", "days": 3}}},
        {"rules": {"r": {"prefix": "", "days": 4, "noncurrent_only": True}}},
        {"rules": {"r": {"prefix": "", "days": 6, "branch_days": {"dev": 2}}}, "tags": "ignore"},
        {"rules": {"r": {"prefix": "", "days": 5}}, "keep": [{"prefix": "b/"}]},
    ]
)
DAYS = st.sampled_from([0, 1, 2, 5, 30])


class Served(RuleBasedStateMachine):
    """A model of a server with one repository, somebody who works on it, and desilt."""

    @initialize(page=st.sampled_from([1, 3, 10**9]), raggedness=st.sampled_from([2, 50_000]), days=DAYS)
    def begin(self, page, raggedness, days):
        self.directory = tempfile.TemporaryDirectory()
        place = Path(self.directory.name)
        self.model = LakefsModel(place / "blocks")
        self.model.ways.uncommitted_page, self.model.ways.raggedness = page, raggedness
        access = of_model(self.model)
        self.environment = mock.patch.dict(
            os.environ, {**access.environment, "LAKEFS_BLOCKSTORE_LOCAL_PATH": str(self.model.root)}
        )
        self.environment.start()
        self.subject = LakefsSubject(access, opened, f"sqlite://{place}/records.db", model=self.model)
        self.kept = self.model.repositories[self.subject.name]
        self.ours = self.subject.repository
        self.api = OpenRepository(Workplace(Opened(self.ours, lambda: None), HERE))
        self.oracle = Oracle(self.model, self.kept, self.ours)
        self.bodies, self.handed, self.plan = {}, [], None
        for path in ("a/1", "b", "c"):
            self.note(self.kept.upload("main", path.encode(), b"333"), b"333")
        self.commit("main")
        set_rules(self.kept, days, {})

    def teardown(self):
        if not hasattr(self, "model"):
            return
        try:
            if hasattr(self, "oracle"):
                self.subject.wait(timedelta(days=3))
                self.collect(full=False)
                self.collect(full=True)
        finally:
            self.ours.records.close()
            self.environment.stop()
            self.model.close()
            self.directory.cleanup()

    # ---- somebody at work

    def any_branch(self, data):
        return data.draw(st.sampled_from(sorted(self.kept.branches)), label="branch")

    def any_commit(self, data):
        """Any there is, whether something reaches it or not."""
        return data.draw(st.sampled_from(list(self.kept.commits)), label="commit")

    def any_stored(self, data):
        there = sorted(self.bodies.keys() & self.oracle.stored().keys())
        return data.draw(st.sampled_from(there), label="address") if there else None

    def note(self, entry, body):
        self.bodies[entry.address] = body

    @rule(data=st.data(), path=PATHS, body=BODIES)
    def upload(self, data, path, body):
        self.note(self.kept.upload(self.any_branch(data), path.encode(), body), body)

    @rule(data=st.data(), path=PATHS, body=BODIES)
    def upload_and_commit(self, data, path, body):
        branch = self.any_branch(data)
        self.note(self.kept.upload(branch, path.encode(), body), body)
        self.commit(branch)

    @rule(data=st.data(), bodies=st.lists(BODIES, min_size=2, max_size=4), path=PATHS)
    def work_for_some_days(self, data, bodies, path):
        """One path is written again and again; others are staged, and stay so."""
        branch = self.any_branch(data)
        for body in bodies:
            self.note(self.kept.upload(branch, path.encode(), body), body)
            self.commit(branch)
            self.note(self.kept.upload(branch, f"{path}.{len(body)}".encode(), body), body)
            self.subject.wait(timedelta(days=1))
        planned = self.api.gc.plan(rules="server").report
        assert planned.removed.objects == len(self.oracle.collectable(self.oracle.by_rules(tags=False)))

    @rule(data=st.data())
    def upload_the_same_again(self, data):
        """Which no list of what is uncommitted has."""
        branch = self.any_branch(data)
        found = self.kept.entries(self.kept.branches[branch].head)
        known = sorted(path for path, one in found.items() if self.oracle.inside(one) in self.bodies)
        if known:
            path = data.draw(st.sampled_from(known), label="path")
            body = self.bodies[self.oracle.inside(found[path])]
            self.note(self.kept.upload(branch, path, body), body)

    @rule(data=st.data(), path=PATHS, whole=st.booleans())
    def stage_an_old_address(self, data, path, whole):
        if address := self.any_stored(data):
            body, place = self.bodies[address], self.kept.place
            uri = place.shown + address if whole else f"{place.namespace.rstrip('/')}/{address}"
            self.kept.stage(self.any_branch(data), path.encode(), uri, size=len(body), checksum=f"sum of {body}")

    @rule(data=st.data(), path=PATHS, body=BODIES, put=st.booleans())
    def hand_out(self, data, path, body, put):
        branch = self.any_branch(data)
        uri = self.kept.link_address(branch, path.encode())
        self.handed.append((branch, path.encode(), uri, body, self.model.clock()))
        if put:
            self.put_directly(len(self.handed) - 1)

    def put_directly(self, number):
        _, _, uri, body, _ = self.handed[number]
        address = uri.removeprefix(self.kept.place.shown)
        self.kept.place.put(address, body)
        self.bodies[address] = body

    @rule(data=st.data())
    def link(self, data):
        """Within the grace period: that is what it is for."""
        grace = timedelta(seconds=self.model.grace)
        young = [number for number, one in enumerate(self.handed) if self.model.clock() - one[4] < grace]
        if young:
            number = data.draw(st.sampled_from(young), label="handed out")
            branch, path, uri, body, _ = self.handed[number]
            if branch in self.kept.branches:
                if uri.removeprefix(self.kept.place.shown) not in self.bodies:
                    self.put_directly(number)
                self.kept.check_link(branch, path, uri)
                self.kept.stage(branch, path, uri, size=len(body), checksum=f"sum of {body}")

    @rule(data=st.data(), path=PATHS)
    def copy(self, data, path):
        """To another address, as servers do."""
        branch = self.any_branch(data)
        known = [one for one in self.kept.view(branch).values() if self.oracle.inside(one) in self.oracle.stored()]
        if known:
            body = self.kept.get(known[0])
            self.note(self.kept.upload(branch, path.encode(), body), body)

    @rule(data=st.data(), path=PATHS)
    def delete(self, data, path):
        self.kept.delete(self.any_branch(data), path.encode())

    @rule(data=st.data())
    def reset(self, data):
        self.kept.reset(self.any_branch(data))

    @rule(data=st.data(), days=st.sampled_from([0, 0, 0, 3]))
    def commit_it(self, data, days):
        self.commit(self.any_branch(data), days)

    def commit(self, branch, days=0):
        """It may say that it was made some days ago."""
        at = int((self.model.clock() - timedelta(days=days)).timestamp())
        with suppress(Refused):
            self.kept.make_commit(branch, "some", date=at)

    @rule(data=st.data(), name=NAMES)
    def branch_off(self, data, name):
        if name not in self.kept.branches:
            self.kept.create_branch(name, self.any_commit(data))

    @rule(name=NAMES)
    def delete_branch(self, name):
        if name in self.kept.branches:
            self.kept.delete_branch(name)

    @rule(data=st.data())
    def merge(self, data):
        with suppress(Refused):
            self.kept.merge(self.any_branch(data), self.any_branch(data), "merge", {})

    @rule(data=st.data())
    def revert(self, data):
        with suppress(Refused, IndexError):
            self.kept.revert(self.any_branch(data), self.any_commit(data), 1)

    @rule(data=st.data())
    def hard_reset(self, data):
        branch = self.kept.branches[self.any_branch(data)]
        branch.head, branch.staged = self.any_commit(data), {}

    @rule(data=st.data(), name=st.sampled_from(["v1", "v2"]))
    def tag_or_untag(self, data, name):
        if name in self.kept.tags:
            self.kept.delete_tag(name)
        else:
            self.kept.create_tag(name, self.any_commit(data))

    @rule(hours=HOURS)
    def wait(self, hours):
        self.subject.wait(timedelta(hours=hours))

    @rule(default=DAYS, of_branch=st.dictionaries(st.sampled_from(["main", "dev"]), DAYS))
    def set_rules(self, default, of_branch):
        set_rules(self.kept, default, of_branch)

    # ---- orders to keep

    @rule(data=st.data(), days=st.sampled_from([None, 3]))
    def hold_an_address(self, data, days):
        if address := self.any_stored(data):
            until = days and self.model.clock() + timedelta(days=days)
            self.api.holds.add(address=address, reason="wanted", until=until)

    @rule(data=st.data())
    def hold_a_commit(self, data):
        self.api.holds.add(ref=self.any_commit(data), reason="wanted")

    @rule(prefix=st.sampled_from(["a", "b/"]))
    def hold_a_prefix(self, prefix):
        self.api.holds.add(prefix=prefix, reason="wanted")

    @rule()
    def lift_a_hold(self):
        for hold in list(self.api.holds)[:1]:
            self.api.holds.lift(hold)

    # ---- runs

    def swept_by(self, run):
        """What ``run`` removes of what is there; what it moves to the trash, is there."""
        before, trash = set(self.oracle.stored()), self.oracle.trash()
        report = run()
        gone = before - set(self.oracle.stored())
        assert set(self.oracle.stored()) <= before
        if report.action == "trash":
            assert self.oracle.trash().get(report.run, set()) - trash.get(report.run, set()) == gone
        return gone

    @rule(full=st.booleans(), action=st.sampled_from(["delete", "delete", "trash"]))
    def collect(self, full, action="delete"):
        wanted = self.oracle.collectable()
        assert self.swept_by(lambda: self.api.gc.run(full=full, action=action, **ALL)) == wanted

    @rule(tags=st.booleans(), action=st.sampled_from([None, None, "delete"]))
    def collect_by_rules(self, tags, action):
        wanted = self.oracle.collectable(self.oracle.by_rules(tags=tags))
        words = {"rules": "server", **({"tags": "hold"} if tags else {}), **({"action": action} if action else {})}
        assert self.swept_by(lambda: self.api.gc.run(**words, **ALL)) == wanted

    @rule(policy=POLICIES, full=st.booleans(), action=st.sampled_from([None, None, "delete"]))
    def expire(self, policy, full, action):
        wanted = self.oracle.expired(parse(policy))
        words = {"policy": policy, "full": full, **({"action": action} if action else {})}
        assert self.swept_by(lambda: self.api.lifecycle.run(**words, **ALL)) == wanted

    @rule()
    def plan_for_later(self):
        self.plan = self.api.gc.plan(), self.oracle.collectable()
        assert self.plan[0].report.removed.objects == len(self.plan[1])

    @rule()
    def sweep_an_old_plan(self):
        """What it names, but for what is live or held by now."""
        if self.plan is None:
            return
        (plan, named), self.plan = self.plan, None
        wanted = named & self.oracle.collectable()
        with suppress(StalePlan, PolicyReplaced):
            assert self.swept_by(lambda: plan.sweep(**ALL)) == wanted

    # ---- the trash

    @rule(data=st.data())
    def restore(self, data):
        if runs := sorted(self.oracle.trash()):
            run = data.draw(st.sampled_from(runs), label="run")
            wanted, before = self.oracle.trash()[run], set(self.oracle.stored())
            with suppress(NotFound):
                self.api.restore(run)
                assert set(self.oracle.stored()) == before | wanted
                assert run not in self.oracle.trash()

    @rule(days=st.sampled_from([0, 2, 7]))
    def purge(self, days):
        """Nothing but the trash; and nothing that is staged or held again by now."""
        before, trash = set(self.oracle.stored()), self.oracle.trash()
        self.api.purge(older_than=timedelta(days=days))
        assert set(self.oracle.stored()) == before
        left = self.oracle.trash()
        gone = {address for run, some in trash.items() for address in some - left.get(run, set())}
        assert not gone & (self.oracle.staged() | self.oracle.held(HoldKind.ADDRESS))


@pytest.fixture(autouse=True)
def _any_policy_fits(monkeypatch):
    """Drawn by chance, few make sense; that those are refused is told elsewhere."""
    monkeypatch.setattr(lifecycle, "findings", lambda *_: [])
    monkeypatch.setattr(lifecycle, "given", lambda *_, **__: [])


def chain(examples, steps):
    run_state_machine_as_test(
        Served,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],  # to make a history smaller would take minutes
        ),
    )


def test_a_chain_of_runs_removes_what_nothing_holds_and_nothing_else():
    chain(examples=8, steps=60)


@pytest.mark.slow
def test_a_long_chain_of_runs_removes_what_nothing_holds_and_nothing_else():
    chain(examples=150, steps=80)
