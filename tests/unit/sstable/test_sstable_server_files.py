"""Files that a lakeFS server of July 2026 wrote, made again from what they hold."""

import pytest

import lakefs_server as server
import naive_sstable as naive
from desilt.sstable.table import Table
from desilt.sstable.values import (
    RangeData,
    decode_entry,
    encode_entry,
    entry_identity,
    identity_of,
    read_metarange,
    write_metarange,
)
from desilt.sstable.wire import fields, unpack
from desilt.sstable.writer import RangeWriter, write_table
from sstable_records import pairs_of

RANGES, METARANGES = server.tables("ranges"), server.tables("metaranges")
BY_HISTORY = next(name for name in METARANGES if name.startswith("a53ee249"))
MAX_SIZE, RAGGEDNESS = 20 * 2**20, 50_000


def described(found):
    return RangeData(found.id, found.min_key, found.max_key, found.estimated_size, found.count)


def records_of(name):
    return Table.from_bytes(RANGES[name], name).read()


def listed_by(name):
    return read_metarange(Table.from_bytes(METARANGES[name], name))


def test_there_are_as_many_files_as_were_recorded():
    assert (len(RANGES), len(METARANGES)) == (18, 19)


@pytest.mark.parametrize("name", RANGES)
def test_the_records_of_a_range_make_the_same_file_byte_for_byte(name):
    assert pairs_of(records_of(name)) == naive.records(RANGES[name])
    written = write_table(records_of(name), kind="ranges")
    assert (written.id, written.data) == (name, RANGES[name])


def test_an_entry_makes_the_same_value_byte_for_byte_unless_it_has_metadata_in_several_pairs():
    """Those the server writes in any order, another each time; we write them sorted."""
    pairs = [pair for name in RANGES for pair in pairs_of(records_of(name))]
    others = [(key, value) for key, value in pairs if encode_entry(decode_entry(key, value)) != value]
    assert len(pairs) == 12_128
    assert {key for key, _ in others} == {b"meta/emptyval", b"meta/many", b"meta/many2", b"meta/staged"}
    for key, value in others:
        entry = decode_entry(key, value)
        assert len(entry.metadata) > 1
        assert sorted(fields(unpack(encode_entry(entry))[1]), key=repr) == sorted(fields(unpack(value)[1]), key=repr)
        assert identity_of(value) == entry_identity(entry)


def test_the_largest_range_has_an_index_of_two_levels():
    table = max((Table.from_bytes(data, name) for name, data in RANGES.items()), key=lambda table: table.count)
    assert (table.name[:8], table.count) == ("2f2a0de7", 7_998)
    assert table.properties["rocksdb.block.based.table.index.type"] == b"\2\0\0\0"


@pytest.mark.parametrize("name", METARANGES)
def test_the_ranges_of_a_commit_make_its_metarange_byte_for_byte(name):
    """Each range is cut and described anew; two that are not among the files are taken as they are listed."""
    made = []
    for listed in listed_by(name):
        if listed.id in RANGES:
            writer = RangeWriter(max_size=MAX_SIZE, raggedness=RAGGEDNESS)
            cut = writer.add(records_of(listed.id)) + writer.finish()
            assert len(cut) == 1
            made.append(described(cut[0]))
        else:
            assert listed.id[:8] in ("edcc8707", "69144e3b")
            made.append(listed)
    written = write_metarange(made)
    assert (written.id, written.data) == (name, METARANGES[name])


@pytest.mark.parametrize("name", [name for name in METARANGES if name != BY_HISTORY])
def test_ranges_end_where_the_server_ended_them(name):
    """All but the last of a metarange: at a key that ends one, or at 20 MiB."""
    for listed in listed_by(name)[:-1]:
        assert naive.fnv64a(listed.max_key) % RAGGEDNESS == 0 or listed.estimated_size >= MAX_SIZE


def test_one_metarange_is_cut_by_its_history():
    """An import laid new entries over ranges of the server's, and it kept their ends; we would have read on."""
    first, second, third = listed_by(BY_HISTORY)
    for listed in (first, second):
        assert naive.fnv64a(listed.max_key) % RAGGEDNESS
        assert listed.estimated_size < MAX_SIZE
    writer = RangeWriter(max_size=MAX_SIZE, raggedness=RAGGEDNESS)
    joined = writer.add(records_of(second.id)) + writer.add(records_of(third.id)) + writer.finish()
    assert [found.count for found in joined] == [second.count + third.count]


def test_a_commit_that_removed_everything_has_a_metarange_of_no_ranges():
    written = write_metarange([])
    assert METARANGES[written.id] == written.data
    assert listed_by(written.id) == []
