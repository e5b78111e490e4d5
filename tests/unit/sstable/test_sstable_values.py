"""Values: entries and ranges to bytes and back, alone and by the column."""

import contextlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desilt.domain.entry import Entry, decode_path, encode_path, encode_prefix
from desilt.errors import CorruptTable
from desilt.sstable.columns import ENTRIES, decode_entries, entry_columns, identities
from desilt.sstable.table import Table
from desilt.sstable.values import (
    RangeData,
    decode_entry,
    decode_range,
    encode_entry,
    encode_range,
    entry_identity,
    identity_of,
    read_metarange,
)
from desilt.sstable.wire import bytes_field, message_field, number_field, pack
from desilt.sstable.writer import write_table
from sstable_records import entries, raw, unhurried

EARLIEST, LATEST = -9223372035 * 10**9, 9223372035 * 10**9
ENTRY = Entry("a/b", "data/x", 7, "abc", 1_700_000_000_000_000_001, {"k": "v", "j": ""}, content_type="text/csv")


def row_of(entry):
    """``entry`` as a row of the columns."""
    return {
        "path": encode_prefix(entry.path),
        "address": entry.address,
        "address_type": int(entry.address_type),
        "size": entry.size,
        "modified_at": entry.modified_ns,
        "checksum": entry.checksum,
        "metadata": sorted(entry.metadata.items(), key=lambda pair: pair[0].encode()),
        "content_type": entry.content_type,
        "identity": entry_identity(entry),
    }


def rows_of(pairs):
    columns = entry_columns(raw(pairs))
    assert columns.schema.equals(ENTRIES)
    moments = columns["modified_at"].cast("int64")
    return columns.set_column(4, "modified_at", moments).to_pylist()


@unhurried
@given(entries)
def test_an_entry_reads_back_equal(entry):
    value = encode_entry(entry)
    assert decode_entry(entry.path.encode(), value) == entry
    assert identity_of(value) == entry_identity(entry)


@unhurried
@given(st.lists(entries, max_size=8))
def test_columns_hold_what_the_entries_hold(found):
    pairs = [(entry.path.encode(), encode_entry(entry)) for entry in found]
    rows = rows_of(pairs)
    for row, entry in zip(rows, found, strict=True):
        expected = row_of(entry)
        exact = expected.pop("modified_at")
        assert row.pop("modified_at") == (
            exact if EARLIEST <= exact < LATEST + 10**9 else LATEST if exact > 0 else EARLIEST
        )
        assert row == expected
    values = raw(pairs)["value"]
    assert identities(values).to_pylist() == [identity_of(value) for _, value in pairs]


def test_columns_of_a_slice_are_the_slice_of_the_columns():
    records = raw([(b"%d" % n, encode_entry(Entry(str(n), f"a{n}", n, "c", n, {str(n): "m"}))) for n in range(9)])
    assert entry_columns(records.slice(3, 4)).equals(entry_columns(records).slice(3, 4))
    assert identities(records.slice(3, 4)["value"]).equals(entry_columns(records)["identity"].slice(3, 4))


def test_no_records_are_no_rows():
    columns = entry_columns(raw([]))
    assert (columns.num_rows, columns.schema.equals(ENTRIES)) == (0, True)
    assert len(identities(raw([])["value"])) == 0


FIXED_64, FIXED_32 = b"\x51" + bytes(8), b"\x5d" + bytes(4)  # fields 10 and 11


@pytest.mark.parametrize(
    "unknown",
    [number_field(9, 5), number_field(1, 5), bytes_field(3, b"x"), bytes_field(2000, b"x"), FIXED_64, FIXED_32],
)
def test_fields_nobody_knows_are_stepped_over(unknown):
    value = pack(b"id", bytes_field(1, b"addr") + unknown + number_field(3, 4))
    assert decode_entry(b"p", value) == Entry("p", "addr", 4, "", 0, address_type=0)
    known = (b"o", encode_entry(ENTRY))
    row = rows_of([known, (b"p", value), known])[1]
    assert (row["address"], row["size"], row["identity"]) == ("addr", 4, b"id")


NONSENSE = {
    "nothing": b"",
    "no message": pack(b"id", b"")[:-1],
    "an identity longer than the value": b"\x40ab",
    "a negative length": b"\x03abc",
    "a message cut short": pack(b"id", bytes_field(1, b"address"))[:-1],
    "a text longer than the message": pack(b"id", b"\x0a\x7fabc"),
    "a number without an end": pack(b"id", b"\x18\xff"),
    "a number of eleven bytes": pack(b"id", b"\x18" + b"\xff" * 10 + b"\x01"),
    "a number beyond 64 bits": pack(b"id", b"\x18" + b"\xff" * 9 + b"\x02"),
    "a group": pack(b"id", b"\x0b\x0c"),
    "field zero": pack(b"id", b"\x00\x01"),
    "an address that is no text": pack(b"id", bytes_field(1, b"\xff")),
    "a surrogate": pack(b"id", bytes_field(1, b"\xed\xa0\x80")),
    "an unknown address type": pack(b"id", number_field(6, 3)),
    "a metadata key twice": pack(b"id", message_field(5, bytes_field(1, b"k")) * 2),
    "metadata cut short": pack(b"id", message_field(5, b"\x0a\x05k")),
    "a time cut short": pack(b"id", message_field(2, b"\x08\x80")),
}


@pytest.mark.parametrize("value", NONSENSE.values(), ids=NONSENSE.keys())
def test_nonsense_is_corrupt_alone_and_in_a_column(value):
    with pytest.raises(CorruptTable, match="table r1 is corrupt"):
        decode_entry(b"p", value, "r1")
    good = encode_entry(ENTRY)
    with pytest.raises(CorruptTable, match="table r1 is corrupt"):
        entry_columns(raw([(b"o", good), (b"p", value), (b"q", good)]), "r1")


@unhurried
@given(st.binary(min_size=1, max_size=20))
def test_a_path_may_be_any_bytes(path):
    records = raw([(path, encode_entry(ENTRY))])
    assert entry_columns(records)["path"].to_pylist() == [path]
    (entry,) = decode_entries(records)
    assert entry == decode_entry(path, encode_entry(ENTRY)) == replace(ENTRY, path=decode_path(path))
    assert encode_path(entry.path) == path


@unhurried
@given(entries, st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=3), st.booleans())
def test_damaged_values_are_judged_alike_alone_and_in_a_column(entry, damage, cut):
    value = bytearray(encode_entry(entry))
    for place, byte in damage:
        value[place % len(value)] = byte
    value = bytes(value[: damage[0][0] % len(value)] if cut else value)
    try:
        expected = row_of(decode_entry(b"p", value))
    except CorruptTable:
        with pytest.raises(CorruptTable):
            entry_columns(raw([(b"p", value)]))
        return
    (row,) = rows_of([(b"p", value)])
    exact = expected.pop("modified_at")
    assert row.pop("modified_at") == (
        exact if EARLIEST <= exact < LATEST + 10**9 else LATEST if exact > 0 else EARLIEST
    )
    assert row == expected | {"identity": identity_of(value)}


@unhurried
@given(st.binary(max_size=40))
def test_any_bytes_are_a_value_or_corrupt(value):
    for read in (
        lambda: decode_entry(b"p", value),
        lambda: entry_columns(raw([(b"p", value)])),
        lambda: decode_range(value),
    ):
        with contextlib.suppress(CorruptTable):
            read()


def test_the_order_metadata_came_in_is_forgotten():
    forward = Entry("p", "a", 1, "c", 2, {"j": "1", "k": "2", "é": "3"})
    backward = Entry("p", "a", 1, "c", 2, {"é": "3", "k": "2", "j": "1"})
    assert encode_entry(forward) == encode_entry(backward)


def test_the_identity_ignores_where_and_when_and_nothing_else():
    same = Entry("z", "elsewhere", 7, "abc", 5, ENTRY.metadata, address_type=2, content_type="text/csv")
    assert entry_identity(same) == entry_identity(ENTRY)
    others = [
        Entry("a/b", "data/x", 8, "abc", 5, ENTRY.metadata, content_type="text/csv"),
        Entry("a/b", "data/x", 7, "abd", 5, ENTRY.metadata, content_type="text/csv"),
        Entry("a/b", "data/x", 7, "abc", 5, {"k": "v"}, content_type="text/csv"),
        Entry("a/b", "data/x", 7, "abc", 5, ENTRY.metadata),
    ]
    assert len({entry_identity(other) for other in [ENTRY, *others]}) == 5


@unhurried
@given(
    st.builds(
        RangeData,
        st.text("0123456789abcdef", min_size=64, max_size=64),
        st.binary(),
        st.binary(),
        st.integers(0, 2**62),
        st.integers(0, 2**62),
    )
)
def test_a_described_range_reads_back_equal(described):
    assert decode_range(encode_range(described)) == described


def test_a_metarange_whose_keys_are_not_its_ranges_last_keys_is_corrupt():
    record = (b"y", encode_range(RangeData("ab", b"a", b"z", 1, 1)))
    table = Table.from_bytes(write_table(raw([record]), kind="metaranges").data, "m")
    with pytest.raises(CorruptTable, match="another key"):
        read_metarange(table)


def test_a_range_is_no_metarange():
    with pytest.raises(CorruptTable, match="should hold metaranges and holds ranges"):
        read_metarange(Table.from_bytes(write_table(raw([]), kind="ranges").data, "r"))


def test_a_dump_of_refs_is_no_range():
    table = Table.from_bytes(write_table(raw([]), kind="ranges").data, "dump")
    table.expect("ranges")
    table.properties = {**table.properties, "entity": b"branch"}
    with pytest.raises(CorruptTable, match="a dump of 'branch'"):
        table.expect("ranges")
