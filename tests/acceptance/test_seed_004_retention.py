"""Object retention, as its design document tells it: from the configuration to what the store takes away.

The sections are the document's, the sentences quoted are its own. The store is a real S3 server; its lifecycle
management is played here, which deletes what carries the tag: in any order, at any time, or not at all.
"""

import json
import random
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from desilt.errors import Gone
from desilt.executors.executor import HERE
from desilt.jobs.retention import bucket, document
from desilt.jobs.retention import job as retention
from desilt.jobs.retention.restore import restore
from desilt.jobs.runner import plan, run
from desilt.lake import Lake, schema
from desilt.objects import open_store
from desilt.objects.s3_client import s3_client
from desilt.objects.tags import EXPIRE_NOW
from desilt.records import marks, policies
from desilt.records.database import open_database
from desilt.records.removals import State
from desilt.sweep import tag as tagging
from desilt.sweep.limits import Limits
from words import days, later, put, read

START = datetime(2026, 1, 1, tzinfo=UTC)
SURE = Limits(max_share=1.0, confirm=True)
CONFIGURATION = {
    "description": "example",
    "rules": [
        {"status": "enabled", "filter": {"prefix": "main/logs/"}, "expiration": {"all": {"weeks": 1, "days": 3}}},
        {"status": "enabled", "filter": {"prefix": "main/"}, "expiration": {"noncurrent": {"weeks": 2}}},
        {"status": "enabled", "filter": {"prefix": "main/tmp/"}, "expiration": {"uncommitted": {"days": 2}}},
    ],
}


@pytest.fixture
def repo(place, s3_server, monkeypatch):
    """A repository in a bucket that is used for nothing else, on a manual clock."""
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    bucket = s3_server.create_bucket(f"seed4-{uuid.uuid4().hex[:12]}")
    database = open_database(f"sqlite://{place}/lake.db", create=True)
    schema.create(database, storage="")
    lake = Lake(database, open_store(f"{bucket}/lake"))
    yield lake.create_repository("seed", clock_at=START)
    database.close()


@pytest.fixture
def s3(repo):
    return s3_client(repo.store.bucket)


def bucket_and_key(repo, address):
    return {"Bucket": repo.store.bucket, "Key": f"{repo.store.root}{repo.prefix}{address}"}


def tags(s3, repo, address):
    return {one["Key"]: one["Value"] for one in s3.get_object_tagging(**bucket_and_key(repo, address))["TagSet"]}


def lifecycle_management(s3, repo, addresses, *, how_many=None):
    """What AWS does once a day: delete what has the tag, in whatever order it likes."""
    tagged = [one for one in addresses if tags(s3, repo, one).get(EXPIRE_NOW.key) == EXPIRE_NOW.value]
    random.shuffle(tagged)
    for one in tagged[:how_many]:
        s3.delete_object(**bucket_and_key(repo, one))
    return tagged[:how_many]


def expire(repo, **options):
    """`lakefs expire` was its name then."""
    return run(retention.job, repo, HERE, retention.job.ask(**options), SURE)[-1]


def states(repo):
    with repo.database.read() as tx:
        return {one.state: one.objects for one in marks.counted(tx, repo.uid)}


def aged(repo):
    """A month in which all three rules have something to do; the addresses of what expires, and of what does not."""
    log, old, kept = put(repo, "main", "logs/1"), put(repo, "main", "data/1", "old"), put(repo, "main", "data/2")
    repo.commit("main", "first")
    put(repo, "main", "data/1", "new")
    repo.commit("main", "second")
    days(repo, 30)
    recent, scratch = put(repo, "main", "logs/2"), put(repo, "main", "tmp/1")
    days(repo, 3)
    return [log, old, scratch], [kept, recent, repo.stat("main", "data/1").address]


# ---- Configuration


def test_there_is_a_single_configuration_for_the_entire_repository_stored_as_one_json_value(repo):
    document.keep(repo, document.retention_of(CONFIGURATION))
    days(repo, 1)
    document.keep(repo, document.retention_of(json.dumps(CONFIGURATION)))
    with repo.database.read() as tx:
        (row,) = tx.rows("SELECT document, set_at FROM policies WHERE repository = ? AND job = 'retention'", repo.uid)
        kept = policies.find(tx, repo.uid, "retention")
    assert json.loads(row[0]) == CONFIGURATION
    assert document.kept(repo).to_json() == {**CONFIGURATION, "creation_date": kept.set_at.isoformat()}


# ---- Triggering, and the expiration query


def test_it_immediately_marks_objects_as_expired_and_nothing_changes_on_s3(repo, s3, monkeypatch):
    """ "As soon as this query returns the objects are no longer visible to users.  However nothing changes on S3.\""""
    document.keep(repo, document.retention_of(CONFIGURATION))
    expired, others = aged(repo)

    def killed(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(tagging, "tag", killed)
    with pytest.raises(KeyboardInterrupt):
        expire(repo)
    assert states(repo) == {State.MARKED: 3}
    assert [entry.path for entry in repo.list("main")] == ["data/1", "data/2", "logs/2"]
    for path in ("logs/1", "tmp/1"):
        with pytest.raises(Gone, match="rule"):
            read(repo, "main", path)
    assert read(repo, "main", "data/1") == "new"
    for one in (*expired, *others):
        assert s3.head_object(**bucket_and_key(repo, one))["ContentLength"] > 0
        assert tags(s3, repo, one) == {}


def test_tombstones_are_kept_to_recover_from_failed_tagging(repo, s3, monkeypatch):
    """ "We do need to keep tombstones to recover from failed object tagging in the next step.\""""
    document.keep(repo, document.retention_of(CONFIGURATION))
    expired, _ = aged(repo)
    with monkeypatch.context() as patch:
        patch.setattr(tagging, "tag", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            expire(repo)
    expire(repo)
    assert states(repo) == {State.TAGGED: 3}
    assert all(tags(s3, repo, one) == {"lakefs-expire-now": "1"} for one in expired)


# ---- Tagging


def test_objects_are_actually_deleted_by_lifecycle_management_using_a_rule_to_delete_objects_with_this_tag(repo, s3):
    document.keep(repo, document.retention_of(CONFIGURATION))
    expired, others = aged(repo)
    s3.put_object_tagging(**bucket_and_key(repo, expired[0]), Tagging={"TagSet": [{"Key": "team", "Value": "a"}]})
    made = bucket.bucket_rule(repo, EXPIRE_NOW, timedelta(days=1), whole_bucket=False)
    bucket.apply(repo, made)
    assert [one.level for one in bucket.check(repo, EXPIRE_NOW)] == ["ok", "ok"]
    expire(repo)
    assert tags(s3, repo, expired[0]) == {"team": "a", "lakefs-expire-now": "1"}
    assert sorted(lifecycle_management(s3, repo, [*expired, *others])) == sorted(expired)
    expire(repo)
    assert states(repo) == {State.REMOVED: 3}
    assert [read(repo, "main", path) for path in ("data/1", "data/2", "logs/2")] == ["new", "x", "x"]


def test_a_single_file_applies_to_an_entire_bucket_if_that_bucket_is_solely_used_by_the_lake(repo, s3):
    made = bucket.bucket_rule(repo, EXPIRE_NOW, timedelta(days=1), whole_bucket=True)
    assert made.rule["Filter"] == {"Tag": {"Key": "lakefs-expire-now", "Value": "1"}}
    s3.put_object(Bucket=repo.store.bucket, Key="others/data", Body=b"not ours")
    with pytest.raises(Exception, match="holds more than this lake"):
        bucket.bucket_rule(repo, EXPIRE_NOW, timedelta(days=1), whole_bucket=True)


# ---- Nongoals, and what stands nevertheless


def test_objects_disappear_in_some_order_and_no_reader_sees_it(repo, s3):
    """ "objects will disappear from S3 in some order, not necessarily creation order\""""
    document.keep(repo, document.retention_of(CONFIGURATION))
    expired, _ = aged(repo)
    expire(repo)
    seen = [entry.path for entry in repo.list("main")]
    for left in (2, 1, 0):
        lifecycle_management(s3, repo, [one for one in expired if exists(s3, repo, one)], how_many=1)
        expire(repo)
        assert states(repo).get(State.TAGGED, 0) == left
        assert [entry.path for entry in repo.list("main")] == seen


def exists(s3, repo, address):
    found = s3.list_objects_v2(Bucket=repo.store.bucket, Prefix=bucket_and_key(repo, address)["Key"])
    return found["KeyCount"] == 1


def test_there_is_no_guarantee_about_when_objects_are_removed_so_they_can_be_brought_back_until_then(repo, s3):
    document.keep(repo, document.retention_of(CONFIGURATION))
    expired, _ = aged(repo)
    expire(repo)
    (gone,) = lifecycle_management(s3, repo, expired[:1])
    later(repo, minutes=11)  # a request that was sent has arrived by then
    back = restore(repo, HERE, run="last")
    assert (back.restored, back.gone) == (2, 1)
    assert all(tags(s3, repo, one) == {} for one in expired if one != gone)
    assert read(repo, "main", "tmp/1") == "x"
    with pytest.raises(Gone, match=r"rule 1 \(all\)"):
        read(repo, "main", "logs/1")


def test_there_should_be_monitoring(repo):
    document.keep(repo, document.retention_of(CONFIGURATION))
    aged(repo)
    assert plan(retention.job, repo, HERE, retention.job.ask()).marks == {}
    report = expire(repo)
    (told,) = report.marks.items()
    assert (told[0], told[1].objects, told[1].oldest) == ("tagged", 3, repo.clock().isoformat())
