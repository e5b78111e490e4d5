"""A stretch of sorted records on its way into blocks: where each block ends, and its bytes."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from desilt.sstable.cuts import INTERVAL, Cuts, restarts_of
from desilt.sstable.encode import draft
from desilt.sstable.slices import layout
from desilt.sstable.varint import Ints


class Stretch:
    """Records whose first begins a block. ``spans`` are its blocks, each with whether a range ends with it.

    ``ends`` are the places after which a range is known to end. The last block
    is as far as the records go: more may belong to it, unless a range ends there.
    """

    def __init__(self, records: pa.RecordBatch, ends: Sequence[int] = ()) -> None:
        measured = draft(records)
        self._cuts = Cuts(measured.sizes())
        self._keys, self._key_at = layout(records["key"])
        self.spans = self._plan(len(records), ends)
        starts = np.array([start for start, _, _ in self.spans], np.int64)
        stops = np.array([stop for _, stop, _ in self.spans], np.int64)
        data, self._at = measured.encode(restarts_of(starts, stops))
        self._data = data.data

    def key(self, n: int) -> bytes:
        return self._keys[self._key_at[n] : self._key_at[n + 1]].tobytes()

    def size(self, start: int, stop: int) -> int:
        """The estimated size of the block of records ``start`` to ``stop``."""
        return self._cuts.size(start, stop)

    def reaching(self, start: int, stop: int, size: int) -> int | None:
        """The first record with which the block from ``start`` has an estimated size of at least ``size``."""
        if self.size(start, stop) < size:
            return None
        return next(n for n in range(start, stop) if self.size(start, n + 1) >= size)

    def block(self, start: int, stop: int) -> bytes:
        """The block of records ``start`` to ``stop``; ``start`` is where one of the spans starts."""
        at: Ints = self._at[start:stop:INTERVAL] - self._at[start]
        restarts = np.append(at, len(at)).astype("<u4").tobytes()
        return bytes(self._data[self._at[start] : self._at[stop]]) + restarts

    def _plan(self, count: int, ends: Sequence[int]) -> list[tuple[int, int, bool]]:
        spans: list[tuple[int, int, bool]] = []
        start, closing = 0, set(ends)
        for limit in [*ends, count]:
            while start < limit:
                full = self._cuts.end(start, limit)
                spans.append((start, limit, limit in closing) if full is None else (start, full, False))
                start = spans[-1][1]
        return spans
