"""Where the writer of lakeFS ends a block: a rule about sizes only, so it can be known before anything is written.

Before a record is added, the block is closed if it has reached its target, or if
it is nearly there and the record, guessed generously, would take it past.
"""

from bisect import bisect_right

import numpy as np

from desilt.sstable.encode import Sizes
from desilt.sstable.varint import Ints

TARGET = 4096
NEARLY = (TARGET * 90 + 99) // 100
INTERVAL = 16  # entries from one restart to the next


def is_full(size: int, guess: int, *, restart: bool) -> bool:
    """Whether a block of estimated ``size`` is closed rather than given one more entry of ``guess`` bytes."""
    return size >= TARGET or (size > NEARLY and size + guess + 4 * restart > TARGET)


class Cuts:
    """The blocks that a run of records falls into, given where one begins."""

    def __init__(self, sizes: Sizes) -> None:
        # Bytes of all entries before each, as if none of them were whole; what a whole one adds comes apart.
        self._before: list[int] = np.append(0, np.cumsum(sizes.shared)).tolist()
        self._extra: list[int] = (sizes.whole - sizes.shared).tolist()
        self._guess: list[int] = sizes.guess.tolist()

    def end(self, start: int, limit: int) -> int | None:
        """The first record that does not fit in the block that begins at ``start``; None if all up to ``limit`` do."""
        before, extra = self._before, self._extra
        base = 4 - before[start]  # what a block's estimated size adds to before[n]
        for restart in range(start, limit, INTERVAL):
            base += extra[restart] + 4
            last = min(restart + INTERVAL, limit)
            if before[last] + base <= NEARLY:
                continue
            n = bisect_right(before, NEARLY - base, restart + 1, last)
            while n <= last and n < limit:
                if is_full(before[n] + base, self._guess[n], restart=(n - start) % INTERVAL == 0):
                    return n
                n += 1
        return None

    def size(self, start: int, end: int) -> int:
        """The estimated size of the block of records ``start`` to ``end``."""
        whole = range(start, end, INTERVAL)
        return self._before[end] - self._before[start] + sum(self._extra[n] for n in whole) + 4 * (len(whole) + 1)


def restarts_of(starts: Ints, ends: Ints) -> Ints:
    """The records that are written whole, over all blocks ``starts[i]`` to ``ends[i]``."""
    counts: Ints = -(-(ends - starts) // INTERVAL)
    first = np.cumsum(counts) - counts
    nth = np.arange(int(counts.sum())) - np.repeat(first, counts)
    restarts: Ints = np.repeat(starts, counts) + INTERVAL * nth
    return restarts
