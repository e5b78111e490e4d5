"""Protobuf messages of a whole column, walked side by side.

Each row is a lane with a position and an end. One step reads the next field of
every lane that has one; most rows of a column have the same fields in the same
order, so a step usually meets one tag and needs no sorting out.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from desilt.sstable import varint
from desilt.sstable.varint import Bytes, Ints, Malformed
from desilt.sstable.wire import BYTES, FIXED, MAX_FIELD, VARINT


@dataclass(frozen=True, slots=True)
class Field:
    """One field, met at one step in some rows: a number, or the bytes from ``start`` to ``end``."""

    tag: int
    rows: Ints
    number: Ints | None
    start: Ints
    end: Ints


@dataclass(frozen=True, slots=True)
class Messages:
    """Row ``rows[i]``'s message is ``data[start[i]:end[i]]``. A row may have several."""

    data: Bytes
    rows: Ints
    start: Ints
    end: Ints

    def fields(self) -> Iterator[Field]:
        """Every field of every row; those of one row in their order."""
        going = np.flatnonzero(self.start < self.end)
        rows, at, end = self.rows[going], self.start[going], self.end[going]
        while len(rows):
            tags, at = varint.decode_column(self.data, at, longest=varint.MAX_64)
            if (tags == tags[0]).all():
                field, after = self._field(int(tags[0]), rows, at, end)
                yield field
            else:
                after = at.copy()
                for tag in np.unique(tags).tolist():
                    those = np.flatnonzero(tags == tag)
                    field, after[those] = self._field(tag, rows[those], at[those], end[those])
                    yield field
            at = after
            more = at < end
            if not more.all():
                rows, at, end = rows[more], at[more], end[more]

    def _field(self, tag: int, rows: Ints, at: Ints, end: Ints) -> tuple[Field, Ints]:
        wire, number = tag & 7, None
        if not 0 < tag >> 3 <= MAX_FIELD:
            raise Malformed("a message has a field without a proper number")
        if wire == VARINT:
            number, after = varint.decode_column(self.data, at, longest=varint.MAX_64)
        elif wire == BYTES:
            size, at = varint.decode_column(self.data, at, longest=varint.MAX_64)
            if (size < 0).any() or (size > len(self.data)).any():
                raise Malformed("a value ends too early")
            after = at + size
        elif wire in FIXED:
            after = at + FIXED[wire]
        else:
            raise Malformed(f"a message has a field of the unknown kind {wire}")
        if (after > end).any():
            raise Malformed("a value ends too early")
        return Field(tag, rows, number, at, after), after


def tag_of(field: int, wire: int) -> int:
    return field << 3 | wire


def unpack_column(data: Bytes, offsets: Ints) -> tuple[Ints, Ints, Messages]:
    """Where each value's identity starts and ends, and the messages after them."""
    start, end = _piece(data, offsets[:-1], offsets[1:])
    message, message_end = _piece(data, end, offsets[1:])
    return start, end, Messages(data, np.arange(len(start)), message, message_end)


def _piece(data: Bytes, at: Ints, limit: Ints) -> tuple[Ints, Ints]:
    """What follows the zig-zag length at each position."""
    if (at >= limit).any():
        raise Malformed("a value ends too early")
    size, start = varint.decode_column(data, at, longest=varint.MAX_64)
    if (size & 1).any() or (size < 0).any() or (size > 2 * len(data)).any() or (start + (size >> 1) > limit).any():
        raise Malformed("a value ends too early")
    return start, start + (size >> 1)
