"""Changes laid over a metarange: what a commit or a merge makes.

The result depends on the content alone: whoever arrives at the same entries, by
whatever commits, gets the same ranges and the same metarange. Ranges that no
change falls into are shared, never read. A change rewrites its range, and goes
on into the next only until the new cuts meet the old ones again. Where nothing
changes, what was there stays, whoever wrote it and by whatever rules.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from desilt.lake.staging import CHANGES
from desilt.sstable.ranges import Ranges
from desilt.sstable.records import Feed, joined, overlay
from desilt.sstable.table import RAW
from desilt.sstable.values import RangeData

NOTHING = joined([], RAW)


def apply(ranges: Ranges, base: str, changes: Iterable[pa.RecordBatch]) -> str:
    """The metarange of ``base`` with ``changes`` (as CHANGES, in key order) made to it; ``base`` if they are none."""
    listed = list(_applied(ranges, base, Feed(changes)))
    return base if listed == list(ranges.metarange(base)) else ranges.put_metarange(listed)


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
        before = ranges.read(old)
        after = overlay(before, due)
        if writer.at_boundary and after.equals(before) and (closed or changes.first() is None):
            yield old
            continue
        yield from map(ranges.put, writer.add(after))
    for batch in changes.take(None):
        yield from map(ranges.put, writer.add(overlay(NOTHING, batch)))
    yield from map(ranges.put, writer.finish())
