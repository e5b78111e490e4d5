"""A page of a listing by column is the page row by row; what is odd about one is left to whoever reads rows."""

import json
import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from desilt.lakefs import inquiry
from desilt.lakefs.inquiry import each_once
from desilt.lakefs.namespace import Namespace
from desilt.lakefs.pages import by_column

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAMES = st.sampled_from(["path", "physical_address", "results", "pagination", "a", "\u00e9"])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda some: st.lists(some, max_size=3) | st.dictionaries(NAMES, some, max_size=3),
    max_leaves=6,
)
MORE = st.dictionaries(st.sampled_from(["metadata", "size_bytes", "content_type", "mtime", "new"]), ANYTHING)


@st.composite
def entries(draw):
    known = {"path": draw(TEXT), "physical_address": draw(TEXT.filter(bool)), "path_type": "object", "checksum": "c"}
    return {**draw(MORE), **known}


@st.composite
def pages(draw):
    rows, more = draw(st.lists(entries(), max_size=5)), draw(st.booleans())
    pagination = {"has_more": more, "next_offset": draw(TEXT), "results": draw(st.integers(0, 9)), "max_per_page": 1000}
    return {"results": rows, "pagination": pagination, **draw(st.dictionaries(st.just("else"), ANYTHING))}


@given(page=pages(), ascii_only=st.booleans(), indent=st.sampled_from([None, 1]), tail=st.sampled_from(["", "\n"]))
def test_a_plain_page_is_read_as_it_is(page, ascii_only, indent, tail):
    raw = (json.dumps(page, ensure_ascii=ascii_only, indent=indent) + tail).encode()
    places, end = by_column(raw)
    paths = [row["path"] for row in page["results"]]
    assert places.paths.to_pylist() == paths
    assert places.addresses.to_pylist() == [row["physical_address"] for row in page["results"]]
    assert (end.given, end.counted) == (len(paths), page["pagination"]["results"])
    assert (end.last, end.more) == ([*paths, ""][len(paths) - 1], page["pagination"]["has_more"])
    assert end.known == ([path for path in paths if "\ufffd" not in path] or [""])[-1]
    assert end.following == page["pagination"]["next_offset"]


ENTRY = {"path": "a", "path_type": "object", "physical_address": "s3://b/a", "checksum": "c"}
PAGE = {"results": [ENTRY], "pagination": {"has_more": False, "next_offset": "", "results": 1}}
PLAIN = json.dumps(PAGE)


def with_entry(**other):
    row = {name: told for name, told in (ENTRY | other).items() if told != "left out"}
    return json.dumps({**PAGE, "results": [row]})


def with_pagination(**other):
    told = {name: one for name, one in (PAGE["pagination"] | other).items() if one != "left out"}
    return json.dumps({**PAGE, "pagination": told})


ODD = {
    "nothing": "",
    "no JSON": "<html>",
    "cut off": PLAIN[:-2],
    "null": "null",
    "a list": f"[{PLAIN}]",
    "two answers": PLAIN + PLAIN,
    "an answer to a line": f"{PLAIN}\n{PLAIN}",
    "something behind": PLAIN + "}",
    "no results": json.dumps({"pagination": PAGE["pagination"]}),
    "null for results": json.dumps({**PAGE, "results": None}),
    "no pagination": json.dumps({"results": [ENTRY]}),
    "null for pagination": json.dumps({**PAGE, "pagination": None}),
    "null for a row": json.dumps({**PAGE, "results": [ENTRY, None]}),
    "text for a row": json.dumps({**PAGE, "results": [ENTRY, "a"]}),
    "a path twice": PLAIN.replace('"path": "a"', '"path": "b", "path": "a"'),
    "results twice": PLAIN[:-1] + ', "results": []}',
    "no path": with_entry(path="left out"),
    "null for a path": with_entry(path=None),
    "a number for a path": with_entry(path=7),
    "half a character": with_entry(path="\ud800"),
    "no address": with_entry(physical_address="left out"),
    "null for an address": with_entry(physical_address=None),
    "an empty address": with_entry(physical_address=""),
    "no checksum": with_entry(checksum="left out"),
    "a folder": with_entry(path_type="common_prefix"),
    "no type": with_entry(path_type="left out"),
    "no has_more": with_pagination(has_more="left out"),
    "text for has_more": with_pagination(has_more="true"),
    "no count": with_pagination(results="left out"),
    "a fraction for a count": with_pagination(results=1.5),
    "no offset": with_pagination(next_offset="left out"),
}


def test_the_page_that_is_made_odd_below_is_plain():
    assert by_column(PLAIN.encode()) is not None


@pytest.mark.parametrize("raw", ODD.values(), ids=ODD)
def test_an_odd_page_is_not_read_by_column(raw):
    assert by_column(raw.encode()) is None


@pytest.mark.parametrize("place", [rb'"path": "a', rb'"checksum": "c', rb'"next_offset": "', rb"\{"])
def test_bytes_that_are_no_text_are_not_read_by_column_wherever_they_are(place):
    raw = PLAIN.encode().replace(b'"checksum"', b'"content_type": "x", "checksum"')
    for found in re.finditer(place, raw):
        assert by_column(raw[: found.end()] + b"\xff" + raw[found.end() :]) is None
    assert by_column(raw.replace(b'"x"', b'"\xff"')) is None


@given(known=st.sets(st.integers(0, 50)), others=st.lists(st.lists(st.integers(0, 50)), max_size=9))
def test_what_is_added_up_is_all_of_it_each_once_in_order(known, others):
    some = [np.sort(np.array(one, np.uint64)) for one in others]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inquiry, "TOGETHER", 7)
        found = each_once(np.array(sorted(known), np.uint64), iter(some))
    assert found.dtype == np.uint64
    assert found.tolist() == sorted(known.union(*others))


PLACES = [
    Namespace("s3://b/a"),
    Namespace("local://a", ("local:///var/a", "file:///var/a")),
    Namespace("https://acc.blob.core.windows.net/c/a"),
]
BEGINNINGS = [
    *(
        "s3://b/a/",
        "s3a://b/a/",
        "S3://b/a/",
        "s3://b//a/",
        "s3://b/ab/",
        "local://a/",
        "file:///var/a/",
        "local:///x/",
    ),
    *("https://acc.blob.core.windows.net/c/a/", "abfss://c@acc.dfs.core.windows.net/a/", "https://ACC/c/a/", "", "/"),
]
ENDS = ["x", "/x", "./x", "../x", "%61", "a?b", "", "a/x", "var/a/x", "\u00e9", "x/.", "s3://b/a/x"]


@given(
    place=st.sampled_from(PLACES),
    uris=st.lists(st.tuples(st.sampled_from(BEGINNINGS), st.sampled_from(ENDS)).map("".join), max_size=6),
)
@example(PLACES[0], ["s3://b/a/x", "s3a://b/a/x", "gs://b/a/x"])
@example(PLACES[1], ["local://a/x", "local:///var/a/x", "local:///elsewhere/a/x"])
def test_an_address_is_inside_whatever_comes_beside_it(place, uris):
    alone = [place.inside(pa.array([uri], pa.string()))[0].as_py() for uri in uris]
    assert place.inside(pa.array(uris, pa.string())).to_pylist() == alone
