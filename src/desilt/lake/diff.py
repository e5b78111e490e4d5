"""What differs between two committed states; ranges that both share are never read."""

from collections.abc import Iterator

import pyarrow as pa

from desilt.sstable.ranges import Ranges
from desilt.sstable.records import Feed, differing, joined
from desilt.sstable.table import RAW


def diff(ranges: Ranges, left: str, right: str) -> Iterator[pa.RecordBatch]:
    """From metarange ``left`` to ``right``, as DIFFERENCES, in key order.

    Two values differ when anything in them does, the address too: the same bytes
    uploaded again are another object.
    """
    ours, theirs = ranges.metarange(left), ranges.metarange(right)
    shared = {listed.id for listed in ours} & {listed.id for listed in theirs}
    a = Feed(ranges.read(listed) for listed in ours if listed.id not in shared)
    b = Feed(ranges.read(listed) for listed in theirs if listed.id not in shared)
    while ends := [last for last in (a.last(), b.last()) if last is not None]:
        upto = min(ends)  # past this, one side may not be read yet
        found = differing(joined(a.take(upto), RAW), joined(b.take(upto), RAW))
        if found.num_rows:
            yield found
