"""Files of held addresses and inventories: whole, or refused."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from desilt.columns import buckets, files
from desilt.columns.buckets import every, groups, hashed, narrow, written
from desilt.columns.files import Files, opened, put, put_addresses
from desilt.columns.hashing import address_hash
from desilt.columns.schemas import HELD
from desilt.errors import NotReadBack
from desilt.executors.executor import HERE
from desilt.inventory import listing as inventory
from desilt.jobs.gc.kernel import addresses_of
from desilt.lake import Lake
from desilt.lake.lake import locate
from desilt.objects.memory import MemoryStore
from desilt.objects.store import LISTING
from desilt.testing import oracle

START = datetime(2026, 1, 1, tzinfo=UTC)


def test_no_flipped_byte_of_a_held_file_goes_unnoticed():
    """Whatever byte is damaged, the file is refused or says the same."""
    store = MemoryStore()
    rows = pa.table([[f"branches/b/p/{n}" for n in range(40)], [n % 3 for n in range(40)]], schema=HELD)
    file = put(store, "key", hashed(rows), buckets=4)
    whole, sound = [Files(store).hashes([file], one).tolist() for one in every(8)], store.get("key")
    for at in range(0, len(sound), 7):
        raw = bytearray(sound)
        raw[at] ^= 0x41
        store.put("key", [bytes(raw)])
        try:
            assert [Files(store).hashes([file], one).tolist() for one in every(8)] == whole
        except NotReadBack:
            continue


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"x" * 100])
def test_a_file_that_is_something_else_is_refused(damage):
    store = MemoryStore()
    file = put(store, "key", hashed(pa.table([["a"], [0]], schema=HELD)))
    store.put("key", [damage])
    with pytest.raises(NotReadBack):
        opened(store, file)


@pytest.mark.parametrize("stretches", [1, 2, 3, 32])
def test_stretches_together_list_every_object_once(tmp_path, monkeypatch, stretches):
    monkeypatch.setattr(inventory, "STRETCHES", stretches)
    repo = Lake.create(locate(str(tmp_path / "lake"))).create_repository("demo", clock_at=START)
    repo.create_branch("dev", "main")
    for hour in range(0, 8, 2):
        repo.set_clock(START + timedelta(hours=hour))
        for branch in ("main", "dev"):
            repo.put(branch, f"file-{hour}", b"x")
    for stray in ("branches/a", "branches/zzz/b", "branches/0/c/d"):
        repo.store.put(repo.prefix + stray, [b"x"])
    found = inventory.take(HERE, repo.store, repo.prefix, "_desilt/runs/gc/x/", data="branches/", about=len).listed
    addresses = [
        address
        for one in found
        for bucket in every(8)
        for address in addresses_of(Files(repo.store).rows(one.file, bucket, ["folder", "name"])).to_pylist()
    ]
    assert sorted(addresses) == sorted(oracle.stored(repo))
    assert inventory.total(found) == (11, 11)


def inventory_of(count):
    """A listing of so many objects."""
    rows = pa.record_batch(
        [[f"r/branches/b/{n % 3}/{n:05d}" for n in range(count)], [1] * count, [START] * count], LISTING
    )
    return inventory.inventory_of("r/", [rows.slice(0, count // 2), rows.slice(count // 2)])


def as_file(table):
    return written(table.schema, groups(table, buckets=4))


def held_of(count):
    addresses = pa.chunked_array([[f"branches/b/p/{n}" for n in range(count)], ["branches/b/q"]])
    return hashed(pa.table([addresses, pa.array(range(count + 1), pa.int32())], schema=HELD))


@pytest.mark.parametrize("made", [inventory_of, held_of])
def test_texts_too_long_for_one_array_make_the_same_file(monkeypatch, made):
    """Two billion bytes of a column cannot be counted in 32 bits; here, so many are too many."""
    plain = made(500)
    data = as_file(plain)
    monkeypatch.setattr(buckets, "TEXT_BYTES", 100)
    large = made(500)
    assert [str(kind) for kind in large.schema.types if "large" in str(kind)] == ["large_string"]
    assert as_file(large) == data
    assert narrow(large.schema) == plain.schema


def test_many_addresses_become_one_set_though_no_array_holds_them_all(monkeypatch):
    addresses = [f"branches/b/p/{n}" for n in range(99)]  # one more than so many whole columns
    store = MemoryStore()
    one = put_addresses(store, "one", addresses)
    monkeypatch.setattr(buckets, "TEXT_BYTES", 100)
    monkeypatch.setattr(files, "TEXTS_TO_A_COLUMN", 7)
    many = put_addresses(store, "many", addresses)
    assert store.get("one") == store.get("many")
    assert (one.rows, one.footer, one.sums) == (many.rows, many.footer, many.sums)
    assert put_addresses(store, "none", []).rows == 0


def test_the_hashes_of_a_column_in_pieces_are_those_of_the_whole():
    texts = [f"{n}" * (n % 20) for n in range(50)]
    pieces = pa.chunked_array([texts[:7], [], texts[7:]], pa.string())
    assert address_hash(pieces).tolist() == address_hash(pa.array(texts)).tolist()
    assert address_hash(pa.chunked_array([], pa.string())).tolist() == []
