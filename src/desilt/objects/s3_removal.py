"""What S3 said to a bulk delete that failed: key by key, or not at all.

Its answer is in the error that obstore ends with. A server that has no time now is told apart from one that
refuses: to ask it for a thousand keys one by one would be a thousand requests more.
"""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import dataclass, field

from obstore.exceptions import GenericError

from desilt.objects.buckets import first_line

BUSY = frozenset(
    {
        *("SlowDown", "InternalError", "ServiceUnavailable", "RequestTimeout", "RequestLimitExceeded"),
        *("Throttling", "ThrottlingException", "TooManyRequests", "TooManyRequestsException"),
    }
)
ANSWER = re.compile(r"Server returned error response: (.*?<DeleteResult.*?</DeleteResult>)", re.DOTALL)
REFUSED = re.compile(r"status code: 4(?!29)[0-9]{2}|request failed for key ")  # all of it, or one


@dataclass(frozen=True, slots=True)
class BulkAnswer:
    """What is known after it; of keys that are in neither, only asking for each alone tells."""

    removed: frozenset[str] = frozenset()
    busy: Mapping[str, str] = field(default_factory=dict)  # keys to be asked for again later, and what was said
    silent: bool = False  # nothing is known of any, and the server answers nobody


def bulk_answer(error: Exception) -> BulkAnswer | None:
    """What the server said; None if it refused what it was asked for, and has time to be asked again."""
    if not isinstance(error, GenericError) or REFUSED.search(first_line(error)):
        return None
    found = ANSWER.search(str(error))
    if found is None:
        return BulkAnswer(silent=True)
    try:
        rows = [
            {_name(part): part.text or "" for part in row} | {"": _name(row)}
            for row in ElementTree.fromstring(found[1])
        ]
    except ElementTree.ParseError:
        return BulkAnswer(silent=True)
    removed = frozenset(row["Key"] for row in rows if row[""] == "Deleted" and "Key" in row)
    failed = [row for row in rows if row[""] == "Error" and "Key" in row]
    busy = {row["Key"]: row["Code"] for row in failed if row.get("Code") in BUSY}
    return BulkAnswer(removed - {row["Key"] for row in failed}, busy)


def _name(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]
