"""Hard delete with objects on a real S3 server and rows in a real PostgreSQL."""

import uuid
from datetime import timedelta

import pytest

from desilt.jobs.harddelete.worker import remove
from desilt.lake import Lake, schema
from desilt.objects import open_store
from desilt.objects.store import Outcome, Result
from desilt.records.database import open_database
from desilt.repository.hard_delete import HardDeleteSetting, WantedBack
from desilt.testing import oracle
from words import contents, put


@pytest.fixture
def repo(s3_server, fresh_postgres_url, monkeypatch):
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    database = open_database(fresh_postgres_url(), create=True)
    schema.create(database, storage="")
    made = Lake(database, open_store(s3_server.create_bucket(f"hard-{uuid.uuid4().hex}"))).create_repository("demo")
    made.hard_delete.switch(HardDeleteSetting(timedelta(0), 1.0))
    yield made
    database.close()


def test_what_is_dropped_leaves_the_bucket_and_nothing_else_does(repo):
    put(repo, "main", "kept", "committed")
    repo.commit("main", "one")
    for number in range(5):
        put(repo, "main", "often", f"{number}")
    for number in range(4):
        put(repo, "main", f"reset/{number}")
    repo.reset("main", prefix="reset/")
    assert repo.hard_delete.restore(WantedBack(prefix="reset/0")).objects == 1
    report = remove(repo)
    assert (report.swept.removed, report.swept.failed) == (7, 0)
    assert set(oracle.stored(repo)) == oracle.staged(repo) | oracle.committed(repo)
    assert contents(repo, "main") == {"kept": "committed", "often": "4", "reset/0": "x"}


def test_what_the_bucket_refuses_is_told_and_tried_again(repo, monkeypatch):
    put(repo, "main", "a")
    repo.reset("main")
    refuse = lambda keys, **_: [Outcome(key, Result.FAILED, "AccessDenied") for key in keys]  # noqa: E731
    with monkeypatch.context() as patch:
        patch.setattr(repo.store, "delete_many", refuse)
        patch.setattr("desilt.sweep.delete.PAUSES", ())
        report = remove(repo)
    assert (report.swept.failed, report.swept.state) == (1, "swept in part")
    assert len(oracle.stored(repo)) == 1
    assert repo.hard_delete.discards().claimed == 1
