"""Small blocks and small tables: read in a way of their own, and what is said of them is the same."""

import uuid
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from desilt.errors import CorruptTable
from desilt.objects import open_store
from desilt.sstable import decode as decoding
from desilt.sstable.blocks import build, whole
from desilt.sstable.decode import SET, decode
from desilt.sstable.ranges import Ranges
from desilt.sstable.table import RAW, Table, read_together
from desilt.sstable.varint import Malformed
from desilt.sstable.writer import write_table

SUFFIX = SET.to_bytes(8, "little")
keys = st.lists(st.binary(max_size=20), unique=True, max_size=40).map(sorted)


def said_of(block, few):
    """The entries of a block, read one by one or side by side; None if it is refused."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "FEW", few)
        try:
            found = decode(whole(block))
        except Malformed:
            return None
    return found.keys.to_pylist(), found.suffixes.tolist(), found.values.to_pylist(), found.counts.tolist()


@given(keys, st.integers(1, 20), st.data())
def test_a_block_that_is_read_entry_by_entry_says_what_it_does_read_side_by_side(some, interval, data):
    values = [data.draw(st.binary(max_size=200)) for _ in some]
    block = build([(key + SUFFIX, value) for key, value in zip(some, values, strict=True)], interval=interval)
    one_by_one = said_of(block, 1 << 20)
    assert one_by_one == said_of(block, 0)
    assert one_by_one == (some, [SET] * len(some), values, [len(some)])


@given(keys.filter(len), st.integers(1, 5), st.data())
def test_a_damaged_block_is_refused_by_both_or_says_the_same_to_both(some, interval, data):
    block = bytearray(build([(key + SUFFIX, b"value") for key in some], interval=interval))
    for _ in range(data.draw(st.integers(1, 3))):
        block[data.draw(st.integers(0, len(block) - 1))] = data.draw(st.integers(0, 255))
    assert said_of(bytes(block), 1 << 20) == said_of(bytes(block), 0)


def test_an_entry_that_reaches_over_a_restart_is_refused_by_both():
    """It would swallow the next one, and what is left is in order."""
    block = bytearray(build([(b"a" + SUFFIX, b"1"), (b"b" + SUFFIX, b"2"), (b"c" + SUFFIX, b"3")], interval=1))
    one = len(b"\0\0\0" + b"a" + SUFFIX + b"1")
    block[2] += one  # the size of its value
    assert said_of(bytes(block), 1 << 20) is None
    assert said_of(bytes(block), 0) is None


@pytest.mark.parametrize("key", [b"", b"short", SUFFIX[:7]])
def test_a_key_without_room_for_what_ends_it_is_refused_by_both(key):
    block = build([(key, b"value"), (b"longer" + SUFFIX, b"value")], interval=1)
    assert said_of(block, 1 << 20) is None
    assert said_of(block, 0) is None


@pytest.mark.parametrize("wrong", [{"count": 79}, {"count": 81}, {"min_key": b"2/00001"}, {"max_key": b"2/00078"}])
def test_of_ranges_that_are_read_together_each_has_what_its_metarange_says(wrong):
    """An entry more or less, and something that is held would be taken for nobody's."""
    ranges = Ranges(open_store(f"memory://{uuid.uuid4().hex}"), "r/")
    listed = [ranges.put(write_table(records, kind="ranges")) for _, records in tables(4) if records.num_rows]
    assert [found.num_rows for found in ranges.read_together(listed)] == [40, 80, 120]
    for some in (listed[1:2], listed):
        lying = [replace(one, **wrong) if one is listed[1] else one for one in some]
        with pytest.raises(CorruptTable) as raised:
            ranges.read_together(lying)
        assert raised.value.name == listed[1].id


def tables(count):
    """Some of every size, one of them empty."""
    for number in range(count):
        rows = [f"{number}/{row:05d}".encode() for row in range(number * 40)]
        records = pa.record_batch([pa.array(rows, pa.binary()), pa.array(rows, pa.binary())], schema=RAW)
        yield write_table(records, kind="ranges").data, records


def test_tables_that_are_read_together_say_what_each_says_alone():
    made = list(tables(6))
    opened = [Table.from_bytes(data, f"table {number}") for number, (data, _) in enumerate(made)]
    assert [found.equals(records) for found, (_, records) in zip(read_together(opened), made, strict=True)] == [
        True
    ] * 6
    assert read_together([]) == []


@pytest.mark.parametrize("damaged", range(1, 6))
def test_of_tables_that_are_read_together_the_damaged_one_is_blamed(damaged):
    made = [data for data, _ in tables(6)]
    opened = []
    for number, data in enumerate(made):
        if number == damaged:
            data = data[:20] + bytes([data[20] ^ 1]) + data[21:]
        opened.append(Table.from_bytes(data, f"table {number}"))
    with pytest.raises(CorruptTable) as raised:
        read_together(opened)
    assert raised.value.name == f"table {damaged}"


def test_a_table_whose_blocks_cannot_be_decoded_is_blamed_though_its_checksums_are_right(monkeypatch):
    """Where checksums were made of what is wrong already: only decoding finds it, and that is done for all at once."""
    opened = [Table.from_bytes(data, f"table {number}") for number, (data, _) in enumerate(tables(4))]
    real = Table.blocks

    def wrong(table):
        found = real(table)
        if table.name == "table 2":
            found.data[: len(found.data) // 2] = 0xFF
        return found

    monkeypatch.setattr(Table, "blocks", wrong)
    with pytest.raises(CorruptTable) as raised:
        read_together(opened)
    assert raised.value.name == "table 2"


def test_no_row_passes_from_one_table_to_the_next():
    """Each has as many as it says, whatever stands beside it: one that says otherwise is refused."""
    made = list(tables(5))
    opened = [Table.from_bytes(data, str(number)) for number, (data, _) in enumerate(made)]
    sizes = [found.num_rows for found in read_together(opened)]
    assert sizes == [records.num_rows for _, records in made]
    assert all(after - before == 40 for before, after in pairwise(sizes))
    assert np.cumsum(sizes)[-1] == 400
