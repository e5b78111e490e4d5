"""Many keys of an S3 bucket removed by one request, and what its answer says: key by key, or not at all.

By boto3: obstore takes a key that the answer does not name for removed. A server that has no time now is told
apart from one that refuses: to ask it for a thousand keys one by one would be a thousand requests more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from desilt.errors import DesiltError
from desilt.objects.s3_client import REMOVALS, failures, s3_client, unanswered

BUSY = frozenset(
    {
        *("SlowDown", "InternalError", "ServiceUnavailable", "RequestTimeout", "RequestLimitExceeded"),
        *("Throttling", "ThrottlingException", "TooManyRequests", "TooManyRequestsException"),
    }
)


@dataclass(frozen=True, slots=True)
class BulkAnswer:
    """What is known after it; of keys that are in neither, only asking for each alone tells."""

    removed: frozenset[str] = frozenset()
    busy: Mapping[str, str] = field(default_factory=dict)  # keys to be asked for again later, and what was said
    silent: str = ""  # why nothing is known of any: the server answers nobody


def delete_in_bulk(bucket: str, keys: Sequence[str]) -> BulkAnswer | None:
    """What came of it; None if the server refused what it was asked for, and has time to be asked again."""
    try:
        with failures(f"s3://{bucket}", "removing", keys[0]):
            client = s3_client(bucket, attempts=REMOVALS)
            answer = client.delete_objects(Bucket=bucket, Delete={"Objects": [*keys]})
    except DesiltError as error:
        return BulkAnswer(silent=str(error)) if unanswered(error.__cause__) else None
    return bulk_answer(keys, answer)


def bulk_answer(keys: Sequence[str], answer: Mapping[str, Any]) -> BulkAnswer:
    """What an answer says of ``keys``: nothing of those that it does not name."""
    asked, wrong = frozenset(keys), answer.get("Errors", [])
    removed = asked & {row.get("Key") for row in answer.get("Deleted", [])}
    refused = {row["Key"]: row.get("Code", "") for row in wrong if row.get("Key") in asked}
    stray = [row.get("Code", "") for row in wrong if row.get("Key") not in asked]  # of some key, nobody knows which
    if not removed and not wrong:
        return BulkAnswer(silent="a bulk delete was answered with nothing; check that the endpoint is of S3")
    if len(stray) > len(asked - removed - refused.keys()):  # one of these it must be
        removed = frozenset()
    removed -= refused.keys()
    if stray and BUSY.issuperset(stray):
        refused = dict.fromkeys(asked - removed, stray[0]) | refused
    return BulkAnswer(removed, {key: code for key, code in refused.items() if code in BUSY})
