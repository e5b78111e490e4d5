"""Runs in a bucket that keeps versions, on a real S3 server: what stays behind, and what --purge-versions takes along.

Nothing but versions of what this run condemned ever goes: each test looks at all that the bucket has, before and after.
"""

import json
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from desilt.domain.policy import parse
from desilt.errors import BadRequest, FencedOff, StorageFailed
from desilt.executors.executor import HERE
from desilt.jobs.collect import job as collection
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.retention import job as retention
from desilt.jobs.runner import plan, run, sweep
from desilt.jobs.trash import bring_back
from desilt.lake import Lake
from desilt.lake.lake import locate
from desilt.objects import open_store
from desilt.objects.versions import Versioning
from desilt.records import ledger
from desilt.runs.known import report_of
from desilt.runs.report import Amount
from desilt.runs.versions import told as versions_told
from desilt.sweep import batches
from desilt.sweep import delete as removing
from desilt.sweep.budget import Budget
from desilt.sweep.delete import Sure
from desilt.sweep.limits import Limits
from desilt.sweep.versions import Purging
from versioned_bucket import VersionedBucket
from words import collecting, later, put, stage, tables

START = datetime(2026, 1, 1, tzinfo=UTC)
ALL = Limits(confirm=True, max_share=1.0, allow_empty=True)
SURE = ("--confirm", "--max-share", "100%")
PURGE = uncommitted.job.ask(action="purge-versions")


class Killed(BaseException):
    """The process ends here."""


class Versioned:
    """A lake in a bucket that keeps versions: two live objects, three of garbage, side by side, two versions each."""

    def __init__(self, bucket, repo):
        self.bucket, self.repo = bucket, repo
        self.root = repo.store.root + repo.prefix
        self.uri = f"{bucket.uri}/lake#{repo.name}"
        self.live = [put(repo, "main", "live", "alive")]
        repo.commit("main", "live")
        self.dead = [put(repo, "main", f"dead{number}", "dead.") for number in range(3)]
        repo.reset("main")
        self.live.append(put(repo, "main", "staged", "alive"))
        for address in (*self.live, *self.dead):
            self.again(address)
        later(repo, days=5)

    def again(self, address, to=""):
        """One more version of an object, or a first one of another key, with its date."""
        found = self.bucket.s3.get_object(Bucket=self.bucket.name, Key=self.root + address)
        there = {"Bucket": self.bucket.name, "Key": self.root + (to or address)}
        self.bucket.s3.put_object(**there, Body=found["Body"].read(), Metadata=found["Metadata"])

    def of(self, *addresses):
        """What the bucket has of each, by address; what it has nothing of is left out."""
        found = self.bucket.versions(self.root)
        return {address: found[self.root + address] for address in addresses if self.root + address in found}

    def others(self):
        """All that is in the bucket and is neither garbage nor a file of desilt itself."""
        gone = {self.root + address for address in self.dead}
        found = self.bucket.versions()
        return {key: some for key, some in found.items() if key not in gone and "_desilt/" not in key}

    def counts(self, run_id):
        with self.repo.records.read() as tx:
            total = ledger.total(ledger.batches(tx, self.repo.uid, run_id))
        return total.asked, total.removed, total.gone, total.failed, total.held_again


@pytest.fixture
def make(s3_server, monkeypatch, tmp_path):
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(removing, "PAUSES", ())
    opened = []

    def made(status="Enabled"):
        bucket = VersionedBucket(s3_server, f"lake-{uuid.uuid4().hex}", status)
        database = f"sqlite://{tmp_path}/lake-{len(opened)}.db"
        monkeypatch.setenv("DESILT_DB", database)
        lake = Lake.create(locate(f"{bucket.uri}/lake", db=database))
        opened.append(lake)
        repo = lake.create_repository("demo", clock_at=START)
        return Versioned(bucket, repo)

    yield made
    for lake in opened:
        lake.close()


@pytest.fixture
def lake(make):
    return make()


# ---- without the option


def test_what_a_sweep_removes_stays_behind_and_the_report_says_so(lake, cli):
    before = lake.of(*lake.dead)
    report = run(uncommitted.job, lake.repo, HERE, limits=ALL)[-1]
    assert report.swept.removed == 3
    there = lake.of(*lake.dead)
    assert all(before[one] < there[one] and len(there[one]) == 3 for one in lake.dead)  # two versions, and a marker
    assert report.bucket_versions.bucket == "Enabled"
    assert report.bucket_versions.left == Amount(3, report.swept.bytes)
    assert report_of(lake.repo, report.run) == report
    code, out, _ = cli("runs", "show", lake.uri, report.run)
    assert code == 0
    assert "The bucket keeps versions: at least 3 versions of 15 B lie there still" in out
    assert "plan with --purge-versions to remove them too, or a lifecycle rule of the bucket" in out
    page = lake.repo.store.get(f"{lake.repo.prefix}_desilt/runs/gc/{report.run}/report.html").decode()
    assert "at least 3 versions of 15 B lie there still" in page
    told = json.loads(cli("runs", "show", lake.uri, report.run, "--json")[1])
    assert told["bucket_versions"] == {
        "bucket": "Enabled", "left": {"objects": 3, "bytes": 15}, "purged": {"objects": 0, "bytes": 0}, "markers": 0,
    }  # fmt: skip


def test_a_plan_says_beforehand_what_stays_behind(lake, cli):
    code, out, _ = cli("gc", "plan", lake.uri)
    assert code == 0
    assert "The bucket keeps versions: what is removed stays there as an old version, and is paid for" in out


def test_a_bucket_that_keeps_none_or_does_not_say_so(make, monkeypatch):
    plain = make(status=None)
    report = run(uncommitted.job, plain.repo, HERE, limits=ALL)[-1]
    assert (report.bucket_versions.bucket, report.bucket_versions.left) == ("Off", None)
    assert versions_told(report) == ""
    silent = make()
    with monkeypatch.context() as patch:
        patch.setattr("desilt.objects.cloud_versions.CloudVersions.versioning", lambda _: Versioning.UNKNOWN)
        report = run(uncommitted.job, silent.repo, HERE, limits=ALL)[-1]
    assert (report.bucket_versions.bucket, report.bucket_versions.left) == ("unknown", None)
    assert "does not say whether it keeps versions (s3:GetBucketVersioning): if it does," in versions_told(report)


# ---- with it


def test_all_versions_of_what_goes_go_and_no_others(lake):
    for _ in range(2):
        lake.again(lake.live[0], to=lake.dead[0] + "x")  # begins alike, and is of nobody
        lake.again(lake.live[0], to=lake.dead[0] + "/x")
    beside = lake.others()
    made = plan(uncommitted.job, lake.repo, HERE, PURGE, ALL)
    lake.bucket.hide(lake.root + lake.dead[1])  # by somebody else
    report = sweep(lake.repo, HERE, made.run, ALL)
    assert lake.of(*lake.dead) == {}
    assert lake.others() == beside
    assert {len(beside[lake.root + one]) for one in (*lake.live, lake.dead[0] + "x")} == {2}
    assert lake.counts(report.run) == (3, 3, 0, 0, 0)
    assert (report.action, report.bucket_versions.markers) == ("purge-versions", 1)


def test_the_figures_of_a_purge(lake, cli):
    report = run(uncommitted.job, lake.repo, HERE, PURGE, ALL)[-1]
    assert (report.bucket_versions.purged, report.bucket_versions.left) == (Amount(6, 30), Amount())
    assert (report.swept.removed, report.swept.bytes) == (3, 15)  # objects, each once
    code, out, _ = cli("runs", "show", lake.uri, report.run)
    assert (code, "removed for good" in out) == (0, True)
    assert "6 versions of 30 B and 0 delete markers went with what was removed, and nothing brings them back" in out
    code, out, _ = cli("explain", lake.uri, lake.dead[0])
    assert "with every version that the bucket had of it: no bucket, and no trash, brings it back" in out
    assert cli("restore", lake.uri, report.run)[0] != 0


def test_what_is_held_again_keeps_all_versions(lake):
    made = plan(uncommitted.job, lake.repo, HERE, PURGE, ALL)
    saved = lake.dead[1]
    before = lake.of(saved)
    stage(lake.repo, "main", replace(lake.repo.stat("main", "live"), path="saved", address=saved))
    report = sweep(lake.repo, HERE, made.run, ALL)
    assert (report.swept.removed, report.swept.held_again) == (2, 1)
    assert lake.of(*lake.dead) == before
    assert len(before[saved]) == 2


def test_a_bucket_without_versions_is_swept_as_ever(make):
    plain = make(status=None)
    beside = plain.others()
    report = run(uncommitted.job, plain.repo, HERE, PURGE, ALL)[-1]
    assert (report.swept.removed, report.bucket_versions.bucket, report.bucket_versions.purged) == (3, "Off", Amount())
    assert plain.of(*plain.dead) == {}
    assert plain.others() == beside
    assert versions_told(report) == "The bucket keeps no versions: nothing had to be purged besides the objects."


def test_a_bucket_that_keeps_them_no_longer_is_purged_of_what_it_has(lake):
    lake.bucket.versioning("Suspended")
    lake.again(lake.dead[0])  # as a version without a name
    beside = lake.others()
    report = run(uncommitted.job, lake.repo, HERE, PURGE, ALL)[-1]
    assert lake.of(*lake.dead) == {}
    assert lake.others() == beside
    assert (report.bucket_versions.bucket, report.bucket_versions.purged.objects) == ("Suspended", 7)


def test_a_version_that_does_not_go_is_a_failure_and_the_next_run_goes_on(lake, cli):
    stubborn = sorted(lake.of(lake.dead[1])[lake.dead[1]])[0]
    beside = lake.others()
    with lake.bucket.refusing(stubborn):
        code, out, _ = cli("gc", "run", lake.uri, "--purge-versions", *SURE)
    assert (code, "1 failed" in out, "1 version of 5 B could not be removed" in out) == (3, True, True)
    assert lake.of(*lake.dead) == {lake.dead[1]: {stubborn}}
    assert lake.others() == beside
    later(lake.repo, days=1)
    report = run(uncommitted.job, lake.repo, HERE, PURGE, ALL)[-1]
    assert (report.swept.removed, report.swept.failed, report.bucket_versions.purged) == (1, 0, Amount(1, 5))
    assert lake.of(*lake.dead) == {}
    assert lake.others() == beside


def test_what_cannot_be_listed_is_not_gone_but_failed(lake):
    def refuse(params):
        if params["Prefix"] == lake.root + lake.dead[1]:
            params["Bucket"] = "no-such-bucket"

    before = lake.of(lake.dead[1])
    with lake.bucket.asking("ListObjectVersions", refuse):
        report = run(uncommitted.job, lake.repo, HERE, PURGE, ALL)[-1]
    assert lake.counts(report.run) == (3, 2, 0, 1, 0)
    assert lake.of(*lake.dead) == before
    assert report.bucket_versions.purged == Amount(4, 20)


def test_a_failure_is_tried_again_before_it_is_one(lake, monkeypatch):
    monkeypatch.setattr(removing, "PAUSES", (0.0, 0.0))
    stubborn = sorted(lake.of(lake.dead[1])[lake.dead[1]])[0]
    tries = []
    real = Purging._tried

    def second_time_lucky(self, keys, sure):
        tries.append(len(keys))
        if len(tries) > 1:
            return real(self, keys, sure)
        with lake.bucket.refusing(stubborn):
            return real(self, keys, sure)

    monkeypatch.setattr(Purging, "_tried", second_time_lucky)
    report = run(uncommitted.job, lake.repo, HERE, PURGE, ALL)[-1]
    assert tries == [3, 1]
    assert (report.swept.removed, report.swept.failed, report.bucket_versions.purged) == (3, 0, Amount(6, 30))


@pytest.mark.parametrize("refused", ["older", "latest"])
def test_what_is_left_of_an_object_is_never_an_older_version_than_was_there(lake, refused):
    """It may be restored."""
    key = lake.root + lake.dead[1]
    (older,) = lake.of(lake.dead[1])[lake.dead[1]] - {(latest := lake.bucket.latest(key))}
    with lake.bucket.refusing({"older": older, "latest": latest}[refused]):
        report = run(uncommitted.job, lake.repo, HERE, PURGE, ALL)[-1]
    assert (report.swept.removed, report.swept.failed) == (2, 1)
    assert lake.of(*lake.dead) == {lake.dead[1]: {older, latest} if refused == "older" else {latest}}
    assert lake.bucket.latest(key) == latest
    later(lake.repo, days=1)
    assert bring_back(lake.repo, HERE, report.run).restored == 1
    assert lake.bucket.latest(key) == latest


@pytest.mark.parametrize("how_many", [0, 2])
def test_nothing_goes_where_the_bucket_does_not_say_which_version_is_the_latest(lake, how_many):
    def change(told):
        for number, row in enumerate(told.get("Versions", [])):
            row["IsLatest"] = number < how_many

    before = lake.of(*lake.dead)
    with lake.bucket.answering("ListObjectVersions", change):
        report = run(uncommitted.job, lake.repo, HERE, PURGE, ALL)[-1]
    assert (report.swept.removed, report.swept.failed, lake.of(*lake.dead)) == (0, 3, before)


def test_a_removal_that_is_answered_with_nothing_is_none(lake, monkeypatch):
    """An answer without a body reads like one without errors, and here nothing was done."""
    monkeypatch.setattr(removing, "PAUSES", (0.0,))
    before, none = lake.of(*lake.dead), {"Objects": [{"Key": "no-such-key", "VersionId": "no-such-version"}]}
    with (
        lake.bucket.asking("DeleteObjects", lambda params: params.update(Delete=none)),
        lake.bucket.answering("DeleteObjects", lambda told: told.clear()),
    ):
        report = run(uncommitted.job, lake.repo, HERE, PURGE, ALL)[-1]
    assert (report.swept.removed, report.swept.failed, lake.of(*lake.dead)) == (0, 3, before)
    assert report.bucket_versions.purged == Amount()


def test_a_removal_whose_answer_is_lost_is_looked_at(lake, monkeypatch):
    monkeypatch.setattr(removing, "PAUSES", (0.0,))

    def lose(told):
        told["Errors"] = [{"Key": lake.root + address, "Code": "InternalError"} for address in lake.dead]

    with lake.bucket.answering("DeleteObjects", lose):
        report = run(uncommitted.job, lake.repo, HERE, PURGE, ALL)[-1]
    assert (report.swept.removed, report.swept.failed) == (3, 0)
    assert (report.bucket_versions.purged, report.bucket_versions.left) == (Amount(6, 30), Amount())


def test_a_collection_takes_versions_of_data_and_of_tables(lake):
    repo = lake.repo
    repo.create_branch("gone", "main")
    data = put(repo, "gone", "only/there")
    commit = repo.commit("gone", "only there")
    metadata = [f"_lakefs/{name}" for name in tables(repo, commit) - tables(repo, repo.resolve("main").commit)]
    repo.delete_branch("gone")
    for address in (data, *metadata):
        lake.again(address)
    later(repo, days=5)
    beside = {key: some for key, some in lake.others().items() if key.removeprefix(lake.root) not in (data, *metadata)}
    report = run(collection.job, repo, HERE, collecting(action="purge-versions"), ALL)[-1]
    assert lake.of(data, *metadata) == {}
    assert {key: some for key, some in lake.others().items() if key in beside} == beside
    assert report.bucket_versions.purged.objects == 2 * (1 + len(metadata)) > 4
    assert all(len(some) == 2 for some in lake.of(*lake.live, *lake.dead).values())


def test_lifecycle_takes_versions_of_what_its_rules_let_go(lake):
    beside = {key: some for key, some in lake.others().items() if key != lake.root + lake.live[0]}
    rules = parse({"all": {"prefix": "live", "days": 1}})
    asked = lifecycle.job.ask(policy=rules, action="purge-versions", dropped_for="0s")
    later(lake.repo, days=30)
    report = run(lifecycle.job, lake.repo, HERE, asked, ALL)[-1]
    assert (report.swept.removed, report.bucket_versions.purged) == (1, Amount(2, 10))
    assert lake.of(*lake.live) == {lake.live[1]: beside[lake.root + lake.live[1]]}
    assert {key: some for key, some in lake.others().items() if key in beside} == beside


# ---- cut off


def cut_off(where, monkeypatch):
    """The process ends right after, or right before, one step of a purge."""
    target, name, after = where
    real = getattr(target, name)

    def die(*values, **words):
        if after:
            real(*values, **words)
        raise Killed

    return monkeypatch.setattr(target, name, die)


STEPS = {
    "before anything is listed": (Purging, "_listed", False),
    "before it is written down": (Purging, "_record", False),
    "after it is written down": (Purging, "_record", True),
    "after all are removed": (Purging, "_tried", True),
    "before the outcome is written": (batches, "write_outcome", False),
    "after the outcome is written": (batches, "write_outcome", True),
}


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step_it_ends_in_the_same_state_with_the_same_counts(lake, monkeypatch, step):
    beside = lake.others()
    with monkeypatch.context() as patch:
        cut_off(STEPS[step], patch)
        with pytest.raises(Killed):
            run(uncommitted.job, lake.repo, HERE, PURGE, ALL)
    later(lake.repo, minutes=10)
    finished, following = run(uncommitted.job, lake.repo, HERE, PURGE, ALL)
    assert lake.of(*lake.dead) == {}
    assert lake.others() == beside
    assert lake.counts(finished.run) == (3, 3, 0, 0, 0)
    assert (finished.bucket_versions.purged, finished.bucket_versions.left) == (Amount(6, 30), Amount())
    assert (following.removed.objects, following.bucket_versions) == (0, None)


def test_killed_between_two_requests_what_went_before_is_counted_too(lake, monkeypatch):
    monkeypatch.setattr("desilt.objects.cloud_versions.REMOVED_AT_ONCE", 2)
    real, asked = Sure.check, []

    def die_in_between(self):
        there = sum(map(len, lake.of(*lake.dead).values()))
        asked.append(there)
        if there == 1:
            raise Killed
        real(self)

    with monkeypatch.context() as patch:
        patch.setattr(Sure, "check", die_in_between)
        with pytest.raises(Killed):
            run(uncommitted.job, lake.repo, HERE, PURGE, ALL)
    assert sum(map(len, lake.of(*lake.dead).values())) == 1
    finished = run(uncommitted.job, lake.repo, HERE, PURGE, ALL)[0]
    assert lake.of(*lake.dead) == {}
    assert lake.counts(finished.run) == (3, 3, 0, 0, 0)
    assert finished.bucket_versions.purged == Amount(6, 30)


def test_who_has_lost_the_lock_removes_no_version(lake, monkeypatch):
    before = lake.of(*lake.dead)
    monkeypatch.setattr(removing, "SURE_SECONDS", -1.0)  # looked up every time
    real, looks = type(lake.repo.gate).sure, []

    def lost(self, batch, lock):
        looks.append(batch.number)
        if len(looks) > 1:  # once it has listed
            raise FencedOff(batch.run, "")
        real(self, batch, lock)

    monkeypatch.setattr(type(lake.repo.gate), "sure", lost)
    with pytest.raises(FencedOff):
        run(uncommitted.job, lake.repo, HERE, PURGE, ALL)
    assert looks == [0, 0]
    assert lake.of(*lake.dead) == before


def test_versions_are_purged_as_fast_as_a_budget_allows(lake):
    done = run(uncommitted.job, lake.repo, HERE, PURGE, replace(ALL, max_deletes_per_second=1000))[-1].swept
    assert done.removed == len(lake.dead)
    with lake.repo.database.read() as tx:
        (given_out,) = tx.one("SELECT given_out FROM delete_budgets WHERE repository = ?", lake.repo.uid)
    assert given_out > 0


def test_what_was_written_after_the_plan_was_made_stays_with_all_its_versions(lake):
    store = open_store(f"{lake.bucket.uri}/aside")
    old = lake.bucket.put("aside/old", b"1", b"2")
    then = max(one.modified_at for one in store.versions.list_versions(["old"])[0].versions) + timedelta(seconds=1)
    while datetime.now(UTC) < then + timedelta(seconds=1):
        pass
    lake.bucket.put("aside/back", b"new")
    purging = Purging(store, store.versions, "record-", then)
    sure, budget = Sure(lambda: None, since=removing.elapsed()), Budget(lake.repo, None, lambda _: None)
    told = purging.remove(["old", "back"], sure=sure, budget=budget)
    assert [one.result.value for one in told] == ["removed", "failed"]
    assert "was written after the plan was made: all of it was left alone" in told[1].detail
    assert len(old) == 2
    left = {key for key in lake.bucket.versions("aside/") if "record" not in key}
    assert left == {"aside/back"}


# ---- refused


def test_it_is_refused_where_it_means_nothing(lake, cli, tmp_path, monkeypatch):
    code, _, err = cli("gc", "run", lake.uri, "--to", "trash", "--purge-versions")
    assert (code, "leaves nothing to restore: leave it out, or --to trash" in err) == (2, True)
    with pytest.raises(BadRequest, match="cannot purge-versions what goes"):
        retention.job.ask(action="purge-versions")
    monkeypatch.delenv("DESILT_DB")
    assert cli("lake", "init", f"lake://{tmp_path}/dir#local")[0] == 0
    code, _, err = cli("gc", "run", f"lake://{tmp_path}/dir#local", "--purge-versions")
    assert (code, "is no bucket on S3, and has no versions to purge; leave out --purge-versions" in err) == (2, True)


def test_who_may_not_list_versions_is_refused_before_anything_goes(lake):
    def refuse(params):
        params["Bucket"] = "no-such-bucket"

    before = lake.of(*lake.dead)
    with (
        lake.bucket.asking("ListObjectVersions", refuse),
        pytest.raises(StorageFailed, match="--purge-versions needs s3:ListBucketVersions, nothing was removed"),
    ):
        run(uncommitted.job, lake.repo, HERE, PURGE, ALL)
    assert lake.of(*lake.dead) == before


def test_a_yes_to_deleting_is_none_to_purging(lake, cli):
    assert cli("gc", "run", lake.uri, *SURE)[0] == 0
    put(lake.repo, "main", "more")
    lake.repo.reset("main")
    later(lake.repo, days=5)
    code, _, err = cli("gc", "run", lake.uri, "--purge-versions", "--max-share", "100%")
    assert (code, "--confirm" in err) == (10, True)
    assert cli("gc", "run", lake.uri, "--purge-versions", *SURE)[0] == 0
