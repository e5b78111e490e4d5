"""Addresses by the folders they lie in."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from desilt.columns.folders import divided, totals
from desilt.columns.together import together
from desilt.columns.uids import last_seconds_of, seconds_of
from desilt.lake.layout import LAYOUT

NAMES = st.lists(st.text("ab/é", max_size=6))


@pytest.mark.parametrize(
    "addresses",
    [
        [],
        ["a/b/name", "c/other"],
        ["a/b/name", "c/d/more", "x/four"],
        ["no-slash"],
        ["a/b/name", "name"],
        ["a/b/name", "a/b/n/me"],  # as long as the first, and with a slash in it
        ["a/b/name", "/name", "a/nome"],
        ["a/", "b/c"],
        ["é/ü/näm", "é/nom"],
    ],
)
def test_an_address_is_its_folder_and_its_name(addresses):
    folders, names = divided(pa.array(addresses, pa.string()))
    expected = [address.rpartition("/") for address in addresses]
    assert folders.to_pylist() == [folder + slash for folder, slash, _ in expected]
    assert names.to_pylist() == [name for _, _, name in expected]


@given(NAMES)
def test_any_addresses_are_their_folders_and_names(addresses):
    folders, names = divided(pa.array(addresses, pa.string()))
    assert [a + b for a, b in zip(folders.to_pylist(), names.to_pylist(), strict=True)] == addresses
    assert names.to_pylist() == [address.rpartition("/")[2] for address in addresses]


@given(NAMES)
def test_the_middle_of_a_column_is_divided_as_the_whole_is(addresses):
    some = pa.array(["x/y", *addresses, "z"], pa.string()).slice(1, len(addresses))
    assert divided(some)[1].to_pylist() == divided(pa.array(addresses, pa.string()))[1].to_pylist()


def test_what_was_uploaded_to_each_branch():
    folders = pa.array(["branches/a/p/", "branches/b/p/", "branches/a/q/", "elsewhere/"]).dictionary_encode()
    found = totals(folders.take(pa.array([0, 1, 2, 0])), np.array([1, 2, 4, 8]), LAYOUT)
    assert (found.groups, found.objects, found.bytes) == (["a", "b"], [3, 1], [13, 2])


@given(st.lists(st.text("0v/é!", min_size=0, max_size=24)))
def test_the_time_in_an_address_is_that_of_its_last_characters(addresses):
    last = pa.array([address[-20:] for address in addresses], pa.string())
    assert last_seconds_of(pa.array(addresses, pa.string())).tolist() == seconds_of(last).tolist()


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(0, 3))))
def test_counters_add_up_as_with_plus(several):
    found, expected = Counter(), Counter()
    for one in several:
        before = Counter(one)
        found, expected = together(found, before), expected + before
        assert before == Counter(one)
    assert found == expected
    assert dict(found) == dict(expected)
