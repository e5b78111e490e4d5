"""A second reader of the format, one byte at a time and with nothing shared: what the real one must agree with."""

import cramjam
import crc32c


def varint(data, at):
    byte = data[at]
    if byte < 128:
        return byte, at + 1
    value, shift = byte & 127, 7
    while True:
        at += 1
        byte = data[at]
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at + 1
        shift += 7


def block(data, handle):
    offset, at = varint(handle, 0)
    size, _ = varint(handle, at)
    end = offset + size
    crc = crc32c.crc32c(data[offset : end + 1])
    assert ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32 == int.from_bytes(data[end + 1 : end + 5], "little")
    raw = data[offset:end]
    return bytes(cramjam.snappy.decompress_raw(raw)) if data[end] == 1 else raw


def entries(data):
    end = len(data) - 4 * (int.from_bytes(data[-4:], "little") + 1)
    at, key = 0, b""
    while at < end:
        shared, at = varint(data, at)
        unshared, at = varint(data, at)
        size, at = varint(data, at)
        key = key[:shared] + data[at : at + unshared]
        at += unshared + size
        yield key, data[at - size : at]


def properties(data):
    metaindex = dict(entries(block(data, data[-52:-12])))
    return dict(entries(block(data, metaindex[b"rocksdb.properties"])))


def records(data):
    """Every (key, value) of a table, in order."""
    _, at = varint(data, len(data) - 52)
    _, at = varint(data, at)
    index = entries(block(data, data[at:-12]))
    if properties(data)[b"rocksdb.block.based.table.index.type"][0] == 2:
        index = (entry for _, handle in index for entry in entries(block(data, handle)))
    return [(key[:-8], value) for _, handle in index for key, value in entries(block(data, handle))]


def fields(message):
    """The fields of a protobuf message: a number or bytes under each number; the last of each wins."""
    found, at = {}, 0
    while at < len(message):
        tag, at = varint(message, at)
        value, at = varint(message, at)
        if tag & 7 == 2:
            value, at = message[at : at + value], at + value
        found[tag >> 3] = value
    return found


def message_of(value):
    size, at = varint(value, 0)
    size, at = varint(value, at + size // 2)
    return fields(value[at : at + size // 2])
