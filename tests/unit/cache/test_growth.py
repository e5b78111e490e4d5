"""Cache files that grow together hold what the ranges hold, whatever happens on the way."""

import json
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desilt.cache import growth
from desilt.cache import ranges as range_cache
from desilt.cache.known import sound
from desilt.cache.ranges import FOLDER, distrust
from desilt.columns import classes
from desilt.columns.files import Files
from desilt.errors import NotReadBack
from desilt.testing.faults import After, Before, Crash, Steps, stepped
from range_days import DECODER, PREFIX, Days


@pytest.fixture(autouse=True, scope="module")
def small():
    """Three files are many, and ten rows are much."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"FEW": 3, "SMALLEST": 8, "LARGE": 60, "MOST": 90}.items():
            patch.setattr(classes, name, value)
        yield


@pytest.fixture
def days(tmp_path):
    """Three days, a file each, about to grow together."""
    made = Days(tmp_path)
    for _ in range(3):
        made.add(2, 3)
        made.placed()
    assert len(made.files()) == 6
    return made


def merged(days):
    """The only file that replaces others."""
    (one,) = (one for one in sound(days.store, PREFIX + FOLDER, {}) if one.replaces)
    return one


DAY = st.tuples(
    st.lists(st.integers(0, 6), max_size=3),  # ranges, by their sizes
    st.lists(st.integers(0, 30), max_size=2),  # ranges that go
    st.booleans(),  # and come back
    st.integers(0, 30),  # a job that wants less than all of them
)


@given(st.lists(DAY, max_size=12))
@settings(max_examples=40, deadline=None)
def test_any_days_leave_what_the_ranges_hold(life):
    with tempfile.TemporaryDirectory() as directory:
        days, gone = Days(directory), []
        for sizes, going, back, some in life:
            days.add(*sizes)
            if back and gone:
                days.put_back(*gone.pop())
            days.placed(wanted=days.wanted[some % 7 :: 2])
            gone.append(days.forget(*going))
            assert days.held() == days.straight()
            assert days.held() == days.straight()  # and once more, from what that left


def test_a_year_of_days_leaves_few_files(tmp_path):
    days, read = Days(tmp_path), []
    for _ in range(120):
        days.add(2)
        read.append(len(days.placed()))
    assert max(read) <= 3 * classes.FEW + sum(one.count for one in days.wanted) // classes.LARGE + 2
    assert days.held() == days.straight()


def test_what_is_replaced_is_not_even_asked(days, monkeypatch):
    old = days.files()
    days.placed()
    asked, get = [], type(days.store).get
    monkeypatch.setattr(type(days.store), "get", lambda self, key, **part: asked.append(key) or get(self, key, **part))
    (one,) = days.placed()
    assert asked == [one.file.key.replace(".parquet", ".json")]
    assert old < days.files()  # nothing is removed here


def test_merged_twice_is_merged_once(days):
    files = sound(days.store, PREFIX + FOLDER, {})
    (piece,) = growth.pieces(days.store.uri, PREFIX + FOLDER, files, [], {one.id for one in days.wanted})
    assert [growth.merge(piece), growth.merge(piece)] == ["", ""]
    once = {key: days.store.get(key) for key in days.files()}
    growth.merge(piece)
    assert once == {key: days.store.get(key) for key in days.files()}
    assert days.held() == days.straight()


def test_two_that_merge_different_files_at_once_do_no_harm(days):
    stale = sound(days.store, PREFIX + FOLDER, {})
    there = {one.id for one in days.wanted}
    days.placed()
    days.add(4)
    days.placed()
    for piece in growth.pieces(days.store.uri, PREFIX + FOLDER, [*stale, stale[0]], [], there):
        growth.merge(piece)
    for _ in range(4):
        assert days.held() == days.straight()
        days.add(5)


@pytest.mark.parametrize("crash", [kind(number) for number in range(12) for kind in (Before, After)])
def test_killed_at_any_step_the_next_run_has_everything(days, monkeypatch, crash):
    days.add(3)
    store = stepped(days.store, Steps(crash))
    with monkeypatch.context() as patch:
        for module in (growth, range_cache):
            patch.setattr(module, "open_store", lambda _: store)
        try:
            days.placed(store)
        except Crash:
            pass
        else:
            assert crash.number > 5  # there were no more steps than that
    assert days.held() == days.straight()


def test_a_merge_that_would_lose_an_entry_is_refused(days, monkeypatch):
    """Whatever a reader lost: then those files are not believed, and their ranges are decoded again."""
    real = Files.rows
    with monkeypatch.context() as patch:
        patch.setattr(Files, "rows", lambda *asked: real(*asked).slice(1))
        days.placed()
        assert not [one for one in sound(days.store, PREFIX + FOLDER, {}) if one.replaces]
    assert days.held() == days.straight()


def test_a_merge_that_drops_rows_itself_leaves_no_word(days, monkeypatch):
    real = growth._taken
    with monkeypatch.context() as patch:
        patch.setattr(growth, "_taken", lambda *asked: real(*asked).slice(1))
        with pytest.raises(NotReadBack, match="lost on the way"):
            days.placed()
    assert not [one for one in sound(days.store, PREFIX + FOLDER, {}) if one.replaces]
    assert days.held() == days.straight()


def test_a_damaged_file_is_not_merged_but_decoded_again(days):
    key = min(key for key in days.files() if key.endswith(".parquet"))
    data = bytearray(days.store.get(key))
    data[20] ^= 0xFF
    days.store.put(key, [bytes(data)])
    assert days.held() == days.straight()


def test_a_merged_file_that_turns_out_damaged_gives_way_to_what_it_replaced(days):
    (one,) = days.placed()
    data = bytearray(days.store.get(one.file.key))
    data[20] ^= 0xFF
    days.store.put(one.file.key, [bytes(data)])
    with pytest.raises(NotReadBack):
        days.held()
    distrust(days.store, one.file.key)
    assert days.held() == days.straight()


@pytest.mark.parametrize("still_there", [True, False], ids=["replaced files there", "tidied up"])
@pytest.mark.parametrize("lie", ["entries", "owned", "bytes", "rows"])
def test_a_merged_file_that_says_less_than_there_is_is_not_believed(days, lie, still_there):
    days.placed()
    one = merged(days)
    word = one.file.key.replace(".parquet", ".json")
    said = json.loads(days.store.get(word))
    if lie == "entries":
        said["ranges"][0][1] -= 1
    elif lie == "owned":
        said["owned"][0] -= 1
    else:
        said[lie] -= 1
    days.store.put(word, [json.dumps(said).encode()])
    if not still_there:
        days.store.delete_many(sorted(one.replaces))
    believed = sound(days.store, PREFIX + FOLDER, {listed.id: listed.count for listed in days.wanted})
    assert one.file.key not in {cached.file.key for cached in believed}
    assert days.held() == days.straight()


def test_rows_of_tables_that_are_gone_are_left_behind_and_come_back_with_them(days):
    gone = days.forget(0, 3)
    days.placed()
    one = merged(days)
    assert one.dropped == {listed.id for listed in gone[0]}
    assert one.file.rows == sum(listed.count - 1 for listed in days.wanted)
    days.put_back(*gone)
    assert days.held() == days.straight()
    days.store.delete_many([end for key in one.replaces for end in (key, key.replace(".parquet", ".json"))])
    assert days.held() == days.straight()


def test_entries_of_a_file_that_nobody_wants_today_stay_if_their_tables_do(days):
    days.placed(wanted=days.wanted[:1])
    assert {owner.id for owner in merged(days).owners} == {one.id for one in days.wanted}


@pytest.mark.parametrize("still_there", [True, False], ids=["replaced files there", "tidied up"])
def test_a_range_that_comes_back_is_decoded_into_the_file_that_it_had(tmp_path, still_there):
    """Which was replaced by one that dropped it: so now it counts again."""
    days = Days(tmp_path)
    for _ in range(3):
        days.add(2)
        days.placed()
    gone = days.forget(1)
    days.placed()
    if not still_there:
        one = merged(days)
        days.store.delete_many([end for key in one.replaces for end in (key, key.replace(".parquet", ".json"))])
    days.put_back(*gone)
    assert days.held() == days.straight()
    assert days.held() == days.straight()


def test_a_range_that_two_files_have_is_taken_once(tmp_path):
    days = Days(tmp_path)
    days.add(2, 3, 4)
    for some in (days.wanted[:2], days.wanted[1:], days.wanted[::2]):  # by runs that did not know of each other
        range_cache.decode(range_cache._piece(days.store, PREFIX, DECODER, FOLDER, some))
    files = sound(days.store, PREFIX + FOLDER, {})
    (piece,) = growth.pieces(days.store.uri, PREFIX + FOLDER, files, [], {one.id for one in days.wanted})
    growth.merge(piece)
    assert sorted(owner.id for owner in merged(days).owners) == sorted(one.id for one in days.wanted)
    assert days.held() == days.straight()


def test_a_word_that_says_wrongly_what_was_dropped_does_not_stand_in_the_way_of_what_is_decoded_again(tmp_path):
    days = Days(tmp_path)
    for _ in range(3):
        days.add(2)
        days.placed()
    gone = days.forget(1)
    days.placed()
    word = merged(days).file.key.replace(".parquet", ".json")
    said = json.loads(days.store.get(word))
    said["dropped"] = ["0" * 64]
    days.store.put(word, [json.dumps(said).encode()])
    days.put_back(*gone)
    assert days.held() == days.straight()
    assert days.held() == days.straight()
