"""A bucket is listed flat or folder by folder; where its own order is byte order, both say the same."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from desilt.objects import open_store


@pytest.mark.parametrize("way", ["flat", "walk"])
def test_on_a_real_server_both_ways_agree_where_orders_do(s3_server, monkeypatch, way):
    for name, value in {**s3_server.env, "DESILT_LISTING": way}.items():
        monkeypatch.setenv(name, value)
    store = open_store(s3_server.create_bucket(f"both-{way}") + "/root")
    wanted = sorted(f"data/{part}/{number:03}" for part in "abc" for number in range(40))
    for key in wanted:
        store.put(key, [b"x"])

    def listed(prefix="", after=""):
        return [key for batch in store.list(prefix, after=after) for key in batch.column("key").to_pylist()]

    assert listed() == wanted
    assert listed("data/b/01", "data/b/013") == [f"data/b/{number:03}" for number in range(14, 20)]
    assert listed(after="data/c/030") == [f"data/c/{number:03}" for number in range(31, 40)]


@pytest.mark.parametrize("way", ["flat", "walk"])
def test_a_folder_of_as_many_names_as_fill_a_page_is_listed_whole(s3_server, monkeypatch, way):
    for name, value in {**s3_server.env, "DESILT_LISTING": way}.items():
        monkeypatch.setenv(name, value)
    store = open_store(s3_server.create_bucket(f"full-{way}") + "/root")
    wanted = [f"data/{number:04}/x" for number in range(500)] + [f"data/{number:04}" for number in range(500, 1000)]
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda key: store.put(key, [b"x"]), wanted))
    for more in ("data/1000", "data/1001/x"):
        assert [key for batch in store.list() for key in batch.column("key").to_pylist()] == sorted(wanted)
        assert len(store.folders("data/")) == sum(key.endswith("/x") for key in wanted)
        store.put(more, [b"x"])
        wanted.append(more)
