"""What the range cache says is held: the entries of the ranges that are asked for, whatever else is in their files."""

from itertools import combinations

import pyarrow as pa

from desilt.cache import ranges as cache
from desilt.columns.buckets import Bucket
from desilt.columns.files import Files
from desilt.columns.hashing import address_hash
from desilt.executors.executor import HERE
from desilt.sstable.ranges import FOLDER


def test_of_a_file_of_several_ranges_those_count_that_are_asked_for_and_all_of_those(repo):
    for number in range(4):
        repo.create_branch(f"b{number}", "main")
        repo.put(f"b{number}", f"{number}", b"x")
        repo.commit(f"b{number}", "one")
    source = repo.source(HERE)
    tables = list(source.lists(source.snapshot(repo.clock()).commits.values()).ranges.values())
    addresses = {one.id: cache.entries_of(repo.ranges, one, 0)["address"].to_pylist() for one in tables}
    assert len({address for some in addresses.values() for address in some}) == 4
    (whole,) = source.entries(tables)
    assert whole.owners == 4
    decoder = cache.RangeDecoder(FOLDER, cache.Below(repo.prefix))
    for size in range(1, 5):
        for asked in combinations(tables, size):
            (held,) = cache.held(HERE, repo.store, repo.prefix, asked, decoder=decoder)
            assert held.key == whole.file.key
            expected = [address for one in asked for address in addresses[one.id]]
            found = Files(repo.store).hashes([held], Bucket(0, 1)).tolist()
            assert found == sorted(address_hash(pa.array(expected, pa.string())).tolist())
