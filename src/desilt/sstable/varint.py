"""Numbers as the format writes them: little-endian groups of seven bits, one at a time or a column at once.

The column forms take positions into one byte array and give values and the
positions after them. They never read outside the array: a position past its
end reads the last byte, and the caller, who knows where each number had to
end, compares and refuses.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from desilt.errors import CorruptTable, Unreadable

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]

MAX_32 = 5  # bytes of the longest 32-bit number
MAX_64 = 10


class Malformed(Unreadable):
    """Bytes that break the format's rules, found where the table's name is not known."""

    code = "malformed"


@contextmanager
def blaming(name: str) -> Iterator[None]:
    """Whatever is malformed inside is the fault of the table called ``name``."""
    try:
        yield
    except Malformed as fault:
        raise CorruptTable(name, str(fault)) from None


def encode(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode(data: bytes | memoryview, at: int, *, longest: int = MAX_64) -> tuple[int, int]:
    """The number at ``at``, of so many bytes at most, and the position after it."""
    value = shift = 0
    while True:
        if at >= len(data):
            raise Malformed("a number runs past the end")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value >> 64:
                raise Malformed("a number does not fit in 64 bits")
            return value, at
        shift += 7
        if shift >= 7 * longest:
            raise Malformed(f"a number does not fit in {longest} bytes")


def encode_zigzag(value: int) -> bytes:
    return encode(value << 1 if value >= 0 else (-value << 1) - 1)


def decode_zigzag(data: bytes | memoryview, at: int) -> tuple[int, int]:
    value, at = decode(data, at)
    return value >> 1 ^ -(value & 1), at


def decode_column(data: Bytes, at: Ints, *, longest: int) -> tuple[Ints, Ints]:
    """The numbers that begin at each of ``at``, and the positions after them.

    Numbers above 2^63 come out negative, which is what a protobuf int64 means by them.
    """
    byte = data.take(at, mode="clip")
    value, end, long = byte.astype(np.int64), at + 1, byte > 127
    if not long.any():
        return value, end
    value &= 127
    shift = 7
    while shift < min(7 * longest, 63) and long.all():  # as long as each other, as many are: no picking
        byte = data.take(end, mode="clip")
        value |= (byte & 127).astype(np.int64) << shift
        end, shift, long = end + 1, shift + 7, byte > 127
        if not long.any():
            return value, end
    more = np.flatnonzero(long)
    for bits in range(shift, 7 * longest, 7):
        place = end[more]
        byte = data.take(place, mode="clip")
        if bits == 63 and (byte > 1).any():
            break
        value[more] |= (byte & 127).astype(np.int64) << bits
        end[more] = place + 1
        more = more[byte > 127]
        if not len(more):
            return value, end
    raise Malformed(f"a number does not fit in {longest} bytes")


def widths(values: Ints) -> Ints:
    """How many bytes each number takes."""
    width = np.ones(len(values), np.int64)
    for bits in range(7, 63, 7):
        above = values >= 1 << bits
        if not above.any():
            break
        width += above
    return width


def encode_columns(*columns: Ints) -> tuple[Bytes, Ints]:
    """Row by row, the numbers of all columns: the bytes, and where each row begins and the last one ends."""
    rows = np.stack(columns, axis=1).ravel()
    width = widths(rows)
    ends = np.cumsum(width)
    out = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    place, left = ends - width, rows
    while len(left):
        more = left > 127
        out[place] = (left & 127) | (more << 7)
        place, left = place[more] + 1, left[more] >> 7
    starts = np.zeros(len(columns[0]) + 1, np.int64)
    starts[1:] = ends[len(columns) - 1 :: len(columns)]
    return out, starts
