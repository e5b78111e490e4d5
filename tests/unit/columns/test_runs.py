"""Neighbours that are about the same thing."""

from itertools import groupby

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from desilt.columns.runs import changed_texts, distinct, distinct_texts, runs

ROWS = st.lists(st.tuples(st.integers(0, 5), st.sampled_from([b"", b"a", b"b", b"\xff"]), st.booleans())).map(
    lambda rows: sorted(rows, key=lambda row: row[0])  # of one thing, in any order
)


def columns(rows):
    of, texts, flags = zip(*rows, strict=True) if rows else ((), (), ())
    return runs(np.array(of, np.int64)), pa.array(texts, pa.binary()), np.array(flags, np.bool_)


def pieces(rows):
    return [list(some) for _, some in groupby(enumerate(rows), key=lambda row: row[1][0])]


@given(ROWS)
def test_what_is_asked_of_each_thing_is_asked_of_its_rows(rows):
    of, _, flags = columns(rows)
    found = pieces(rows)
    assert of.lengths.tolist() == [len(some) for some in found]
    assert of.any(flags).tolist() == [any(row[2] for _, row in some) for some in found]
    assert of.most(flags.astype(np.int64)).tolist() == [max(int(row[2]) for _, row in some) for some in found]
    assert of.first(flags).tolist() == [next((at for at, row in some if row[2]), some[0][0]) for some in found]
    assert of.rows_of(of.any(flags)).tolist() == [any(row[2] for _, row in some) for some in found for _ in some]


@given(ROWS)
def test_runs_of_which_no_row_is_left_are_left_out(rows):
    of, _, flags = columns(rows)
    left = of.within(flags)
    assert left.rows == sum(row[2] for row in rows)
    assert left.lengths.tolist() == [count for some in pieces(rows) if (count := sum(row[2] for _, row in some))]


@given(ROWS)
def test_each_thing_has_its_distinct_texts_in_their_order(rows):
    of, texts, _ = columns(rows)
    found = distinct_texts(texts, of).to_pylist()
    assert found == [sorted({row[1] for _, row in some}) for some in pieces(rows)]


@given(st.lists(st.integers(0, 9)))
def test_each_hash_once(values):
    assert distinct(np.array(values, np.uint64)).tolist() == sorted(set(values))


def test_a_text_that_is_missing_is_like_no_other():
    assert changed_texts(pa.array(["a", "a", None, None, "a"])).tolist() == [True, False, True, True, True]
