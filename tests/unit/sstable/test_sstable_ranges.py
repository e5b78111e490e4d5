"""Where ranges end: decided by the records, never by the batches they came in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_sstable as naive
from desilt.sstable.blocks import build, seal
from desilt.sstable.hashing import fnv64a
from desilt.sstable.table import Table
from desilt.sstable.writer import RangeWriter, write_table
from sstable_records import pairs, pairs_of, raw, unhurried

limits = st.sampled_from([1, 200, 3000, 4096, 9000, 2**30])
raggedness = st.sampled_from([1, 3, 10, 2**62])


def written(records, sizes, **limits):
    """The ranges of ``records``, added in batches of these sizes and then the rest."""
    writer, done, at = RangeWriter(**limits), [], 0
    for size in [*sizes, len(records)]:
        done += writer.add(raw(records[at : at + size]))
        at += size
    return done + writer.finish()


@unhurried
@given(pairs, st.lists(st.integers(0, 30), max_size=20), limits, raggedness)
def test_how_records_are_batched_changes_nothing(records, sizes, max_size, ragged):
    limits = {"max_size": max_size, "raggedness": ragged}
    assert written(records, sizes, **limits) == written(records, [], **limits)


def test_how_many_records_are_encoded_at_once_changes_nothing(two_level, monkeypatch):
    _, records = two_level
    limits = {"max_size": 60_000, "raggedness": 50}
    expected = written(records, [], **limits)
    monkeypatch.setattr("desilt.sstable.writer.ROUND", 7)
    assert written(records, [], **limits) == expected


def stored_size(records):
    internal = [(key + b"\1" + bytes(7), value) for key, value in records]
    return len(seal(build(internal, interval=16), compress=True))


@unhurried
@given(pairs, limits, raggedness)
def test_ranges_end_where_a_writer_that_adds_one_record_at_a_time_ends_them(records, max_size, ragged):
    ranges = written(records, [], max_size=max_size, raggedness=ragged)
    assert [found.count for found in ranges] == naive.split(records, max_size, ragged, stored_size)


def test_a_long_run_of_records_ends_its_ranges_where_one_record_at_a_time_would(two_level):
    _, records = two_level
    ranges = written(records, [7, 100], max_size=60_000, raggedness=2**62)
    assert len(ranges) > 2
    assert [found.count for found in ranges] == naive.split(records, 60_000, 2**62, stored_size)


@unhurried
@given(pairs, limits, raggedness)
def test_each_range_is_the_table_of_its_own_records(records, max_size, ragged):
    at = 0
    for found in written(records, [], max_size=max_size, raggedness=ragged):
        own = records[at : at + found.count]
        assert found == write_table(raw(own), kind="ranges")
        assert (found.min_key, found.max_key) == (own[0][0], own[-1][0])
        assert pairs_of(Table.from_bytes(found.data, found.id).read()) == own
        at += found.count
    assert at == len(records)


@unhurried
@given(st.lists(st.binary(max_size=30), max_size=30))
def test_the_hash_of_a_key_is_fnv64a(keys):
    assert fnv64a(raw([(key, b"") for key in keys])["key"]).tolist() == [naive.fnv64a(key) for key in keys]


def test_fnv64a_is_the_published_one():
    assert naive.fnv64a(b"foobar") == 0x85944171F73967E8


def test_the_writer_knows_when_nothing_is_pending():
    ends = next(b"%d" % n for n in range(1000) if naive.fnv64a(b"%d" % n) % 10 == 0)
    writer = RangeWriter(raggedness=10)
    assert writer.at_boundary
    assert [found.max_key for found in writer.add(raw([(ends, b"")]))] == [ends]
    assert writer.at_boundary
    goes_on = next(ends + b"%d" % n for n in range(1000) if naive.fnv64a(ends + b"%d" % n) % 10)
    assert writer.add(raw([(goes_on, b"")])) == []
    assert not writer.at_boundary
    assert [found.count for found in writer.finish()] == [1]
    assert writer.at_boundary
    assert writer.finish() == []


def test_a_key_not_above_the_last_is_refused_across_batches_and_ranges():
    writer = RangeWriter(raggedness=1)
    writer.add(raw([(b"b", b"")]))
    with pytest.raises(ValueError, match="ascending"):
        writer.add(raw([(b"b", b"")]))
    assert [found.min_key for found in writer.add(raw([(b"c", b"")]))] == [b"c"]


def blocks_of(records):
    written = write_table(raw(records), kind="ranges")
    return int.from_bytes(Table.from_bytes(written.data, "blocks").properties["rocksdb.num.data.blocks"], "little")


@pytest.mark.parametrize(("size", "blocks"), [(3666, 1), (3667, 2)])
def test_a_block_is_nearly_full_only_beyond_nine_tenths_rounded_up(size, blocks):
    """With a value of 3,666 bytes the first entry makes a block of 3,687: not beyond, so a large one still joins it."""
    assert blocks_of([(b"a", bytes(size)), (b"b", bytes(1000))]) == blocks


@pytest.mark.parametrize("before", [15, 16, 17])
def test_whether_one_more_record_fits_depends_on_whether_it_begins_a_restart(before):
    """The last record grows byte by byte past the place where it no longer fits."""
    first = [(b"%02d" % n, bytes(3700 // before)) for n in range(before)]
    found = [blocks_of([*first, (b"z", bytes(size))]) for size in range(400)]
    assert found == [naive.blocks([*first, (b"z", bytes(size))]) for size in range(400)]
    assert set(found) == {1, 2}
