"""One contract for delete_many and move_many: an outcome for each key, and nothing else is touched."""

import shutil
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from desilt.errors import BadRequest
from desilt.objects import Outcome, Result, open_store
from desilt.objects.opening import dated

REMOVED, GONE, FAILED = Result
ODD_KEYS = [
    *("a b", " a", "a ", "a  b", "a+b", "a%20b", "a%2Fb", "a%", "ünï/çødé", "日本/𝄞", "a#b", "a?b=c&d", "a&amp;b"),
    *("a<b>", "]]>", "a~b", "a*b", "a:b", "a'\"b", "a[{b}]", "…/.x", "a,b", "a=b", "a;b", "a@b", "a!(b)"),
]


def listed(store, prefix=""):
    return [key for batch in store.list(prefix) for key in batch.column("key").to_pylist()]


def put_all(store, keys):
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda key: store.put(key, [key.encode()]), keys))


def tells(uri):
    """Whether the store says that a deleted key was not there."""
    return not uri.startswith("s3:")


@pytest.fixture(params=["delete_many", "move_many"])
def take(request, store):
    """Both ways to take objects away, as a function of their keys."""
    if request.param == "delete_many":
        return store.delete_many
    return lambda keys: store.move_many([(key, f"away/{key}") for key in keys])


def test_each_key_has_its_outcome_in_the_order_of_the_keys(store, take):
    put_all(store, ["a/1", "a/2", "b/1", "c"])
    assert take(["c", "a/2", "b/1"]) == [Outcome("c", REMOVED), Outcome("a/2", REMOVED), Outcome("b/1", REMOVED)]
    assert [key for key in listed(store) if not key.startswith("away/")] == ["a/1"]
    assert store.get("a/1") == b"a/1"


def test_no_keys_have_no_outcomes(store, take):
    store.put("a", [b"x"])
    assert take([]) == []
    assert listed(store) == ["a"]


def test_a_missing_object_is_gone_where_the_store_tells(store, uri):
    put_all(store, ["a/1", "a/2", "b"])
    keys = ["a/3", "a/1", "no/such/folder", "a", "b/under/an/object"]
    # of those that were there Azure cannot tell, once a bulk call failed for one that was not
    unsure = {REMOVED, GONE} if uri.startswith("az:") else {REMOVED}
    outcomes = store.delete_many(keys)
    assert [each.key for each in outcomes] == keys
    assert outcomes[1].result in unsure
    assert {each.result for each in outcomes if each.key != "a/1"} == {GONE if tells(uri) else REMOVED}
    assert listed(store) == ["a/2", "b"]


def test_to_delete_again_does_no_harm(store, uri):
    put_all(store, ["a/1", "a/2"])
    assert store.delete_many(["a/1"]) == [Outcome("a/1", REMOVED)]
    assert store.delete_many(["a/1"]) == [Outcome("a/1", GONE if tells(uri) else REMOVED)]
    assert listed(store) == ["a/2"]


def test_a_key_given_twice_is_removed_once(store, take):
    put_all(store, ["a", "b"])
    assert [each.result for each in take(["a", "b", "a", "a"])] == [REMOVED, REMOVED, GONE, GONE]


def test_odd_names_are_taken_exactly(store, take):
    kept = ["b", "%20", "a%2520b"]
    if not store.uri.startswith("file:"):
        kept += ["a", "ü"]
    if not store.uri.startswith("s3:"):  # SeaweedFS may lose an object where another has a folder (its issue 10910)
        kept += ["a/b"]
    put_all(store, ODD_KEYS + kept)
    assert take(ODD_KEYS) == [Outcome(key, REMOVED) for key in ODD_KEYS]
    assert [key for key in listed(store) if not key.startswith("away/")] == sorted(kept)


def test_2500_keys_in_one_call(store):
    keys = [f"data/{number % 3}/{number:05}" for number in range(2510)]
    put_all(store, keys)
    assert store.delete_many(keys[:2500]) == [Outcome(key, REMOVED) for key in keys[:2500]]
    assert listed(store) == sorted(keys[2500:])
    assert 256 <= store.delete_batch <= 1000


@pytest.mark.parametrize("bad", ["", "/a", "a//b", "../a", "a/..", "a\nb", "a\\b", "x" * 1025])
def test_a_bad_key_among_good_ones_removes_nothing(store, bad):
    put_all(store, ["a", "b"])
    for ask in (
        lambda: store.delete_many(["a", bad, "b"]),
        lambda: store.delete_many(["a", "b", bad]),
        lambda: store.move_many([("a", "c"), (bad, "d")]),
        lambda: store.move_many([("a", "c"), ("b", bad)]),
    ):
        with pytest.raises(BadRequest):
            ask()
    assert listed(store) == ["a", "b"]


def test_a_move_onto_itself_is_refused_before_anything_moves(store):
    put_all(store, ["a", "b"])
    with pytest.raises(BadRequest, match="'b' onto itself"):
        store.move_many([("a", "c"), ("b", "b")])
    assert listed(store) == ["a", "b"]


def test_nothing_outside_the_root_is_taken(store, uri):
    if uri.startswith("memory:"):
        pytest.skip("a store in memory has no prefix")
    put_all(store, ["in/a", "a", "ina", "in/b"])
    inner = open_store(f"{uri}/in")
    assert [each.result for each in inner.delete_many(["a"])] == [REMOVED]
    assert [each.result for each in inner.move_many([("b", "c")])] == [REMOVED]
    assert listed(store) == ["a", "in/c", "ina"]


def test_a_moved_object_has_its_bytes_at_the_second_key_only(store):
    put_all(store, ["a/1", "a/2", "b"])
    assert store.move_many([("a/1", "away/x/1"), ("b", "away/b")]) == [Outcome("a/1", REMOVED), Outcome("b", REMOVED)]
    assert listed(store) == ["a/2", "away/b", "away/x/1"]
    assert (store.get("away/x/1"), store.get("away/b"), store.get("a/2")) == (b"a/1", b"b", b"a/2")


def test_an_empty_object_moves_as_any_other(store):
    store.put("a", [])
    assert store.move_many([("a", "b")]) == [Outcome("a", REMOVED)]
    assert store.get("b") == b""
    assert listed(store) == ["b"]


def test_a_cheap_move_keeps_the_time(store):
    if not store.moves_cheaply:
        pytest.skip("the copy is an object of its own, with a time of its own")
    then = datetime(1998, 1, 20, 12, 30, 45, 123456, tzinfo=UTC)
    dated(store, lambda: then).put("a", [b"x"])
    store.move_many([("a", "far/away/b")])
    assert store.head("far/away/b").modified_at == then


def test_where_nothing_is_nothing_moves(store):
    put_all(store, ["a/1", "b"])
    assert store.move_many([("a/2", "b"), ("a/1", "c"), ("no/such", "d/e")]) == [
        Outcome("a/2", GONE),
        Outcome("a/1", REMOVED),
        Outcome("no/such", GONE),
    ]
    assert listed(store) == ["b", "c"]
    assert store.get("b") == b"b"


def test_what_was_at_the_second_key_is_replaced(store):
    store.put("a", [b"new"])
    store.put("b", [b"the old one"])
    assert store.move_many([("a", "b")]) == [Outcome("a", REMOVED)]
    assert store.get("b") == b"new"
    assert listed(store) == ["b"]


def test_moves_happen_in_their_order(store):
    put_all(store, ["a", "b"])
    outcomes = store.move_many([("a", "c"), ("b", "a"), ("c", "d"), ("b", "e")])
    assert [each.result for each in outcomes] == [REMOVED, REMOVED, REMOVED, GONE]
    assert {key: store.get(key) for key in listed(store)} == {"a": b"b", "d": b"a"}


def test_a_move_cut_off_half_way_is_finished_by_doing_it_again(store):
    store.put("a", [b"x"])
    store.copy("a", "b")
    assert store.move_many([("a", "b")]) == [Outcome("a", REMOVED)]
    assert store.get("b") == b"x"
    assert listed(store) == ["b"]


def test_many_moves_in_one_call(store):
    keys = [f"data/{number:03}" for number in range(100)]
    put_all(store, keys)
    assert store.move_many([(key, f"away/{key}") for key in keys]) == [Outcome(key, REMOVED) for key in keys]
    assert listed(store) == [f"away/{key}" for key in keys]
    assert all(store.get(f"away/{key}") == key.encode() for key in keys[::10])


def test_a_store_that_is_gone_fails_for_each_key_and_does_not_raise(store, uri, take):
    if uri.startswith("memory:"):
        pytest.skip("memory does not go away")
    keys = [f"data/{number}" for number in range(40)]
    if uri.startswith("file:"):
        shutil.rmtree(Path(store.root))
        outcomes, fact = take(keys), "create it, or mount"
    else:
        elsewhere = open_store(f"{uri[:2]}://{uuid.uuid4().hex}/root")
        outcomes = [
            *elsewhere.delete_many(keys[:20]),
            *elsewhere.move_many([(key, f"away/{key}") for key in keys[20:]]),
        ]
        fact = "there is no bucket"
    assert [(each.key, each.result) for each in outcomes] == [(key, FAILED) for key in keys]
    assert all(fact in each.detail and "\n" not in each.detail for each in outcomes)


def test_keys_that_are_not_ours_fail_for_each_key(uri, monkeypatch):
    if not uri.startswith("s3:"):
        pytest.skip("only S3 is asked with a wrong secret here")
    open_store(uri).put("a", [b"x"])
    with monkeypatch.context() as patched:
        patched.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
        store = open_store(uri)
        outcomes = [*store.delete_many(["a", "b"]), *store.move_many([("a", "c")])]
    assert [each.result for each in outcomes] == [FAILED] * 3
    assert all("was not allowed; check the keys" in each.detail for each in outcomes)
    assert listed(open_store(uri)) == ["a"]
