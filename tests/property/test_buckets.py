"""Files cut into any number of buckets, read in any other: every row once, and damage is refused."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from desilt.columns.buckets import HASH, MOST, ROWS_TO_A_BUCKET, around, deserved, every, hashed, rising
from desilt.columns.files import Files, HeldFile, opened, put, put_in_order
from desilt.columns.hashing import address_hash, bucket_of
from desilt.errors import NotReadBack
from desilt.objects.memory import MemoryStore

powers = st.integers(0, 7).map(lambda bits: 1 << bits)
edges = st.sampled_from([0, 1, 2**63 - 1, 2**63, 2**62, 2**64 - 1, 2**57, 2**57 - 1])
hashes = st.lists(st.integers(0, 2**64 - 1) | edges, max_size=60)


def stored(some, buckets):
    """A file of rows with these hashes, each with a number and a text of its own."""
    store, values = MemoryStore(), np.sort(np.array(some, np.uint64))
    numbers = pa.array(np.arange(len(values)), pa.int64())
    texts = pa.array([f"text {number}" for number in range(len(values))], pa.string())
    table = pa.table({HASH: values, "number": numbers, "text": texts})
    return store, put(store, "key", table, buckets=buckets), table


@given(hashes, powers, powers, st.sampled_from([[HASH, "number", "text"], ["text"], ["number", HASH], ["number"]]))
def test_the_union_of_all_buckets_is_what_was_written(some, cut, asked, columns):
    store, file, table = stored(some, cut)
    files = Files(store)
    parts = [files.rows(file, bucket, columns) for bucket in every(asked)]
    assert pa.concat_tables(parts).combine_chunks().equals(table.select(columns).combine_chunks())
    for bucket, rows in zip(every(asked), parts, strict=True):
        if HASH in columns:
            assert set(bucket_of(rows[HASH].to_numpy(), asked).tolist()) <= {bucket.number}


@given(hashes, powers, powers)
def test_buckets_in_any_order_and_by_hash_are_the_same(some, cut, asked):
    store, file, table = stored(some, cut)
    there, back = Files(store), Files(store)
    forwards = [there.hashes([file], bucket).tolist() for bucket in every(asked)]
    assert [back.hashes([file], bucket).tolist() for bucket in reversed(every(asked))] == forwards[::-1]
    assert [bucket for bucket in every(asked) if forwards[bucket.number]] == around(table[HASH].to_numpy(), asked)


@given(hashes.filter(bool), powers, powers, st.data())
def test_a_damaged_row_group_is_refused_in_every_combination(some, cut, asked, data):
    """By a page that is not what was written, and by one that is in itself sound and does not add up."""
    store, file, table = stored(some, cut)
    victim = data.draw(st.integers(0, len(some) - 1))
    group = bucket_of(table[HASH].to_numpy(), cut)[victim]
    if data.draw(st.booleans()):
        raw = bytearray(store.get("key"))
        chunk = pq.read_metadata(io.BytesIO(raw)).row_group(int(group)).column(0)
        raw[chunk.data_page_offset + chunk.total_compressed_size - 1] ^= 1
        store.put("key", [bytes(raw)])
    else:
        expected = [list(values) for values in file.sums.values()]
        expected[0][group] = (expected[0][group] + 1) % 2**64
        file = HeldFile(file.key, file.rows, file.footer, dict(zip(file.sums, expected, strict=True)))
    for bucket in around(table[HASH].to_numpy()[[victim]], asked):
        with pytest.raises(NotReadBack):
            Files(store).rows(file, bucket, [HASH])
    with pytest.raises(NotReadBack):
        [Files(store).rows(file, bucket, [HASH, "text"]) for bucket in every(asked)]


@given(st.lists(st.integers(0, 2**64 - 1), min_size=2, max_size=20, unique=True), powers)
def test_rows_out_of_order_are_not_cut(some, cut):
    """They add up, and every page is sound: but a slice of them would be the wrong one."""
    store, file, table = stored(some, 1)
    turned = table.take(pa.array(range(len(some))[::-1]))
    again = put(store, "key", turned, buckets=1)
    assert again.sums == file.sums
    for bucket in every(2 * cut):
        with pytest.raises(NotReadBack, match="order"):
            Files(store).rows(again, bucket, [HASH])


@given(st.integers(0, 10**9))
def test_as_many_buckets_as_rows_deserve(rows):
    count = deserved(rows)
    assert 1 <= count <= MOST
    assert count.bit_count() == 1
    assert count == MOST or rows <= count * ROWS_TO_A_BUCKET
    assert count == 1 or rows > count // 2 * ROWS_TO_A_BUCKET


def test_a_file_of_another_number_of_row_groups_is_refused():
    store, file, _ = stored(range(10), 4)
    fewer = HeldFile(file.key, file.rows, file.footer, {name: of[:2] for name, of in file.sums.items()})
    with pytest.raises(NotReadBack, match="4 row groups, 2 were written"):
        opened(store, fewer)


near = st.integers(0, 2**64 - 1) | edges | st.integers(0, 300) | st.integers(2**64 - 300, 2**64 - 1)


@given(st.lists(near, max_size=300))
def test_hashes_are_put_in_order_those_alike_as_they_lie(some):
    values = np.array(some, np.uint64)
    assert rising(values).tolist() == np.argsort(values, kind="stable").tolist()


@given(st.lists(st.text(max_size=4), max_size=60))
def test_rows_put_in_order_on_the_way_are_the_file_of_rows_that_were_in_order(addresses):
    store, table = MemoryStore(), pa.table({"address": pa.array(addresses, pa.string()), "n": range(len(addresses))})
    one = put(store, "key", hashed(table))
    data = store.get("key")
    assert put_in_order(store, "key", table, address_hash(table["address"].combine_chunks())) == one
    assert store.get("key") == data
