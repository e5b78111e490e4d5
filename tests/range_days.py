"""A range cache, day by day: some ranges a day, and what it has of them compared with the ranges themselves."""

import pyarrow as pa

from desilt.cache.ranges import CACHED, FOLDER, Below, RangeDecoder, entries_of, placed
from desilt.columns.buckets import HASH, Bucket
from desilt.columns.files import Files
from desilt.columns.hashing import address_hash
from desilt.domain.entry import AddressType, Entry
from desilt.executors.executor import HERE
from desilt.objects import open_store
from desilt.sstable.ranges import FOLDER as RANGES
from desilt.sstable.ranges import Ranges
from desilt.sstable.table import RAW
from desilt.sstable.values import encode_entry

PREFIX = "repos/r/"
DECODER = RangeDecoder(RANGES, Below(PREFIX))


class Days:
    """A store with ranges, and those that commits have today."""

    def __init__(self, directory):
        self.store = open_store(f"file://{directory}")
        self.ranges = Ranges(self.store, PREFIX)
        self.wanted = []

    def add(self, *sizes):
        """A day: a range for each of ``sizes``, with so many entries and one that points elsewhere."""
        for size in sizes:
            number = len(self.wanted) + 1000 * size
            listed = self._put(number, size)
            if listed not in self.wanted:
                self.wanted.append(listed)

    def _put(self, number, size):
        values = [Entry("", f"branches/{number % 3}/{number}-{row}", row, "s", row) for row in range(size)]
        values.append(Entry("", "s3://elsewhere/x", 1, "s", 1, address_type=AddressType.FULL))
        keys = [f"{number:06d}/{row:03d}".encode() for row in range(len(values))]
        records = pa.RecordBatch.from_arrays([pa.array(keys), pa.array(map(encode_entry, values))], schema=RAW)
        writer = self.ranges.writer()
        (written,) = [*writer.add(records), *writer.finish()]
        return self.ranges.put(written)

    def forget(self, *places):
        """Commits went, and with them some ranges and their tables; what they were."""
        gone = [self.wanted[place % len(self.wanted)] for place in places if self.wanted]
        self.wanted = [one for one in self.wanted if one not in gone]
        tables = {one.id: self.store.get(PREFIX + RANGES + one.id) for one in gone}
        self.store.delete_many([PREFIX + RANGES + name for name in tables])
        return gone, tables

    def put_back(self, gone, tables):
        for name, data in tables.items():
            self.store.put(PREFIX + RANGES + name, [data])
        self.wanted += [one for one in gone if one not in self.wanted]

    def placed(self, store=None, wanted=None):
        return placed(HERE, store or self.store, PREFIX, self.wanted if wanted is None else wanted, decoder=DECODER)

    def held(self, found=None):
        """What the cache has of each range that is wanted."""
        files, rows = Files(self.store), {}
        for one in self.placed() if found is None else found:
            table = files.rows(one.file, Bucket(0, 1), [HASH, *CACHED.names])
            assert table[HASH].to_pylist() == sorted(address_hash(table["address"].combine_chunks()).tolist())
            for row in table.select(CACHED.names).to_pylist():
                if name := one.ranges.get(row.pop("owner")):
                    rows.setdefault(name, []).append(tuple(row.values()))
            rows |= {name: sorted(rows.get(name, [])) for name in one.ranges.values()}
        return rows

    def straight(self, wanted=None):
        """The same, from the ranges."""
        return {
            one.id: sorted(tuple(row.values()) for row in entries_of(self.ranges, one, 0).drop("owner").to_pylist())
            for one in (self.wanted if wanted is None else wanted)
        }

    def files(self):
        """Everything in the cache."""
        return {key for batch in self.store.list(PREFIX + FOLDER) for key in batch["key"].to_pylist()}
