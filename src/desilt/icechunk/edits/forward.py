"""A flatbuffer in front of another one, to whose parts it refers: what is not changed need not be understood.

Offsets lead forward and are relative, so whatever is put in front moves nothing. New parts come first, each before
what it refers to; the old bytes follow, as they were. Parts of them that nothing refers to any more stay in
between, until somebody writes all of it anew, as the library does with each change.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from desilt.icechunk.format.buffer import IDENTIFIER

ALIGNED = 8  # bytes: whatever was in its place in the old buffer is so in the new one


@dataclass(frozen=True, slots=True)
class Old:
    """Something in the old buffer, by where it begins."""

    at: int


@dataclass(frozen=True, slots=True)
class Text:
    """A string."""

    text: str


@dataclass(frozen=True, slots=True)
class Structs:
    """A vector of bytes that lie in it side by side."""

    structs: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Vector:
    """A vector of what is elsewhere: tables, or strings."""

    parts: Sequence["Part"]


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table: by slot, bytes that lie in it, or a part elsewhere; None is absent."""

    fields: Mapping[int, "bytes | Part | None"]


Part = Old | Text | Structs | Vector | NewTable


def in_front(root: NewTable, old: bytes) -> bytes:
    """A buffer whose root table is ``root``, with ``old`` at its end."""
    front = _Front()
    front.data += bytes(4) + IDENTIFIER
    front.ahead.append((0, root))
    front.write_all()
    return front.joined(old)


class _Front:
    """Bytes so far, and what is referred to and not there yet."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.ahead: list[tuple[int, Part]] = []  # where an offset is, and what it leads to
        self.behind: list[tuple[int, int]] = []  # where one is that leads into the old buffer, and to what of it

    def write_all(self) -> None:
        for at, part in self.ahead:  # which grows
            if isinstance(part, Old):
                self.behind.append((at, part.at))
            else:
                self._lead(at, self._write(part))

    def joined(self, old: bytes) -> bytes:
        self._align(ALIGNED)
        begins = len(self.data)
        for at, there in self.behind:
            self._lead(at, begins + there)
        return bytes(self.data) + old

    def _write(self, part: Text | Structs | Vector | NewTable) -> int:
        """Where it begins."""
        if isinstance(part, NewTable):
            return self._table(part)
        self._align(4)
        begins = len(self.data)
        if isinstance(part, Text):
            raw = part.text.encode()
            self.data += _number(len(raw), 4) + raw + b"\0"
        elif isinstance(part, Structs):
            self.data += _number(len(part.structs), 4) + b"".join(part.structs)
        else:
            self.data += _number(len(part.parts), 4)
            for one in part.parts:
                self._refer(one)
        return begins

    def _table(self, table: NewTable) -> int:
        """Its vtable right before it; wider fields first, so that few bytes are left out between them."""
        fields = {slot: found for slot, found in table.fields.items() if found is not None}
        slots, places, size = max(fields, default=-1) + 1, dict[int, int](), 4
        for slot, found in sorted(fields.items(), key=lambda one: (-_width(one[1]), one[0])):
            size += -size % _width(found)
            places[slot] = size
            size += len(found) if isinstance(found, bytes) else 4
        self._align(ALIGNED)
        self.data += bytes(-(4 + 2 * slots) % ALIGNED)
        vtable = len(self.data)
        self.data += _number(4 + 2 * slots, 2) + _number(size, 2)
        self.data += b"".join(_number(places.get(slot, 0), 2) for slot in range(slots))
        begins = len(self.data)
        self.data += _number(begins - vtable, 4)
        for slot, place in sorted(places.items(), key=lambda one: one[1]):
            self.data += bytes(begins + place - len(self.data))
            found = fields[slot]
            if isinstance(found, bytes):
                self.data += found
            else:
                self._refer(found)
        return begins

    def _refer(self, part: Part) -> None:
        self.ahead.append((len(self.data), part))
        self.data += bytes(4)

    def _lead(self, at: int, there: int) -> None:
        self.data[at : at + 4] = _number(there - at, 4)

    def _align(self, width: int) -> None:
        self.data += bytes(-len(self.data) % width)


def _width(found: "bytes | Part") -> int:
    """What a field is aligned to: numbers to their own size, structs of bytes to none."""
    if not isinstance(found, bytes):
        return 4
    return len(found) if len(found) in (1, 2, 4, 8) else 1


def _number(value: int, width: int) -> bytes:
    return value.to_bytes(width, "little")
