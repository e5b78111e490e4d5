"""Which entries hold something of the repository, and by what name."""

import pyarrow as pa
import pytest

from desilt.cache.ranges import CACHED, Below, entries_of, entries_together, pointing_in
from desilt.domain.entry import AddressType, Entry
from desilt.errors import CorruptTable
from desilt.executors.executor import HERE
from desilt.sstable.columns import entry_columns
from desilt.sstable.ranges import Ranges
from desilt.sstable.table import RAW
from desilt.sstable.values import encode_entry

PREFIX = "re+pos/(r)/"  # every sign in it means itself
OLD, RELATIVE, FULL = AddressType


def found(*entries):
    """The addresses that entries hold, given by address and how it is to be read."""
    values = [
        encode_entry(Entry("", address, n, "s", n, address_type=kind)) for n, (address, kind) in enumerate(entries)
    ]
    keys = [b"%d" % n for n in range(len(values))]
    records = pa.RecordBatch.from_arrays([pa.array(keys, pa.binary()), pa.array(values, pa.binary())], schema=RAW)
    rows = pointing_in(entry_columns(records), Below(PREFIX), 7)
    assert rows.schema == CACHED
    assert set(rows["owner"].to_pylist()) <= {7}
    assert [b"%d" % size for size in rows["size_bytes"].to_pylist()] == rows["path"].to_pylist()
    return rows["address"].to_pylist()


@pytest.mark.parametrize(
    ("address", "kind", "held"),
    [
        ("branches/a", RELATIVE, "branches/a"),
        ("s3://b/x", RELATIVE, "s3://b/x"),
        (f"s3://b/{PREFIX}x", RELATIVE, f"s3://b/{PREFIX}x"),
        ("branches/a", OLD, "branches/a"),
        ("s3://b/x", OLD, None),
        (f"s3://b/{PREFIX}x", OLD, "x"),
        ("branches/a", FULL, None),
        (f"s3://b/{PREFIX}x", FULL, "x"),
        (f"s3://b/{PREFIX}y/{PREFIX}x", FULL, "x"),
        (f"s3://b\n/{PREFIX}x", FULL, "x"),
        ("s3://b/reepos/(r)/x", FULL, None),
        (PREFIX, FULL, ""),
        ("", RELATIVE, ""),
    ],
)
def test_an_address_inside_counts_as_it_is_and_a_whole_one_by_what_it_leads_to(address, kind, held):
    plain = ("branches/plain", RELATIVE)
    assert found(plain, (address, kind), plain) == [plain[0], *([] if held is None else [held]), plain[0]]
    assert found((address, kind)) == ([] if held is None else [held])


def test_nothing_holds_nothing():
    assert found() == []


def test_small_ranges_are_decoded_together_each_with_its_owner_and_a_damaged_one_is_blamed_by_name(repo, monkeypatch):
    for number in range(5):
        for inner in range(number + 1):
            repo.put("main", f"{number}/{inner}", b"x")
        repo.create_branch(f"b{number}", "main")
        repo.commit("main", str(number))
    source = repo.source(HERE)
    tables = sorted(source.lists(source.snapshot(repo.clock()).in_time).ranges.values(), key=lambda one: one.id)
    assert len(tables) == 5
    alone = [entries_of(repo.ranges, listed, 3 + place) for place, listed in enumerate(tables)]
    assert entries_together(repo.ranges, tables, 3, Below(repo.prefix)).equals(pa.concat_tables(alone))

    real = Ranges.read_together

    def damaged(ranges, some):
        found = real(ranges, some)
        values = [b"\xff" * 9, *found[2]["value"].to_pylist()[1:]]
        found[2] = pa.record_batch([found[2]["key"], pa.array(values, pa.binary())], schema=found[2].schema)
        return found

    monkeypatch.setattr(Ranges, "read_together", damaged)
    with pytest.raises(CorruptTable) as raised:
        entries_together(repo.ranges, tables, 0, Below(repo.prefix))
    assert raised.value.name == tables[2].id
