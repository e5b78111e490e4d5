"""A range's records as columns, ready for Arrow, Spark or Parquet: no row is ever touched alone."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from desilt.domain.entry import AddressType, Entry, decode_path
from desilt.domain.times import NANOSECONDS
from desilt.sstable.lanes import Field, Messages, tag_of, unpack_column
from desilt.sstable.slices import cut, layout
from desilt.sstable.table import Table
from desilt.sstable.varint import Bytes, Ints, Malformed, blaming
from desilt.sstable.wire import BYTES, VARINT

ENTRIES = pa.schema(
    [
        ("path", pa.binary()),
        ("address", pa.string()),
        ("address_type", pa.int8()),
        ("size", pa.int64()),
        ("modified_at", pa.timestamp("ns", "UTC")),
        ("checksum", pa.string()),
        ("metadata", pa.map_(pa.string(), pa.string())),
        ("content_type", pa.string()),
        ("identity", pa.binary()),
    ]
)
"""One row per entry of a range, in path order. A path is bytes: most are UTF-8, and all are data.

``modified_at`` holds the years 1678 to 2261; a moment outside them is the nearest inside.
"""

BY_PREFIX, FULL = (pa.scalar(int(kind), pa.int8()) for kind in (AddressType.BY_PREFIX, AddressType.FULL))
LAST_SECOND = 2**63 // NANOSECONDS - 1

ADDRESS, MODIFIED, SIZE, CHECKSUM, METADATA, ADDRESS_TYPE, CONTENT_TYPE = (
    tag_of(1, BYTES),
    tag_of(2, BYTES),
    tag_of(3, VARINT),
    tag_of(4, BYTES),
    tag_of(5, BYTES),
    tag_of(6, VARINT),
    tag_of(7, BYTES),
)


def scan_entries(table: Table, start: bytes | None = None, stop: bytes | None = None) -> Iterator[pa.RecordBatch]:
    """The entries of a range from path ``start`` up to ``stop``; a table that is no range is refused."""
    table.expect("ranges")
    for records in table.scan(start, stop):
        yield entry_columns(records, table.name)


def identities(values: pa.Array, name: str = "range") -> pa.Array:
    """The identity each value begins with."""
    if not len(values):
        return pa.array([], pa.binary())
    data, offsets = layout(values)
    with blaming(name):
        start, end, _ = unpack_column(data, offsets)
        return cut(data, start, end)


def entry_columns(records: pa.RecordBatch, name: str = "range") -> pa.RecordBatch:
    """``records`` of a range as :data:`ENTRIES`; :class:`~desilt.errors.CorruptTable` blames ``name``."""
    if not len(records):
        return pa.RecordBatch.from_pylist([], schema=ENTRIES)
    data, offsets = layout(records["value"])
    with blaming(name):
        start, end, messages = unpack_column(data, offsets)
        found = _Found(data, len(records))
        for field in messages.fields():
            found.add(field)
        columns = [
            records["key"],
            found.text(ADDRESS),
            found.address_types(),
            pa.array(found.numbers[SIZE]),
            found.moments(),
            found.text(CHECKSUM),
            found.metadata(),
            found.text(CONTENT_TYPE),
            cut(data, start, end),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=ENTRIES)


def whole(entries: pa.RecordBatch) -> pa.Array:
    """Which of some entries, as columns, have a whole URI for an address; an old one does not say, and has a scheme."""
    full, unsaid = (pc.equal(entries["address_type"], kind) for kind in (FULL, BY_PREFIX))
    if not pc.any(unsaid).as_py():  # to look for schemes takes as long as all the rest
        return full
    return pc.or_(full, pc.and_(unsaid, pc.match_substring(entries["address"], "://")))


def decode_entries(records: pa.RecordBatch, name: str = "range") -> list[Entry]:
    """``records`` of a range one by one, for those who need them so: decoded together, then taken apart."""
    columns = entry_columns(records, name)
    kinds = list(AddressType)
    return [
        Entry(decode_path(path), address, size, checksum, modified, dict(metadata), kinds[kind], content_type)
        for path, address, size, checksum, modified, metadata, kind, content_type in zip(
            columns["path"].to_pylist(),
            columns["address"].to_pylist(),
            columns["size"].to_pylist(),
            columns["checksum"].to_pylist(),
            columns["modified_at"].cast(pa.int64()).to_pylist(),
            columns["metadata"].to_pylist(),
            columns["address_type"].to_pylist(),
            columns["content_type"].to_pylist(),
            strict=True,
        )
    ]


class _Found:
    """What the fields met so far say of each row. A later one replaces an earlier, as protobuf has it."""

    def __init__(self, data: Bytes, rows: int) -> None:
        self._data, self._rows = data, rows
        self.numbers = {SIZE: np.zeros(rows, np.int64), ADDRESS_TYPE: np.zeros(rows, np.int64)}
        self._texts: dict[int, tuple[Ints, Ints]] = {}
        self._seconds, self._nanos = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        self._pairs: list[Field] = []

    def add(self, field: Field) -> None:
        if field.tag in self.numbers and field.number is not None:
            self.numbers[field.tag][field.rows] = field.number
        elif field.tag in (ADDRESS, CHECKSUM, CONTENT_TYPE):
            start, end = self._texts.setdefault(field.tag, (_zeros(self._rows), _zeros(self._rows)))
            start[field.rows], end[field.rows] = field.start, field.end
        elif field.tag == MODIFIED:
            for part in Messages(self._data, field.rows, field.start, field.end).fields():
                if part.number is not None and part.tag >> 3 in (1, 2):
                    (self._seconds if part.tag >> 3 == 1 else self._nanos)[part.rows] = part.number
        elif field.tag == METADATA:
            self._pairs.append(field)

    def text(self, tag: int) -> pa.Array:
        if tag not in self._texts:
            return pa.array([""], pa.string()).take(pa.array(_zeros(self._rows)))
        start, end = self._texts[tag]
        return _utf8(_pieces(self._data, start, end))

    def address_types(self) -> pa.Array:
        kinds = self.numbers[ADDRESS_TYPE]
        if (kinds < 0).any() or (kinds > max(AddressType)).any():
            raise Malformed("an entry has an unknown address type")
        return pa.array(kinds.astype(np.int8))

    def moments(self) -> pa.Array:
        carried = self._nanos // NANOSECONDS
        seconds = np.clip(self._seconds, -LAST_SECOND * 4, LAST_SECOND * 4) + carried
        inside = np.clip(seconds, -LAST_SECOND, LAST_SECOND)
        moments = inside * NANOSECONDS + np.where(seconds == inside, self._nanos - carried * NANOSECONDS, 0)
        return pa.array(moments).cast(pa.timestamp("ns", "UTC"))

    def metadata(self) -> pa.Array:
        """The maps, each sorted by key."""
        offsets = np.zeros(self._rows + 1, np.int32)
        if not self._pairs:
            nothing = pa.array([], pa.string())
            return pa.MapArray.from_arrays(pa.array(offsets), nothing, nothing)
        rows = np.concatenate([field.rows for field in self._pairs])
        start = np.concatenate([field.start for field in self._pairs])
        end = np.concatenate([field.end for field in self._pairs])
        places = {at: (_zeros(len(rows)), _zeros(len(rows))) for at in (tag_of(1, BYTES), tag_of(2, BYTES))}
        for part in Messages(self._data, np.arange(len(rows)), start, end).fields():
            if part.tag in places:
                places[part.tag][0][part.rows], places[part.tag][1][part.rows] = part.start, part.end
        keys, values = (_utf8(_pieces(self._data, *place)) for place in places.values())
        pairs = pa.table({"row": rows, "key": keys, "value": values})
        pairs = pairs.sort_by([("row", "ascending"), ("key", "ascending")]).combine_chunks()
        row, key = pairs["row"].combine_chunks(), pairs["key"].combine_chunks()
        if pc.any(pc.and_(pc.equal(row[1:], row[:-1]), pc.equal(key[1:], key[:-1]))).as_py():
            raise Malformed("an entry has a metadata key twice")
        offsets[1:] = np.cumsum(np.bincount(rows, minlength=self._rows))
        return pa.MapArray.from_arrays(pa.array(offsets), key, pairs["value"].combine_chunks())


def _zeros(rows: int) -> Ints:
    return np.zeros(rows, np.int64)


def _pieces(data: Bytes, start: Ints, end: Ints) -> pa.Array:
    """The pieces ``start[i]:end[i]`` in that order, wherever in ``data`` they are; those of no length anywhere."""
    there = end > start
    if there.all() and (start[1:] >= end[:-1]).all():
        return cut(data, start, end)
    # Those that are there are cut out in the order they lie in; the others are copies of nothing.
    some = np.flatnonzero(there)
    some = some[np.argsort(start[some], kind="stable")]
    where = np.full(len(start), len(some), np.int64)
    where[some] = np.arange(len(some))
    first, last = np.append(start[some], len(data)), np.append(end[some], len(data))
    return cut(data, first, last, order=where)


def _utf8(raw: pa.Array) -> pa.Array:
    try:
        return raw.cast(pa.string())
    except pa.ArrowInvalid:
        raise Malformed("a text is not UTF-8") from None
