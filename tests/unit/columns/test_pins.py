"""Objects by the sets of their pins, on hand-made pointers."""

import random

import numpy as np
import pyarrow as pa
import pytest

from desilt.columns.pins import POINTERS, counted, in_words

NONE = np.zeros(0, np.uint64)


def pointers(*rows):
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, POINTERS, strict=True)], POINTERS.names
    )


def found(rows, sets, pins=3, gone=NONE):
    return {bits: (objects, size) for bits, objects, size in counted(pointers(*rows), gone, in_words(sets, pins))}


def test_no_pointers_are_no_objects():
    assert found([], [1]) == {}
    assert found([], []) == {}


def test_an_object_is_kept_by_all_that_points_to_it_and_counts_once():
    rows = [(7, 0, 10), (8, 1, 5), (7, 1, 10), (7, 0, 10), (9, 0, 1)]
    assert found(rows, [0b001, 0b110]) == {0b111: (1, 10), 0b110: (1, 5), 0b001: (1, 1)}


def test_places_that_come_to_the_same_pins_are_one_set():
    assert found([(1, 0, 1), (1, 1, 1), (2, 2, 1)], [0b01, 0b10, 0b11]) == {0b11: (2, 2)}


def test_what_nothing_reaches_is_the_empty_set_unless_something_else_does():
    assert found([(1, 0, 4), (2, 0, 5), (2, 1, 5)], [0, 0b1]) == {0: (1, 4), 1: (1, 5)}


def test_what_is_gone_is_not_counted():
    assert found([(1, 0, 4), (2, 0, 5)], [1], gone=np.array([1, 3], np.uint64)) == {1: (1, 5)}
    assert found([(1, 0, 4)], [1], gone=np.array([1], np.uint64)) == {}
    assert found([(1, 0, 4), (2, 1, 5)], [1, 2], gone=np.array([1], np.uint64)) == {2: (1, 5)}


def test_where_entries_differ_about_a_size_the_larger_counts():
    assert found([(1, 0, 4), (1, 1, 9), (1, 0, 2)], [1, 1]) == {1: (1, 9)}


def test_bytes_beyond_what_a_float_counts_are_exact():
    many = [(number, 0, 2**55 + 1) for number in range(9)]
    assert found(many, [1]) == {1: (9, 9 * (2**55 + 1))}


@pytest.mark.parametrize("pins", [1, 63, 64, 65, 128, 1_000])
def test_any_number_of_pins(pins):
    chance = random.Random(pins)
    sets = [chance.getrandbits(pins) for _ in range(20)] + [1 << pins - 1, (1 << pins) - 1]
    rows = [(chance.randrange(2**64), place, 1 + place) for place in range(len(sets)) for _ in range(3)]
    rows += [(key, chance.randrange(len(sets)), 1) for key, _, _ in rows[::2]]
    wanted: dict[int, tuple[int, int]] = {}
    for key in {key for key, _, _ in rows}:
        mine = [(sets[place], size) for one, place, size in rows if one == key]
        bits = 0
        for one, _ in mine:
            bits |= one
        objects, size = wanted.get(bits, (0, 0))
        wanted[bits] = objects + 1, size + max(size for _, size in mine)
    chance.shuffle(rows)
    assert found(rows, sets, pins) == wanted
