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


class Block:
    """A block being filled, with the size its writer believes it to have."""

    def __init__(self, interval):
        self.interval, self.size, self.count, self.restarts, self.last = interval, 0, 0, 0, b""

    def estimate(self):
        return self.size + 4 * (self.restarts + 1)

    def full(self, key, value):
        if not self.count or self.estimate() < 3687:
            return False
        guess = self.estimate() + len(key) + len(value) + 4 + width(len(key)) + width(len(value))
        guess += 4 if self.count % self.interval == 0 else 0
        return self.estimate() >= 4096 or (self.estimate() > 3687 and guess > 4096)

    def add(self, key, value):
        shared = 0
        if self.count % self.interval == 0:
            self.restarts += 1
        else:
            while key[: shared + 1] == self.last[: shared + 1] and shared < len(key):
                shared += 1
        rest = len(key) - shared
        self.size += width(shared) + width(rest) + width(len(value)) + rest + len(value)
        self.count, self.last = self.count + 1, key


def width(number):
    return max(1, -(-number.bit_length() // 7))


def fnv64a(key):
    value = 0xCBF29CE484222325
    for byte in key:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def shortest(last, following):
    """A separator's length: the shortest key from ``last`` on and below ``following`` that one raised byte gives."""
    for at in range(len(last)):
        if last[at] < 255:
            short = last[:at] + bytes([last[at] + 1])
            if last < short < following:
                return len(short)
    return len(last)


def blocks(pairs):
    """How many data blocks a table of ``pairs`` has."""
    count, block = 1, Block(16)
    for key, value in pairs:
        internal = key + b"\1" + bytes(7)
        if block.full(internal, value):
            count, block = count + 1, Block(16)
        block.add(internal, value)
    return count


def split(pairs, max_size, raggedness, stored_size):
    """How many records each range takes. ``stored_size(records)`` is what a block of them takes in the file."""
    counts, taken, fresh = [], 0, True
    for n, (key, value) in enumerate(pairs):
        internal = key + b"\1" + bytes(7)
        if fresh:
            written, data, index, held, fresh = 0, Block(16), Block(1), [], False
        if data.full(internal, value):
            size = stored_size(held)
            handle = bytes(width(written) + width(size - 5))
            separator = bytes(shortest(held[-1][0], key) + 8)
            if index.full(separator, bytes(20)):  # the handle is not known yet, and may be as long as handles get
                index = Block(1)
            index.add(separator, handle)
            written, data, held = written + size, Block(16), []
        data.add(internal, value)
        held.append((key, value))
        if fnv64a(key) % raggedness == 0 or written + data.estimate() + index.estimate() >= max_size:
            counts.append(n + 1 - taken)
            taken, fresh = n + 1, True
    return counts + ([len(pairs) - taken] if len(pairs) > taken else [])
