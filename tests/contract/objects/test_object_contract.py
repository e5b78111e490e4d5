"""One contract for put, get, stream, head and copy. Listings have their own file."""

import hashlib
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from desilt.errors import BadRequest, NotFound, StorageFailed
from desilt.objects import open_store

MIB = 1 << 20
ODD_KEYS = [
    "a b",
    "a+b",
    "a%20b",
    "a%2Fb",
    "ünï/çødé",
    "a#b",
    "a?b=c&d",
    "a~b",
    "a*b",
    "a:b",
    "a'\"b",
    "a[{b}]",
    "…/.x",
]


def listed(store, prefix=""):
    return [key for batch in store.list(prefix) for key in batch.column("key").to_pylist()]


def test_what_was_put_is_what_is_read(store):
    assert store.put("data/one", [b"hello ", b"", b"world"]) == 11
    assert store.get("data/one") == b"hello world"
    assert b"".join(store.stream("data/one")) == b"hello world"


def test_an_empty_object_is_an_object(store):
    assert store.put("empty", []) == 0
    assert store.get("empty") == b""
    assert list(store.stream("empty")) == []
    assert store.head("empty").size == 0
    assert listed(store) == ["empty"]


def test_a_second_put_replaces_the_first(store):
    store.put("key", [b"a longer first body"])
    store.put("key", [b"second"])
    assert store.get("key") == b"second"
    assert store.head("key").size == 6
    assert listed(store) == ["key"]


@pytest.mark.parametrize(
    ("start", "length", "expected"),
    [
        (0, None, b"0123456789"),
        (3, None, b"3456789"),
        (3, 4, b"3456"),
        (0, 0, b""),
        (9, 1, b"9"),
        (8, 100, b"89"),
        (10, None, b""),
        (10, 1, b""),
        (1000, None, b""),
        (1000, 5, b""),
    ],
)
def test_a_range_is_cut_at_the_end_of_the_object(store, start, length, expected):
    store.put("digits", [b"0123456789"])
    assert store.get("digits", start=start, length=length) == expected
    assert b"".join(store.stream("digits", start=start, length=length)) == expected


def test_a_negative_range_is_refused(store):
    store.put("digits", [b"0123456789"])
    with pytest.raises(BadRequest):
        store.get("digits", start=-1)
    with pytest.raises(BadRequest):
        store.get("digits", length=-1)


@pytest.mark.parametrize("length", [None, 0, 5])
def test_a_missing_object_is_not_found_and_named(store, length):
    store.put("there/is", [b"x"])
    for key in ("gone", "there", "there/is/not"):
        for ask in (
            lambda key=key: store.get(key, length=length),
            lambda key=key: list(store.stream(key, length=length)),
            lambda key=key: store.head(key),
            lambda key=key: store.copy(key, "elsewhere"),
        ):
            with pytest.raises(NotFound, match=f"there is no object '{key}'"):
                ask()
    assert listed(store) == ["there/is"]


def test_head_tells_size_and_a_time_near_now(store):
    before = datetime.now(UTC) - timedelta(seconds=2)  # S3 says whole seconds
    store.put("key", [b"12345"])
    info = store.head("key")
    assert (info.key, info.size) == ("key", 5)
    assert before <= info.modified_at <= datetime.now(UTC) + timedelta(seconds=1)


def test_a_copy_is_an_object_of_its_own(store):
    store.put("from/here", [b"first"])
    store.copy("from/here", "to/there")
    store.put("from/here", [b"second"])
    assert store.get("to/there") == b"first"
    assert listed(store) == ["from/here", "to/there"]


@pytest.mark.parametrize("key", ODD_KEYS)
def test_an_odd_key_is_kept_exactly(store, key):
    store.put(key, [key.encode()])
    store.copy(key, key + ".copy")
    assert store.get(key) == store.get(key + ".copy") == key.encode()
    assert store.head(key).key == key
    assert listed(store) == listed(store, key) == [key, key + ".copy"]


@pytest.mark.parametrize(
    "key",
    [
        "",
        "/",
        "/a",
        "a/",
        "a//b",
        ".",
        "..",
        "a/../b",
        "../a",
        "a/..",
        "./a",
        "a\0b",
        "a\nb",
        "a\\b",
        "\ud800",
        "x" * 1025,
    ],
)
def test_a_key_that_might_be_altered_or_escape_is_refused(store, key):
    for ask in (
        lambda: store.put(key, [b"x"]),
        lambda: store.get(key),
        lambda: list(store.stream(key)),
        lambda: store.head(key),
        lambda: store.copy(key, "good"),
        lambda: store.copy("good", key),
    ):
        with pytest.raises(BadRequest):
            ask()
    assert listed(store) == []


def test_a_body_of_64_mib_passes_through_flat_memory(store, uri):
    if uri.startswith("memory:"):
        pytest.skip("memory is where this store keeps its objects")
    sent, got = hashlib.sha256(), hashlib.sha256()

    def body():
        for number in range(256):
            chunk = number.to_bytes(2, "big") * (MIB // 8)
            sent.update(chunk)
            yield chunk

    store.put("warm", [b"x"])
    with peak_memory() as grown:
        assert store.put("big", body()) == 64 * MIB
        largest = 0
        for chunk in store.stream("big"):
            got.update(chunk)
            largest = max(largest, len(chunk))
    assert got.digest() == sent.digest()
    assert largest <= 8 * MIB
    assert store.head("big").size == 64 * MIB
    assert store.get("big", start=40 * MIB - 1, length=2) == (159).to_bytes(2, "big")[1:] + (160).to_bytes(2, "big")[:1]
    # two parts of 16 MiB are on their way while a third fills; the whole body would be 64 and more
    assert max(grown) < 60 * MIB


def test_a_body_that_fails_leaves_nothing_at_the_key(store):
    def failing(size, error):
        yield b"x" * size
        raise error

    for size in (10, 40 * MIB):
        for error in (
            RuntimeError("in the middle"),
            ValueError("odd"),
            FileNotFoundError("elsewhere"),
            OSError(28, "full"),
        ):
            with pytest.raises(type(error)) as raised:
                store.put("key", failing(size, error))
            assert raised.value is error
            assert listed(store) == []
    store.put("key", [b"before"])
    with pytest.raises(RuntimeError):
        store.put("key", failing(10, RuntimeError()))
    assert store.get("key") == b"before"
    assert listed(store) == ["key"]


def test_a_body_may_come_from_the_store_itself_however_long(store):
    store.put("key", [b"x" * (20 * MIB), b"y"])
    assert store.put("copy", store.stream("key")) == 20 * MIB + 1
    assert store.get("copy") == store.get("key")


def test_a_stream_never_mixes_two_versions(store):
    old, new = [bytes([number]) * (20 * MIB) for number in (1, 2)]
    store.put("key", [old])
    stream = store.stream("key")
    first = next(stream)
    store.put("key", [new])
    try:
        rest = b"".join(stream)
    except StorageFailed:
        return  # told, which is as good
    assert first + rest == old


def test_concurrent_puts_to_one_key_leave_one_whole_body(store):
    bodies = [bytes([65 + number]) * (300_000 + number) for number in range(6)]
    start = threading.Barrier(len(bodies) + 1)
    done = threading.Event()
    seen = set()

    def write(body):
        start.wait()
        for _ in range(3):
            store.put("key", [body[at : at + 50_000] for at in range(0, len(body), 50_000)])

    def read():
        start.wait()
        while not done.is_set():
            try:
                seen.add(store.get("key"))
            except NotFound:
                time.sleep(0.001)

    with ThreadPoolExecutor(len(bodies) + 1) as threads:
        reader = threads.submit(read)
        for each in [threads.submit(write, body) for body in bodies]:
            each.result()
        done.set()
        reader.result()
    assert seen <= set(bodies)
    assert store.get("key") in bodies
    assert listed(store) == ["key"]


def test_a_store_opened_again_by_its_uri_is_the_same(store):
    store.put("key", [b"here"])
    assert open_store(store.uri).get("key") == b"here"
    assert open_store(store.uri).uri == store.uri


def test_a_pickled_store_is_the_same_or_refuses(store, uri):
    store.put("key", [b"here"])
    if uri.startswith("memory:"):
        with pytest.raises(BadRequest, match="cannot be sent"):
            pickle.dumps(store)
    else:
        assert pickle.loads(pickle.dumps(store)).get("key") == b"here"


class peak_memory:  # noqa: N801 - reads as a function
    """How much this process grew inside the block, sampled."""

    def __enter__(self):
        self.grown, self._done = [0], threading.Event()
        base = resident()

        def watch():
            while not self._done.wait(0.005):
                self.grown.append(resident() - base)

        self._thread = threading.Thread(target=watch)
        self._thread.start()
        return self.grown

    def __exit__(self, *_):
        self._done.set()
        self._thread.join()


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_a_new_object_is_put_once_and_never_replaced(store):
    assert store.put_new("journal/1", b"first")
    assert not store.put_new("journal/1", b"second")
    store.put("other", [b"by a plain put"])
    assert not store.put_new("other", b"new")
    assert store.get("journal/1") == b"first"
    assert store.get("other") == b"by a plain put"
    assert listed(store) == ["journal/1", "other"]  # no trace of those that came too late


def test_of_many_who_put_a_new_object_at_once_one_succeeds(store):
    with ThreadPoolExecutor(8) as pool:
        bodies = [f"by {number}".encode() for number in range(16)]
        won = list(pool.map(lambda body: store.put_new("journal/1", body), bodies))
    assert won.count(True) == 1
    assert store.get("journal/1") == bodies[won.index(True)]
