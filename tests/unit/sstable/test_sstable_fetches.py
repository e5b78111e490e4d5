"""What is read of a file, and what is not."""

import pytest

from desilt.sstable.table import Table
from sstable_records import pairs_of


class Store:
    """Bytes that count how they are asked for."""

    def __init__(self, data):
        self.data, self.asked = data, []

    def fetch(self, start, length):
        self.asked.append((start, length))
        return self.data[start : start + length]

    def open(self):
        return Table.open(self.fetch, len(self.data), "counted")


def test_opening_reads_the_tail_once_and_get_one_block(two_level):
    data, records = two_level
    store = Store(data)
    table = store.open()
    assert store.asked == [(len(data) - 65536, 65536)]
    assert table.get(records[3][0]) == records[3][1]
    assert len(store.asked) == 2
    start, length = store.asked[1]
    assert (start in table._index.offsets, length < 6000) == (True, True)


def test_a_real_table_is_opened_with_one_read_and_looked_up_with_another(real):
    store = Store(real("56569996.sst"))
    table = store.open()
    key = pairs_of(*table.scan())[100][0]
    del store.asked[:]
    assert table.get(key) is not None
    assert len(store.asked) == 1


def test_an_index_that_reaches_beyond_the_tail_costs_one_more_read(two_level, monkeypatch):
    data, records = two_level
    monkeypatch.setattr("desilt.sstable.source.TAIL", 3000)
    store = Store(data)
    table = store.open()
    assert len(store.asked) == 2
    assert table.get(records[200][0]) == records[200][1]
    assert len(store.asked) == 3


def test_a_key_beyond_the_last_block_is_known_to_be_missing_without_a_read(many_blocks):
    store = Store(many_blocks[0])
    table = store.open()
    del store.asked[:]
    assert table.get(b"zzz") is None
    assert store.asked == []


def test_a_scan_reads_only_the_blocks_its_bounds_ask_for(two_level):
    data, records = two_level
    store = Store(data)
    table = store.open()
    del store.asked[:]
    assert pairs_of(*table.scan(records[40][0], records[44][0])) == records[40:44]
    assert sum(length for _, length in store.asked) < 10_000
    del store.asked[:]
    next(table.scan())
    assert sum(length for _, length in store.asked) <= 65_536


@pytest.mark.parametrize("bounds", [(b"b", b"a"), (b"a", b"a")])
def test_empty_bounds_read_nothing(many_blocks, bounds):
    store = Store(many_blocks[0])
    table = store.open()
    del store.asked[:]
    assert list(table.scan(*bounds)) == []
    assert store.asked == []
