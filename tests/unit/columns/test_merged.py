"""The rows of one bucket, from many files."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from desilt.cache.ranges import CACHED
from desilt.columns.buckets import Bucket, every, hashed
from desilt.columns.files import Files, put
from desilt.columns.hashing import address_hash
from desilt.columns.merged import Merged
from desilt.errors import NotReadBack
from desilt.objects import open_store

LABELS = [np.array([0, -1, 7], np.int64), np.array([3, 4, -1], np.int64)]  # of the owners of two files
ROW = st.tuples(st.integers(0, 6), st.integers(0, 2), st.sampled_from(["p", "q", "r"]), st.integers(0, 3))
FILES = st.tuples(st.lists(ROW, max_size=8), st.lists(ROW, max_size=8))


def table(rows):
    found = [(f"object-{number}", owner, path.encode(), size, size) for number, owner, path, size in rows]
    return hashed(pa.table([list(column) for column in zip(*found, strict=True)] or [[]] * 5, schema=CACHED))


def written(root, some, buckets=(1, 4)):
    store = open_store(str(root))
    places = enumerate(zip(some, buckets, strict=True))
    return store, [put(store, f"{number}.parquet", table(rows), buckets=count) for number, (rows, count) in places]


@given(FILES, st.sampled_from([1, 2, 8]))
def test_rows_of_all_files_come_in_the_order_of_hashes_and_of_files(tmp_path_factory, some, buckets):
    store, held = written(tmp_path_factory.mktemp("merged"), some)
    expected = [
        (hash_, int(LABELS[number][owner]), size, path)
        for number, rows in enumerate(some)
        for hash_, _, owner, path, size, _ in zip(*(column.to_pylist() for column in table(rows).columns), strict=True)
        if LABELS[number][owner] >= 0
    ]
    found = []
    for bucket in every(buckets):
        rows = Merged(Files(store), held, LABELS, bucket)
        assert rows.known.tolist() == sorted(set(rows.hashes.tolist()))
        texts = rows.texts(np.arange(len(rows.hashes)), ["path"])["path"].to_pylist() if len(rows.hashes) else []
        found += zip(rows.hashes.tolist(), rows.labels.tolist(), rows.sizes.tolist(), texts, strict=True)
    assert found == sorted(expected, key=lambda row: row[0])


@given(FILES, st.data())
def test_texts_are_those_of_the_rows_that_are_asked_for(tmp_path_factory, some, data):
    store, held = written(tmp_path_factory.mktemp("merged"), some)
    rows = Merged(Files(store), held, LABELS, Bucket(0, 1))
    if not len(rows.hashes):
        return
    every_path = rows.texts(np.arange(len(rows.hashes)), ["path"])["path"].to_pylist()
    chosen = data.draw(st.lists(st.integers(0, len(rows.hashes) - 1), min_size=1))
    again = Merged(Files(store), held, LABELS, Bucket(0, 1))  # which has read nothing yet
    found = again.texts(np.array(chosen), ["address", "path"])
    assert found["path"].to_pylist() == [every_path[row] for row in chosen]
    assert address_hash(found["address"].combine_chunks()).tolist() == rows.hashes[chosen].tolist()
    owners = {(number, owner) for number, owner in again.owners(np.array(chosen))}
    assert {int(LABELS[number][owner]) for number, owner in owners} == set(rows.labels[chosen].tolist())


def test_texts_are_read_of_those_files_alone_that_somebody_asks_for(tmp_path):
    store, held = written(tmp_path, ([(1, 0, "p", 1)], [(2, 0, "q", 1)]))
    rows = Merged(Files(store), held, LABELS, Bucket(0, 1))
    rows.texts(np.flatnonzero(rows.labels == 0), ["path"])
    store.put("1.parquet", [store.get("1.parquet")[:40]])  # what is left of the other one
    rows.texts(np.flatnonzero(rows.labels == 0), ["path", "address"])
    with pytest.raises(NotReadBack):
        rows.texts(np.flatnonzero(rows.labels == 3), ["path"])
