"""What rules say of objects, by all that points to them: entries that are alike are judged once, and no other."""

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from desilt.cache.ranges import CACHED
from desilt.columns.buckets import HASH, Bucket, hashed
from desilt.columns.files import Files, put
from desilt.columns.hashing import address_hash
from desilt.columns.rules import RangeGroup, Terms, judged
from desilt.domain.reason import Reason
from desilt.jobs.rules.candidates import ENTRIES, Contents, GroupedFile, Objects
from desilt.lake.layout import LAYOUT
from desilt.objects import open_store

ADDRESS = "branches/b/p/one"
CUTOFF = datetime(2030, 1, 1, tzinfo=UTC)
OLD, YOUNG = CUTOFF.replace(year=2029), CUTOFF.replace(year=2031)
MAIN = RangeGroup(frozenset({(0, 0)}))
TERMS = Terms(
    ("logs",),
    ("logs/",),
    ((int(CUTOFF.timestamp()) * 1_000_000,),),
    (MAIN, RangeGroup(frozenset({(0, 0)}), tagged=True), RangeGroup(frozenset(), detached=True)),
)
ENTRY = {"address": ADDRESS, "owner": 0, "path": b"logs/a", "size_bytes": 1, "created_at": OLD}
OWNERS = (0, 1, 2, -1)  # the group of each; nobody asks for the last


def contents(root, *files):
    """Files of entries, each said by how it differs from ENTRY."""
    store, held = open_store(str(root)), []
    for number, some in enumerate(files):
        table = pa.Table.from_pylist([ENTRY | one for one in some], schema=CACHED)
        file = put(store, f"{number}.parquet", hashed(table))
        held.append(GroupedFile(file, OWNERS, (True,) * len(OWNERS)))
    return Contents(Files(store), held, Bucket(0, 1), TERMS, LAYOUT)


def going(found):
    return [(row["address"], row["paths"], row["rules"]) for row in found.going().to_pylist()]


def test_an_object_goes_once_however_many_entries_are_alike(tmp_path):
    found = contents(tmp_path, [{}, {}, {}], [{}])
    assert found.stored(np.zeros(0, np.uint64)) == (1, 1)
    assert going(found.objects(found.candidates())) == [(ADDRESS, ["logs/a"], ["logs"])]


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("apart", [True, False], ids=["in another file", "in the same file"])
@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"owner": 1}, Reason.TAGGED),
        ({"owner": 2}, Reason.DETACHED),
        ({"path": b"data/a"}, Reason.HOLDER),
        ({"created_at": YOUNG}, Reason.HOLDER),
        ({"created_at": None}, Reason.HOLDER),
    ],
    ids=["tagged", "detached", "another path", "young", "without a time"],
)
def test_one_entry_that_differs_in_one_thing_keeps_its_object(tmp_path, other, reason, apart, place):
    alike = [{}, {}]
    files = [alike, [other]] if apart else [[*alike[:place], other, *alike[place:]]]
    found = contents(tmp_path, *files)
    objects = found.objects(found.candidates())
    assert going(objects) == []
    assert objects.waiting().to_pylist() == [ADDRESS]
    assert [name for name, _, _ in objects.kept()] == [reason.value]


def test_all_paths_are_told_each_once_and_the_largest_size(tmp_path):
    found = contents(tmp_path, [{"path": b"logs/b"}, {}, {"path": b"logs/b", "size_bytes": 5}], [{}])
    (row,) = found.objects(found.candidates()).going().to_pylist()
    assert (row["paths"], row["folder"], row["size_bytes"]) == (["logs/a", "logs/b"], "logs/a", 5)


def test_what_nobody_asks_for_says_nothing(tmp_path):
    found = contents(tmp_path, [{}, {"owner": 3, "path": b"data/a"}])
    assert [address for address, _, _ in going(found.objects(found.candidates()))] == [ADDRESS]


def test_of_two_addresses_with_one_hash_neither_goes():
    value, old = address_hash(pa.array([ADDRESS]))[0], int(OLD.timestamp()) * 1_000_000
    rows = [
        {
            HASH: value,
            "size_bytes": 1,
            "group": 0,
            "address": address,
            "path": b"logs/a",
            "created_at": old,
            "said_at": old,
        }
        for address in (ADDRESS, ADDRESS + "-not", ADDRESS)
    ]
    for some in (rows, rows[:2], rows[1:]):
        entries = pa.Table.from_pylist(some, schema=ENTRIES)
        columns = [entries[name].to_numpy() for name in (HASH, "created_at", "group")]
        said = judged(entries["path"].combine_chunks(), *columns, TERMS)
        assert going(Objects(entries, said, TERMS)) == []
