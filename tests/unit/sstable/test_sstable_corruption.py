"""Damage of every kind: the answer is right or the table is corrupt, and nothing else ever happens."""

import contextlib
from itertools import pairwise

import cramjam
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from desilt.errors import CorruptTable
from desilt.sstable import blocks
from desilt.sstable.decode import decode
from desilt.sstable.table import Table
from desilt.sstable.varint import Malformed, encode
from desilt.sstable.writer import write_table
from sstable_records import pairs_of, raw, the_range, two_levels, unhurried

SMALL = the_range().data
SMALL_PAIRS = pairs_of(Table.from_bytes(SMALL, "small").read())
TWO_LEVELS = two_levels()
LARGE = write_table(raw(TWO_LEVELS), kind="ranges").data


def decoded(block):
    return decode(blocks.Blocks(np.frombuffer(block, np.uint8), np.array([len(block)])))


def unsealed(*stored):
    """Blocks out of what they are stored in, all at once."""
    bounds = np.cumsum([0, *map(len, stored)])
    found = blocks.unseal_all(memoryview(b"".join(stored)), bounds)
    ends = np.cumsum(found.sizes).tolist()
    return [bytes(found.data[start:end]) for start, end in pairwise([0, *ends])]


UNSEAL = [lambda stored: blocks.unseal(memoryview(stored)), lambda stored: unsealed(stored)[0]]
one_or_all = pytest.mark.parametrize("unseal", UNSEAL, ids=["one", "all"])


def assert_corrupt(data):
    with pytest.raises(CorruptTable):
        Table.from_bytes(data, "damaged").read()


def assert_right_or_corrupt(data, pairs):
    """get and scan read only what they need, so they may not notice; but then they are right."""
    try:
        table = Table.from_bytes(data, "damaged")
    except CorruptTable:
        return
    for key, value in pairs:
        with contextlib.suppress(CorruptTable):
            assert table.get(key) == value
    with contextlib.suppress(CorruptTable):
        assert pairs_of(*table.scan()) == pairs


@pytest.mark.parametrize("bits", [0x01, 0x80, 0xFF])
def test_no_byte_of_a_table_can_change_unnoticed(bits):
    for place in range(len(SMALL)):
        damaged = bytearray(SMALL)
        damaged[place] ^= bits
        assert_corrupt(bytes(damaged))
        if place % 5 == 0:
            assert_right_or_corrupt(bytes(damaged), SMALL_PAIRS)


def test_no_end_can_be_missing_and_nothing_can_follow():
    for size in range(len(SMALL)):
        assert_corrupt(SMALL[:size])
    for more in (b"\0", b"garbage", bytes(53), SMALL[-53:], SMALL):
        assert_corrupt(SMALL + more)
        assert_corrupt(more + SMALL)


def test_nothing_can_be_hidden_between_blocks():
    """A block that nothing points to, with the footer moved to fit: only the accounting of bytes can see it."""
    footer = blocks.decode_footer(SMALL[-53:])
    extra = blocks.seal(b"hidden", compress=False)
    body = SMALL[: footer.metaindex.offset] + extra + SMALL[footer.metaindex.offset : -53]
    moved = blocks.BlockHandle(footer.metaindex.offset + len(extra), footer.metaindex.size)
    damaged = body + blocks.Footer(moved, footer.index).encode()
    assert pairs_of(*Table.from_bytes(damaged, "hidden").scan()) == SMALL_PAIRS
    assert_corrupt(damaged)


flips = st.lists(
    st.tuples(st.integers(0, len(LARGE) - 1), st.integers(1, 255)),
    min_size=1,
    max_size=4,
    unique_by=lambda flip: flip[0],
)
near_the_end = st.lists(
    st.tuples(st.integers(len(LARGE) - 12_000, len(LARGE) - 1), st.integers(1, 255)),
    min_size=1,
    max_size=4,
    unique_by=lambda flip: flip[0],
)


@settings(unhurried, max_examples=150)
@given(st.one_of(flips, near_the_end))
def test_damage_anywhere_in_a_large_table_is_noticed(damage):
    damaged = bytearray(LARGE)
    for place, bits in damage:
        damaged[place] ^= bits
    assert_corrupt(bytes(damaged))
    assert_right_or_corrupt(bytes(damaged), TWO_LEVELS)


def resealed(pairs, change):
    """A one-block table whose data block was changed after it was built, with checksums that are right."""
    data = write_table(raw(pairs), kind="ranges").data
    footer = blocks.decode_footer(data[-53:])
    ((_, handle),) = blocks.entries(blocks.unseal(memoryview(data)[footer.index.offset : footer.index.end]))
    where, _ = blocks.decode_handle(handle)
    block = blocks.unseal(memoryview(data)[where.offset : where.end])
    changed = change(block)
    assert len(changed) == len(block)
    return blocks.seal(changed, compress=False) + data[where.end :]


FEW = [(b"%d%d" % (n, n), bytes([n]) * n) for n in range(1, 9)]


@unhurried
@given(st.lists(st.tuples(st.integers(0, 10**4), st.integers(0, 255)), min_size=1, max_size=3))
@example([(0, 255)])
def test_a_block_of_nonsense_with_a_right_checksum_is_read_right_or_refused(damage):
    def change(block):
        changed = bytearray(block)
        for place, byte in damage:
            changed[place % len(block)] = byte
        return bytes(changed)

    try:
        found = pairs_of(Table.from_bytes(resealed(FEW, change), "nonsense").read())
    except CorruptTable:
        return
    assert [key for key, _ in found] == sorted({key for key, _ in found})
    assert len(found) == len(FEW)


@st.composite
def damaged_blocks(draw):
    """A block as it should be, but for a byte or two."""
    keys = sorted(draw(st.sets(st.binary(max_size=5), min_size=1, max_size=9)))
    records = [(key + b"\1" + bytes(7), key) for key in keys]
    block = bytearray(blocks.build(records, interval=draw(st.integers(1, 9))))
    for place, byte in draw(st.lists(st.tuples(st.integers(0, 10**4), st.integers(0, 20)), max_size=2)):
        block[place % len(block)] = byte
    return bytes(block)


@settings(unhurried, max_examples=400)
@given(st.one_of(st.binary(max_size=80), damaged_blocks()))
@example(
    blocks.build([(b"a" + bytes(8), b""), (b"b" + bytes(8), b"")], interval=9).replace(b"\0\x09\0b", b"\x0b\x09\0b")
)
@example(blocks.build([(b"a" + bytes(8), b"v")], interval=9).replace(b"\0\x09\1a", b"\0\x09\2a"))
def test_any_block_is_read_alike_by_both_readers_or_refused(block):
    try:
        found = decoded(block)
    except Malformed:
        return
    whole = list(blocks.entries(block))
    assert [key[:-8] for key, _ in whole] == found.keys.to_pylist()
    assert [value for _, value in whole] == found.values.to_pylist()


def test_a_key_without_its_suffix_is_refused():
    with pytest.raises(Malformed, match="too short"):
        decoded(blocks.build([(b"a" + bytes(8), b""), (b"short", b"")], interval=1))


@pytest.mark.parametrize("restarts", [[12], [0, 12, 12], [0, 12, 24], [12, 0], [0, 12, 0], [0, 13], [0, 2**32 - 1], []])
def test_restarts_that_are_not_those_of_the_entries_are_refused(restarts):
    body = blocks.build([(b"a" + bytes(8), b""), (b"b" + bytes(8), b"")], interval=1)[:-12]
    assert len(decoded(body + bytes(4) + b"\x0c\0\0\0" + b"\2\0\0\0").keys) == 2
    with pytest.raises(Malformed):
        decoded(body + b"".join(at.to_bytes(4, "little") for at in [*restarts, len(restarts)]))


@one_or_all
@pytest.mark.parametrize("claim", [2**20, 2**32 - 1, 2**40, 2**63])
def test_a_block_that_claims_to_be_huge_is_refused_before_memory_is_taken(claim, unseal):
    body = encode(claim) + b"\x00a"
    stored = body + b"\1" + blocks.checksum(body, b"\1")
    with pytest.raises(Malformed, match="claims"):
        unseal(stored)


@one_or_all
def test_the_best_that_snappy_can_do_is_believed(unseal):
    block = bytes(2**20)
    stored = blocks.seal(block, compress=True)
    assert len(stored) < len(block) / 15
    assert unseal(stored) == block


@one_or_all
def test_snappy_nonsense_with_a_right_checksum_is_refused(unseal):
    body = bytes(cramjam.snappy.compress_raw(b"abc" * 100))[:-3]
    with pytest.raises(Malformed, match="decompressed"):
        unseal(body + b"\1" + blocks.checksum(body, b"\1"))


@one_or_all
def test_a_block_compressed_in_a_way_that_nobody_knows_is_refused(unseal):
    with pytest.raises(Malformed, match=r"unknown way \(7\)"):
        unseal(b"abc\7" + blocks.checksum(b"abc", b"\7"))


@st.composite
def sealed_blocks(draw):
    """Blocks as they are stored; of some a byte is another, and of those the checksum may be right all the same."""
    stored = bytearray(
        blocks.seal(draw(st.binary(max_size=60)) * draw(st.integers(1, 9)), compress=draw(st.booleans()))
    )
    if draw(st.integers(0, 3)) == 0:
        stored[draw(st.integers(0, len(stored) - 1))] = draw(st.integers(0, 255))
        if draw(st.booleans()):
            stored[-4:] = blocks.checksum(bytes(stored[:-5]), bytes(stored[-5:-4]))
    return bytes(stored)


@settings(unhurried, max_examples=300)
@given(st.lists(sealed_blocks(), min_size=1, max_size=5))
@example([b"\1" + blocks.checksum(b"", b"\1")])  # compressed, and without so much as a length
@example([b"\0\1" + blocks.checksum(b"\0", b"\1")])  # compressed, and of no length
@example([b"\x80\1" + blocks.checksum(b"\x80", b"\1"), blocks.seal(b"next", compress=False)])
def test_many_blocks_are_unsealed_as_each_alone_would_be_or_refused(stored):
    try:
        alone = [blocks.unseal(memoryview(one)) for one in stored]
    except Malformed:
        with pytest.raises(Malformed):
            unsealed(*stored)
    else:
        assert unsealed(*stored) == alone


@pytest.mark.parametrize(
    "astray", [blocks.BlockHandle(10**9, 5), blocks.BlockHandle(1000, 10**9), blocks.BlockHandle(2**63, 2**63)]
)
def test_nothing_is_asked_for_that_lies_outside_the_file(astray):
    footer = blocks.decode_footer(SMALL[-53:])
    damaged = SMALL[:-53] + blocks.Footer(astray, footer.index).encode()
    with pytest.raises(CorruptTable, match="outside itself"):
        Table.from_bytes(damaged, "astray")


def test_a_store_that_gives_too_little_is_noticed():
    with pytest.raises(CorruptTable, match="shorter"):
        Table.open(lambda start, length: SMALL[start : start + length - 1], len(SMALL), "short")
