"""Tables whose every checksum is right and that are wrong all the same."""

import pytest

from desilt.errors import CorruptTable
from desilt.sstable.blocks import BlockHandle, build, seal
from desilt.sstable.builder import Builder, Totals
from desilt.sstable.index import read_index
from desilt.sstable.source import in_memory
from desilt.sstable.table import Table
from desilt.sstable.varint import Malformed
from sstable_records import pairs_of

SET, DELETE, LATER = b"\1" + bytes(7), bytes(8), b"\1\1" + bytes(6)


def block(*keys, suffix=SET):
    return build([(key + suffix, b"v") for key in keys], interval=16)


def forged(*parts, count, key_bytes=None, value_bytes=None):
    """A table of blocks, each with the key its separator is made of and the one after."""
    builder = Builder()
    for content, last, following in parts:
        builder.add(content, last=last, following=following)
    totals = Totals(b"", b"", count, count if key_bytes is None else key_bytes, value_bytes or count)
    return Table.from_bytes(builder.close(kind="ranges", totals=totals, estimate=0), "forged")


def test_a_table_put_together_rightly_is_no_forgery():
    table = forged((block(b"a", b"b"), b"b", b"d"), (block(b"d"), b"d", None), count=3)
    assert pairs_of(table.read()) == [(b"a", b"v"), (b"b", b"v"), (b"d", b"v")]


@pytest.mark.parametrize("suffix", [DELETE, LATER])
def test_a_deletion_or_a_later_version_is_refused(suffix):
    table = forged((block(b"a", suffix=suffix), b"a", None), count=1)
    for ask in (table.read, lambda: list(table.scan()), lambda: table.get(b"a")):
        with pytest.raises(CorruptTable, match="other than values"):
            ask()


@pytest.mark.parametrize("keys", [(b"b", b"a"), (b"a", b"a")])
def test_keys_out_of_order_are_refused(keys):
    table = forged((block(*keys), b"b", None), count=2)
    for ask in (table.read, lambda: list(table.scan())):
        with pytest.raises(CorruptTable, match="keys are not in order"):
            ask()


@pytest.mark.parametrize(
    "parts",
    [
        [(block(b"a", b"f"), b"a", b"c"), (block(b"g"), b"g", None)],  # a key above its block's separator
        [(block(b"a"), b"f", b"h"), (block(b"b", b"h"), b"h", None)],  # a key not above the separator before
    ],
)
def test_an_index_that_would_lead_past_a_key_is_refused(parts):
    table = forged(*parts, count=3)
    for ask in (table.read, lambda: list(table.scan())):
        with pytest.raises(CorruptTable, match="index does not agree"):
            ask()


def test_a_block_that_begins_before_its_turn_is_refused_when_it_is_read_alone():
    table = forged((block(b"a"), b"f", b"h"), (block(b"b", b"h"), b"h", None), count=3)
    with pytest.raises(CorruptTable, match="index does not agree"):
        list(table.scan(b"h"))


def test_an_index_out_of_order_is_refused():
    with pytest.raises(CorruptTable, match="index is not in order"):
        forged((block(b"p"), b"p", b"q"), (block(b"b"), b"b", None), count=2)


def test_an_empty_block_among_others_is_refused():
    table = forged((block(b"a"), b"a", b"c"), (build([], interval=1), b"d", None), count=1)
    with pytest.raises(CorruptTable, match="block is empty"):
        table.read()


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"count": 1}, "holds 2 records"),
        ({"count": 3}, "holds 2 records"),
        ({"count": 2, "key_bytes": 7}, "another size"),
        ({"count": 2, "value_bytes": 7}, "another size"),
    ],
)
def test_a_table_that_counts_wrongly_is_refused(said, reason):
    with pytest.raises(CorruptTable, match=reason):
        forged((block(b"a", b"b"), b"b", None), **said).read()


@pytest.mark.parametrize("of_lakefs", [True, False])
def test_a_table_is_held_to_both_of_its_counts(of_lakefs):
    table = forged((block(b"a", b"b"), b"b", None), count=2)
    if not of_lakefs:
        table.properties = {name: said for name, said in table.properties.items() if name != "count"}
    assert table.read().num_rows == 2
    table.count = 3
    with pytest.raises(CorruptTable, match="holds 2 records"):
        table.read()


def index_file(top, *partitions):
    """A file that holds an index and nothing else, and where its root is."""
    stored = b"".join(partitions) + top
    return in_memory(stored + bytes(53)), BlockHandle(len(stored) - len(top), len(top) - 5)


def part(*entries):
    return seal(build([(key + SET, handle.encode()) for key, handle in entries], interval=1), compress=False)


def test_an_index_whose_levels_disagree_is_refused():
    partition = part((b"a", BlockHandle(0, 5)), (b"b", BlockHandle(10, 5)))
    for key, fits in [(b"b", True), (b"c", False)]:
        source, root = index_file(part((key, BlockHandle(0, len(partition) - 5))), partition)
        if fits:
            assert read_index(source, root, two_levels=True).keys == [b"a", b"b"]
        else:
            with pytest.raises(Malformed, match="levels"):
                read_index(source, root, two_levels=True)


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (BlockHandle(11, 5), "follow"),
        (BlockHandle(9, 5), "follow"),
        (BlockHandle(10, 500), "not where"),
        (BlockHandle(10, 2**62), "nowhere"),
        (BlockHandle(2**63, 5), "nowhere"),
    ],
)
def test_an_index_that_points_astray_is_refused(second, reason):
    source, root = index_file(part((b"a", BlockHandle(0, 5)), (b"b", second)))
    with pytest.raises(Malformed, match=reason):
        read_index(source, root, two_levels=False)


def test_a_first_block_that_is_not_at_the_start_is_refused():
    source, root = index_file(part((b"a", BlockHandle(3, 5))))
    with pytest.raises(Malformed, match="not where"):
        read_index(source, root, two_levels=False)
