"""Protobuf messages, and the identity that stands before each: one value at a time.

Absent and zero are the same, as protobuf has it. A field of a kind that was not
asked for is stepped over by its wire type; groups, which nobody writes, are refused.
"""

from collections.abc import Iterator

from desilt.sstable import varint
from desilt.sstable.varint import Malformed

VARINT, FIXED_64, BYTES, FIXED_32 = 0, 1, 2, 5  # wire types
MAX_FIELD = 2**29 - 1
FIXED = {FIXED_64: 8, FIXED_32: 4}


def pack(identity: bytes, message: bytes) -> bytes:
    """A record's value."""
    return varint.encode_zigzag(len(identity)) + identity + varint.encode_zigzag(len(message)) + message


def unpack(value: bytes) -> tuple[bytes, bytes]:
    """The identity and the message of a value; bytes after them mean nothing."""
    size, at = varint.decode_zigzag(value, 0)
    identity = piece(value, at, size)
    size, at = varint.decode_zigzag(value, at + size)
    return identity, piece(value, at, size)


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The message's numbers (as int64) and byte strings, each with its field."""
    at = 0
    while at < len(message):
        tag, at = varint.decode(message, at)
        field, wire = tag >> 3, tag & 7
        if wire == VARINT:
            number, at = varint.decode(message, at)
            yield field, number - (number >> 63 << 64)
        elif wire == BYTES:
            size, at = varint.decode(message, at)
            yield field, piece(message, at, size)
            at += size
        elif wire in FIXED:
            piece(message, at, FIXED[wire])
            at += FIXED[wire]
        else:
            raise Malformed(f"a message has a field of the unknown kind {wire}")
        if not 0 < field <= MAX_FIELD:
            raise Malformed("a message has a field without a proper number")


def number_field(field: int, value: int) -> bytes:
    return varint.encode(field << 3 | VARINT) + varint.encode(value & 2**64 - 1) if value else b""


def bytes_field(field: int, content: bytes) -> bytes:
    return message_field(field, content) if content else b""


def message_field(field: int, content: bytes) -> bytes:
    """Like :func:`bytes_field`, but there even when empty."""
    return varint.encode(field << 3 | BYTES) + varint.encode(len(content)) + content


def text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise Malformed("a text is not UTF-8") from None


def piece(data: bytes, at: int, size: int) -> bytes:
    if size < 0 or at + size > len(data):
        raise Malformed("a value ends too early")
    return data[at : at + size]
