"""Conditional puts in a bucket: by the entity tag that a read has told, as S3, Azure and Google have it."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import AlreadyExistsError, PreconditionError

from desilt.errors import StorageFailed
from desilt.objects.buckets import Client
from desilt.objects.conditional import ReadObject

if TYPE_CHECKING:
    from obstore import UpdateVersion


class CloudConditional:
    """Of one bucket, below one prefix."""

    def __init__(
        self,
        client: Client,
        at: Callable[[str], str],
        failures: Callable[[str, str], AbstractContextManager[None]],
        attributes: Mapping[str, str] | None,
    ) -> None:
        self._client, self._at, self._failures, self._attributes = client, at, failures, attributes

    def read(self, key: str) -> ReadObject:
        with self._failures("reading", key):
            answer = obstore.get(self._client, self._at(key))
            body = bytes(answer.bytes())
            tag, version = answer.meta["e_tag"], answer.meta["version"]
        if not tag:
            raise StorageFailed(f"the store does not tag {key!r}, so it cannot be replaced safely; use one that does")
        mark: UpdateVersion = {"e_tag": tag, "version": version} if version else {"e_tag": tag}
        return ReadObject(key, body, mark)

    def put_over(self, seen: ReadObject, body: bytes) -> bool:
        about = dict(self._attributes) if self._attributes is not None else None
        with self._failures("writing", seen.key):
            try:
                at, mark = self._at(seen.key), seen.mark
                obstore.put(self._client, at, body, attributes=about, mode=mark, use_multipart=False)
            except (AlreadyExistsError, PreconditionError, FileNotFoundError):
                return False
        return True
