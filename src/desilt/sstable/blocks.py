"""The container: blocks with checksums, handles that find them, and the footer that finds the first two.

What goes into a block is somebody else's business. What comes out of
:func:`unseal` is what went into :func:`seal`, or it is :class:`Malformed`.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import cramjam
import numpy as np
import numpy.typing as npt
from crc32c import crc32c

from desilt.sstable import varint
from desilt.sstable.varint import Bytes, Ints, Malformed

TRAILER = 5  # after every block: one byte of compression, four of checksum
FOOTER = 53
MAGIC = bytes.fromhex("f7cff485b741e288")
RAW, SNAPPY = b"\0", b"\1"
CRC32C = b"\1"
MASK = 0xA282EAD8  # added to a checksum, so that one of a block with a checksum in it is another number
VERSION = (2).to_bytes(4, "little")
Flags = npt.NDArray[np.bool_]
MOST_SNAPPY = 64  # no snappy stream is 64 times shorter than what it holds; a longer claim is a lie


@dataclass(frozen=True, slots=True)
class BlockHandle:
    """Where a block is: ``size`` bytes from ``offset``, its trailer not counted."""

    offset: int
    size: int

    @property
    def end(self) -> int:
        return self.offset + self.size + TRAILER

    def encode(self) -> bytes:
        return varint.encode(self.offset) + varint.encode(self.size)


def decode_handle(data: bytes | memoryview, at: int = 0) -> tuple[BlockHandle, int]:
    offset, at = varint.decode(data, at)
    size, at = varint.decode(data, at)
    return BlockHandle(offset, size), at


@dataclass(frozen=True, slots=True)
class Footer:
    """The last 53 bytes of a table."""

    metaindex: BlockHandle
    index: BlockHandle

    def encode(self) -> bytes:
        handles = CRC32C + self.metaindex.encode() + self.index.encode()
        return handles.ljust(FOOTER - len(VERSION) - len(MAGIC), b"\0") + VERSION + MAGIC


def decode_footer(data: bytes) -> Footer:
    """The footer, if ``data`` is what :meth:`Footer.encode` would have written: nothing checks it otherwise."""
    if data[-len(MAGIC) :] != MAGIC:
        raise Malformed("it does not end as a table does")
    metaindex, at = decode_handle(data, 1)
    index, _ = decode_handle(data, at)
    footer = Footer(metaindex, index)
    if footer.encode() != data:
        raise Malformed("its footer is damaged, or of another version")
    return footer


def checksum(block: bytes | memoryview, kind: bytes) -> bytes:
    crc = crc32c(kind, crc32c(block))
    return ((crc >> 15 | crc << 17) + MASK & 0xFFFFFFFF).to_bytes(4, "little")


def seal(block: bytes, *, compress: bool) -> bytes:
    """``block`` as it is stored: smaller if that saves an eighth, and with its trailer."""
    kind = RAW
    if compress:
        shorter = bytes(cramjam.snappy.compress_raw(block))
        if len(shorter) < len(block) - len(block) // 8:
            block, kind = shorter, SNAPPY
    return block + kind + checksum(block, kind)


def unseal(stored: memoryview) -> bytes:
    """The block in ``stored``, which ends with its trailer."""
    body, kind = stored[:-TRAILER], bytes(stored[-TRAILER:-4])
    if checksum(body, kind) != stored[-4:]:
        raise Malformed("a block's checksum is wrong")
    if kind == RAW:
        return bytes(body)
    if kind != SNAPPY:
        raise Malformed(f"a block is compressed in an unknown way ({kind[0]})")
    claimed, _ = varint.decode(body, 0)
    if claimed > MOST_SNAPPY * len(body):
        raise Malformed("a block claims to hold more than it can")
    try:
        return bytes(cramjam.snappy.decompress_raw(body))
    except cramjam.DecompressionError as fault:
        raise Malformed(f"a block cannot be decompressed ({fault})") from None


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks one after the other: their bytes, and how many of them are each one's."""

    data: Bytes
    sizes: Ints


def whole(block: bytes) -> Blocks:
    """One block."""
    return Blocks(np.frombuffer(block, np.uint8), np.array([len(block)], np.int64))


def joined(several: Sequence[Blocks]) -> Blocks:
    """All of them, one after the other."""
    return Blocks(np.concatenate([one.data for one in several]), np.concatenate([one.sizes for one in several]))


def unseal_all(stored: memoryview, bounds: Ints) -> Blocks:
    """What :func:`unseal` says of each of the blocks that lie in ``stored`` from one bound to the next."""
    raw, ends = np.frombuffer(stored, np.uint8), bounds[1:] - TRAILER
    starts, edges = bounds[:-1], list(pairwise(bounds.tolist()))
    said = np.ndarray((len(raw) - 3,), "<u4", raw, strides=(1,))[ends + 1]
    crc = np.array([crc32c(stored[start : end - 4]) for start, end in edges], np.uint32)
    if ((crc >> 15 | crc << 17) + np.uint32(MASK) != said).any():
        raise Malformed("a block's checksum is wrong")
    short = raw[ends] == SNAPPY[0]
    if unknown := raw[ends[~short & (raw[ends] != RAW[0])]].tolist():
        raise Malformed(f"a block is compressed in an unknown way ({unknown[0]})")
    sizes = ends - starts
    claimed, after = varint.decode_column(raw, starts[short], longest=varint.MAX_64)
    if (after > ends[short]).any():
        raise Malformed("a number runs past the end")
    if (claimed < 0).any() or (claimed > MOST_SNAPPY * sizes[short]).any():
        raise Malformed("a block claims to hold more than it can")
    sizes[short] = claimed
    data = np.empty(int(sizes.sum()), np.uint8)
    _fill(data.data, stored, edges, sizes, short)
    return Blocks(data, sizes)


def _fill(data: memoryview, stored: memoryview, edges: list[tuple[int, int]], sizes: Ints, short: Flags) -> None:
    """Every block to its place in ``data``, and no byte of it left as it was."""
    at = 0
    for (start, end), size, shorter in zip(edges, sizes.tolist(), short.tolist(), strict=True):
        body, place = stored[start : end - TRAILER], data[at : at + size]
        at += size
        if not shorter:
            place[:] = body
            continue
        try:
            filled = (
                cramjam.snappy.decompress_raw_into(body, place) if size else len(cramjam.snappy.decompress_raw(body))
            )
        except cramjam.DecompressionError as fault:
            raise Malformed(f"a block cannot be decompressed ({fault})") from None
        if filled != size:
            raise Malformed("a block holds less than it claims")


def entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """A block's keys and values, one by one: for small blocks, which most are that hold no data."""
    if len(block) < 8:
        raise Malformed("a block is too short to be one")
    count = int.from_bytes(block[-4:], "little")
    end = len(block) - 4 * (count + 1)
    if count < 1 or end < 0:
        raise Malformed("a block's restarts do not fit in it")
    restarts = struct.unpack_from(f"<{count}I", block, end)
    rising = all(one < after for one, after in pairwise([*restarts, end])) if end else not any(restarts)
    if restarts[0] or not rising:
        raise Malformed("a block's restarts are not in order")
    return _entries(block, list(restarts[:0:-1]), end)


def _entries(block: bytes, restarts: list[int], end: int) -> Iterator[tuple[bytes, bytes]]:
    """The same, of a block whose ``restarts`` but the first are given, the last of them first."""
    at, key = 0, b""
    stop = restarts.pop() if restarts else end
    while at < end:
        if at == stop:
            key, stop = b"", restarts.pop() if restarts else end
        shared, unshared, size = block[at], block[at + 1], block[at + 2]  # restarts follow: there are so many bytes
        if shared | unshared | size < 128:
            at += 3
        else:
            shared, at = varint.decode(block, at, longest=varint.MAX_32)
            unshared, at = varint.decode(block, at, longest=varint.MAX_32)
            size, at = varint.decode(block, at, longest=varint.MAX_32)
        if shared > len(key) or at + unshared + size > stop:
            raise Malformed("an entry does not fit in its block")
        key = key[:shared] + block[at : at + unshared]
        at += unshared + size
        yield key, block[at - size : at]


def build(records: list[tuple[bytes, bytes]], *, interval: int) -> bytes:
    """A block of a few records, each ``interval``-th key written whole."""
    out, restarts, previous = bytearray(), bytearray(), b""
    for n, (key, value) in enumerate(records):
        shared = 0
        if n % interval == 0:
            restarts += len(out).to_bytes(4, "little")
        else:
            while shared < min(len(key), len(previous)) and key[shared] == previous[shared]:
                shared += 1
        out += varint.encode(shared) + varint.encode(len(key) - shared) + varint.encode(len(value))
        out += key[shared:] + value
        previous = key
    restarts = restarts or bytearray(4)
    return bytes(out + restarts) + (len(restarts) // 4).to_bytes(4, "little")
