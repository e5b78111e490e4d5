"""A bucket is listed flat or folder by folder; where its own order is byte order, both say the same."""

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
