"""Jobs on a repository of a lakeFS server that has its objects in a bucket."""

import json

import pytest

from desilt.api.repository import OpenRepository
from desilt.api.workplace import Workplace
from desilt.errors import OtherRecords
from desilt.executors.executor import HERE
from desilt.repository.opening import Opened
from lakefs_world import DAY, bucket_world, opened


@pytest.fixture(scope="module")
def bucket(s3_server):
    return s3_server.create_bucket("lakefs-jobs")


@pytest.fixture
def here(s3_server, bucket, tmp_path, monkeypatch):
    with bucket_world(s3_server, bucket, tmp_path, monkeypatch) as found:
        yield found


@pytest.fixture
def kept_and_lost(here):
    """Two objects that stay, one committed and one staged; and one that nothing has any more. All are old."""
    kept = {here.upload("main", "kept", b"1")}
    here.subject.commit("main", "kept")
    lost = here.upload("main", "lost", b"22")
    here.subject.unstage("main")
    kept.add(here.upload("main", "staged", b"333"))
    here.wait(2 * DAY)
    return kept, lost


def test_what_nothing_has_goes_and_all_else_stays(here, kept_and_lost):
    kept, lost = kept_and_lost
    report = here.api.gc.run(confirm=True, max_share=1)
    assert here.stored() == kept
    store = here.repository.store
    said = json.loads(store.get(f"_lakefs/retention/gc/unified/{report.run}/summary.json"))
    assert said["num_deleted_objects"] == 1
    assert store.get(f"_lakefs/retention/gc/unified/{report.run}/deleted.text/part-00000.txt").decode() == f"{lost}\n"


def test_it_goes_by_the_trash_and_comes_back(here, kept_and_lost):
    kept, lost = kept_and_lost
    report = here.api.gc.run(action="trash", confirm=True, max_share=1)
    assert here.stored() == kept
    assert here.api.restore(report.run).restored == 1
    assert here.stored() == {*kept, lost}
    assert here.repository.store.get(lost) == b"22"
    here.wait(2 * DAY)
    here.api.gc.run(action="trash", confirm=True, max_share=1)
    here.wait(8 * DAY)
    assert here.api.purge(older_than="7d").objects == 1
    assert here.stored() == kept


def test_what_a_policy_calls_old_goes_to_the_trash(here):
    old = here.upload("main", "logs/old", b"1")
    here.subject.commit("main", "old")
    here.wait(40 * DAY)
    kept = here.upload("main", "logs/new", b"22")
    here.subject.commit("main", "new")
    policy = {"rules": {"logs": {"prefix": "logs/", "days": 30}}}
    report = here.api.lifecycle.run(policy=policy, confirm=True, max_share=1)
    assert here.stored() == {kept}
    assert here.api.restore(report.run).restored == 1
    assert here.stored() == {kept, old}


def test_another_database_is_refused_once_something_went(here, kept_and_lost, tmp_path):
    kept, _ = kept_and_lost
    here.api.gc.run(action="trash", confirm=True, max_share=1)
    other = opened(here.subject.uri, f"sqlite://{tmp_path}/other.db", here.subject.clock)
    with pytest.raises(OtherRecords, match="name that database with --db"):
        OpenRepository(Workplace(Opened(other, lambda: None), HERE)).gc.run(confirm=True)
    other.records.close()
    assert here.stored() == kept
