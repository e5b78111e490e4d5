"""An entry's address, written anew: all else of its value stays byte for byte, whatever it is."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from desilt.cache.ranges import Territory
from desilt.domain.entry import AddressType
from desilt.sstable import varint
from desilt.sstable.columns import entry_columns, whole
from desilt.sstable.table import RAW
from desilt.sstable.varint import blaming
from desilt.sstable.wire import BYTES, FIXED, VARINT, bytes_field, number_field, pack, piece, unpack

ADDRESS, ADDRESS_TYPE = 1, 6


def inside(records: pa.RecordBatch, place: Territory, name: str) -> tuple[pa.Array, pa.Array]:
    """The address of each entry in its repository, null where it is elsewhere; and what its value says it is."""
    entries = entry_columns(records, name)
    full = whole(entries)
    if not pc.any(full, min_count=0).as_py():
        return entries["address"], entries["address"]
    return pc.if_else(full, place.inside(entries["address"]), entries["address"]), entries["address"]


def readdressed(records: pa.RecordBatch, addresses: Sequence[str | None], name: str) -> pa.RecordBatch:
    """``records`` with each address that is given, relative to the repository; without one, as it is."""
    with blaming(name):
        values = [
            value if address is None else _readdressed(value, address)
            for value, address in zip(records["value"].to_pylist(), addresses, strict=True)
        ]
    return pa.RecordBatch.from_arrays([records["key"], pa.array(values, pa.binary())], schema=RAW)


def _readdressed(value: bytes, address: str) -> bytes:
    identity, message = unpack(value)
    kept = [(field, raw) for field, raw in _parts(message) if field not in (ADDRESS, ADDRESS_TYPE)]
    kept.append((ADDRESS, bytes_field(ADDRESS, address.encode())))
    kept.append((ADDRESS_TYPE, number_field(ADDRESS_TYPE, AddressType.RELATIVE)))
    return pack(identity, b"".join(raw for _, raw in sorted(kept, key=lambda part: part[0])))


def _parts(message: bytes) -> list[tuple[int, bytes]]:
    """The fields of a message as they are written, each with its number."""
    found, at = [], 0
    while at < len(message):
        start = at
        tag, at = varint.decode(message, at)
        wire = tag & 7
        if wire == VARINT:
            _, at = varint.decode(message, at)
        else:
            size = FIXED.get(wire, 0)
            if wire == BYTES:
                size, at = varint.decode(message, at)
            at += len(piece(message, at, size))
        found.append((tag >> 3, message[start:at]))
    return found
