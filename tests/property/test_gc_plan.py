"""Random histories, planned for collection; the naive oracle must name the very same objects."""

import tempfile
import uuid
from datetime import UTC, datetime, timedelta

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule, run_state_machine_as_test

from desilt.executors.executor import HERE
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.runner import plan
from desilt.lake import Lake, schema
from desilt.lake.fsck import check
from desilt.objects import open_store
from desilt.records.database import open_database
from desilt.testing import oracle
from lake_model import PLAIN, LakeModel, ModelBranch, ModelCommit
from plan_rows import removals


class Collected(LakeModel):
    """The lake's model, with time that passes, direct uploads, and plans."""

    @initialize()
    def begin(self):
        self.directory = tempfile.TemporaryDirectory()
        database = open_database(f"sqlite://{self.directory.name}/lake.db", create=True)
        schema.create(database, storage="")
        store = open_store(f"memory://{uuid.uuid4().hex}")
        self.repo = Lake(database, store, raggedness=3).create_repository(
            "model", clock_at=datetime(2026, 1, 1, tzinfo=UTC)
        )
        first = self.repo.resolve("main").commit.id
        self.commits = {first: ModelCommit({}, ())}
        self.branches = {"main": ModelBranch(first)}
        self.bodies, self.addresses = {}, []

    def check_soundness(self):
        assert check(self.repo).sound

    @rule(hours=st.sampled_from([1, 12, 25, 24 * 7]))
    def wait(self, hours):
        self.repo.set_clock(self.repo.clock() + timedelta(hours=hours))

    @rule(data=st.data(), path=PLAIN, late=st.booleans())
    def upload_directly(self, data, path, late):
        name = self.any_branch(data)
        address = self.repo.physical_address(name, path)
        self.repo.store.put(self.repo.prefix + address.ticket.address, [b"direct"])
        self.bodies[address.ticket.address] = "direct"
        if not late:
            self.branches[name].staged[path] = self.repo.link(name, path, address.token)

    @rule()
    def plan_names_what_the_oracle_names(self):
        report = plan(uncommitted.job, self.repo, HERE)
        assert removals(self.repo, report) == oracle.collectable(self.repo, self.repo.clock())
        assert report.removed.objects + report.kept.objects == len(oracle.stored(self.repo))


def test_a_plan_names_exactly_what_the_oracle_names():
    run_state_machine_as_test(
        Collected,
        settings=settings(
            max_examples=25, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
