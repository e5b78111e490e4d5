"""A table of lakeFS, open for reading: keys in order, each with a value.

Opening reads the tail of the file, which holds everything but the data. After
that :meth:`Table.get` reads one block, :meth:`Table.scan` the blocks its bounds
ask for, and :meth:`Table.read` every byte there is, and vouches for each.
Whatever does not add up is :class:`~desilt.errors.CorruptTable`.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from desilt.errors import CorruptTable
from desilt.sstable import varint
from desilt.sstable.blocks import (
    FOOTER,
    BlockHandle,
    Blocks,
    Footer,
    decode_footer,
    decode_handle,
    entries,
    joined,
    unseal,
)
from desilt.sstable.decode import SET, SUFFIX, DecodedBlocks, decode
from desilt.sstable.index import INDEX_TYPE, Index, ascending, read_index
from desilt.sstable.slices import layout
from desilt.sstable.source import ByteSource, in_memory
from desilt.sstable.varint import Malformed, blaming

RAW = pa.schema([("key", pa.binary()), ("value", pa.binary())])
"""One row per record of a table, in key order."""

FIRST_BATCH = 64 * 1024  # stored bytes: who wants a few rows should not wait for many
BATCH = 2 * 1024 * 1024
AT_ONCE = 4096  # blocks, when all are wanted


class Table:
    """An open table. ``properties`` is all it says of itself, ``count`` how many records it has."""

    def __init__(self, source: ByteSource, name: str) -> None:
        self.name = name
        self._source = source
        self._footer: Footer = decode_footer(bytes(source.read(source.size - FOOTER, source.size)))
        self._meta = _directory(unseal(source.block(self._footer.metaindex)))
        if "rocksdb.properties" not in self._meta:
            raise Malformed("it has no properties")
        block = unseal(source.block(self._meta["rocksdb.properties"]))
        self.properties: Mapping[str, bytes] = MappingProxyType({_text(key): value for key, value in entries(block)})
        self.count = self._number("num.entries") - self._number("num.range-deletions")
        levels = self.properties.get(INDEX_TYPE)
        if levels not in (b"\0\0\0\0", b"\2\0\0\0"):
            raise Malformed("its index is of an unknown type")
        self._index: Index = read_index(source, self._footer.index, two_levels=levels[0] == 2)

    @classmethod
    def open(cls, fetch: Callable[[int, int], bytes], size: int, name: str) -> "Table":
        """The table of ``size`` bytes that ``fetch(offset, length)`` reads; ``name`` is for messages."""
        with blaming(name):
            return cls(ByteSource(fetch, size), name)

    @classmethod
    def from_bytes(cls, data: bytes, name: str) -> "Table":
        with blaming(name):
            return cls(in_memory(data), name)

    @property
    def kind(self) -> str:
        """``ranges`` or ``metaranges``; empty for a table that is neither, and not lakeFS's."""
        return self.properties.get("type", b"").decode(errors="replace")

    def expect(self, kind: str) -> None:
        """Refuse a table that is not of this kind, or holds another thing in its shape (a dump of refs)."""
        if self.kind != kind:
            raise CorruptTable(self.name, f"it should hold {kind} and holds {self.kind or 'something unknown'}")
        if "entity" in self.properties:
            entity = self.properties["entity"].decode(errors="replace")
            raise CorruptTable(self.name, f"it should hold {kind} of entries and holds a dump of {entity!r}")

    def get(self, key: bytes) -> bytes | None:
        """The value of ``key``, from the one block that may hold it."""
        place = self._index.find(key)
        if place == len(self._index):
            return None
        with blaming(self.name):
            for internal, value in entries(unseal(self._stored(place, place + 1))):
                if len(internal) < SUFFIX or int.from_bytes(internal[-SUFFIX:], "little") != SET:
                    raise Malformed("it holds something other than values")
                if internal[:-SUFFIX] == key:
                    return value
        return None

    def scan(self, start: bytes | None = None, stop: bytes | None = None) -> Iterator[pa.RecordBatch]:
        """The records from ``start`` up to, not including, ``stop``: some blocks at a time, never an empty batch."""
        if start is not None and stop is not None and start >= stop:
            return
        place = 0 if start is None else self._index.find(start)
        end = len(self._index) if stop is None else min(self._index.find(stop) + 1, len(self._index))
        budget = FIRST_BATCH
        while place < end:
            after = int(np.searchsorted(self._index.offsets, self._index.offsets[place] + budget, "right")) - 1
            after = min(max(after, place + 1), end)
            with blaming(self.name):
                records = self._records(place, after)
            first = 0 if start is None else _place(records, start)
            last = len(records) if stop is None else _place(records, stop)
            if first < last:
                yield records.slice(first, last - first)
            place, budget = after, min(4 * budget, BATCH)

    def read(self) -> pa.RecordBatch:
        """The whole table, every byte of the file accounted for."""
        blocks = len(self._index)
        if blocks <= AT_ONCE:
            return read_together([self])[0]
        with blaming(self.name):
            self._check_layout()
            parts = [self._records(place, min(place + AT_ONCE, blocks)) for place in range(0, blocks, AT_ONCE)]
            return self._complete(pa.concat_batches(parts))

    def blocks(self) -> Blocks:
        """All data blocks at once, after every other byte of the file was accounted for."""
        with blaming(self.name):
            self._check_layout()
            return self._index.blocks(self._stored(0, len(self._index)), 0, len(self._index))

    def records(self, found: DecodedBlocks) -> pa.RecordBatch:
        """What all its data blocks hold, decoded, if that is what the table says of itself."""
        with blaming(self.name):
            return self._complete(self._checked(0, found))

    def _stored(self, first: int, stop: int) -> memoryview:
        return self._source.read(int(self._index.offsets[first]), int(self._index.offsets[stop]))

    def _records(self, first: int, stop: int) -> pa.RecordBatch:
        """The records of data blocks ``first`` to ``stop``."""
        return self._checked(first, decode(self._index.blocks(self._stored(first, stop), first, stop)))

    def _checked(self, first: int, found: DecodedBlocks) -> pa.RecordBatch:
        """The records of data blocks from ``first`` on, which are in order and where the index says."""
        if (found.suffixes != SET).any():
            raise Malformed("it holds something other than values")
        if not ascending(found.keys):
            raise Malformed("its keys are not in order")
        if (found.counts > 0).all():
            self._check_separators(first, found.keys, found.counts)
        elif len(self._index) > 1:
            raise Malformed("a block is empty")
        return pa.RecordBatch.from_arrays([found.keys, found.values], schema=RAW)

    def _check_separators(self, first: int, keys: pa.Array, counts: varint.Ints) -> None:
        ends = np.cumsum(counts)
        separators = self._index.separators
        not_below = pc.less_equal(keys.take(pa.array(ends - 1)), separators.slice(first, len(counts)))
        heads = keys.take(pa.array(ends - counts))
        before = separators.slice(max(first - 1, 0), len(counts) - (first == 0))
        above = pc.greater(heads.slice(int(first == 0)), before)
        if not (pc.all(not_below).as_py() and pc.all(above, min_count=0).as_py()):
            raise Malformed("its index does not agree with its keys")

    def _check_layout(self) -> None:
        """Data, index, metadata and footer fill the file, with nothing between them and nothing unread."""
        size, data_end = self._source.size, int(self._index.offsets[-1])
        rest = {self._footer.index, self._footer.metaindex, *self._meta.values(), *self._index.partitions}
        at = data_end
        for handle in sorted(rest, key=lambda handle: handle.offset):
            if handle.offset != at:
                raise Malformed("its blocks do not fill the file")
            unseal(self._source.block(handle))
            at = handle.end
        if at != size - FOOTER or self._footer.metaindex.end != at:
            raise Malformed("its blocks do not fill the file")
        if self._number("data.size") != data_end or self._number("num.data.blocks") != len(self._index):
            raise Malformed("it has another number of data blocks than it says")

    def _complete(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """``records``, if they are as many, and as long, as the table says."""
        keys, values = records["key"], records["value"]
        said = self.properties.get("count", str(self.count).encode())
        if len(keys) != self.count or said != str(len(keys)).encode():
            raise Malformed(f"it holds {len(keys):,} records and says {_text(said)}")
        if not self._number("num.range-deletions"):
            key_bytes = len(layout(keys)[0]) + SUFFIX * len(keys)
            if self._number("raw.key.size") != key_bytes or self._number("raw.value.size") != len(layout(values)[0]):
                raise Malformed("its keys or values have another size than it says")
        return records

    def _number(self, name: str) -> int:
        raw = self.properties.get(f"rocksdb.{name}", b"")
        value, end = varint.decode(raw, 0) if raw else (0, -1)
        if end != len(raw):
            raise Malformed(f"it does not say what its {name} is")
        return value


def read_together(tables: Sequence[Table]) -> list[pa.RecordBatch]:
    """What each table holds, every byte accounted for: what it costs to decode any number of blocks, all pay once."""
    if not tables:
        return []
    blocks = [table.blocks() for table in tables]
    try:
        found = decode(joined(blocks))
    except Malformed as fault:
        if len(tables) == 1:
            raise CorruptTable(tables[0].name, str(fault)) from None
        return [records for table in tables for records in read_together([table])]
    ends = np.cumsum([len(some.sizes) for some in blocks]).tolist()
    return [
        table.records(found.blocks(end - len(some.sizes), end))
        for table, some, end in zip(tables, blocks, ends, strict=True)
    ]


def _place(records: pa.RecordBatch, key: bytes) -> int:
    """Where in sorted ``records`` the first key not below ``key`` is."""
    return bisect_left(records["key"], key, key=lambda scalar: scalar.as_py())


def _directory(metaindex: bytes) -> dict[str, BlockHandle]:
    return {_text(key): decode_handle(value)[0] for key, value in entries(metaindex)}


def _text(raw: bytes) -> str:
    return raw.decode(errors="backslashreplace")
