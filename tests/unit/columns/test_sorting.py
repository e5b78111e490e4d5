"""The order of texts is that of their bytes, whatever their length and however alike they are."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from desilt.columns import sorting
from desilt.columns.sorting import in_order

ALIKE = st.integers(0, 20).flatmap(
    lambda length: st.lists(st.text("abø\U0001f4be", min_size=length, max_size=length), max_size=60)
)
WORDS = st.lists(st.tuples(*[st.sampled_from(["aaaaaaaa", "abcdefgh", "hgfedcba"])] * 4).map("".join), max_size=60)
RAGGED = st.lists(st.text("ab/", max_size=20), max_size=60)


def expected(texts):
    return sorted(range(len(texts)), key=lambda place: texts[place].encode())


@given(texts=st.one_of(ALIKE, WORDS, RAGGED))
def test_it_is_the_order_of_bytes_and_equal_ones_stay_as_they_lie(texts):
    assert in_order(pa.array(texts, pa.string())).tolist() == expected(texts)


@given(bytes_=st.lists(st.binary(min_size=12, max_size=12), max_size=60))
def test_bytes_of_every_value_count(bytes_):
    assert in_order(pa.array(bytes_, pa.binary())).tolist() == sorted(range(len(bytes_)), key=bytes_.__getitem__)


@pytest.mark.parametrize("name", ["{:010d}", "{:d}", "same", "{:040d}"])
def test_of_many_addresses_too(name, monkeypatch):
    monkeypatch.setattr(sorting, "AT_ONCE", 999)
    chance = np.random.default_rng(1)
    rows = chance.integers(0, 3_000, 5_000).tolist()  # some twice
    texts = [f"branches/b{row % 7}/{row % 11:02d}_p/" + name.format(row) for row in rows]
    assert in_order(pa.array(texts)).tolist() == expected(texts)


def test_a_part_of_an_array_has_places_of_its_own():
    texts = pa.array(["zz", "b", "a", "c", "zz"])
    assert in_order(texts.slice(1, 3)).tolist() == [1, 0, 2]


def test_nothing_has_an_order():
    assert in_order(pa.array([], pa.string())).tolist() == []
