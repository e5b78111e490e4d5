"""No offset is followed out of a file, and no list is longer than the file that it is in."""

import numpy as np
import pytest

from desilt.icechunk.format.buffer import IDENTIFIER, root, text_at
from desilt.icechunk.format.strides import Strides
from desilt.icechunk.format.values import flexbuffer, msgpack
from desilt.sstable.varint import Malformed


def words(*numbers):
    return b"".join((number % 2**32).to_bytes(4, "little") for number in numbers)


def at(*places):
    return np.array(places, np.int64)


# a table at 16 whose vtable is at 8: one field of four bytes, with the way to a vector of two numbers at 24
GOOD = words(16, int.from_bytes(IDENTIFIER, "little"), 6 | 8 << 16, 4, 8, 4, 2, 70, 71)


def changed(word, number):
    return GOOD[: word * 4] + words(number) + GOOD[word * 4 + 4 :]


def test_a_table_is_read_alone_and_in_a_column():
    table = root(GOOD)
    assert (table.at, table.fields, table.vector(0, 4)) == (16, (4,), (28, 2))
    column = Strides(GOOD).tables(at(16, 16))
    assert [part.tolist() for part in column.vectors(0, 4)] == [[28, 28], [2, 2]]
    assert Strides(GOOD).numbers(at(28, 32), 4).tolist() == [70, 71]
    assert not table.has(1)
    assert table.raw(1, 4) is None
    assert not column.has(1).any()


@pytest.mark.parametrize(
    ("word", "number"),
    [
        (0, 3),
        (0, 2**32 - 1),
        (0, len(GOOD) - 3),
        (1, 0),
        (2, 2 | 8 << 16),
        (2, 7 | 8 << 16),
        (2, 400 | 8 << 16),
        (2, 6 | 2 << 16),
        (2, 6 | 4 << 16),
        (2, 6 | 400 << 16),
        (3, 3),
        (3, 6),
        (4, -400),
        (4, 400),
        (5, 0),
        (5, 3),
        (5, 400),
        (6, 3),
        (6, 2**32 - 1),
    ],
)
def test_what_leads_out_of_the_contents_is_refused_alone_and_in_a_column(word, number):
    data = changed(word, number)
    with pytest.raises(Malformed):
        root(data).vector(0, 4)
    if word > 1:
        with pytest.raises(Malformed):
            Strides(data).tables(at(16)).vectors(0, 4)


@pytest.mark.parametrize("size", range(0, len(GOOD), 3))
def test_contents_that_are_cut_off_are_refused(size):
    with pytest.raises(Malformed):
        root(GOOD[:size]).vector(0, 4)


@pytest.mark.parametrize("count", [1, 3, 30])
def test_tables_with_vtables_of_their_own_are_told_apart(count):
    """A vtable of six bytes and a table of eight, so many times, each with another number."""
    data = b"".join(words(6 | 8 << 16, 4, 8, 70 + one) for one in range(count))
    column = Strides(data).tables(np.arange(count) * 16 + 8)
    assert column.numbers(0, 4).tolist() == [70 + one for one in range(count)]


@pytest.mark.parametrize("place", [-4, -1, 33, 34, 36, 2**40, 2])
def test_numbers_are_read_from_inside_alone_and_where_they_may_lie(place):
    with pytest.raises(Malformed):
        Strides(GOOD).numbers(at(0, place), 4)


def test_contents_that_end_within_a_word_are_not_read_past_their_end():
    with pytest.raises(Malformed):
        Strides(GOOD[:-1]).numbers(at(32), 4)
    with pytest.raises(Malformed):
        Strides(GOOD[:-1]).structs(at(30), 12)


def test_a_place_that_is_named_often_is_not_read_more_often_than_there_is_room():
    strides = Strides(GOOD)
    with pytest.raises(Malformed, match="more in its lists"):
        strides.spread(np.full(1000, 28), np.full(1000, 2), 4)
    with pytest.raises(Malformed, match="more in its lists"):
        strides.structs(np.full(1000, 0), 12)


def test_files_behind_one_another_are_read_as_each_is_alone():
    strides = Strides(GOOD, GOOD + b"end", GOOD)
    assert strides.begins.tolist() == [0, 40, 80]
    column = strides.tables(strides.begins + 16)
    assert [part.tolist() for part in column.vectors(0, 4)] == [[28, 68, 108], [2, 2, 2]]
    assert strides.numbers(at(28, 68, 112), 4).tolist() == [70, 70, 71]


@pytest.mark.parametrize(
    ("word", "number"),
    [(4, 8 - 40), (4, 8 + 40), (2, 6 | 24 << 16), (2, 44 | 8 << 16), (5, 44), (6, 3), (6, 12)],
    ids=["vtable after", "vtable before", "table", "vtable", "offset", "vector", "vector that ends elsewhere"],
)
def test_nothing_leads_from_one_file_into_another(word, number):
    """Though all of it would be there: the files are alike."""
    for files in ((GOOD, changed(word, number), GOOD), (changed(word, number), GOOD, GOOD)):
        with pytest.raises(Malformed):
            Strides(*files).tables(Strides(*files).begins + 16).vectors(0, 4)


def test_what_is_between_files_belongs_to_none():
    strides = Strides(GOOD[:-1], GOOD)
    assert strides.begins.tolist() == [0, 40]
    for place, width in ((32, 4), (28, 8), (36, 2), (38, 2)):
        with pytest.raises(Malformed):
            strides.numbers(at(place), width)
        with pytest.raises(Malformed):
            strides.structs(at(place), width)
    assert strides.numbers(at(28, 40), 4).tolist() == [70, 16]


def test_no_file_has_more_in_its_lists_than_it_has_room_itself():
    strides = Strides(GOOD, bytes(1000))
    with pytest.raises(Malformed, match="more in its lists"):
        strides.spread(np.full(20, 28), np.full(20, 2), 4)
    with pytest.raises(Malformed, match="more in its lists"):
        strides.structs(np.full(20, 0), 12)
    assert len(strides.spread(np.full(20, 40), np.full(20, 2), 4)) == 40
    assert strides.spread(at(1040), at(0), 4).tolist() == []  # a list of nothing at the very end


def test_vectors_are_spread_in_their_order():
    assert Strides(GOOD).spread(at(0, 8, 20), at(2, 0, 1), 4).tolist() == [0, 4, 20]


@pytest.mark.parametrize(("data", "start", "count"), [(b"ab", 0, 2), (b"abc", 0, 2), (b"\xff\0", 0, 1), (b"a\0", 0, 9)])
def test_a_text_ends_with_nothing_and_is_utf8(data, start, count):
    with pytest.raises(Malformed):
        text_at(data, start, count)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"\xc0", None),
        (b"\xc3", True),
        (b"\x7f", 127),
        (b"\xff", -1),
        (b"\xcd\x01\x00", 256),
        (b"\xd1\xff\x00", -256),
        (b"\xd3" + b"\xff" * 8, -1),
        (b"\xcb\x40\x04" + bytes(6), 2.5),
        (b"\xa2\xc3\xbc", "ü"),
        (b"\xd9\x01a", "a"),
        (b"\x92\x01\xa1b", [1, "b"]),
        (b"\xdc\x00\x01\xc2", [False]),
        (b"\x81\xa1a\x80", {"a": {}}),
        (b"\xde\x00\x01\xa1a\x01", {"a": 1}),
        (b"\xc4\x02\x01\xff", "01ff"),
    ],
)
def test_values_of_msgpack(raw, value):
    assert msgpack(raw) == value
    for broken in (raw + b"\0", raw[:-1], b"\xc1", b"\x91" * 200, b"\xdd\xff\xff\xff\xff", b"\xa1\xff"):
        with pytest.raises(Malformed):
            msgpack(broken)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("0102024401", [1, 2]),
        ("010203035001", [1, 2, 3]),
        ("04ff02030404080808082801", [-1, 2, 3, 4]),
        ("0000c03f00002040084a01", [1.5, 2.5]),
        ("050102030405053001", [1, 2, 3, 4, 5]),
        ("0102000000006040000080bf0000004002110e4456042801", [[1, 2], [3.5, -1.0, 2.0]]),
        ("020100029001", [True, False]),
        ("610000002c01000070110100010d0101010d46022401", {"a": [300, 70000]}),
    ],
)
def test_lists_of_numbers_are_read_as_the_library_writes_them(raw, value):
    """Two, three or four of a type have types of their own, and no length."""
    assert flexbuffer(bytes.fromhex(raw)) == value


def test_values_of_flexbuffers_are_read_however_damaged_they_are():
    good = b"a\0b\0\x02\x05\x04\x02\x01\x02\x07\x08\x04\x04\x04\x24\x01"
    assert flexbuffer(good) == {"a": 7, "b": 8}
    assert flexbuffer(b"\x00\x00\x01") is None
    for place in range(len(good)):
        for byte in range(256):
            try:
                flexbuffer(good[:place] + bytes([byte]) + good[place + 1 :])
            except Malformed:
                continue
    for broken in (b"", b"\0", b"\1\1", b"\xff\x28\x01", b"\x00\xff\x01", b"\x01\x0c\x03"):
        with pytest.raises(Malformed):
            flexbuffer(broken)
