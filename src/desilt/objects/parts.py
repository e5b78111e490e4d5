"""Which objects were uploaded in parts.

S3 dates such an object by when its upload began, and shows it when that has ended: one that is a year old by its date
may have come to be there a moment ago. Its tag says so, by a dash before the number of parts.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import Protocol

import obstore
import pyarrow as pa
import pyarrow.compute as pc
from obstore.exceptions import BaseError

from desilt.objects.buckets import Client, failure
from desilt.objects.cloud_listing import to_the_end

AT_ONCE = 16  # requests
PAGES_TO_A_FOLDER = 50  # at most, for a listing to take fewer requests than to ask for each


class UploadedInParts(Protocol):
    """Objects whose dates are those of the beginning of their uploads."""

    def among(self, keys: Sequence[str]) -> set[str]:
        """Those of ``keys`` that were uploaded in parts; one of which that is not known, too."""
        ...


class CloudParts:
    """Of one bucket, below one prefix."""

    def __init__(self, client: Client, root: str, uri: str) -> None:
        self._client, self._root, self._uri = client, root, uri

    def among(self, keys: Sequence[str]) -> set[str]:
        try:
            return self._among(keys)
        except (BaseError, ValueError) as error:
            raise failure(self._uri, "asking for the tags of objects like", min(keys), error) from error

    def _among(self, keys: Sequence[str]) -> set[str]:
        found: set[str] = set()
        alone: list[str] = []
        for folder, names in groupby(sorted(keys), key=lambda key: key.rpartition("/")[0]):
            some = list(names)
            if len(some) > PAGES_TO_A_FOLDER:
                whole = set(self._whole(folder, some))
                found |= set(some) - whole
            else:
                alone += some
        with ThreadPoolExecutor(AT_ONCE) as threads:
            tags = threads.map(self._tag, alone)
            return found | {key for key, tag in zip(alone, tags, strict=True) if not is_whole(tag)}

    def _whole(self, folder: str, keys: Sequence[str]) -> Iterator[str]:
        """Those of ``keys``, all in ``folder``, that a listing shows to have come in one piece."""
        at = pa.array([self._root + key for key in keys], pa.string())
        for page in to_the_end(self._client, self._root + folder, ""):
            rows = page.filter(pc.is_in(page["path"].cast(pa.string()), value_set=at))
            for path, tag in zip(rows["path"].to_pylist(), rows["e_tag"].to_pylist(), strict=True):
                if is_whole(tag):
                    yield path.removeprefix(self._root)

    def _tag(self, key: str) -> str | None:
        try:
            return obstore.head(self._client, self._root + key)["e_tag"]
        except FileNotFoundError:
            return None


def is_whole(tag: str | None) -> bool:
    """Whether an object with this tag was uploaded in one piece."""
    return bool(tag) and "-" not in str(tag)
