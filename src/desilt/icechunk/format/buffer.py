"""A flatbuffer, one value at a time; nothing is read that is not inside of what holds it.

A table begins with the way back to its *vtable*, which says where each field is, by its number (its *slot*). What
is longer than a number is elsewhere, and the field has the way there. What an older writer left out is absent.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from struct import unpack_from

from desilt.sstable.varint import Malformed

IDENTIFIER = b"Ichk"
LEAST_VTABLE = 4


@dataclass(frozen=True, slots=True)
class FlatTable:
    """One table; ``at`` is where it begins."""

    data: bytes
    at: int
    size: int
    fields: tuple[int, ...]  # where each slot is, from ``at``; 0 where it is absent

    def has(self, slot: int) -> bool:
        return slot < len(self.fields) and self.fields[slot] != 0

    def beyond(self, slots: int) -> bool:
        """Whether there is a field past the first ``slots``."""
        return any(self.fields[slots:])

    def number(self, slot: int, width: int, default: int = 0, *, signed: bool = False) -> int:
        raw = self.raw(slot, width)
        return default if raw is None else int.from_bytes(raw, "little", signed=signed)

    def raw(self, slot: int, width: int) -> bytes | None:
        """The bytes of a field that lies in the table itself: a number, or a struct."""
        if not self.has(slot):
            return None
        offset = self.fields[slot]
        if offset < 4 or offset + width > self.size:
            raise Malformed(f"field {slot} lies outside of its table")
        return self.data[self.at + offset : self.at + offset + width]

    def struct(self, slot: int, width: int) -> bytes:
        found = self.raw(slot, width)
        if found is None:
            raise Malformed(f"field {slot} is missing")
        return found

    def vector(self, slot: int, width: int) -> tuple[int, int] | None:
        """Where the elements of a vector begin, and how many there are."""
        if (there := self._target(slot)) is None:
            return None
        count = number_at(self.data, there, 4)
        if there + 4 + count * width > len(self.data):
            raise Malformed(f"the vector in field {slot} runs past the end")
        return there + 4, count

    def content(self, slot: int) -> bytes | None:
        """A vector of bytes."""
        if (found := self.vector(slot, 1)) is None:
            return None
        start, count = found
        return self.data[start : start + count]

    def text(self, slot: int) -> str:
        """A string that must be there."""
        if (found := self.vector(slot, 1)) is None:
            raise Malformed(f"the text in field {slot} is missing")
        return text_at(self.data, *found)

    def texts(self, slot: int) -> list[str]:
        return [text_at(self.data, there + 4, number_at(self.data, there, 4)) for there in self._targets(slot)]

    def tables(self, slot: int) -> Iterator["FlatTable"]:
        """The tables that a vector names; a vector that must be there."""
        for there in self._targets(slot):
            yield table_at(self.data, there)

    def table(self, slot: int) -> "FlatTable":
        if (there := self._target(slot)) is None:
            raise Malformed(f"the table in field {slot} is missing")
        return table_at(self.data, there)

    def structs(self, slot: int, stride: int) -> list[bytes]:
        if (found := self.vector(slot, stride)) is None:
            raise Malformed(f"the list in field {slot} is missing")
        start, count = found
        return [self.data[start + at * stride : start + (at + 1) * stride] for at in range(count)]

    def place(self, slot: int) -> int | None:
        """Where that is which a field leads to; None where the field is absent."""
        return self._target(slot)

    def _target(self, slot: int) -> int | None:
        if (way := self.raw(slot, 4)) is None:
            return None
        return _followed(self.data, self.at + self.fields[slot], int.from_bytes(way, "little"))

    def _targets(self, slot: int) -> Iterator[int]:
        if (found := self.vector(slot, 4)) is None:
            raise Malformed(f"the list in field {slot} is missing")
        start, count = found
        for at in range(start, start + 4 * count, 4):
            yield _followed(self.data, at, number_at(self.data, at, 4))


def root(data: bytes) -> FlatTable:
    """The table that all of ``data`` is."""
    if data[4:8] != IDENTIFIER:
        raise Malformed("its contents are not a flatbuffer of Icechunk's")
    return table_at(data, _followed(data, 0, number_at(data, 0, 4)))


def table_at(data: bytes, at: int) -> FlatTable:
    vtable = at - number_at(data, at, 4, signed=True)
    length = number_at(data, vtable, 2)
    size = number_at(data, vtable + 2, 2)
    if length < LEAST_VTABLE or length % 2 or vtable + length > len(data):
        raise Malformed("a vtable is longer than there is room")
    if size < 4 or at + size > len(data):
        raise Malformed("a table is longer than there is room")
    fields = unpack_from(f"<{(length - LEAST_VTABLE) // 2}H", data, vtable + LEAST_VTABLE)
    return FlatTable(data, at, size, fields)


def number_at(data: bytes, at: int, width: int, *, signed: bool = False) -> int:
    if at < 0 or at + width > len(data):
        raise Malformed("a number lies outside of the contents")
    if at % width:
        raise Malformed("a number lies where none can")
    return int.from_bytes(data[at : at + width], "little", signed=signed)


def text_at(data: bytes, start: int, count: int) -> str:
    if start + count >= len(data) or data[start + count] != 0:
        raise Malformed("a text does not end where it should")
    try:
        return data[start : start + count].decode()
    except UnicodeDecodeError:
        raise Malformed("a text is not UTF-8") from None


def _followed(data: bytes, at: int, way: int) -> int:
    if way < 4 or at + way + 4 > len(data):
        raise Malformed("an offset leads out of the contents")
    return at + way
