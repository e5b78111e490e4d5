"""One contract for replacing an object only if it is still what was read."""

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from careless import Careless
from desilt.errors import NotFound, StorageFailed
from desilt.objects import conditional, open_store
from desilt.objects.promises import check_put_new, check_put_over
from desilt.testing.faults import Proxy
from unsteady_s3 import unsteady


@pytest.fixture
def puts(store):
    if store.conditional is None:
        assert store.uri.startswith("file://")
        pytest.skip("a directory cannot compare and put in one")
    return store.conditional


def test_what_is_still_as_it_was_read_is_replaced(store):
    store.put("repo", [b"first"])
    seen = conditional.read(store, "repo")
    assert (seen.key, seen.body) == ("repo", b"first")
    assert conditional.put_over(store, seen, b"second")
    assert store.get("repo") == b"second"


@pytest.mark.parametrize("now", [b"other", b"first!"])
def test_what_somebody_has_replaced_stays_theirs(store, now):
    store.put("repo", [b"first"])
    seen = conditional.read(store, "repo")
    store.put("repo", [now])
    assert not conditional.put_over(store, seen, b"second")
    assert store.get("repo") == now


def test_what_is_gone_does_not_come_back(store):
    store.put("repo", [b"first"])
    seen = conditional.read(store, "repo")
    store.delete_many(["repo"])
    assert not conditional.put_over(store, seen, b"second")
    with pytest.raises(NotFound):
        store.get("repo")


def test_nothing_can_be_read_that_is_not_there(store):
    with pytest.raises(NotFound, match="there is no object 'repo'"):
        conditional.read(store, "repo")


def test_what_was_replaced_once_is_not_replaced_again_by_the_same_look(puts, store):
    store.put("repo", [b"first"])
    seen = puts.read("repo")
    assert puts.put_over(seen, b"second")
    assert not puts.put_over(seen, b"third")
    assert puts.put_over(puts.read("repo"), b"third")


def test_of_many_who_replace_it_at_once_one_succeeds(puts, store):
    store.put("repo", [b"first"])
    seen, gate = puts.read("repo"), threading.Barrier(8)

    def attempt(number):
        gate.wait()
        return puts.put_over(seen, b"by %d" % number)

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(attempt, range(8)))
    assert won.count(True) == 1
    assert store.get("repo") == b"by %d" % won.index(True)


def test_a_large_object_is_read_whole_and_replaced(store):
    large = bytes(range(256)) * (40 << 12)
    store.put("repo", [large])
    seen = conditional.read(store, "repo")
    assert seen.body == large
    assert conditional.put_over(store, seen, large[:-1])
    assert store.get("repo") == large[:-1]


class Loses:
    """Puts whose answers are lost: all who ask hear is ``answer``, a failure or a refusal."""

    def __init__(self, real, answer, *, before=False):
        self.real, self.answer, self.before = real, answer, before

    def read(self, key):
        return self.real.read(key)

    def put_over(self, seen, body):
        if not self.before:
            assert self.real.put_over(seen, body)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Losing(Proxy):
    def __init__(self, store, answer, **more):
        super().__init__(store, threading.Lock)
        self.conditional = Loses(store.conditional, answer, **more)


LOST = StorageFailed("the connection was lost")


@pytest.mark.parametrize("answer", [LOST, False], ids=["lost", "told of a second try"])
def test_whoever_did_it_knows_though_the_answer_was_lost(puts, store, answer):
    store.put("repo", [b"first"])
    assert conditional.put_over(Losing(store, answer), puts.read("repo"), b"second")
    assert store.get("repo") == b"second"


def test_what_failed_and_is_not_there_is_an_error(puts, store):
    store.put("repo", [b"first"])
    with pytest.raises(StorageFailed, match="connection was lost"):
        conditional.put_over(Losing(store, LOST, before=True), puts.read("repo"), b"second")
    assert store.get("repo") == b"first"


def test_a_mark_that_was_never_told_replaces_nothing(s3_bucket, monkeypatch):
    """A server that does not compare would take it; so we know that this one does."""
    bucket, env = s3_bucket
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    store = open_store(f"{bucket}/{uuid.uuid4().hex}")
    store.put("repo", [b"first"])
    seen = store.conditional.read("repo")
    wrong = replace(seen, mark={**seen.mark, "e_tag": '"0123456789abcdef0123456789abcdef"'})
    assert not store.conditional.put_over(wrong, b"second")
    assert store.get("repo") == b"first"


def test_an_answer_that_a_server_lost_is_found_out(s3_bucket, s3_server, monkeypatch):
    bucket, env = s3_bucket
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    with unsteady(s3_server.endpoint) as between:
        monkeypatch.setenv("AWS_ENDPOINT_URL", between.endpoint)
        store = open_store(f"{bucket}/{uuid.uuid4().hex}")
        store.put("repo", [b"first"])
        seen = conditional.read(store, "repo")
        between.loses["PUT object"] = 1
        assert conditional.put_over(store, seen, b"second")
        assert between.loses["PUT object"] == 0
        assert store.get("repo") == b"second"


def test_a_store_that_keeps_its_promises_passes_as_often_as_it_is_asked(store):
    for _ in range(2):
        check_put_new(store, "probe")
        check_put_over(store, "probe")


def test_many_who_ask_at_once_are_in_nobodys_way(store):
    with ThreadPoolExecutor(8) as threads:
        for asked in [
            threads.submit(check, store, "probe") for check in (check_put_new, check_put_over) for _ in "1234"
        ]:
            asked.result()


def test_a_store_that_never_looks_at_conditions_is_found_out(puts, store):  # noqa: ARG001
    with pytest.raises(StorageFailed, match="If-None-Match"):
        check_put_new(Careless(store), "probe")
    with pytest.raises(StorageFailed, match="If-Match"):
        check_put_over(Careless(store), "probe")
