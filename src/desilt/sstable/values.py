"""What lakeFS keeps under a key: an identity, then a small protobuf message.

In a range the message is an entry; in a metarange it describes a range, and the
identity is that range's id. A value written here reads back equal, and is what
lakeFS would have written (a map of several items excepted: lakeFS writes those
in any order, we sort them).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from desilt.domain.entry import AddressType, Entry, decode_path
from desilt.domain.identity import entry_hash
from desilt.domain.times import NANOSECONDS
from desilt.errors import CorruptTable
from desilt.sstable.table import RAW, Table
from desilt.sstable.varint import Malformed, blaming
from desilt.sstable.wire import bytes_field, fields, message_field, number_field, pack, text, unpack
from desilt.sstable.writer import Written, write_table

RANGES_KEPT = 4096


@dataclass(frozen=True, slots=True)
class RangeData:
    """One record of a metarange: a range, and what can be known of it without opening it."""

    id: str
    min_key: bytes
    max_key: bytes
    estimated_size: int
    count: int


def entry_identity(entry: Entry) -> bytes:
    return entry_hash(entry.size, entry.checksum, entry.metadata, entry.content_type)


def encode_entry(entry: Entry) -> bytes:
    """The value of a range's record: the identity and all of ``entry`` but its path."""
    seconds, nanos = divmod(entry.modified_ns, NANOSECONDS)
    pairs = sorted((key.encode(), value.encode()) for key, value in entry.metadata.items())
    message = (
        bytes_field(1, entry.address.encode())
        + message_field(2, number_field(1, seconds) + number_field(2, nanos))
        + number_field(3, entry.size)
        + bytes_field(4, entry.checksum.encode())
        + b"".join(message_field(5, message_field(1, key) + message_field(2, value)) for key, value in pairs)
        + number_field(6, entry.address_type)
        + bytes_field(7, entry.content_type.encode())
    )
    return pack(entry_identity(entry), message)


def decode_entry(path: bytes, value: bytes, name: str = "range") -> Entry:
    """The entry kept under ``path``, or :class:`CorruptTable`, which then blames ``name``."""
    with blaming(name):
        _, message = unpack(value)
        texts = {1: b"", 4: b"", 7: b""}
        numbers = {3: 0, 6: 0}
        moment = {1: 0, 2: 0}
        metadata: dict[str, str] = {}
        for field, content in fields(message):
            if isinstance(content, int):
                numbers[field] = content
            elif field in texts:
                texts[field] = content
            elif field == 2:
                moment.update((at, number) for at, number in fields(content) if isinstance(number, int))
            elif field == 5:
                pair = {1: b"", 2: b""} | {at: raw for at, raw in fields(content) if isinstance(raw, bytes)}
                key = text(pair[1])
                if key in metadata:
                    raise Malformed("an entry has a metadata key twice")
                metadata[key] = text(pair[2])
        try:
            address_type = AddressType(numbers[6])
        except ValueError:
            raise Malformed(f"an entry has the unknown address type {numbers[6]}") from None
        return Entry(
            path=decode_path(path),
            address=text(texts[1]),
            size=numbers[3],
            checksum=text(texts[4]),
            modified_ns=moment[1] * NANOSECONDS + moment[2],
            metadata=metadata,
            address_type=address_type,
            content_type=text(texts[7]),
        )


def identity_of(value: bytes, name: str = "range") -> bytes:
    """The identity a record's value begins with."""
    with blaming(name):
        return unpack(value)[0]


def encode_range(described: RangeData) -> bytes:
    message = (
        bytes_field(1, described.min_key)
        + bytes_field(2, described.max_key)
        + number_field(3, described.estimated_size)
        + number_field(4, described.count)
    )
    return pack(described.id.encode(), message)


def decode_range(value: bytes, name: str = "metarange") -> RangeData:
    with blaming(name):
        return _described(value)


@lru_cache(RANGES_KEPT)
def _described(value: bytes) -> RangeData:
    """What a commit changes is little: most that its metarange lists, that of the commit before has listed too."""
    identity, message = unpack(value)
    keys, numbers = {1: b"", 2: b""}, {3: 0, 4: 0}
    for field, content in fields(message):
        if isinstance(content, int):
            numbers[field] = content
        else:
            keys[field] = content
    if numbers[3] < 0 or numbers[4] < 0:
        raise Malformed("a range is described by a negative number")
    return RangeData(text(identity), keys[1], keys[2], numbers[3], numbers[4])


def read_metarange(table: Table) -> list[RangeData]:
    """The ranges of a metarange, in key order."""
    table.expect("metaranges")
    records = table.read()
    ranges = [decode_range(value, table.name) for value in records["value"].to_pylist()]
    if records["key"].to_pylist() != [described.max_key for described in ranges]:
        raise CorruptTable(table.name, "it keeps a range under another key than its last")
    return ranges


def write_metarange(ranges: Sequence[RangeData]) -> Written:
    keys = pa.array([described.max_key for described in ranges], pa.binary())
    values = pa.array([encode_range(described) for described in ranges], pa.binary())
    return write_table(pa.RecordBatch.from_arrays([keys, values], schema=RAW), kind="metaranges")
