"""Rows of a plan: read in part, each as it was planned, or refused."""

import io
import json
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from desilt.columns.schemas import PLAN
from desilt.errors import DamagedRun
from desilt.objects.memory import MemoryStore
from desilt.runs import facts, plan_files
from desilt.runs.plan_files import BATCHES_TO_A_GROUP, GROUPS_TO_A_FILE, Window, read, sections, write, write_one
from desilt.runs.steps import PlanFile

KEY = "plan/part-00000.parquet"
GROUP = BATCHES_TO_A_GROUP  # rows, where a batch is one object
OLD = datetime(2026, 1, 1, tzinfo=UTC)


def rows(count, first=0):
    numbers = range(first, first + count)
    said = [["remove"] * count, ["unreferenced"] * count, [f"for {number % 3} reasons" for number in numbers]]
    times = [OLD if number % 5 else None for number in numbers]
    return pa.table([[f"branches/b/p/{number:06d}" for number in numbers], list(numbers), times, *said], schema=PLAN)


def memory():
    store = MemoryStore()
    store.delete_batch = 1
    return store


@pytest.fixture
def store():
    return memory()


@pytest.fixture
def file(store):
    """One of three and a half row groups."""
    (made,) = write(store, KEY, rows(3 * GROUP + GROUP // 2))
    return made


def refused(store, file, first=0, last=None, match="not what was planned"):
    with pytest.raises(DamagedRun, match=match):
        read(store, file, first, last)


@pytest.mark.parametrize("count", [1, GROUP - 1, GROUP, GROUP + 1, 3 * GROUP])
def test_what_is_written_is_read(store, count):
    (file,) = write(store, KEY, rows(count))
    assert (file.key, file.rows, file.bytes, file.group) == (KEY, count, sum(range(count)), GROUP)
    assert len(file.sections) == -(-count // GROUP) + 1
    assert file.sections[-1].end == len(store.get(KEY))
    assert read(store, file).combine_chunks().equals(rows(count))
    assert pq.read_table(io.BytesIO(store.get(KEY))).equals(rows(count))  # and anybody else can read it


def test_rows_are_in_order_of_addresses_so_that_a_batch_is_of_neighbours(store):
    some = rows(2 * GROUP + 1)
    (file,) = write(store, KEY, some.take(list(range(1, len(some), 2)) + list(range(0, len(some), 2))))
    assert read(store, file).combine_chunks().equals(some)


def test_no_rows_are_no_file(store):
    assert write(store, KEY, rows(0)) == ()
    assert list(store.list("")) == []


def test_many_rows_are_several_files(store):
    most = GROUP * GROUPS_TO_A_FILE
    files = write(store, KEY, rows(2 * most + 1))
    assert [file.rows for file in files] == [most, most, 1]
    assert len({file.key for file in files}) == 3
    assert max(len(file.sections) for file in files) == GROUPS_TO_A_FILE + 1
    assert pa.concat_tables([read(store, file) for file in files]).combine_chunks().equals(rows(2 * most + 1))


@given(st.integers(1, 4 * GROUP), st.data())
def test_any_run_of_rows_is_read_alone(count, data):
    store = memory()
    (file,) = write(store, KEY, rows(count))
    first = data.draw(st.integers(0, count))
    last = data.draw(st.integers(first, count))
    assert read(store, file, first, last).combine_chunks().equals(rows(last - first, first))


def test_only_the_row_groups_of_the_rows_are_fetched(store, file, monkeypatch):
    asked, get = [], MemoryStore.get
    monkeypatch.setattr(
        MemoryStore,
        "get",
        lambda *words, start, length: asked.append((start, length)) or get(*words, start=start, length=length),
    )
    ends = [section.end for section in file.sections]
    read(store, file, GROUP, 2 * GROUP)
    assert asked == [(ends[0], ends[1] - ends[0]), (ends[3], ends[4] - ends[3] + 1)]


def test_every_byte_is_in_a_section_and_every_changed_one_is_refused(store, file):
    """Where the byte is in the rows asked for, or in the footer; the others are what they were."""
    sound, starts = store.get(KEY), [0, *(section.end for section in file.sections)]
    for at in range(len(sound)):
        raw = bytearray(sound)
        raw[at] ^= 0x10
        store.put(KEY, [bytes(raw)])
        (hit,) = (place for place in range(len(file.sections)) if starts[place] <= at < starts[place + 1])
        for number in range(4):
            first, last = number * GROUP, min((number + 1) * GROUP, file.rows)
            if hit in (number, 4):
                refused(store, file, first, last)
            elif at % 16 == 0:
                assert read(store, file, first, last).combine_chunks().equals(rows(last - first, first))


@pytest.mark.parametrize("length", [0, 1, 4, 500, -1, -8, -300])
def test_a_file_that_was_cut_short_is_refused_whatever_is_asked_for(store, file, length):
    store.put(KEY, [store.get(KEY)[:length]])
    for number in range(4):
        refused(store, file, number * GROUP, number * GROUP + 1)


def test_a_file_with_more_behind_it_is_refused(store, file):
    store.put(KEY, [store.get(KEY) + b"."])
    refused(store, file, 0, 1)


def test_a_file_that_is_missing_is_refused(file):
    refused(MemoryStore(), file, match="missing")


def test_the_file_of_another_run_is_refused(store, file):
    write(store, KEY, rows(file.rows, first=1000))
    refused(store, file, 0, 1)


@pytest.mark.parametrize("number", range(4))
def test_the_same_rows_in_another_order_are_refused(store, file, number):
    """Though each of them was planned: batches are known by their number."""
    places = list(range(file.rows))
    first, last = number * GROUP, min((number + 1) * GROUP, file.rows)
    places[first:last] = reversed(places[first:last])
    other = write_one(store, KEY, rows(file.rows).take(pa.array(places)), GROUP)
    assert (other.rows, other.bytes) == (file.rows, file.bytes)
    refused(store, file, first, last)


def test_row_groups_that_changed_places_are_refused(store, file):
    data, (a, b, *_) = store.get(KEY), (section.end for section in file.sections)
    store.put(KEY, [data[a:b] + data[:a] + data[b:]])
    refused(store, file, 0, GROUP)
    refused(store, file, GROUP, 2 * GROUP)


def test_a_plan_that_does_not_say_where_rows_are_is_refused(store, file):
    refused(store, replace(file, sections=file.sections[1:]), match="that the plan knows of")
    refused(store, replace(file, group=GROUP // 2), match="that the plan knows of")
    refused(store, file, 0, file.rows + 1, match="that the plan knows of")


def test_a_footer_that_counts_other_rows_is_refused(store, file):
    """Even if the plan had its hash: nothing is taken from a file but what the plan says is there."""
    (short,) = write(store, KEY, rows(3 * GROUP + 1))
    refused(store, replace(short, rows=file.rows), match="where others were planned")


def test_sections_have_all_of_a_file():
    sink = io.BytesIO()
    pq.write_table(rows(100), sink, row_group_size=7)
    found = sections(sink.getvalue())
    assert len(found) == 16
    assert found[-1].end == len(sink.getvalue())


def test_nothing_is_read_beside_the_window():
    window = Window(b"cde", 2, 8)
    window.seek(-6, io.SEEK_END)
    assert window.read(2) == b"cd"
    assert window.tell() == 4
    for at, size in ((1, 1), (4, 2), (0, -1)):
        window.seek(at)
        with pytest.raises(OSError, match="not fetched"):
            window.read(size)


def test_a_plan_keeps_what_its_files_are(store, file):
    kept = facts.read(PlanFile, json.loads(json.dumps(facts.written(file))))
    assert kept == file
    assert plan_files.read(store, kept).num_rows == file.rows
