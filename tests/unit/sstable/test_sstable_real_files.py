"""Files that lakeFS and Pebble wrote some years ago: read whole, and written again by the rules of today.

`range.sst` is no different by those, nor is `metarange.sst` where the size that it
says of its range is taken as it stands. `56569996.sst` has the same blocks, but an
older Pebble cut its index into other parts.
"""

import pytest

import naive_sstable as naive
from desilt.errors import CorruptTable
from desilt.sstable import varint
from desilt.sstable.columns import entry_columns, identities, scan_entries
from desilt.sstable.table import Table
from desilt.sstable.values import (
    decode_entry,
    encode_entry,
    entry_identity,
    identity_of,
    read_metarange,
    write_metarange,
)
from desilt.sstable.writer import RangeWriter, write_table
from sstable_records import pairs_of, raw

HAMLET = "h.no-compression.two_level_index.sst"
COUNTS = {"range.sst": 2, "metarange.sst": 1, "56569996.sst": 13_868, "ok1.sst": 105, HAMLET: 1_710}


@pytest.mark.parametrize("name", COUNTS)
def test_a_real_file_is_read_whole_and_as_a_second_reader_reads_it(real, name):
    data = real(name)
    table = Table.from_bytes(data, name)
    found = pairs_of(table.read())
    assert len(found) == table.count == COUNTS[name]
    assert found == naive.records(data)
    assert pairs_of(*table.scan()) == found


@pytest.mark.parametrize("name", ["range.sst", "metarange.sst"])
def test_the_records_of_a_real_file_make_the_same_file_again(real, name):
    table = Table.from_bytes(real(name), name)
    assert write_table(table.read(), kind=table.kind).data == real(name)


def again(data, name):
    """A range written anew from its decoded entries."""
    entries = [decode_entry(key, value) for key, value in pairs_of(Table.from_bytes(data, name).read())]
    return write_table(raw([(entry.path.encode(), encode_entry(entry)) for entry in entries]), kind="ranges")


def test_the_decoded_entries_of_a_real_range_make_the_same_file_again(real):
    written = again(real("range.sst"), "range.sst")
    assert written.data == real("range.sst")
    assert written.id.startswith("a83af763ba09")


def test_an_older_index_of_two_levels_is_cut_otherwise_and_all_else_is_the_same(real):
    old = Table.from_bytes(real("56569996.sst"), "56569996.sst")
    written = again(real("56569996.sst"), "56569996.sst")
    new = Table.from_bytes(written.data, "again")
    assert written.id.startswith("56569996e174")
    blocks, _ = varint.decode(old.properties["rocksdb.data.size"], 0)
    assert written.data[:blocks] == real("56569996.sst")[:blocks]
    differ = {name for name in old.properties if old.properties[name] != new.properties[name]}
    assert differ == {"estimated_size_bytes", "rocksdb.index.size", "rocksdb.top-level.index.size"}
    assert new.read().equals(old.read())


def test_the_decoded_ranges_of_a_real_metarange_make_the_same_file_again(real):
    ranges = read_metarange(Table.from_bytes(real("metarange.sst"), "metarange.sst"))
    assert write_metarange(ranges).data == real("metarange.sst")


def test_a_real_range_is_not_cut_where_lakefs_did_not_cut_it(real):
    writer = RangeWriter()
    assert writer.add(Table.from_bytes(real("56569996.sst"), "56569996.sst").read()) == []
    assert [found.id for found in writer.finish()] == [again(real("56569996.sst"), "56569996.sst").id]


@pytest.mark.parametrize("name", ["range.sst", "56569996.sst", "ok1.sst"])
def test_columns_and_single_entries_agree_on_every_row(real, name):
    table = Table.from_bytes(real(name), name)
    records = table.read()
    columns = entry_columns(records)
    moments = columns["modified_at"].cast("int64").to_pylist()  # to the nanosecond, for which Python has no type
    rows = columns.drop_columns(["modified_at"]).to_pylist()
    for row, (key, value), modified_ns in zip(rows, pairs_of(records), moments, strict=True):
        entry = decode_entry(key, value)
        assert (row["path"].decode(), row["address"], row["size"], row["checksum"], dict(row["metadata"])) == (
            (entry.path, entry.address, entry.size, entry.checksum, entry.metadata)
        )
        assert (row["address_type"], row["content_type"], modified_ns) == (
            (entry.address_type, entry.content_type, entry.modified_ns)
        )
        assert row["identity"] == identity_of(value)
    assert identities(records["value"]).equals(columns["identity"])
    assert sum(len(batch) for batch in scan_entries(table)) == len(records)


def test_the_old_range_differs_in_its_first_key_property_and_its_identities_only(real):
    table = Table.from_bytes(real("ok1.sst"), "ok1.sst")
    records = pairs_of(table.read())
    again = Table.from_bytes(write_table(table.read(), kind="ranges").data, "again")
    differ = {name for name in table.properties if table.properties[name] != again.properties[name]}
    assert differ == {"min_key"}
    assert again.properties["min_key"] == records[0][0]
    entries = [decode_entry(key, value) for key, value in records]
    assert {entry.address_type for entry in entries} == {0}
    assert not [
        entry for entry, (_, value) in zip(entries, records, strict=True) if entry_identity(entry) == identity_of(value)
    ]
    assert all(encode_entry(entry)[33:] == value[33:] for entry, (_, value) in zip(entries, records, strict=True))


def test_a_foreign_table_is_read_but_is_nobodys_range(real):
    table = Table.from_bytes(real(HAMLET), HAMLET)
    assert table.kind == ""
    with pytest.raises(CorruptTable, match="should hold ranges"):
        next(scan_entries(table))
    with pytest.raises(CorruptTable, match="should hold metaranges"):
        read_metarange(table)
