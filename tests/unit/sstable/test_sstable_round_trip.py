"""What is written is what is read: whole, by key, and by bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_sstable as naive
from desilt.sstable.table import Table
from desilt.sstable.writer import write_table
from sstable_records import pairs, pairs_of, raw, unhurried


def table_of(records, kind="ranges"):
    return Table.from_bytes(write_table(raw(records), kind=kind).data, "test")


@unhurried
@given(pairs)
def test_every_reader_finds_what_was_written(records):
    data = write_table(raw(records), kind="metaranges").data
    table = Table.from_bytes(data, "test")
    assert pairs_of(table.read()) == records
    assert pairs_of(*table.scan()) == records
    assert naive.records(data) == records
    assert (table.kind, table.count) == ("metaranges", len(records))


@unhurried
@given(pairs, st.lists(st.binary(max_size=6)))
def test_get_finds_the_keys_that_are_there_and_no_others(records, others):
    table = table_of(records)
    known = dict(records)
    near = [key[:-1] for key in known] + [key + b"\0" for key in known]
    for key in [*known, *near, *others, b"", b"\xff" * 9]:
        assert table.get(key) == known.get(key)


@unhurried
@given(pairs, st.data())
def test_scan_gives_what_lies_between_its_bounds(records, data):
    table = table_of(records)
    bound = st.one_of(st.none(), st.binary(max_size=4), st.sampled_from([key for key, _ in records] or [b""]))
    start, stop = data.draw(bound), data.draw(bound)
    batches = list(table.scan(start, stop))
    assert all(len(batch) for batch in batches)
    assert pairs_of(*batches) == [
        (key, value) for key, value in records if (start is None or key >= start) and (stop is None or key < stop)
    ]


def test_a_key_that_shares_the_end_of_the_key_before_survives():
    suffix = b"\1" + bytes(7)
    keys = [b"a", b"a\1", b"a" + suffix, b"a" + suffix + suffix, b"a\1\0\0more", b"b"]
    records = [(key, b"%d" % n) for n, key in enumerate(keys)]
    data = write_table(raw(records), kind="ranges").data
    assert pairs_of(Table.from_bytes(data, "test").read()) == naive.records(data) == records


@pytest.mark.parametrize("kind", ["ranges", "metaranges"])
def test_an_empty_table_is_a_table(kind):
    written = write_table(raw([]), kind=kind)
    table = Table.from_bytes(written.data, "empty")
    assert (written.count, written.min_key, written.max_key, table.count, table.kind) == (0, b"", b"", 0, kind)
    assert table.read().num_rows == 0
    assert list(table.scan()) == list(table.scan(b"a", b"b")) == []
    assert table.get(b"") is None
    assert table.get(b"a") is None


def test_keys_of_every_length_up_to_the_longest_path_survive():
    records = [(b"p" * n, b"%d" % n) for n in range(1025)]
    assert pairs_of(table_of(records).read()) == records


def test_values_may_be_empty_or_larger_than_a_block():
    records = [(b"a", b""), (b"b", b"x" * 100_000), (b"c", b""), (b"d", bytes(range(256)) * 64)]
    table = table_of(records)
    assert pairs_of(table.read()) == records
    assert table.get(b"b") == b"x" * 100_000


def test_a_table_with_two_levels_of_index_reads_like_any_other(two_level):
    data, records = two_level
    table = Table.from_bytes(data, "two")
    assert table.properties["rocksdb.block.based.table.index.type"] == b"\2\0\0\0"
    assert pairs_of(table.read()) == records == naive.records(data)
    assert all(table.get(key) == value for key, value in records[::17])
    assert pairs_of(*table.scan(records[50][0], records[350][0])) == records[50:350]


@pytest.mark.parametrize("keys", [[b"b", b"a"], [b"a", b"a"], [b"ab", b"a"]])
def test_keys_out_of_order_are_refused(keys):
    with pytest.raises(ValueError, match="ascending"):
        write_table(raw([(key, b"") for key in keys]), kind="ranges")


def test_the_id_depends_on_records_and_kind_and_on_nothing_else():
    records = [(b"a", b"1"), (b"b", b"2")]
    ids = [write_table(raw(some), kind="ranges").id for some in (records, records[:1], [(b"a", b"1"), (b"b", b"3")])]
    ids.append(write_table(raw(records), kind="metaranges").id)
    assert len(set(ids)) == 4
    assert (
        write_table(raw([(b"x", b"x"), *records]).slice(0, 0), kind="ranges").id
        == write_table(raw([]), kind="ranges").id
    )
    sliced = raw([(b"0", b"x"), *records, (b"z", b"x")]).slice(1, 2)
    assert write_table(sliced, kind="ranges").id == ids[0]


@pytest.mark.parametrize("room", [1, 2_000, 100_000])
def test_keys_that_need_much_room_are_decoded_in_parts(monkeypatch, room):
    records = [(b"k" * (n % 700) + b"%06d" % n, b"v" * 50) for n in range(2_000)]
    records.sort()
    data = write_table(raw(records), kind="ranges").data
    monkeypatch.setattr("desilt.sstable.decode.ROOM", room)
    assert pairs_of(Table.from_bytes(data, "wide").read()) == records
