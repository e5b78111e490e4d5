"""Which objects were uploaded in parts, on a real S3 server, SeaweedFS."""

import uuid

import pytest

from desilt.errors import StorageFailed
from desilt.objects import open_store
from desilt.objects import parts as uploads

BIG = [bytes(1 << 20)] * 17


@pytest.fixture(scope="module")
def bucket(s3_server):
    return s3_server.create_bucket("uploaded-in-parts")


@pytest.fixture
def store(bucket, s3_server, monkeypatch):
    for name, value in s3_server.env.items():
        monkeypatch.setenv(name, value)
    return open_store(f"{bucket}/{uuid.uuid4().hex}")


def test_other_stores_date_objects_when_they_are_there(tmp_path):
    assert open_store(tmp_path.as_uri()).parts is None
    assert open_store(f"memory://{uuid.uuid4().hex}").parts is None


@pytest.mark.parametrize("pages", [0, 50])
def test_those_are_told_that_came_in_parts(store, monkeypatch, pages):
    """Asked for one by one, and listed."""
    monkeypatch.setattr(uploads, "PAGES_TO_A_FOLDER", pages)
    for key, body in {"a/big": BIG, "a/small": [b"1"], "b/big": BIG, "a/not/asked/for": BIG}.items():
        store.put(key, body)
    assert store.parts.among(["a/big", "a/small", "b/big"]) == {"a/big", "b/big"}
    assert store.parts.among(["a/small"]) == set()


@pytest.mark.parametrize("pages", [0, 50])
def test_of_one_that_is_not_there_nobody_knows(store, monkeypatch, pages):
    monkeypatch.setattr(uploads, "PAGES_TO_A_FOLDER", pages)
    store.put("a/small", [b"1"])
    assert store.parts.among(["a/small", "a/gone"]) == {"a/gone"}


@pytest.mark.parametrize("pages", [0, 50])
def test_where_it_may_not_be_asked_that_is_an_error(store, monkeypatch, pages):
    monkeypatch.setattr(uploads, "PAGES_TO_A_FOLDER", pages)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-the-right-one")
    with pytest.raises(StorageFailed):
        open_store(store.uri).parts.among(["a/b"])


@pytest.mark.parametrize(("tag", "whole"), [('"5d41402a"', True), ('"5d41402a-3"', False), ("", False), (None, False)])
def test_a_dash_before_the_number_of_parts(tag, whole):
    assert uploads.is_whole(tag) is whole
