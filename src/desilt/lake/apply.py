"""Changes laid over a metarange: what a commit or a merge makes.

The result depends on the content alone: whoever arrives at the same entries, by
whatever commits, gets the same ranges and the same metarange. Ranges that no
change falls into are shared, never read. A change rewrites its range, and goes
on into the next only until the new cuts meet the old ones again.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from desilt.lake.ranges import Ranges
from desilt.lake.records import Feed, joined, overlay
from desilt.lake.staging import CHANGES
from desilt.sstable.table import RAW
from desilt.sstable.values import RangeData

NOTHING = joined([], RAW)


def apply(ranges: Ranges, base: str, changes: Iterable[pa.RecordBatch]) -> str:
    """The metarange of ``base`` with ``changes`` (as CHANGES, in key order) made to it."""
    return ranges.put_metarange(list(_applied(ranges, base, Feed(changes))))


def _applied(ranges: Ranges, base: str, changes: Feed) -> Iterator[RangeData]:
    writer = ranges.writer()
    listed = ranges.metarange(base)
    for number, old in enumerate(listed):
        change = changes.first()
        closed = number + 1 < len(listed) or ranges.cut_after(old.max_key)  # the last range may be cut by the end alone
        untouched = change is None or (change > old.max_key and closed)
        if untouched and writer.at_boundary:
            yield old
            continue
        due = joined(changes.take(old.max_key), CHANGES)
        yield from map(ranges.put, writer.add(overlay(ranges.read(old), due)))
    for batch in changes.take(None):
        yield from map(ranges.put, writer.add(overlay(NOTHING, batch)))
    yield from map(ranges.put, writer.finish())
