"""A file is parsed once for as long as its bytes are the same, and fetched each time."""

from contextlib import suppress

import pytest

from desilt.errors import DamagedAsset
from desilt.icechunk import history
from desilt.icechunk.format import states
from desilt.icechunk.format.memo import LEAST, Memo


def read(memo, name, data, made):
    return memo.of(name, data, lambda: made.append(name) or data.decode())


def test_the_same_bytes_are_read_once_and_others_anew():
    memo, made = Memo(), []
    for name, data in (("a", b"1"), ("a", b"1"), ("a", b"2"), ("b", b"1"), ("a", b"1")):
        assert read(memo, name, data, made) == data.decode()
    assert made == ["a", "a", "b"]


def test_what_was_asked_for_longest_ago_makes_room():
    memo, made = Memo(room=2 * LEAST), []
    for name in "abacabaca":
        read(memo, name, b"1", made)
    assert made == ["a", "b", "c", "b", "c"]


def test_what_has_no_room_is_read_each_time():
    memo, made = Memo(room=LEAST), []
    for _ in range(2):
        read(memo, "a", bytes(LEAST + 1), made)
        read(memo, "b", b"1", made)
    assert made == ["a", "b", "a", "b"]  # it drives out what is there, and goes first itself


def test_what_is_refused_is_refused_each_time():
    memo = Memo()

    def refuse():
        raise DamagedAsset("a", "it is damaged")

    for _ in range(2):
        with pytest.raises(DamagedAsset):
            memo.of("a", b"1", refuse)


def test_a_snapshot_file_that_was_written_anew_is_read_anew(world):
    """As expiration of format 1 does it: with another parent, under the same name."""
    first = world.commit(a=[1])
    tip = world.commit(a=[2])
    key = f"snapshots/{tip}"
    before = states.fetch(world.store, tip)
    assert states.fetch(world.store, tip) is before
    data = world.file(key)
    damaged = data[:-5] + bytes([data[-5] ^ 1]) + data[-4:]
    world.store.put(key, [damaged])
    with suppress(DamagedAsset):
        assert states.fetch(world.store, tip) is not before
    world.store.put(key, [data])
    assert states.fetch(world.store, tip) is before
    assert first in history.history(world.store).seen.commits
