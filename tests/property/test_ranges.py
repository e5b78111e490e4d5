"""Commits share what they have in common, whatever way they came about."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from desilt.domain.entry import Entry
from desilt.lake.apply import apply
from desilt.lake.diff import diff
from desilt.lake.staging import CHANGES
from desilt.objects.memory import MemoryStore
from desilt.sstable.ranges import FOLDER, Ranges
from desilt.sstable.values import encode_entry, write_metarange

KEYS = st.binary(min_size=1, max_size=3).map(lambda raw: raw.hex().encode())
VALUES = st.integers(0, 3)
FILES = st.dictionaries(KEYS, VALUES, max_size=60)
EDITS = st.dictionaries(KEYS, st.one_of(st.none(), VALUES), max_size=20)


def value(number):
    return encode_entry(Entry("", f"address-{number}", number, f"sum-{number}", number))


class CountingStore(MemoryStore):
    """Remembers which keys were read."""

    def __init__(self):
        super().__init__()
        self.reads = []

    def get(self, key, **part):
        self.reads.append(key)
        return super().get(key, **part)


def batches(changes, size):
    rows = sorted(changes.items())
    for at in range(0, len(rows), size):
        page = rows[at : at + size]
        values = [None if number is None else value(number) for _, number in page]
        yield pa.record_batch(
            [pa.array([key for key, _ in page], pa.binary()), pa.array(values, pa.binary())], schema=CHANGES
        )


def build(ranges, files):
    return apply(ranges, "", batches(files, 1_000))


def read(ranges, metarange):
    found = {}
    for listed in ranges.metarange(metarange):
        records = ranges.read(listed)
        found |= dict(zip(records["key"].to_pylist(), records["value"].to_pylist(), strict=True))
    return found


@given(FILES, EDITS, st.integers(1, 9), st.integers(1, 30))
@settings(max_examples=100, deadline=None)
def test_the_same_content_is_the_same_metarange_by_whatever_way(files, edits, raggedness, page):
    ranges = Ranges(MemoryStore(), "", raggedness=raggedness)
    result = {key: number for key, number in {**files, **edits}.items() if number is not None}
    metarange = apply(ranges, build(ranges, files), batches(edits, page))
    assert read(ranges, metarange) == {key: value(number) for key, number in result.items()}
    assert metarange == (build(ranges, result) or (write_metarange([]).id if files else ""))


@given(FILES, FILES, st.integers(1, 9))
@settings(max_examples=80, deadline=None)
def test_a_diff_tells_exactly_what_differs(left, right, raggedness):
    ranges = Ranges(MemoryStore(), "", raggedness=raggedness)
    found = {}
    for batch in diff(ranges, build(ranges, left), build(ranges, right)):
        for row in batch.to_pylist():
            found[row["key"]] = (row["left"], row["right"])
    wanted = {
        key: (left.get(key), right.get(key)) for key in left.keys() | right.keys() if left.get(key) != right.get(key)
    }
    assert found == {
        key: tuple(None if number is None else value(number) for number in sides) for key, sides in wanted.items()
    }
    assert list(found) == sorted(found)


@given(FILES.filter(bool), st.data())
@settings(max_examples=80, deadline=None)
def test_a_change_reads_its_own_range_and_never_one_that_stays(files, data):
    """Only ranges that are gone from the result were read: those that both have in common were not."""
    store = CountingStore()
    ranges = Ranges(store, "", raggedness=4)
    base = build(ranges, files)
    key = data.draw(st.sampled_from(sorted(files)), label="changed")
    before = {listed.id for listed in ranges.metarange(base)}
    store.reads.clear()
    result = apply(ranges, base, batches({key: 9}, 1))
    after = {listed.id for listed in ranges.metarange(result)}
    read_ranges = {name.removeprefix(FOLDER) for name in store.reads} & before
    assert read_ranges == before - after
    assert len(before - after) == 1


@given(FILES.filter(bool), st.data())
@settings(max_examples=100, deadline=None)
def test_a_diff_never_reads_a_range_that_both_share(files, data):
    store = CountingStore()
    ranges = Ranges(store, "", raggedness=4)
    key = data.draw(st.sampled_from(sorted(files)), label="changed")
    left, right = build(ranges, files), build(ranges, {**files, key: 9})
    shared = {listed.id for listed in ranges.metarange(left)} & {listed.id for listed in ranges.metarange(right)}
    store.reads.clear()
    assert [row["key"] for batch in diff(ranges, left, right) for row in batch.to_pylist()] == [key]
    assert not {name.removeprefix(FOLDER) for name in store.reads} & shared
