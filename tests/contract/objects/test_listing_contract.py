"""One contract for listings: whole, in byte order, and never outside the root."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from desilt.errors import BadRequest
from desilt.objects import LISTING, open_store

ORDERED = sorted(
    [
        "a-b",
        "a.c",
        "a/x",
        "a/y-1/p",
        "a/y/q",
        "a/y0",
        "a0/z",
        "ab/c",
        "b",
        "ba",
        "B",
        "_x/y",
        "z~",
        "é/1",
        "日本/2",
        "𝄞",
    ],
    key=str.encode,
)


@pytest.fixture
def filled(store):
    for key in reversed(ORDERED):
        store.put(key, [key.encode()])
    return store


def listed(store, prefix="", after="", until=""):
    found = store.list(prefix, after=after, until=until)
    return [key for batch in found for key in batch.column("key").to_pylist()]


def test_an_empty_store_lists_nothing(store):
    assert list(store.list()) == []
    assert list(store.list("any/thing")) == []


def test_keys_come_in_the_order_of_their_bytes(filled):
    assert listed(filled) == ORDERED


@pytest.mark.parametrize("prefix", ["", "a", "a/", "a/y"])
def test_a_listing_ends_before_a_key_whether_there_is_such_a_one_or_not(filled, prefix):
    bounds = [*ORDERED, "!", "a/", "a/y", "a/y-", "a/y/", "a1", "~", "zz"]
    for until in bounds:
        for after in ("", "a/x", "a/y-1/p"):
            wanted = [key for key in ORDERED if key.startswith(prefix) and key > after and key < until]
            assert listed(filled, prefix, after, until) == wanted


def test_a_row_says_what_head_says(filled):
    for batch in filled.list():
        assert batch.schema == LISTING
        for row in batch.to_pylist():
            assert row["size_bytes"] == len(row["key"].encode())
            assert abs(row["modified_at"] - filled.head(row["key"]).modified_at) < timedelta(seconds=1)
            assert abs(row["modified_at"] - datetime.now(UTC)) < timedelta(minutes=5)


@pytest.mark.parametrize(
    "after", ["", "a", "a-b", "a-b0", "a.", "a/", "a/y", "a/y-1/p", "a/y/", "a0", "b", "zz", "é", "𝄞", "//", "\0"]
)
def test_after_is_exclusive_and_need_not_exist(filled, after):
    assert listed(filled, after=after) == [key for key in ORDERED if key > after]


@pytest.mark.parametrize(
    "prefix",
    ["a", "a/", "a/y", "a/y/", "a/y/q", "a-", "a0", "b", "B", "_", "é", "é/", "日", "nothing", "a/x/", "z~", ".."],
)
@pytest.mark.parametrize("after", ["", "a/y-1/p", "b"])
def test_a_prefix_is_plain_text_and_combines_with_after(filled, prefix, after):
    assert listed(filled, prefix, after) == [key for key in ORDERED if key.startswith(prefix) and key > after]


@pytest.mark.parametrize("prefix", ["/", "../", "a/../", "a//", "./", "a\0/"])
def test_a_prefix_no_key_can_have_is_refused(filled, prefix):
    with pytest.raises(BadRequest):
        listed(filled, prefix)


def test_2600_keys_are_listed_once_each_in_batches(store):
    keys = [f"data/{number % 3}/{number:05}" for number in range(2600)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda key: store.put(key, [b"x"]), keys))
    keys.sort()
    assert listed(store) == keys
    assert listed(store, "data/1/") == [key for key in keys if key.startswith("data/1/")]
    assert listed(store, "data/1/", after=keys[1500]) == [key for key in keys[1501:] if key.startswith("data/1/")]
    assert listed(store, "data/2/01") == [key for key in keys if key.startswith("data/2/01")]
    assert len(list(store.list())) <= 3
    assert all(batch.num_rows for batch in store.list())


def test_nothing_outside_the_root_is_seen(store, uri):
    if uri.startswith("memory:"):
        pytest.skip("a store in memory has no prefix")
    for key in ("a/in", "ab/out", "a-/out", "a.out", "b/out"):
        store.put(key, [key.encode()])
    inner = open_store(f"{uri}/a")
    assert listed(inner) == ["in"]
    assert listed(inner, "i") == ["in"]
    assert listed(inner, "b") == []
    assert inner.get("in") == b"a/in"
    inner.put("new", [b"x"])
    assert listed(store) == ["a-/out", "a.out", "a/in", "a/new", "ab/out", "b/out"]
