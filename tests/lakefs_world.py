"""A lakeFS server with one repository, and desilt's side of it: what tests of jobs there begin with.

The server is a model of one, or one that runs, which ``DESILT_LAKEFS_ENDPOINT`` and the like name. There, time cannot
be moved: only our clock goes on, and everything that the server has made looks older by it. So commits are dated, ages
of objects differ by nothing, and a store that dates objects itself is not asked for the time.
"""

import os
import uuid
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from desilt.api.repository import OpenRepository
from desilt.api.workplace import Workplace
from desilt.executors.executor import HERE
from desilt.lakefs.opening import open_repository
from desilt.lakefs.settings import find
from desilt.objects import store_clock
from desilt.objects.local import LocalStore
from desilt.records.opening import open_records
from desilt.repository.opening import Opened
from lakefs_model import LakefsModel
from lakefs_subject import LakefsSubject, live, of_model

DAY = timedelta(days=1)


class World:
    """A subject on a server, and the API over its repository."""

    def __init__(self, model, subject):
        self.model, self.subject = model, subject
        self.repository = subject.repository
        self.api = self.done_by(HERE)

    def done_by(self, executor):
        """The API, with its work done by ``executor``."""
        return OpenRepository(Workplace(Opened(self.repository, lambda: None), executor))

    def ask(self, method, *parts, body=None, **query):
        return self.subject.access.ask(method, self.subject._at(*parts), body, **query)

    def commit(self, branch, message, at):
        """A commit that says it was made then."""
        told = {"message": message, "date": int(at.timestamp())}
        return self.ask("POST", "branches", branch, "commits", body=told)["id"]

    def upload(self, branch, path, body):
        return self.subject.upload(branch, path, body)

    def stored(self):
        """The addresses of objects that are there."""
        return {key for batch in self.repository.store.list("data/") for key in batch["key"].to_pylist()}

    def wait(self, time):
        self.subject.wait(time)

    def moves_time(self):
        """What is uploaded from here on is younger than what was."""
        if self.model is None:
            pytest.skip("a server that runs cannot be moved ahead: all that is uploaded there is equally old")


@contextmanager
def world(tmp_path, monkeypatch, db=None, *, where="model"):
    """A world below ``tmp_path``, or on the server that runs, closed at the end."""
    db = db or f"sqlite://{tmp_path}/records.db"
    if where == "model":
        with LakefsModel(tmp_path / "blocks") as model:
            monkeypatch.setenv("LAKEFS_BLOCKSTORE_LOCAL_PATH", str(model.root))
            with _world(model, of_model(model), db, monkeypatch) as found:
                yield found
        return
    if (access := live()) is None:
        pytest.skip("no lakeFS server is named by DESILT_LAKEFS_ENDPOINT and the like")
    with _world(None, access, db, monkeypatch) as found:
        yield found


@contextmanager
def bucket_world(s3_server, bucket, tmp_path, monkeypatch):
    """A model in a bucket, which dates objects itself: the model begins today, and all that is put is of today."""
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    with LakefsModel("s3", start=datetime.now(UTC)) as model:
        access = of_model(model, f"{bucket}/{uuid.uuid4().hex}")
        with _world(model, access, f"sqlite://{tmp_path}/records.db", monkeypatch) as found:
            yield found


@contextmanager
def _world(model, access, db, monkeypatch):
    for name, value in access.environment.items():
        monkeypatch.setenv(name, value)
    subject = LakefsSubject(access, opened, db, model=model)
    if not isinstance(subject.repository.store, LocalStore):  # it has a time of its own, and ours moves ahead
        monkeypatch.setattr(store_clock, "store_time", lambda _: subject.now())
    try:
        yield World(model, subject)
    finally:
        subject.repository.records.close()
        subject.close()


def opened(uri, db, clock):
    return open_repository(find(uri, environment=os.environ), open_records(db), clock=clock)
