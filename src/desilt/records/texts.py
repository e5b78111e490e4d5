"""Many texts out of a database as one column: joined there, cut apart by the column.

A row costs Python more than it costs the database to read it. So where there may be
millions, the database puts a line's end between texts and hands them over as one.
"""

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from desilt.errors import Unreadable
from desilt.records.database import Row

COLUMN = "text"
"""What a query that is asked this way calls its one column."""


def apart(count: int, there: int, joined: str | None, rows: Iterable[Row]) -> pa.Array:
    """``count`` texts, of which so many are ``there`` and were ``joined`` by line ends; where one has such itself, or
    is missing, from ``rows``: one of each would come to the right number of pieces."""
    found = pc.split_pattern(pa.array([] if joined is None else [joined], pa.string()), "\n").flatten()
    return found if len(found) == there == count else one_by_one(count, [row[0] for row in rows])


def one_by_one(count: int, texts: list[str | None]) -> pa.Array:
    if len(texts) != count or None in texts:
        raise Unreadable(f"{texts.count(None):,} of {count:,} rows name no object; see `desilt fsck`")
    return pa.array(texts, pa.string())
