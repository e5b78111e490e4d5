"""One table being written: blocks in, a file out.

The builder decides nothing about records. It stores blocks, keeps the index,
knows at each moment how large its table says it is, and closes it byte for byte
as lakeFS would.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from desilt.sstable import varint
from desilt.sstable.blocks import TRAILER, BlockHandle, Footer, build, seal
from desilt.sstable.cuts import is_full
from desilt.sstable.decode import SUFFIX
from desilt.sstable.encode import SUFFIX_BYTES
from desilt.sstable.index import INDEX_TYPE

Kind = Literal["ranges", "metaranges"]

SHORTENED = b"\x11" + b"\xff" * 7  # ends a separator that is no key of the table
NO_KEY = b"\xff" + bytes(7)  # ends the separator of an empty table
EMPTY = 4  # the estimated size of a block without entries
ABSENT = 20  # bytes that lakeFS counts for a handle before it has one: two numbers, each as long as they get


@dataclass(frozen=True, slots=True)
class Totals:
    """What a table says of its records."""

    min_key: bytes
    max_key: bytes
    count: int
    key_bytes: int
    value_bytes: int


class Builder:
    """A table's blocks so far, and the index to them."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._full: list[list[tuple[bytes, bytes]]] = []  # index partitions that are closed
        self._open: list[tuple[bytes, bytes]] = []
        self._open_size = EMPTY

    @property
    def size(self) -> int:
        """What is stored, and the open part of the index: the estimated size without the block in the making."""
        return self._size + self._open_size

    def add(self, block: bytes, *, last: bytes, following: bytes | None) -> None:
        """Store a data block whose last key is ``last``; ``following`` is the key after it, None at the end."""
        handle = self._store(block, compress=True)
        key = separator(last, following) if following is not None else successor(last)
        self._point(key, handle)

    def close(self, *, kind: Kind, totals: Totals, estimate: int, said: Mapping[str, str] | None = None) -> bytes:
        """The file. ``estimate`` is the estimated size just before its last data block was closed."""
        if not self._open:
            self._point(NO_KEY, self._store(build([], interval=1), compress=True))
        data_size = self._size
        partitions = [*self._full, self._open]
        index, numbers = self._write_index(partitions)
        numbers |= {
            "data.size": data_size,
            "num.data.blocks": sum(len(partition) for partition in partitions),
            "num.entries": totals.count,
            "raw.key.size": totals.key_bytes + SUFFIX * totals.count,
            "raw.value.size": totals.value_bytes,
        }
        user = {
            "type": kind.encode(),
            "min_key": totals.min_key,
            "max_key": totals.max_key,
            "count": str(totals.count).encode(),
            "estimated_size_bytes": str(estimate).encode(),
        } | {name: text.encode() for name, text in (said or {}).items()}
        known = {f"rocksdb.{name}": varint.encode(value) for name, value in numbers.items()}
        properties = FIXED | user | known | {INDEX_TYPE: bytes([2 * (len(partitions) > 1), 0, 0, 0])}
        block = build(sorted((name.encode(), value) for name, value in properties.items()), interval=2**31)
        handle = self._store(block, compress=False)
        metaindex = self._store(build([(b"rocksdb.properties", handle.encode())], interval=1), compress=False)
        return b"".join([*self._parts, Footer(metaindex, index).encode()])

    def _store(self, block: bytes, *, compress: bool) -> BlockHandle:
        stored = seal(block, compress=compress)
        handle = BlockHandle(self._size, len(stored) - TRAILER)
        self._parts.append(stored)
        self._size += len(stored)
        return handle

    def _point(self, key: bytes, handle: BlockHandle) -> None:
        value = handle.encode()
        key_width = len(varint.encode(len(key)))
        guess = len(key) + ABSENT + 4 + key_width + len(varint.encode(ABSENT))
        if self._open and is_full(self._open_size, guess, restart=True):
            self._full.append(self._open)
            self._open, self._open_size = [], EMPTY
        self._open.append((key, value))
        self._open_size += 1 + key_width + len(varint.encode(len(value))) + len(key) + len(value) + 4

    def _write_index(self, partitions: list[list[tuple[bytes, bytes]]]) -> tuple[BlockHandle, dict[str, int]]:
        blocks = [build(partition, interval=1) for partition in partitions]
        if len(blocks) == 1:
            return self._store(blocks[0], compress=True), {"index.size": len(blocks[0]) + TRAILER}
        handles = [self._store(block, compress=True) for block in blocks]
        tops = [(partition[-1][0], handle.encode()) for partition, handle in zip(partitions, handles, strict=True)]
        top = build(tops, interval=1)
        sizes = {
            "index.partitions": len(blocks),
            "top-level.index.size": len(top),
            "index.size": sum(map(len, blocks)) + len(top) + TRAILER,
        }
        return self._store(top, compress=True), sizes


def separator(last: bytes, following: bytes) -> bytes:
    """A short key from ``last`` on and below ``following``, as the index keeps it."""
    short = last
    at = next((n for n, (a, b) in enumerate(zip(last, following, strict=False)) if a != b), None)
    if at is not None and last[at] < following[at]:
        if at < len(following) - 1 or last[at] + 1 < following[at]:
            short = last[:at] + bytes([last[at] + 1])
        else:
            short = _raised(last, at + 1)
    return short + (SHORTENED if short != last else SUFFIX_BYTES)


def successor(last: bytes) -> bytes:
    """A short key from ``last`` on."""
    short = _raised(last, 0)
    return short + (SHORTENED if short != last else SUFFIX_BYTES)


def _raised(key: bytes, at: int) -> bytes:
    """``key`` cut after its first byte from ``at`` on that can be one more, and is."""
    while at < len(key) and key[at] == 0xFF:
        at += 1
    return key[:at] + bytes([key[at] + 1]) if at < len(key) else key


ZEROS = (
    "creation.time deleted.keys filter.size fixed.key.length format.version index.key.is.user.key "
    "index.value.is.delta.encoded merge.operands num.range-deletions oldest.key.time"
)
FIXED = {
    "rocksdb.block.based.table.prefix.filtering": b"0",
    "rocksdb.block.based.table.whole.key.filtering": b"0",
    "rocksdb.column.family.id": varint.encode(2**31 - 1),
    "rocksdb.comparator": b"leveldb.BytewiseComparator",
    "rocksdb.compression": b"Snappy",
    "rocksdb.compression_options": b"window_bits=-14; level=32767; strategy=0; max_dict_bytes=0; "
    b"zstd_max_train_bytes=0; enabled=0; ",
    "rocksdb.external_sst_file.global_seqno": bytes(8),
    "rocksdb.external_sst_file.version": b"\2\0\0\0",
    "rocksdb.merge.operator": b"pebble.concatenate",
    "rocksdb.prefix.extractor.name": b"nullptr",
    "rocksdb.property.collectors": b"[static]",
} | {f"rocksdb.{name}": b"\0" for name in ZEROS.split()}
"""The properties that are the same in every table."""
