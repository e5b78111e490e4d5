"""Retention where it is meant for: a lake in a bucket, objects tagged, and the bucket's own rule that removes them."""

import json
import logging
import os
import random
import re
import signal
import subprocess
import sys
import threading
import uuid
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import pytest

from batch_operations import Refusal, batch_operations
from copies import backup, put_back
from desilt.errors import Conflict, FencedOff, Gone, Locked, StorageFailed
from desilt.executors.executor import HERE
from desilt.jobs import holds
from desilt.jobs.gc import job as uncommitted
from desilt.jobs.retention import bucket, document, restore
from desilt.jobs.retention import job as retention
from desilt.jobs.retention.vacuum import vacuum
from desilt.jobs.runner import plan, run, sweep
from desilt.jobs.trash import bring_back as out_of_trash
from desilt.jobs.unfinished import give_up
from desilt.lake import Lake
from desilt.lake.fsck import check as fsck
from desilt.lake.lake import locate
from desilt.objects.batch_tagging import BatchJobs
from desilt.objects.cloud_removal import AT_ONCE
from desilt.objects.tags import EXPIRE_NOW
from desilt.records.holds import HoldKind
from desilt.recovery.recover import recover
from desilt.runs.steps import Action
from desilt.sweep import batch_tags, delete
from desilt.sweep.limits import Limits
from desilt.testing import oracle, retained
from patience import until
from tagged_bucket import OURS, START, tagged_bucket, weed_shell
from unsteady_s3 import unsteady
from words import contents, days, later, read

ALL = Limits(confirm=True, max_share=1.0, allow_empty=True)
SURE = ("--confirm", "--max-share", "100%")
LOGS = {"rules": [{"status": "enabled", "filter": {"prefix": "main/logs/"}, "expiration": {"all": {"days": 7}}}]}
TEN = {f"k{number}": "v" for number in range(10)}
THEIRS = [
    {"ID": "old", "Filter": {"Prefix": "elsewhere/"}, "Status": "Enabled", "Expiration": {"Days": 3}},
    {"ID": "off", "Filter": {"Prefix": ""}, "Status": "Disabled", "Expiration": {"Days": 9}},
]
BATCH = {"batch": True, "account_id": "123456789012", "role_arn": "arn:aws:iam::123456789012:role/tagger"}


@pytest.fixture
def server(s3_server, monkeypatch):
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda *_: 0)
    return s3_server


@pytest.fixture(params=["sqlite"])
def lake(request, server, tmp_path, monkeypatch):
    """A lake in a new bucket, whose rule expires logs after a week; on SQLite, or on what a test says."""
    fresh = request.getfixturevalue("fresh_postgres_url") if request.param == "postgres" else None
    database = fresh() if fresh else f"sqlite://{tmp_path}/lake.db"
    monkeypatch.setenv("DESILT_DB", database)
    with tagged_bucket(server, f"retention-{uuid.uuid4().hex}", database) as made:
        document.keep(made.repo, document.retention_of(LOGS))
        yield made


def on_both(first, other):
    """On ``first`` every time; on the ``other`` database too, where there is time for it."""
    return pytest.mark.parametrize("lake", [first, pytest.param(other, marks=pytest.mark.slow)], indirect=True)


def old_logs(lake, *paths):
    """The addresses of logs on main that have expired, beside data that has not and a log that is new."""
    made = lake.put("main", *(paths or ("logs/1", "logs/2", "logs/3")))
    lake.put("main", "data/kept")
    lake.repo.commit("main", "old")
    lake.days(10)
    lake.put("main", "logs/new")
    lake.repo.commit("main", "new")
    return made


def retain(repo, **options):
    """A run; its report."""
    return run(retention.job, repo, HERE, retention.job.ask(**options), ALL)[-1]


def ripen(repo):
    """Time passes until no tag of the last run can be on its way any more."""
    later(repo, minutes=11)


def bring_back(repo, **chosen):
    """What is marked, once that may be asked for."""
    ripen(repo)
    return restore.restore(repo, HERE, **chosen)


# ---- the whole story


@on_both("postgres", "sqlite")
def test_the_whole_story(lake, cli, tmp_path):
    uri, s3 = lake.uri, lake.s3
    one, two, three = old_logs(lake)
    s3.put_bucket_lifecycle_configuration(Bucket=lake.bucket, LifecycleConfiguration={"Rules": THEIRS})
    code, out, _ = cli("retention", "check", uri)
    assert (code, "nothing removes what is tagged lakefs-expire-now=1" in out) == (1, True)
    code, out, _ = cli("retention", "bucket-rule", uri, "--apply")
    assert (code, "beside 2 others" in out) == (0, True)
    rules = s3.get_bucket_lifecycle_configuration(Bucket=lake.bucket)["Rules"]
    assert rules[:2] == THEIRS
    assert rules[2]["Filter"]["And"]["Prefix"] == f"{lake.root}branches/"
    assert cli("retention", "check", uri)[0] == 0

    (tmp_path / "rules.json").write_text(json.dumps(LOGS))
    assert cli("retention", "set", uri, tmp_path / "rules.json")[0] == 0
    planned = json.loads(cli("retention", "plan", uri, "--json")[1])
    assert (planned["removed"]["objects"], planned["action"]) == (3, "mark")
    code, _, err = cli("retention", "run", uri)
    assert (code, "never carried out here before" in err) == (10, True)
    assert (lake.tagged(), lake.states()) == (set(), {})

    code, out, err = cli("retention", "run", uri, *SURE, "--json", "--metrics", tmp_path / "m.prom")
    told = json.loads(out)
    assert (code, err, told["swept"]["removed"], told["swept"]["failed"]) == (0, "", 3, 0)
    assert told["marks"]["tagged"]["objects"] == 3
    assert 'desilt_marked_objects{repository="demo",state="tagged"} 3' in (tmp_path / "m.prom").read_text()
    assert lake.tagged() == {one, two, three}
    lake.judge()
    for command in (("get", "main", "logs/1"), ("stat", "main", "logs/1"), ("cp", "main", "logs/1", "main", "x")):
        code, out, err = cli("lake", command[0], uri, *command[1:])
        assert (code, out, "'logs/1' is gone: run" in err) == (1, "", True)
    listed = cli("lake", "ls", uri, "main", "-r")[1]
    assert ("data/kept" in listed, "logs/new" in listed, "logs/1" in listed) == (True, True, False)
    assert "logs/1" in cli("lake", "ls", uri, "main", "-r", "--gone")[1]
    assert cli("lake", "diff", uri, "main~2", "main")[1].splitlines() == ["+ data/kept", "+ logs/new"]
    assert "and tagged: the store removes it" in cli("explain", uri, "logs/1")[1]

    lake.expires(one)
    lake.days(1)
    told = json.loads(cli("retention", "run", uri, "--json", "--metrics", tmp_path / "m.prom")[1])
    assert {state: of["objects"] for state, of in told["marks"].items()} == {"removed": 1, "tagged": 2}
    figures = (tmp_path / "m.prom").read_text()
    assert 'desilt_marked_objects{repository="demo",state="removed"} 1' in figures
    assert 'desilt_oldest_mark_seconds{repository="demo"} 86400' in figures
    assert f"{one} was removed by run" in cli("explain", uri, "logs/1")[1]
    assert cli("retention", "restore", uri, "--address", one)[0] == 1  # a tag may still be on its way
    ripen(lake.repo)
    assert cli("retention", "restore", uri, "--address", one)[1] == "0 objects of 0 B restored; 1 are gone by rule\n"
    marking = json.loads(cli("runs", uri, "--json")[1].splitlines()[1])["run"]
    code, out, _ = cli("retention", "restore", uri, "--run", marking)
    assert (code, out) == (0, "2 objects of 12 B restored; 1 are gone by rule\n")
    assert (cli("lake", "get", uri, "main", "logs/2")[1], lake.tagged()) == ("logs/2", set())
    lake.judge()
    assert json.loads(cli("retention", "run", uri, "--json")[1])["swept"]["removed"] == 0
    assert (cli("lake", "get", uri, "main", "logs/3")[1], lake.tagged()) == ("logs/3", set())
    assert cli("fsck", uri)[0] == 0


def test_restored_by_prefix_or_by_address_it_reads_the_same(lake, cli):
    one, two, three = old_logs(lake, "logs/a/1", "logs/a/2", "logs/b")
    retain(lake.repo)
    ripen(lake.repo)
    code, out, _ = cli("retention", "restore", lake.uri, "--address", three)
    assert (code, out) == (0, "1 object of 6 B restored\n")
    assert lake.tagged() == {one, two}
    assert cli("retention", "restore", lake.uri, "--prefix", "main/logs/a/")[1] == "2 objects of 16 B restored\n"
    assert contents(lake.repo, "main") == {
        path: path for path in ("data/kept", "logs/a/1", "logs/a/2", "logs/b", "logs/new")
    }
    assert lake.tagged() == set()
    assert "restored on" in cli("explain", lake.uri, "logs/b")[1]


def test_the_bucket_itself_removes_what_is_tagged_and_nothing_else(lake, server):
    """By SeaweedFS's own lifecycle. Its days are real ones, so our rule is given a date, and all else of it stays."""
    going = set(old_logs(lake))
    retain(lake.repo)
    made = retention_rule(lake)
    lake.put("main", "logs/5")  # is not tagged, and lies below the prefix
    lake.s3.put_object(Bucket=lake.bucket, Key="beside", Body=b"x", Tagging=f"{OURS}=1")  # is, and does not
    dated = {**made, "Expiration": {"Date": datetime(2025, 1, 1, tzinfo=UTC)}}
    lake.s3.put_bucket_lifecycle_configuration(Bucket=lake.bucket, LifecycleConfiguration={"Rules": [dated]})
    before = set(lake.stored())
    assert "complete" in weed_shell(server, "s3.lifecycle.run-shard -shards 0-15 -s3 {s3} -runtime 60s")
    assert before - set(lake.stored()) == going
    lake.s3.head_object(Bucket=lake.bucket, Key="beside")
    report = retain(lake.repo)
    assert report.marks["removed"].objects == 3
    lake.s3.delete_object(Bucket=lake.bucket, Key="beside")
    lake.judge()


def retention_rule(lake):
    """The one for this repository."""
    return bucket.bucket_rule(lake.repo, EXPIRE_NOW, timedelta(days=1), whole_bucket=False).rule


def test_a_bucket_that_is_slow_takes_its_time_in_any_order(lake):
    logs = old_logs(lake, *(f"logs/{number}" for number in range(5)))
    retain(lake.repo)
    for count, address in enumerate(random.sample(logs, 4), 1):
        lake.expires(address)
        lake.days(1)
        marks = retain(lake.repo).marks
        assert (marks["removed"].objects, marks["tagged"].objects) == (count, 5 - count)
        lake.judge()
    lake.days(2)
    assert retain(lake.repo).marks["tagged"].objects == 1  # which the bucket forgot
    assert bring_back(lake.repo, prefix="main/logs/").restored == 1


def test_what_is_gone_and_pointed_to_by_nothing_leaves_the_database_and_is_known(lake, cli):
    repo = lake.repo
    committed = set(old_logs(lake))
    (staged,) = lake.put("main", "logs/staged")
    lake.days(8)
    retain(repo)
    lake.expires()
    repo.reset("main", path="logs/staged")
    lake.days(100)
    retain(repo)
    assert (vacuum(repo, HERE).tombstones, staged in lake.states()) == (1, False)
    assert committed <= lake.states().keys()
    assert f"{staged} was removed by run" in cli("explain", lake.uri, staged)[1]
    with pytest.raises(Gone):
        repo.stat("main", "logs/1")


# ---- other tags, copies, the trash


def test_other_tags_stay(lake):
    one, two, _ = old_logs(lake)
    lake.set_tags(one, owner="them", cost="7")
    retain(lake.repo)
    assert lake.tags(one) == {"owner": "them", "cost": "7", OURS: "1"}
    bring_back(lake.repo, addresses=(one,))
    assert (lake.tags(one), lake.tags(two)) == ({"owner": "them", "cost": "7"}, {OURS: "1"})


def test_an_object_with_ten_tags_is_tried_again_by_every_run_and_never_lost(lake):
    one, two, three = old_logs(lake)
    lake.set_tags(two, **TEN)
    report = retain(lake.repo)
    assert {state: of.objects for state, of in report.marks.items()} == {"tagged": 2, "tagging failed": 1}
    assert (lake.tagged(), lake.tags(two)) == ({one, three}, TEN)
    assert retain(lake.repo).marks["tagging failed"].objects == 1
    with pytest.raises(Gone):
        lake.repo.stat("main", "logs/2")
    lake.set_tags(two, k0="v")
    assert retain(lake.repo).marks["tagged"].objects == 3
    assert lake.tags(two) == {"k0": "v", OURS: "1"}
    assert bring_back(lake.repo, addresses=(two,)).restored == 1
    assert (lake.tags(two), read(lake.repo, "main", "logs/2")) == ({"k0": "v"}, "logs/2")


def test_one_with_ten_tags_can_be_restored_as_it_is(lake):
    _, two, _ = old_logs(lake)
    lake.set_tags(two, **TEN)
    retain(lake.repo)
    assert bring_back(lake.repo, addresses=(two,)).restored == 1
    assert (lake.tags(two), read(lake.repo, "main", "logs/2")) == (TEN, "logs/2")


def test_what_could_not_be_tagged_is_told_and_the_exit_code_says_so(lake, cli, tmp_path):
    _, two, _ = old_logs(lake)
    lake.set_tags(two, **TEN)
    code, out, err = cli("retention", "run", lake.uri, *SURE, "--metrics", tmp_path / "m.prom")
    assert "tagging failed" in out
    assert code == 3
    assert "1 object could not be tagged" in out + err
    assert 'desilt_exit_code{repository="demo",job="retention"} 3' in (tmp_path / "m.prom").read_text()
    lake.set_tags(two, k0="v")
    assert cli("retention", "run", lake.uri)[0] == 0


def test_neither_copies_nor_the_trash_carry_a_tag(server, tmp_path, monkeypatch):
    """With a real clock: a bucket in a story copies by itself. The tag is a late one, which nobody took off yet."""
    monkeypatch.setattr(uncommitted, "CLOCK_MARGIN", -timedelta(days=2))  # what was just put is old
    with tagged_bucket(server, f"copies-{uuid.uuid4().hex}", f"sqlite://{tmp_path}/lake.db", clock_at=None) as lake:
        repo = lake.repo
        repo.create_branch("dev", "main")
        (source,) = lake.put("main", "logs/1")
        repo.commit("main", "a commit")
        lake.set_tags(source, **{OURS: "1", "owner": "them"})
        copy = repo.copy("main", "logs/1", "dev", "copy")
        assert copy.address != source
        assert (lake.tags(copy.address), read(repo, "dev", "copy")) == ({}, "logs/1")
        (garbage,) = lake.put("main", "garbage")
        repo.reset("main", path="garbage")
        lake.set_tags(garbage, **{OURS: "1"})
        ask = uncommitted.job.ask(action=Action.TRASH, dropped_for=timedelta(0))
        report = run(uncommitted.job, repo, HERE, ask, ALL)[-1]
        assert (report.swept.removed, lake.tags(garbage)) == (1, None)
        assert lake.tagged() == {source}
        out_of_trash(repo, HERE, report.run)
        assert (lake.tags(garbage), lake.tagged()) == ({}, {source})


# ---- a server that is unsteady, and taggers that are killed


@pytest.fixture
def between(lake, server, monkeypatch):  # noqa: ARG001 - made before it
    """What lies between desilt and the server, from here on."""
    with unsteady(server.endpoint) as passing:
        monkeypatch.setenv("AWS_ENDPOINT_URL", passing.endpoint)
        yield passing


def test_a_server_that_is_busy_and_answers_that_are_lost(lake, between):
    logs = old_logs(lake, *(f"logs/{number}" for number in range(20)))
    between.busy.update({"GET": 7, "PUT": 7})
    between.loses.update({"GET": 5, "PUT": 5})
    assert retain(lake.repo).marks["tagged"].objects == 20
    assert lake.tagged() == set(logs)
    between.busy.update({"GET": 5, "PUT": 5, "DELETE": 5})
    between.loses.update({"GET": 5, "PUT": 5, "DELETE": 5})
    assert bring_back(lake.repo, prefix="main/logs/").restored == 20
    assert lake.tagged() == set()
    lake.judge()


def test_a_server_that_takes_no_tags_for_an_hour(lake, between, caplog):
    logs = old_logs(lake)
    between.busy.update({"PUT": 10_000})
    report = retain(lake.repo)
    assert (report.swept.removed, report.marks["tagging failed"].objects) == (3, 3)
    assert "3 objects could not be tagged" in caplog.text
    assert lake.tagged() == set()
    between.busy.clear()
    assert retain(lake.repo).marks["tagged"].objects == 3
    assert lake.tagged() == set(logs)


def test_a_server_that_does_not_say_that_the_tag_is_off_keeps_it_hidden(lake, between, cli):
    old_logs(lake)
    retain(lake.repo)
    ripen(lake.repo)
    between.busy.update({"DELETE": 10_000})
    code, out, _ = cli("retention", "restore", lake.uri, "--prefix", "main/logs/")
    assert (code, out) == (3, "0 objects of 0 B restored; 3 failed, and stay hidden: try again\n")
    with pytest.raises(Gone):
        lake.repo.stat("main", "logs/1")
    between.busy.clear()
    assert retain(lake.repo).swept.removed == 0
    ripen(lake.repo)
    code, out, _ = cli("retention", "restore", lake.uri, "--prefix", "main/logs/")
    assert (code, out) == (0, "3 objects of 18 B restored\n")
    assert lake.tagged() == set()
    lake.judge()


@on_both("sqlite", "postgres")
def test_a_tagger_that_is_killed_and_what_it_had_sent(lake, between, cli, caplog):
    logs = set(old_logs(lake, *(f"logs/{number}" for number in range(20))))
    between.holds_after = 5
    words = ["-m", "desilt", "retention", "run", lake.uri, *SURE]
    with subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as tagger:
        until(lambda: between.held == 11 or tagger.poll() is not None)
        assert tagger.poll() is None, tagger.stderr.read()
        os.kill(tagger.pid, signal.SIGKILL)
    between.holds_after = None  # what is under way stays where it is
    assert len(lake.tagged()) == 5
    code, _, err = cli("retention", "run", lake.uri, "--max-share", "100%")
    assert (code, "which was cut off, is finished now" in err) == (0, True)
    assert lake.tagged() == logs
    assert set(lake.states().values()) == {"tagged"}
    with pytest.raises(Conflict, match="a tag that it sent may still arrive; try again in 10 min"):
        restore.restore(lake.repo, HERE, prefix="main/logs/")
    assert bring_back(lake.repo, prefix="main/logs/").restored == 20
    assert lake.tagged() == set()
    between.go_on()  # much later than anybody thinks
    late = lake.tagged()
    assert len(late) == 11
    retain(lake.repo)
    assert "11 restored objects carried the tag" in caplog.text
    assert lake.tagged() == set()
    lake.judge()


@on_both("sqlite", "postgres")
def test_a_tagger_that_lost_its_lock_stops(lake, between, monkeypatch):
    logs = old_logs(lake, *(f"logs/{number:02}" for number in range(20)))
    monkeypatch.setattr(delete, "SURE_SECONDS", -1.0)
    once = iter([True])

    def taken_over():
        if next(once, False):
            with lake.repo.database.write() as tx:
                tx.execute("UPDATE locks SET fence = fence + 1")

    between.before_tag = taken_over
    with pytest.raises(FencedOff):
        retain(lake.repo)
    assert len(lake.tagged()) == AT_ONCE  # those that were on their way
    assert set(lake.states().values()) == {"marked"}
    lake.judge()
    with lake.repo.database.write() as tx:
        tx.execute("UPDATE locks SET owner = ''")
    retain(lake.repo)
    assert lake.tagged() == set(logs)


@pytest.mark.parametrize(("hours", "off"), [(1, True), (47, True), (49, False)])
def test_a_late_tag_is_taken_off_for_two_days(lake, caplog, hours, off):
    one, two, _ = old_logs(lake)
    retain(lake.repo)
    bring_back(lake.repo, addresses=(one, two))
    for address in (one, two):
        holds.hold(lake.repo, HoldKind.ADDRESS, address, reason="wanted")
    lake.set_tags(one, **{OURS: "1", "owner": "them"})
    later(lake.repo, hours=hours)
    retain(lake.repo)
    assert (lake.tags(one), lake.tags(two)) == ({"owner": "them"} if off else {OURS: "1", "owner": "them"}, {})
    assert ("was restored, and tagged since: the tag is off again" in caplog.text) is off
    assert read(lake.repo, "main", "logs/1") == "logs/1"


# ---- many at once


def test_what_is_staged_again_between_plan_and_sweep_is_not_tagged(lake):
    _, *others = old_logs(lake)
    planned = plan(retention.job, lake.repo, HERE, retention.job.ask(), ALL)
    lake.repo.copy("main", "logs/1", "main", "data/staged")
    report = sweep(lake.repo, HERE, planned.run, ALL)
    assert (planned.removed.objects, report.swept.removed, report.swept.held_again) == (3, 2, 1)
    assert (lake.tagged(), read(lake.repo, "main", "data/staged")) == (set(others), "logs/1")
    lake.judge()


def test_what_is_committed_again_between_plan_and_sweep_is_not_tagged(lake):
    _, *others = old_logs(lake)
    planned = plan(retention.job, lake.repo, HERE, retention.job.ask(), ALL)
    lake.repo.copy("main", "logs/1", "main", "data/committed")
    lake.repo.commit("main", "holds one")
    assert sweep(lake.repo, HERE, planned.run, ALL).swept.held_again >= 1  # and what else is in its range, for now
    assert lake.tagged() <= set(others)
    retain(lake.repo)
    assert (lake.tagged(), read(lake.repo, "main", "data/committed")) == (set(others), "logs/1")
    lake.judge()


@on_both("postgres", "sqlite")
def test_writers_and_two_runs_at_once(lake):
    """Copies, merges and commits hold logs while runs mark them: what a reader is shown at the end is there."""
    repo, location = lake.repo, locate(f"s3://{lake.bucket}/lake", db=lake.database)
    repo.create_branch("dev", "main")
    old_logs(lake, *(f"logs/{number}" for number in range(24)))
    for number in range(4):
        repo.put("dev", f"logs/dev-{number}", b"dev")
    repo.commit("dev", "on dev")
    lake.days(10)  # by now all of it is old, and dev's is held by dev
    failures, reports, made = [], [], []
    closing = ExitStack()

    def opened():
        here = Lake.open(location)
        closing.callback(here.close)
        return here.repository("demo")

    def holds_them(repo, seed):
        chance = random.Random(seed)
        for number in chance.sample(range(24), 8):
            try:
                repo.copy("main", f"logs/{number}", "main", f"data/{seed}-{number}")
                made.append(("main", f"data/{seed}-{number}", f"logs/{number}"))
                repo.commit("main", "holds one")
            except (Gone, Conflict):
                continue

    def merges(repo):
        for number in range(4):
            repo.put("dev", f"data/new-{number}", f"new {number}".encode())
            made.append(("dev", f"data/new-{number}", f"new {number}"))
            try:
                repo.commit("dev", "more")
                repo.merge("dev", "main", message="merged")
            except Conflict:
                continue

    def retains(repo):
        for _ in range(3):
            try:
                reports.append(retain(repo))
            except Locked:
                continue  # the other one is at it

    def told(act, *values):
        try:
            act(opened(), *values)
        except BaseException as error:
            failures.append(error)

    tasks = [(holds_them, 1), (holds_them, 2), (merges,), (retains,), (retains,)]
    threads = [threading.Thread(target=told, args=task) for task in tasks]
    with closing:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []
    assert reports
    retain(repo)
    lake.judge()
    for ref, path, text in made:
        assert read(repo, ref, path) == text  # whoever was let hold an object has it
    metaranges = {commit.metarange for commit in oracle.history(repo).values()}
    entries = [entry for some in oracle.contents(repo, metaranges).values() for entry in some]
    others = {one.address for one in entries if not re.match("logs/[0-9n]", one.path)}  # held by data/, or by dev
    assert lake.tagged()
    assert not lake.tagged() & others
    assert retained.marked(repo, document.kept(repo).retention, repo.clock()) == set()


# ---- what the bucket's rules are


def test_a_bucket_with_versions(lake, cli):
    lake.s3.put_bucket_versioning(Bucket=lake.bucket, VersioningConfiguration={"Status": "Enabled"})
    plain = {**retention_rule(lake)}
    assert plain.pop("NoncurrentVersionExpiration") == {"NoncurrentDays": 1}
    lake.s3.put_bucket_lifecycle_configuration(Bucket=lake.bucket, LifecycleConfiguration={"Rules": [plain]})
    code, out, _ = cli("retention", "check", lake.uri, "--json")
    assert (code, [json.loads(line)["level"] for line in out.splitlines()]) == (0, ["ok", "warning"])
    assert "what is removed still takes its space" in out
    shown = json.loads(cli("retention", "bucket-rule", lake.uri, "--json", "--wait", "36h")[1])["Rules"]
    assert [(one["Expiration"], one["NoncurrentVersionExpiration"]) for one in shown] == [
        ({"Days": 2}, {"NoncurrentDays": 2})
    ]
    for _ in range(2):
        assert cli("retention", "bucket-rule", lake.uri, "--apply")[0] == 0
    assert len(lake.s3.get_bucket_lifecycle_configuration(Bucket=lake.bucket)["Rules"]) == 1
    code, out, _ = cli("retention", "check", lake.uri)
    assert (code, "removes old ones after 1 days" in out) == (0, True)


def test_a_whole_bucket_that_holds_something_else(lake, cli):
    code, out, _ = cli("retention", "bucket-rule", lake.uri, "--whole-bucket", "--apply")
    assert (code, "Rule desilt is in bucket" in out) == (0, True)
    (made,) = lake.s3.get_bucket_lifecycle_configuration(Bucket=lake.bucket)["Rules"]
    assert made["Filter"] == {"Tag": {"Key": OURS, "Value": "1"}}
    assert cli("retention", "check", lake.uri)[0] == 0
    lake.s3.put_object(Bucket=lake.bucket, Key="lake-of-others/x", Body=b"x")
    code, out, err = cli("retention", "bucket-rule", lake.uri, "--whole-bucket", "--apply")
    assert (code, out) == (10, "")
    assert "holds more than this lake, such as 'lake-of-others/x'; leave --whole-bucket out" in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    "about", [{"Filter": {"Prefix": ""}}, {"Filter": {"Prefix": "lake/repos/"}}, {"Filter": {"Prefix": "la"}}]
)
def test_a_rule_that_removes_what_is_alive_is_told_loudly(lake, cli, about):
    assert cli("retention", "bucket-rule", lake.uri, "--apply")[0] == 0
    rules = lake.s3.get_bucket_lifecycle_configuration(Bucket=lake.bucket)["Rules"]
    rules.append({"ID": "all of it", **about, "Status": "Enabled", "Expiration": {"Days": 30}})
    lake.s3.put_bucket_lifecycle_configuration(Bucket=lake.bucket, LifecycleConfiguration={"Rules": rules})
    code, out, _ = cli("retention", "check", lake.uri)
    assert code == 1
    assert "error\trule 'all of it' removes objects of this lake, tagged or not: it loses live data" in out


def test_a_rule_for_another_tag_is_not_enough(lake, cli):
    assert cli("retention", "bucket-rule", lake.uri, "--apply", "--tag", "other=1")[0] == 0
    code, out, _ = cli("retention", "check", lake.uri)
    assert (code, "is for what is tagged other=1, not only lakefs-expire-now=1" in out) == (1, True)
    assert cli("retention", "check", lake.uri, "--tag", "other=1")[0] == 0


@pytest.mark.parametrize("command", [["check"], ["bucket-rule"], ["bucket-rule", "--apply"]])
def test_a_directory_has_no_rules(cli, uri, command):
    code, out, err = cli("retention", command[0], uri, *command[1:])
    assert (code, out) == (2, "")
    assert re.fullmatch(r"error: file://.* is not an S3 bucket, .*; there, `desilt retention run` removes .*\n", err)


# ---- S3 Batch Operations


@pytest.fixture
def batch(lake, server, monkeypatch):  # noqa: ARG001 - made before it
    monkeypatch.setattr(batch_tags, "POLL_SECONDS", 0.0)
    with batch_operations(server) as made:
        for name, value in made.env.items():
            monkeypatch.setenv(name, value)
        yield made


def in_manifests(lake, batch):
    """The addresses that were given to jobs."""
    found = []
    for job in batch.jobs.values():
        key = job.asked["ObjectArn"].partition("/")[2]
        body = lake.s3.get_object(Bucket=lake.bucket, Key=key)["Body"].read().decode()
        found += [line.partition(",")[2].removeprefix(lake.root) for line in body.splitlines()]
    return found


def test_the_store_tags_what_has_no_tags(lake, batch, cli):
    one, two, three = old_logs(lake)
    lake.set_tags(one, owner="them")
    batch.refuse[lake.root + two] = "AccessDenied", "403", "no"
    words = ("--batch", "--account-id", "123456789012", "--role-arn", "arn:aws:iam::123456789012:role/tagger")
    code, out, _ = cli("retention", "run", lake.uri, *SURE, *words, "--json")
    assert (code, json.loads(out)["marks"]["tagged"]["objects"]) == (0, 3)
    assert sorted(in_manifests(lake, batch)) == sorted([two, three])
    assert lake.tags(one) == {"owner": "them", OURS: "1"}
    assert lake.tagged() == {one, two, three}
    retain(lake.repo, **BATCH)
    assert len(batch.jobs) == 1  # there is nothing left to ask for
    lake.judge()


def test_what_is_gone_by_the_time_is_gone(lake, batch):
    one, *_ = old_logs(lake)
    batch.refuse[lake.root + one] = "404", "NoSuchKey", "gone"
    assert {state: of.objects for state, of in retain(lake.repo, **BATCH).marks.items()} == {"removed": 1, "tagged": 2}


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--account-id", "123456789012"),
        ("--account-id", "12", "--role-arn", "x"),
    ],
)
def test_account_and_role_are_asked_for_before_anything_is_marked(lake, cli, words):
    old_logs(lake)
    code, _, err = cli("retention", "run", lake.uri, *SURE, "--batch", *words)
    assert (code, len(err.splitlines())) == (2, 1)
    assert (lake.states(), cli("retention", "run", lake.uri, *SURE)[0]) == ({}, 0)


def test_a_tag_that_is_none_is_refused_before_anything_is_marked(lake, cli):
    old_logs(lake)
    code, _, err = cli("retention", "run", lake.uri, *SURE, "--tag", "nonsense")
    assert (code, "cannot be a tag: it has no '='" in err) == (2, True)
    assert (lake.states(), cli("retention", "run", lake.uri, *SURE)[0]) == ({}, 0)


def test_what_a_job_was_to_tag_that_s3_does_not_take_is_tagged_one_by_one(lake, batch, cli):
    logs = old_logs(lake)

    def create(_):
        raise Refusal(403, "AccessDenied")

    batch.create = create
    retain(lake.repo, **BATCH)
    assert lake.tagged() == set(logs)  # one by one
    assert cli("retention", "run", lake.uri, *SURE)[0] == 0


def test_a_job_that_s3_does_not_take_stops_no_restore(lake, batch):
    old_logs(lake)

    def create(_):
        raise Refusal(403, "AccessDenied")

    batch.create = create
    report = retain(lake.repo, **BATCH)
    later(lake.repo, minutes=11)
    assert bring_back(lake.repo, run=report.run).restored == 3


class Killed(BaseException):
    """The process is gone."""


def cut_off(lake, batch, monkeypatch):
    """A run that is killed while its job is at work."""
    batch.waits = True
    with monkeypatch.context() as patch:
        patch.setattr(batch_tags.time, "sleep", lambda _: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            retain(lake.repo, **BATCH)
    assert lake.tagged() == set()


@pytest.mark.parametrize("is_given_up", [False, True])
def test_a_job_of_a_run_that_was_cut_off_is_waited_for(lake, batch, monkeypatch, is_given_up):
    logs = old_logs(lake)
    cut_off(lake, batch, monkeypatch)
    if is_given_up:
        given_up(lake)  # and the next one would ask for a job of its own
    batch.waits = False
    looks = next(iter(batch.jobs.values())).looks
    retain(lake.repo, **BATCH)
    (job,) = batch.jobs.values()
    assert (job.state, job.looks > looks) == ("Complete", True)
    assert lake.tagged() == set(logs)
    assert set(lake.states().values()) == {"tagged"}


def test_a_run_without_batch_waits_for_such_a_job_too(lake, batch, monkeypatch):
    logs = old_logs(lake)
    cut_off(lake, batch, monkeypatch)
    given_up(lake)
    batch.waits = False
    retain(lake.repo)
    assert [job.state for job in batch.jobs.values()] == ["Complete"]
    assert (lake.tagged(), set(lake.states().values())) == (set(logs), {"tagged"})


def given_up(lake):
    with lake.repo.database.read() as tx:
        ((name,),) = tx.rows("SELECT id FROM runs WHERE state = 'sweeping'")
    with pytest.raises(Conflict, match="was cut off; finish it with `desilt sweep`, or give it up"):
        bring_back(lake.repo, run=name)
    give_up(lake.repo, name)
    ripen(lake.repo)
    return name


def test_a_restore_cancels_a_job_at_work(lake, batch, monkeypatch):
    old_logs(lake)
    cut_off(lake, batch, monkeypatch)
    name = given_up(lake)
    assert bring_back(lake.repo, run=name).restored == 3
    (job,) = batch.jobs.values()
    assert job.state == "Cancelled"
    batch.waits = False
    batch.describe(job)
    assert (lake.tagged(), job.state) == (set(), "Cancelled")
    lake.judge()
    assert retain(lake.repo, **BATCH).swept.removed == 0
    assert (len(batch.jobs), lake.tagged()) == (1, set())


def test_whoever_may_make_no_jobs_cancels_one_at_work_all_the_same(lake, batch, monkeypatch):
    """That another one is refused says nothing about the one that is there."""
    old_logs(lake)
    cut_off(lake, batch, monkeypatch)
    name = given_up(lake)

    def create(_):
        raise Refusal(403, "AccessDenied")

    batch.create = create
    assert bring_back(lake.repo, run=name).restored == 3
    (job,) = batch.jobs.values()
    batch.waits = False
    batch.describe(job)
    assert (job.state, lake.tagged()) == ("Cancelled", set())


def test_where_nobody_can_tell_whether_there_is_a_job_nothing_is_restored(lake, batch, monkeypatch):
    """Killed between asking for it and noting it; and whoever comes next may not ask."""
    old_logs(lake)
    batch.waits, real = True, BatchJobs.create

    def killed(*values):
        real(*values)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(BatchJobs, "create", killed)
        with pytest.raises(Killed):
            retain(lake.repo, **BATCH)
    name = given_up(lake)

    def create(_):
        raise Refusal(403, "AccessDenied")

    made, batch.create = batch.create, create
    with pytest.raises(StorageFailed, match="may be at work"):
        bring_back(lake.repo, run=name)
    assert set(lake.states().values()) <= {"marked"}
    batch.create = made
    assert bring_back(lake.repo, run=name).restored == 3
    assert [job.state for job in batch.jobs.values()] == ["Cancelled"]


def test_a_job_that_waits_for_somebody_is_left_alone_by_another_try(lake, batch, monkeypatch):
    logs = old_logs(lake)
    cut_off(lake, batch, monkeypatch)
    (job,) = batch.jobs.values()
    job.state = "Suspended"
    retain(lake.repo, **BATCH)  # takes the run up again, and tags one by one
    assert (lake.tagged(), list(batch.jobs)) == (set(logs), [job.id])
    later(lake.repo, minutes=11)
    assert bring_back(lake.repo, run="last").gone == 0
    assert job.state == "Cancelled"


def test_a_job_that_takes_a_while_to_stop_is_waited_for(lake, batch, monkeypatch):
    """A cancelled job of S3 is *Cancelling* first, and what it is about to tag by then it tags."""
    old_logs(lake)
    cut_off(lake, batch, monkeypatch)
    name = given_up(lake)

    def cancelling(job, _wanted):
        job.state = "Cancelling"
        return f"<UpdateJobStatusResult><JobId>{job.id}</JobId><Status>Cancelling</Status></UpdateJobStatusResult>"

    def describe(job, real=batch.describe):
        if job.state == "Cancelling":
            batch.run(job)
            job.state = "Cancelled"
        return real(job)

    batch.update, batch.describe = cancelling, describe
    assert bring_back(lake.repo, run=name).restored == 3
    (job,) = batch.jobs.values()
    batch.describe(job)
    lake.judge()


def test_a_job_that_s3_has_forgotten_is_in_nobodys_way(lake, batch, monkeypatch):
    """S3 keeps a job for 90 days after its end."""
    old_logs(lake)
    cut_off(lake, batch, monkeypatch)
    name = given_up(lake)
    batch.jobs.clear()
    assert bring_back(lake.repo, run=name).restored == 3


def test_a_job_that_s3_has_forgotten_does_not_stop_later_runs(lake, batch, monkeypatch):
    logs = old_logs(lake)
    cut_off(lake, batch, monkeypatch)
    batch.jobs.clear()
    batch.waits = False
    retain(lake.repo, **BATCH)
    assert lake.tagged() == set(logs)


def test_a_job_that_nobody_wrote_down_is_found_again(lake, batch, monkeypatch):
    """Killed between asking for the job and noting it: the next run must know of it, or a restore cannot stop it."""
    logs = old_logs(lake)
    batch.waits = True
    real = BatchJobs.create

    def create(*values):
        real(*values)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(BatchJobs, "create", create)
        with pytest.raises(Killed):
            retain(lake.repo, **BATCH)
    assert len(batch.jobs) == 1
    name = given_up(lake)
    bring_back(lake.repo, run=name)
    batch.waits = False
    for job in batch.jobs.values():
        for _ in range(2):
            batch.describe(job)
    assert len(logs) == 3
    lake.judge()


def test_a_job_that_fails_without_a_report_falls_back(lake, batch, caplog):
    logs = old_logs(lake)

    def run_job(job):
        job.state, job.why = "Failed", ("ManifestNotReadable", "access denied")

    batch.run = run_job
    with caplog.at_level(logging.WARNING, "desilt"):
        assert retain(lake.repo, **BATCH).marks["tagged"].objects == 3
    assert "is Failed and has left no report: ManifestNotReadable: access denied" in caplog.text
    assert lake.tagged() == set(logs)


# ---- a database that was restored from a copy


def story(repo):
    for number in range(3):
        repo.put("main", f"logs/{number}", b"log")
    repo.put("main", "data/kept", b"kept")
    repo.commit("main", "old")
    days(repo, 10)


def hidden(repo):
    return {entry.path for entry in repo.list("main", gone=True)} - {entry.path for entry in repo.list("main")}


@pytest.fixture(params=["directory", "bucket"])
def kept(request, tmp_path):
    """A repository, a judge of it, and who is tagged: in a directory with SQLite, or in a bucket with PostgreSQL."""
    if request.param == "directory":
        made = Lake.create(locate(str(tmp_path / "lake")))
        repo = made.create_repository("demo", clock_at=START)
        document.keep(repo, document.retention_of(LOGS))
        yield repo, lambda: None, set
        made.close()
        return
    server, database = request.getfixturevalue("server"), request.getfixturevalue("fresh_postgres_url")()
    with tagged_bucket(server, f"recovered-{uuid.uuid4().hex}", database) as lake:
        document.keep(lake.repo, document.retention_of(LOGS))
        yield lake.repo, lake.judge, lake.tagged


def test_marks_come_back_to_a_database_from_before_them(kept):
    repo, judge, tagged = kept
    story(repo)
    copy = backup(repo.database)
    retain(repo)
    repo.put("main", "data/more", b"more")
    repo.commit("main", "more")
    were = tagged()
    put_back(repo.database, copy)
    assert hidden(repo) == set()
    recover(repo)
    assert hidden(repo) == {"logs/0", "logs/1", "logs/2"}
    judge()
    with pytest.raises(Gone):
        repo.stat("main", "logs/0")
    report = retain(repo)
    assert (report.swept.removed, tagged()) == (0, were)
    assert set(contents(repo, "main")) == {"data/kept", "data/more"}
    assert bring_back(repo, prefix="main/logs/").restored == 3
    judge()
    assert fsck(repo, deep=True).sound


@pytest.mark.parametrize("since", ["marking", "before it"])
def test_what_was_restored_since_the_copy_is_shown_and_left_alone(kept, since):
    repo, judge, tagged = kept
    story(repo)
    before = backup(repo.database)
    retain(repo)
    copy = before if since == "before it" else backup(repo.database)
    later(repo, hours=1)
    assert bring_back(repo, prefix="main/logs/").restored == 3
    later(repo, hours=1)
    repo.put("main", "data/more", b"more")
    repo.commit("main", "more")
    put_back(repo.database, copy)
    recover(repo)
    judge()
    assert hidden(repo) == set()
    assert contents(repo, "main") == {**dict.fromkeys(("logs/0", "logs/1", "logs/2"), "log"),
                                      "data/kept": "kept", "data/more": "more"}  # fmt: skip
    later(repo, hours=20)
    assert retain(repo).swept.removed == 0
    assert (hidden(repo), tagged()) == (set(), set())
    judge()
    assert fsck(repo, deep=True).sound


def test_what_the_bucket_removed_since_the_copy_is_known_as_gone(lake):
    one, *_ = old_logs(lake)
    copy = backup(lake.repo.database)
    retain(lake.repo)
    lake.expires(one)
    lake.repo.create_branch("later", "main")
    put_back(lake.repo.database, copy)
    recover(lake.repo)
    assert sorted(lake.states().values()) == ["marked", "marked", "removed"]
    lake.judge()
    assert retain(lake.repo).marks["tagged"].objects == 2


def test_a_tag_of_another_name_is_taken_off_after_a_recovery_too(lake):
    old_logs(lake)
    copy = backup(lake.repo.database)
    retain(lake.repo, tag="expire=soon")
    bring_back(lake.repo, prefix="main/logs/")
    for address in lake.visible():
        lake.set_tags(address, expire="soon")  # as if the restore had not come to it
    put_back(lake.repo.database, copy)
    recover(lake.repo)
    assert hidden(lake.repo) == set()
    assert [lake.tags(address) for address in lake.states()] == [{}] * 3
