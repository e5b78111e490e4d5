"""What only dead commits have, in one bucket."""

from datetime import UTC, datetime
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from desilt.cache.ranges import CACHED
from desilt.columns.buckets import HASH, Bucket, hashed
from desilt.columns.files import Files, put
from desilt.columns.hashing import address_hash
from desilt.domain.reason import Reason
from desilt.jobs.collect.kernel import OwnedFile, Sides
from desilt.objects import open_store

DEAD, LIVE, NOBODYS = 0, 1, 2  # owners, in each file
ADDRESSES = [f"branches/b/p/{number}" for number in range(4)]
TIMES = [None, datetime(2029, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)]
ENTRY = st.tuples(
    st.sampled_from(ADDRESSES),
    st.sampled_from([DEAD, DEAD, LIVE, NOBODYS]),
    st.sampled_from([b"a", b"b", b"c"]),
    st.integers(1, 3),
    st.sampled_from(TIMES),
)


@given(st.lists(st.lists(ENTRY, max_size=8), max_size=3), st.sets(st.sampled_from(ADDRESSES)))
def test_what_goes_is_what_only_dead_commits_have(tmp_path_factory, several, gone):
    store, files = open_store(str(tmp_path_factory.mktemp("collect"))), []
    for number, some in enumerate(several):
        rows = pa.table([list(column) for column in zip(*some, strict=True)] or [[]] * 5, schema=CACHED)
        file = put(store, f"{number}.parquet", hashed(rows))
        files.append(OwnedFile(file, 3, frozenset({LIVE}), {DEAD: "dead"}))
    sides = Sides(Files(store), files, Bucket(0, 1), np.sort(address_hash(pa.array(sorted(gone), pa.string()))))
    there = [entry for some in several for entry in some if entry[1] != NOBODYS and entry[0] not in gone]
    dead, live = ({entry[0] for entry in there if entry[1] == side} for side in (DEAD, LIVE))
    rows, called = sides.lone()
    assert set(called.to_pylist()) == dead - live
    assert rows.num_rows == len(dead - live)
    assert rows[HASH].to_numpy().tolist() == address_hash(called).tolist() == sorted(address_hash(called).tolist())
    paths = sides.paths(rows[HASH].to_numpy()).to_pylist()
    for address, row, told in zip(called.to_pylist(), rows.to_pylist(), paths, strict=True):
        mine = [entry for entry in there if entry[0] == address]
        assert told.split("\0") == sorted({entry[2].decode() for entry in mine})
        times = [entry[4] for entry in mine]
        youngest = None if None in times else max(times)
        assert row["modified_at"] == youngest
        assert row["size_bytes"] in {entry[3] for entry in mine if entry[4] == youngest}
    counts = sides.counted()
    assert counts.stored_objects == len(dead | live)
    assert counts.objects["", Reason.COMMITTED.value] == len(dead & live)


@pytest.mark.parametrize("apart", [True, False], ids=["in several files", "in one file"])
@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize("without", [True, False], ids=["one without a time", "all with a time"])
def test_an_object_is_as_young_as_its_youngest_entry_says(tmp_path, order, apart, without):
    times = [TIMES[1], TIMES[2], None if without else TIMES[1]]
    some = [(ADDRESSES[0], DEAD, b"a", place, times[place]) for place in order]
    store, files = open_store(str(tmp_path)), []
    for number, entries in enumerate([[one] for one in some] if apart else [some]):
        rows = pa.table([list(column) for column in zip(*entries, strict=True)], schema=CACHED)
        files.append(OwnedFile(put(store, f"{number}", hashed(rows)), 3, frozenset({LIVE}), {DEAD: "dead"}))
    (row,) = Sides(Files(store), files, Bucket(0, 1), np.zeros(0, np.uint64)).lone()[0].to_pylist()
    assert (row["modified_at"], row["size_bytes"]) == ((None, 2) if without else (TIMES[2], 1))


def test_the_ranges_with_something_of_their_own_below_a_held_prefix(tmp_path):
    store = open_store(str(tmp_path))
    some = [
        (ADDRESSES[0], DEAD, b"a/x", 1, None),
        (ADDRESSES[1], DEAD, b"a/y", 1, None),
        (ADDRESSES[1], LIVE, b"z", 1, None),
    ]
    rows = pa.table([list(column) for column in zip(*some, strict=True)], schema=CACHED)
    file = OwnedFile(put(store, "one.parquet", hashed(rows)), 3, frozenset({LIVE}), {DEAD: "dead"})
    sides = Sides(Files(store), [file], Bucket(0, 1), np.zeros(0, np.uint64))
    assert sides.ranges_below(("a/",)) == {"dead"}
    assert sides.ranges_below(("a/y", "z")) == set()
