"""The model of a lakeFS server over a bucket: what it says is in the namespace can be read there by others."""

import uuid

import pyarrow as pa
import pytest

from desilt.lakefs import dump, staged
from desilt.lakefs.layout import LAYOUT
from desilt.lakefs.namespace import Namespace
from desilt.lakefs.server import Server
from desilt.objects import open_store
from lakefs_model import LakefsModel
from lakefs_subject import LakefsSubject, of_model


@pytest.fixture
def subject(s3_server, monkeypatch):
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    place = f"{s3_server.create_bucket('lakefs-model')}/{uuid.uuid4().hex}"
    with LakefsModel("s3") as model:
        yield LakefsSubject(of_model(model, place), lambda uri, _db, _clock: uri, "", model=model)


def test_objects_tables_and_lists_are_in_the_bucket(subject):
    server = Server(subject.model.settings(subject.name), pause=lambda _: None)
    one = subject.upload("main", "a", b"1")
    made = subject.commit("main", "first")
    two = subject.upload("main", "b", b"2")
    subject.unstage("main")
    subject.stage_again("main", "again", two)
    described = server.repository()
    store = open_store(described.namespace)
    assert staged.addresses(store, "", server.uncommitted()).to_pylist() == [two]
    found = [key for batch in store.list("data/") for key in batch["key"].to_pylist()]
    assert sorted(found) == sorted([one, two])
    assert LAYOUT.objects(pa.array(found)).all()
    shown = [served.address for served in server.listing("main")]
    assert set(Namespace(described.namespace).inside(pa.array(shown)).to_pylist()) == {one, two}
    seen = dump.read(lambda _, name: store.get(f"_lakefs/{name}"), server.dump(), default_branch="main").snapshot
    assert store.get(f"_lakefs/{seen.commits[made].metarange}") == server.table(
        "meta_range", seen.commits[made].metarange
    )
