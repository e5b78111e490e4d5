"""A bucket whose objects are dated by a clock of ours, for stories: a demo that happens in a bucket.

A bucket dates its objects itself, so each carries the date that it has in the story as metadata, and a listing asks for
every object's. That is slow, and nothing in it is as old as it says: only a repository that was made with a manual
clock has such a store.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import obstore
import pyarrow as pa

from desilt.clock import Clock, system_clock
from desilt.errors import StorageFailed
from desilt.objects.cloud import CloudStore
from desilt.objects.store import LISTING, ObjectInfo

DATE = "desilt-date"
QUERY = "dates=metadata"  # what the URI of such a store ends with
AT_ONCE = 16


class DatedCloudStore(CloudStore):
    """What is put there is dated by ``clock``."""

    def __init__(self, scheme: str, bucket: str, prefix: str = "", *, clock: Clock = system_clock) -> None:
        super().__init__(scheme, bucket, prefix)
        self.uri, self._prefix, self._clock = f"{self.uri}?{QUERY}", prefix, clock

    def _attributes(self) -> dict[str, str]:
        return {DATE: self._clock().isoformat()}

    def head(self, key: str) -> ObjectInfo:
        there = super().head(key)
        with self._failures("looking at", key):
            said = obstore.get(self.client, self._at(key), options={"head": True}).attributes.get(DATE)
        if said is None:
            raise StorageFailed(f"{key!r} in {self.uri} has no date of its own; remove what is not of this story")
        return ObjectInfo(key, there.size, datetime.fromisoformat(said))

    def copy(self, source: str, destination: str) -> None:
        """Dated as what is put: metadata would travel with a copy."""
        self.put(destination, self.stream(source))

    def list(self, prefix: str = "", *, after: str = "", until: str = "") -> Iterator[pa.RecordBatch]:
        for batch in super().list(prefix, after=after, until=until):
            with ThreadPoolExecutor(AT_ONCE) as pool:
                dates = list(pool.map(lambda key: self.head(key).modified_at, batch["key"].to_pylist()))
            columns = [batch["key"], batch["size_bytes"], pa.array(dates, LISTING.field("modified_at").type)]
            yield pa.record_batch(columns, schema=LISTING)

    def __reduce__(self) -> tuple[type[CloudStore], tuple[str, str, str]]:
        return DatedCloudStore, (self.scheme, self.bucket, self._prefix)
