"""The scaffold of judges: every bucket once, answers that add up, and no answer where a file is damaged."""

import pickle
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from desilt.columns import kernel
from desilt.columns.buckets import HASH, MOST, every, hashed, within
from desilt.columns.files import HeldFile, put
from desilt.columns.kernel import (
    BUCKETS_TO_A_PART,
    FEW_PARTS,
    ROWS_AT_ONCE,
    DamagedFiles,
    Judge,
    judge_buckets,
    parts_for,
    tasks_for,
)
from desilt.columns.schemas import HELD
from desilt.executors.executor import Here
from desilt.objects.local import LocalStore


@dataclass(frozen=True, slots=True)
class Every(Judge[tuple[int, ...]]):
    """All hashes of some files."""

    files: tuple[HeldFile, ...]
    others: tuple[int, ...] = ()

    def inputs(self):
        return [self.files]

    def within(self, buckets):
        others = np.array(self.others, np.uint64)
        return replace(self, others=tuple(others[within(others, buckets)].tolist()))

    def judge(self, files, buckets):
        return tuple(value for one in buckets for value in files.hashes(self.files, one).tolist()) + self.others


class Wide(Here):
    """Sends each piece of work away and back, as Spark does."""

    def __init__(self, width):
        super().__init__()
        self.width, self.pieces = width, 0

    def __call__(self, work, items, *, rows=0, weigh=None):
        self.pieces, self.rows = self.pieces + len(items), rows
        return super().__call__(work, [pickle.loads(pickle.dumps(item)) for item in items], weigh=weigh)


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path, fsync=False)


@pytest.fixture(params=[4, 8, ROWS_AT_ONCE], ids="{} rows at once".format)
def at_once(request, monkeypatch):
    """Of five hundred rows: 128 buckets in 64 parts, or 64 in 32, or all in one."""
    monkeypatch.setattr(kernel, "ROWS_AT_ONCE", request.param)
    return request.param


def held(store, key, count):
    rows = pa.table([[f"branches/b/{key}/{n}" for n in range(count)], [0] * count], schema=HELD)
    return put(store, key, hashed(rows), buckets=32)


def spoil(store, key, group):
    """Damage the hashes of one row group."""
    raw = bytearray(store.get(key))
    found = pq.read_metadata(pa.BufferReader(bytes(raw)))
    chunk = found.row_group(range(found.num_row_groups)[group]).column(0)
    raw[chunk.data_page_offset + chunk.total_compressed_size - 1] ^= 1
    store.put(key, [bytes(raw)])


def whole(store, file):
    return pq.read_table(pa.BufferReader(store.get(file.key)))[HASH].to_pylist()


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("width", [1, 2, 3, 7, 32, 100])
def test_every_hash_is_judged_once_in_order_of_buckets(store, width):
    files = held(store, "a", 500), held(store, "b", 3)
    executor = Wide(width)
    found = judge_buckets(executor, store.uri, Every(files))
    assert sorted(found) == sorted(whole(store, files[0]) + whole(store, files[1]))
    assert executor.pieces == min(width, len(parts_for(500)))
    assert executor.rows == 503


@pytest.mark.usefixtures("at_once")
def test_the_order_of_what_is_found_does_not_depend_on_the_width(store):
    files = held(store, "a", 500), held(store, "b", 30)
    assert len({judge_buckets(Wide(width), store.uri, Every(files)) for width in (1, 2, 3, 7, 32, 100)}) == 1


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("width", [1, 2, 5])
def test_what_a_judge_brings_along_is_judged_once_too(store, width):
    others, file = tuple(n << 55 for n in range(512)), held(store, "a", 500)
    found = judge_buckets(Wide(width), store.uri, Every((file,), pa.array(others, pa.uint64()).to_pylist()))
    assert sorted(found) == sorted([*others, *whole(store, file)])


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("width", [1, 4])
def test_one_damaged_file_is_named_and_nothing_is_answered(store, width):
    files = held(store, "a", 500), held(store, "b", 500), held(store, "c", 500)
    store.put("b", [store.get("b")[:-30]])
    assert judge_buckets(Wide(width), store.uri, Every(files)) == DamagedFiles(frozenset({"b"}))


def test_all_damaged_files_that_tasks_came_upon_are_named(store, monkeypatch):
    monkeypatch.setattr(kernel, "ROWS_AT_ONCE", 4)
    files = held(store, "a", 500), held(store, "b", 500)
    spoil(store, "a", 0)
    spoil(store, "b", -1)
    found = judge_buckets(Wide(32), store.uri, Every(files))
    assert found == DamagedFiles(frozenset({"a", "b"}))


@pytest.mark.parametrize(
    ("rows", "parts", "buckets"),
    [
        (0, 1, 1),
        (ROWS_AT_ONCE, 1, 1),
        (ROWS_AT_ONCE + 1, 2, 2),
        (6 * ROWS_AT_ONCE, 8, 8),
        (FEW_PARTS * ROWS_AT_ONCE, FEW_PARTS, FEW_PARTS),
        (50 * ROWS_AT_ONCE, FEW_PARTS, 64),
        (100 * ROWS_AT_ONCE, 64, 128),
        (10**12, MOST // BUCKETS_TO_A_PART, MOST),
    ],
)
def test_parts_follow_the_size_of_the_work_alone(rows, parts, buckets):
    found = parts_for(rows)
    assert len(found) == parts
    assert [bucket for part in found for bucket in part] == every(buckets)


def test_whoever_watches_is_told_what_answers_stand_for(store):
    told, expected = [], []

    class Watch:
        def begins(self, stage): ...

        def expects(self, objects):
            expected.append(objects)

        def advance(self, objects):
            told.append(objects)

    executor = Here(Watch())
    judge_buckets(executor, store.uri, Every((held(store, "a", 50),)), weigh=len, expected=50)
    assert (sum(told), expected) == (50, [50])


def test_a_file_is_opened_once_by_a_task(store, monkeypatch):
    from desilt.columns import files as module

    opened, real = [], module.opened
    monkeypatch.setattr(module, "opened", lambda *words: opened.append(words[1].key) or real(*words))
    file = held(store, "a", 50)
    judge_buckets(Here(), store.uri, Every((file, replace(file, owners=frozenset({0})))))
    assert opened == ["a"]


@pytest.mark.parametrize(
    ("rows", "width", "tasks"),
    [(0, 2, 2), (9_000_000, 2, 2), (24_000_000, 2, 3), (40_000_000, 2, 5), (900_000_000, 2, 8), (40_000_000, 100, 100)],
)
def test_every_worker_has_a_task_and_none_has_more_than_four(rows, width, tasks):
    assert tasks_for(rows, width) == tasks
