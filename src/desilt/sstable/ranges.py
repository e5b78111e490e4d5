"""Committed data: metaranges over ranges, each written once and named by its content.

A metarange lists its ranges in key order; a range holds a run of paths and
their values. What two commits have in common they share as files.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache

import pyarrow as pa

from desilt.errors import CorruptTable, MissingTable, NotFound
from desilt.objects.store import ObjectStore
from desilt.sstable.hashing import fnv64a
from desilt.sstable.records import key_at
from desilt.sstable.table import Table, read_together
from desilt.sstable.values import RangeData, read_metarange, write_metarange
from desilt.sstable.writer import RangeWriter, Written

FOLDER = "_lakefs/"
STAGING = "_desilt/staging/"  # staging manifests that somebody asked for
RANGE_BYTES = 20 * 2**20
RAGGEDNESS = 50_000  # entries to a range, on average
EMPTY = ""  # the metarange of a first commit, which holds nothing: there is no file
TABLES_KEPT = 64
METARANGES_KEPT = 16
READ_WHOLE_ABOVE = 0.01  # share of a range's keys past which reading it whole beats looking keys up


class Ranges:
    """The ranges and metaranges below one repository's prefix; both immutable, so both cached."""

    def __init__(self, store: ObjectStore, prefix: str, *, raggedness: int = RAGGEDNESS, folder: str = FOLDER) -> None:
        self.prefix = prefix
        self._store = store
        self.folder = folder
        self._folder = prefix + folder
        self._raggedness = raggedness
        self.metarange = lru_cache(METARANGES_KEPT)(self._metarange)
        self.table = lru_cache(TABLES_KEPT)(self._table)

    def _metarange(self, metarange: str) -> Sequence[RangeData]:
        """The ranges of ``metarange``, in key order."""
        if metarange == EMPTY:
            return ()
        return tuple(read_metarange(Table.from_bytes(self._bytes(metarange), metarange)))

    def metaranges(self, metaranges: Sequence[str]) -> Iterator[Sequence[RangeData]]:
        """The ranges of each."""
        return map(self.metarange, metaranges)

    def _table(self, range_id: str) -> Table:
        """The range as a table to look into: only what is asked for is fetched."""
        with _missing(range_id):
            size = self._store.head(self._folder + range_id).size
        table = Table.open(lambda start, length: self._bytes(range_id, start, length), size, range_id)
        table.expect("ranges")
        return table

    def read(self, listed: RangeData) -> pa.RecordBatch:
        """Every record of a range, all of it verified, and as many as its metarange says."""
        return self.read_together([listed])[0]

    def read_together(self, some: Sequence[RangeData]) -> list[pa.RecordBatch]:
        """The same of several, sooner than one by one if they are small."""
        tables = [Table.from_bytes(self._bytes(listed.id), listed.id) for listed in some]
        for table in tables:
            table.expect("ranges")
        found = read_together(tables)
        for listed, records in zip(some, found, strict=True):
            if records.num_rows != listed.count:
                raise CorruptTable(listed.id, f"its metarange counts {listed.count} entries, it has {records.num_rows}")
            if listed.count and (key_at(records, 0), key_at(records, -1)) != (listed.min_key, listed.max_key):
                raise CorruptTable(listed.id, "it does not begin and end where its metarange says")
        return found

    def get(self, metarange: str, key: bytes) -> bytes | None:
        """What ``key`` means there: the metarange, one index and one block are read."""
        ranges = self.metarange(metarange)
        at = bisect_left(ranges, key, key=lambda listed: listed.max_key)
        if at == len(ranges) or key < ranges[at].min_key:
            return None
        return self.table(ranges[at].id).get(key)

    def get_many(self, metarange: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """What each of ``keys`` (ascending) means: looked up, or read by whole ranges where that is cheaper."""
        found: list[bytes | None] = []
        ranges = self.metarange(metarange)
        at = 0
        for listed in ranges:
            upto = bisect_left(keys, listed.max_key + b"\0", at)
            wanted = keys[at:upto]
            if len(wanted) > max(8, listed.count * READ_WHOLE_ABOVE):
                records = self.read(listed)
                values = dict(zip(records["key"].to_pylist(), records["value"].to_pylist(), strict=True))
                found += [values.get(key) for key in wanted]
            else:
                found += [self.table(listed.id).get(key) for key in wanted]
            at = upto
        return found + [None] * (len(keys) - at)

    def scan(self, metarange: str, start: bytes, stop: bytes | None) -> Iterator[pa.RecordBatch]:
        """Records from ``start`` up to ``stop``, in key order; ranges outside are not touched."""
        for listed in self.metarange(metarange):
            if listed.max_key < start:
                continue
            if stop is not None and listed.min_key >= stop:
                return
            yield from self.table(listed.id).scan(start, stop)

    def writer(self) -> RangeWriter:
        """Cuts sorted records into ranges."""
        return RangeWriter(max_size=RANGE_BYTES, raggedness=self._raggedness)

    def cut_after(self, key: bytes) -> bool:
        """Whether a range always ends with ``key``, whatever follows."""
        return int(fnv64a(pa.array([key], pa.binary()))[0]) % self._raggedness == 0

    def put(self, written: Written) -> RangeData:
        """Store a range; stored again, it is the same file."""
        self._put(written.id, written.data)
        return RangeData(written.id, written.min_key, written.max_key, written.estimated_size, written.count)

    def put_metarange(self, ranges: Sequence[RangeData]) -> str:
        """Store the list of ``ranges``, which may be of none; its id."""
        written = write_metarange(ranges)
        self._put(written.id, written.data)
        return written.id

    def _put(self, name: str, data: bytes) -> None:
        self._store.put(self._folder + name, [data])

    def _bytes(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        with _missing(name):
            return self._store.get(self._folder + name, start=start, length=length)


@contextmanager
def _missing(name: str) -> Iterator[None]:
    try:
        yield
    except NotFound:
        raise MissingTable(name) from None
