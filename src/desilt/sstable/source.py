"""The file a table is in, read by offset, its tail only once."""

from collections.abc import Callable

from desilt.sstable.blocks import FOOTER, BlockHandle
from desilt.sstable.varint import Malformed

TAIL = 64 * 1024  # footer, properties and index of most tables: one request


Fetch = Callable[[int, int], bytes | memoryview]


class ByteSource:
    """``size`` bytes behind ``fetch(offset, length)``; asking for what is not there is :class:`Malformed`."""

    def __init__(self, fetch: Fetch, size: int, *, tail: int | None = None) -> None:
        if size < FOOTER:
            raise Malformed(f"it is {size} bytes long, too short for a table")
        self.size = size
        self._fetch = fetch
        self._kept = max(0, size - (TAIL if tail is None else tail))  # what lies from here on stays in memory
        self._tail = self._request(self._kept, size)

    def read(self, start: int, end: int) -> memoryview:
        """The bytes from ``start`` up to ``end``."""
        if not 0 <= start <= end <= self.size:
            raise Malformed("it points outside itself")
        if start >= self._kept:
            return self._tail[start - self._kept : end - self._kept]
        return self._request(start, end)

    def block(self, handle: BlockHandle) -> memoryview:
        """One stored block with its trailer."""
        return self.read(handle.offset, handle.end)

    def _request(self, start: int, end: int) -> memoryview:
        data = memoryview(self._fetch(start, end - start))
        if len(data) != end - start:
            raise Malformed(f"it is shorter than the {self.size} bytes it should have")
        return data


def in_memory(data: bytes) -> ByteSource:
    """A file that is already here."""
    view = memoryview(data)
    return ByteSource(lambda start, length: view[start : start + length], len(data), tail=len(data))
