"""What people wrote beside a snapshot, and a repository's configuration: msgpack in format 1, flexbuffers in 2.

Both are read to plain values, as JSON has them; at most as many as there are bytes, however damaged these are.
"""

import struct
from typing import Any

from desilt.sstable.varint import Malformed

DEEPEST = 64
FLOATS = {2: "<e", 4: "<f", 8: "<d"}


def decoded(raw: bytes, version: int) -> Any:
    """One value, as files of that format keep it."""
    return msgpack(raw) if version == 1 else flexbuffer(raw)


def msgpack(raw: bytes) -> Any:
    reader = _Msgpack(raw)
    found = reader.value(0)
    if reader.at != len(raw):
        raise Malformed("a value does not end where it should")
    return found


class _Msgpack:
    def __init__(self, raw: bytes) -> None:
        self.raw, self.at = raw, 0

    def value(self, depth: int) -> Any:
        if depth > DEEPEST:
            raise Malformed("a value is too deep")
        code = self.number(1)
        if code < 0x80 or code >= 0xE0:
            return code if code < 0x80 else code - 256
        if code < 0x90:
            return self.pairs(code & 15, depth)
        if code < 0xA0:
            return [self.value(depth + 1) for _ in range(code & 15)]
        if code < 0xC0:
            return self.text(code & 31)
        if code in (0xC0, 0xC2, 0xC3):
            return {0xC0: None, 0xC2: False, 0xC3: True}[code]
        if 0xC4 <= code <= 0xC6:
            return self.take(self.number(1 << (code - 0xC4))).hex()
        if code in (0xCA, 0xCB):
            return struct.unpack(">f", self.take(4))[0] if code == 0xCA else struct.unpack(">d", self.take(8))[0]
        if 0xCC <= code <= 0xD3:
            return self.number(1 << (code & 3), signed=code >= 0xD0)
        if 0xD9 <= code <= 0xDB:
            return self.text(self.number(1 << (code - 0xD9)))
        if 0xDC <= code <= 0xDD:
            return [self.value(depth + 1) for _ in range(self.number(2 << (code - 0xDC)))]
        if 0xDE <= code <= 0xDF:
            return self.pairs(self.number(2 << (code - 0xDE)), depth)
        raise Malformed(f"a value is of the unknown type {code}")

    def pairs(self, count: int, depth: int) -> dict[str, Any]:
        return {str(self.value(depth + 1)): self.value(depth + 1) for _ in range(count)}

    def take(self, size: int) -> bytes:
        if self.at + size > len(self.raw):
            raise Malformed("a value runs past the end")
        self.at += size
        return self.raw[self.at - size : self.at]

    def number(self, size: int, *, signed: bool = False) -> int:
        return int.from_bytes(self.take(size), "big", signed=signed)

    def text(self, size: int) -> str:
        return _text(self.take(size))


NULL, INT, UINT, FLOAT, KEY, STRING, FAR_INT, FAR_UINT, FAR_FLOAT, MAP, VECTOR = range(11)
INTS, UINTS, REALS, KEYS = range(11, 15)
BLOB, BOOL, BOOLS = 25, 26, 36
PAIRS = 16  # of numbers of one type; then three, then four
SHORT_LISTS = {PAIRS + 3 * more + kind: (2 + more, (INT, UINT, FLOAT)[kind]) for more in range(3) for kind in range(3)}
OF_ONE_TYPE = {INTS: INT, UINTS: UINT, REALS: FLOAT, KEYS: KEY, BOOLS: BOOL}


def flexbuffer(raw: bytes) -> Any:
    """The last two bytes say what the value before them is, and how wide."""
    if len(raw) < 3:
        raise Malformed("a value is cut off")
    return _Flexbuffer(raw).value(len(raw) - 2 - raw[-1], raw[-1], raw[-2], 0)


class _Flexbuffer:
    def __init__(self, raw: bytes) -> None:
        self.raw, self.left = raw, len(raw)

    def value(self, at: int, width: int, packed: int, depth: int) -> Any:
        self.left -= 1
        if depth > DEEPEST or self.left < 0:
            raise Malformed("a value is too deep, or has more in it than there is room")
        kind, inner = packed >> 2, 1 << (packed & 3)
        if kind == NULL:
            return None
        if kind in (INT, UINT, FLOAT, BOOL):
            return self.scalar(at, width, kind)
        there = at - self.number(at, width)
        if kind in (FAR_INT, FAR_UINT, FAR_FLOAT):
            return self.scalar(there, inner, kind - FAR_INT + INT)
        if kind == KEY:
            return self.key(there)
        if kind in (STRING, BLOB):
            found = self.slice(there, self.number(there - inner, inner))
            return _text(found) if kind == STRING else found.hex()
        if kind == MAP:
            return self.pairs(there, inner, depth)
        if kind == VECTOR:
            return self.elements(there, inner, depth)
        if kind in SHORT_LISTS:
            count, of = SHORT_LISTS[kind]
            return [self.value(there + one * inner, inner, of << 2, depth + 1) for one in range(count)]
        if kind in OF_ONE_TYPE:
            count, narrow = self.count(there, inner), OF_ONE_TYPE[kind] << 2
            return [self.value(there + one * inner, inner, narrow, depth + 1) for one in range(count)]
        raise Malformed(f"a value is of the unknown type {kind}")

    def pairs(self, there: int, width: int, depth: int) -> dict[str, Any]:
        keys = there - 3 * width
        keys_at, keys_width = keys - self.number(keys, width), self.number(keys + width, width)
        values = self.elements(there, width, depth)
        if keys_width not in (1, 2, 4, 8) or self.count(keys_at, keys_width) != len(values):
            raise Malformed("a map has not as many keys as values")
        places = [keys_at + one * keys_width for one in range(len(values))]
        names = [self.key(place - self.number(place, keys_width)) for place in places]
        return dict(zip(names, values, strict=True))

    def elements(self, there: int, width: int, depth: int) -> list[Any]:
        count = self.count(there, width)
        types = self.slice(there + count * width, count)
        return [self.value(there + one * width, width, types[one], depth + 1) for one in range(count)]

    def count(self, there: int, width: int) -> int:
        count = self.number(there - width, width)
        if count > len(self.raw):
            raise Malformed("a list runs past the end")
        return count

    def scalar(self, at: int, width: int, kind: int) -> int | float | bool:
        if kind == FLOAT:
            if width not in FLOATS:
                raise Malformed("a number has a width that none has")
            return float(struct.unpack(FLOATS[width], self.slice(at, width))[0])
        found = int.from_bytes(self.slice(at, width), "little", signed=kind == INT)
        return bool(found) if kind == BOOL else found

    def number(self, at: int, width: int) -> int:
        return int.from_bytes(self.slice(at, width), "little")

    def key(self, at: int) -> str:
        end = self.raw.find(b"\0", at) if 0 <= at < len(self.raw) else -1
        if end < 0:
            raise Malformed("a key does not end")
        return _text(self.raw[at:end])

    def slice(self, at: int, size: int) -> bytes:
        if at < 0 or size < 0 or at + size > len(self.raw):
            raise Malformed("a value lies outside of its bytes")
        return self.raw[at : at + size]


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise Malformed("a text is not UTF-8") from None
