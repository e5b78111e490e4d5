"""A listing is believed only if it keeps its promise."""

import socket

import pyarrow as pa
import pytest
from obstore.exceptions import GenericError

from desilt.errors import StorageFailed
from desilt.objects import cloud_listing
from desilt.objects.store import BATCH_ROWS, LISTING, batches


def page(*keys):
    times = pa.array([0] * len(keys), pa.timestamp("us", tz="UTC"))
    return pa.record_batch({"path": list(keys), "last_modified": times, "size": pa.array([1] * len(keys), pa.uint64())})


@pytest.fixture
def served(monkeypatch):
    """A bucket that answers with these pages, whatever it is asked."""
    asked = []

    def serve(*some):
        def pages(_client, folder, start):
            for number, each in enumerate(some):
                asked.append((folder, start, number))
                yield each

        monkeypatch.setattr(cloud_listing, "pages", pages)
        return asked

    return serve


def keys(*args):
    return [key for batch in cloud_listing.flat(None, *args) for key in batch.column("key").to_pylist()]


@pytest.mark.parametrize(
    "some",
    [
        [page("r/a/x", "r/a-b")],  # a folder first: SeaweedFS, Azure's hierarchical namespace
        [page("r/a"), page("r/a-b"), page("r/a")],  # `a/`, told as `a`
        [page("r/a", "r/b"), page("r/b", "r/c")],  # a page told twice
        [page("r/b"), page("r/a")],
    ],
)
def test_a_listing_out_of_order_is_refused(served, some):
    served(*some)
    with pytest.raises(StorageFailed, match=r"out of byte order, .* set DESILT_LISTING=walk"):
        keys("r/", "", "")


def test_keys_beside_the_root_are_left_out(served):
    served(page("r", "r-/x", "r/a", "r/b", "r0"))
    assert keys("r/", "", "") == ["a", "b"]


def test_pages_behind_the_prefix_are_not_fetched(served):
    asked = served(page("r/a1", "r/a2"), page("r/a3", "r/b1"), page("r/b2"))
    assert keys("r/", "a", "a1") == ["a2", "a3"]
    assert [number for _, _, number in asked] == [0, 1]


@pytest.mark.parametrize(
    ("prefix", "after", "start"),
    [
        ("", "", ""),
        ("chunks/", "", ""),
        ("chunks/B", "", "chunks/A\ufffd"),
        ("chunks/0", "", "chunks/.\ufffd"),
        ("chunks/B", "chunks/Bx", "chunks/Bx"),
        ("chunks/B", "a", "chunks/A\ufffd"),
        ("é", "", ""),
        ("a ", "", ""),
    ],
)
def test_a_slice_of_a_folder_starts_just_before_itself(prefix, after, start):
    assert cloud_listing.offset(prefix, after) == start
    assert start < prefix or start == after


def test_small_batches_are_put_together_and_order_is_kept():
    rows = [(f"{number:06}", number, 0) for number in range(3 * BATCH_ROWS + 10)]
    small = [batch.slice(at, 100) for batch in batches(rows) for at in range(0, batch.num_rows, 100)]
    regrouped = list(cloud_listing.regrouped(small))
    assert pa.Table.from_batches(regrouped, LISTING).column("key").to_pylist() == [row[0] for row in rows]
    assert all(0 < batch.num_rows <= BATCH_ROWS for batch in regrouped)
    assert len(regrouped) <= 8
    assert list(cloud_listing.regrouped([])) == list(cloud_listing.regrouped([small[0][:0]])) == []


def test_a_server_that_is_slow_to_say_what_it_is_is_not_taken_for_another(monkeypatch):
    """One that lists in another order would lose objects."""
    monkeypatch.delenv("DESILT_LISTING", raising=False)
    monkeypatch.setattr(cloud_listing, "ANSWER_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(StorageFailed, match="does not say what it is"):
            cloud_listing.must_walk("s3")


def test_a_server_that_forgets_to_say_how_to_go_on_is_asked_for_the_rest(monkeypatch):
    """Some know only the older way to list: they say that there is more, and obstore hears that this is the end."""
    there = [f"r/{number:05d}" for number in range(3000)]
    asked = []

    def pages(_client, _folder, start):
        asked.append(start)
        if some := [key for key in there if key > start][:1000]:
            yield page(*some)

    monkeypatch.setattr(cloud_listing, "pages", pages)
    assert keys("r/", "", "") == [key.removeprefix("r/") for key in there]
    assert asked == ["r/", "r/00999", "r/01999", "r/02999"]


def test_one_whose_last_page_is_not_full_is_not_asked_again(monkeypatch):
    asked = []

    def pages(_client, _folder, start):
        asked.append(start)
        yield page("r/a", "r/b")

    monkeypatch.setattr(cloud_listing, "pages", pages)
    assert keys("r/", "", "") == ["a", "b"]
    assert asked == ["r/"]


def test_a_page_that_is_cut_off_is_asked_for_from_the_last_key_that_came(monkeypatch):
    monkeypatch.setattr(cloud_listing, "PAUSES", (0.0, 0.0))
    asked = []

    def pages(_client, _folder, start):
        asked.append(start)
        if start == "r/b":
            yield page("r/c")
            return
        yield page("r/a", "r/b")
        raise GenericError("Generic S3 error: Error getting list response body: HTTP error")

    monkeypatch.setattr(cloud_listing, "pages", pages)
    assert keys("r/", "", "") == ["a", "b", "c"]
    assert asked == ["r/", "r/b"]


def test_one_that_never_comes_whole_is_an_error_and_not_the_end(monkeypatch):
    monkeypatch.setattr(cloud_listing, "PAUSES", (0.0, 0.0))
    asked = []

    def pages(_client, _folder, start):
        asked.append(start)
        if start == "r/":
            yield page("r/a")
        raise GenericError("Generic S3 error: Got invalid list response: unexpected `Event::Eof`")

    monkeypatch.setattr(cloud_listing, "pages", pages)
    with pytest.raises(GenericError):
        keys("r/", "", "")
    assert asked == ["r/", "r/a", "r/a"]


def test_what_obstore_has_tried_again_by_itself_is_not(monkeypatch):
    asked = []

    def pages(_client, _folder, start):
        asked.append(start)
        yield from ()
        raise GenericError("Generic S3 error: Error performing GET in 9s, after 8 retries - HTTP error: error sending")

    monkeypatch.setattr(cloud_listing, "pages", pages)
    with pytest.raises(GenericError):
        keys("r/", "", "")
    assert asked == ["r/"]


def test_where_it_can_be_asked_what_is_behind_the_last_page_a_short_one_is_not_the_end(monkeypatch):
    """What comes in place of a page may be an error, and look like an empty one."""
    monkeypatch.setattr(cloud_listing, "PAUSES", (0.0, 0.0))
    there, is_error = [f"r/{name}" for name in "abcde"], [True, False, True, True, False, False]

    def pages(_client, _folder, start):
        if not is_error.pop(0):
            yield page(*[key for key in there if key > start][:2])

    def behind(folder, start):
        assert folder == "r/"
        return [key for key in there if key > start]

    monkeypatch.setattr(cloud_listing, "pages", pages)
    found = [key for one in cloud_listing.flat(None, "r/", "", "", behind=behind) for key in one["key"].to_pylist()]
    assert found == ["a", "b", "c", "d", "e"]
    assert is_error == []


def test_a_listing_that_never_tells_what_is_behind_its_last_page_is_refused(monkeypatch):
    monkeypatch.setattr(cloud_listing, "PAUSES", (0.0, 0.0))
    monkeypatch.setattr(cloud_listing, "pages", lambda *_: iter([]))
    asked = []

    def behind(*where):
        asked.append(where)
        return ["r/a"]

    with pytest.raises(StorageFailed, match="has 'r/a', and does not list it in 'r'"):
        list(cloud_listing.flat(None, "r/", "", "", behind=behind))
    assert asked == [("r/", "r/")] * 3


@pytest.fixture
def levels(monkeypatch):
    """A bucket of these keys, whose server tells a thousand names of a folder, and no more."""

    def serve(*keys, come=()):
        there = sorted(keys)

        def level(_client, folder, *, return_arrow):
            assert return_arrow
            names = [key.removeprefix(folder or "") for key in there]
            files = [folder + name for name in names if "/" not in name]
            inner = sorted({folder + name.partition("/")[0] for name in names if "/" in name})
            told = sorted([*files, *inner])[:1000]
            there.extend(come)
            return {
                "objects": page(*(one for one in files if one in told)),
                "common_prefixes": [one for one in inner if one in told],
            }

        def pages(_client, _folder, start):
            if some := [key for key in sorted(there) if key > start][:1000]:
                yield page(*some)

        monkeypatch.setattr(cloud_listing, "PAUSES", (0.0, 0.0))
        monkeypatch.setattr(cloud_listing.obstore, "list_with_delimiter", level)
        monkeypatch.setattr(cloud_listing, "pages", pages)

    return serve


def names(found):
    return sorted([*pa.table(found["objects"])["path"].to_pylist(), *found["common_prefixes"]])


@pytest.mark.parametrize("name", ["r/{:05d}", "r/{:05d}/x"])
def test_a_folder_of_which_a_server_tells_only_the_first_page_is_refused(levels, name):
    """What is not listed would be taken for what is not there: the journal's newest records, say."""
    levels(*(name.format(number) for number in range(1001)))
    with pytest.raises(StorageFailed, match="has 'r/01000', and does not list it in 'r/'"):
        cloud_listing.one_level(None, "r/")


@pytest.mark.parametrize("name", ["r/{:05d}", "r/{:05d}/x", "r/{:05d}/\U0001f600"])
@pytest.mark.parametrize("count", [0, 1, 999, 1000])
def test_one_that_is_told_whole_is_not(levels, name, count):
    levels(*(name.format(number) for number in range(count)))
    assert len(names(cloud_listing.one_level(None, "r/"))) == count


def test_a_key_that_comes_meanwhile_is_no_sign_of_that(levels):
    levels(*(f"r/{number:05d}/x" for number in range(1000)), come=["r/00999/y", "r/00999/\U0001f600"])
    assert len(names(cloud_listing.one_level(None, "r/"))) == 1000


def test_what_a_store_lists_in_an_order_of_its_own_behind_the_last_name_is_missing_all_the_same(monkeypatch):
    """``a/`` stands where ``a`` does there, before ``a-b``, though its bytes are behind: the listing ended between."""
    told = {"objects": page(), "common_prefixes": ["r/a"]}
    monkeypatch.setattr(cloud_listing, "PAUSES", (0.0, 0.0))
    monkeypatch.setattr(cloud_listing.obstore, "list_with_delimiter", lambda *_, **__: told)
    with pytest.raises(StorageFailed, match="has 'r/a-b', and does not list it in 'r/'"):
        cloud_listing.one_level(None, "r/", lambda *_: ["r/a-b"])
    assert cloud_listing.one_level(None, "r/", lambda *_: ["r/a/x", "r"]) == told  # the folder's own name is no key
