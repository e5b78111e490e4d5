"""A model of a lakeFS server with one repository, and desilt's side of it: what tests of jobs there begin with."""

import os
import uuid
from contextlib import contextmanager
from datetime import timedelta
from functools import partial

from desilt.api.repository import OpenRepository
from desilt.api.workplace import Workplace
from desilt.executors.executor import HERE
from desilt.lakefs.opening import open_repository
from desilt.lakefs.settings import find
from desilt.objects import open_store
from desilt.objects.opening import dated
from desilt.records.opening import open_records
from desilt.repository.opening import Opened
from lakefs_model import LakefsModel
from lakefs_subject import LakefsSubject, of_model

DAY = timedelta(days=1)


class World:
    """A subject on a model, and the API over its repository."""

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


@contextmanager
def world(tmp_path, monkeypatch, db=None):
    """A world below ``tmp_path``, closed at the end."""
    with LakefsModel(tmp_path / "blocks") as model:
        monkeypatch.setenv("LAKEFS_BLOCKSTORE_LOCAL_PATH", str(model.root))
        with _world(model, of_model(model), db or f"sqlite://{tmp_path}/records.db", monkeypatch) as found:
            yield found


@contextmanager
def bucket_world(s3_server, bucket, tmp_path, monkeypatch):
    """The same in a bucket, where everything is dated by the model's clock."""
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    access, db = partial(of_model, namespace=f"{bucket}/{uuid.uuid4().hex}"), f"sqlite://{tmp_path}/records.db"
    with (
        LakefsModel("s3", opened=lambda uri: dated(open_store(uri), lambda: model.clock())) as model,
        _world(model, access(model), db, monkeypatch) as found,
    ):
        yield found


@contextmanager
def _world(model, access, db, monkeypatch):
    for name, value in access.environment.items():
        monkeypatch.setenv(name, value)
    subject = LakefsSubject(access, opened, db, model=model)
    yield World(model, subject)
    subject.repository.records.close()


def opened(uri, db, clock):
    return open_repository(find(uri, environment=os.environ), open_records(db), clock=clock)
