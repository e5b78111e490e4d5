"""Which URIs open which stores."""

import os
import threading
from datetime import UTC, datetime

import pytest

from desilt.errors import InvalidUri
from desilt.objects import open_store
from desilt.objects.cloud import CloudStore
from desilt.objects.local import LocalStore


@pytest.fixture
def _keys(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "a2V5")


@pytest.mark.parametrize("name", ["plain", "with space", "per%20cent", "#ha?sh", "ünï"])
def test_a_directory_opens_by_path_and_by_uri(tmp_path, name):
    first = open_store(str(tmp_path / name))
    first.put("key", [b"x"])
    assert isinstance(first, LocalStore)
    assert (tmp_path / name / "key").read_bytes() == b"x"
    assert open_store(first.uri).get("key") == b"x"


def test_a_relative_path_is_fixed_when_it_is_opened(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert open_store("lake").uri == (tmp_path / "lake").as_uri()


@pytest.mark.usefixtures("_keys")
@pytest.mark.parametrize("uri", ["s3://bucket", "s3://bucket/a/b", "az://container/a"])
def test_a_bucket_opens_without_asking_the_network(uri):
    store = open_store(uri)
    assert isinstance(store, CloudStore)
    assert store.uri == uri
    assert open_store(uri + "/").uri == uri


@pytest.mark.usefixtures("_keys")
@pytest.mark.parametrize(
    "uri",
    [
        "",
        "ftp://host/x",
        "http://host/x",
        "S3://bucket",
        "file://host/x",
        "file://",
        "memory://",
        "memory://a/b",
        "memory://a?process=1",
        "s3://",
        "s3:///prefix",
        "s3://bucket/a/../b",
        "s3://bucket//a",
        "s3://bucket/a?x=y",
        "s3://bucket/a#repo",
        "s3://user@bucket/a",
    ],
)
def test_anything_else_is_refused_with_the_way_out(uri):
    with pytest.raises(InvalidUri, match="; "):
        open_store(uri)


def test_a_bucket_keeps_its_own_time():
    with pytest.raises(InvalidUri, match="keeps its own time"):
        open_store("s3://bucket", clock=lambda: datetime(1998, 1, 1, tzinfo=UTC))


def test_a_clock_dates_what_is_put_in_memory():
    store = open_store("memory://clocked", clock=lambda: datetime(1998, 1, 1, tzinfo=UTC))
    store.put("key", [b"x"])
    assert store.head("key").modified_at == datetime(1998, 1, 1, tzinfo=UTC)


def test_memory_of_one_name_is_one_store_in_every_thread():
    opened = []
    threads = [threading.Thread(target=lambda: opened.append(open_store("memory://shared"))) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len({id(each) for each in opened}) == 1
    assert open_store("memory://other") is not opened[0]


def test_memory_of_another_process_is_never_taken_for_an_empty_store():
    uri = open_store("memory://mine").uri
    child = os.fork()
    if child == 0:
        try:
            open_store(uri)
        except InvalidUri:
            os._exit(3)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
