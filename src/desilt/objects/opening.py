"""A store from its URI.

    file:///srv/lake, /srv/lake, lake     a directory
    memory://name                         this process's memory
    s3://bucket/prefix                    S3, or what speaks like it
    gs://bucket/prefix                    Google Cloud Storage
    az://container/prefix                 Azure Blob Storage

The prefix is part of the root: nothing beside or above it is ever seen.
"""

import os
from urllib.parse import unquote, urlsplit

from desilt.clock import Clock
from desilt.errors import InvalidUri
from desilt.objects.local import LocalStore
from desilt.objects.memory import MemoryStore, named
from desilt.objects.only_read import QUERY as QUERY_ASIDE
from desilt.objects.only_read import OnlyReadStore
from desilt.objects.store import ObjectStore, flaw

FORMS = (
    "file:///directory, a plain path, memory://name, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix"
)


def open_store(uri: str, *, clock: Clock | None = None) -> ObjectStore:
    """The store at ``uri``. ``clock`` dates objects where the store itself does not: in a directory, in memory."""
    scheme, divided, rest = uri.partition("://")
    if not divided:
        return LocalStore(path(uri, uri), clock=clock)
    if scheme == "file":
        if not rest.startswith("/"):
            raise InvalidUri(f"{uri!r} names a host, not a directory; write file:///directory with three slashes")
        place, _, query = rest.partition("?")
        if query.startswith(QUERY_ASIDE):
            return OnlyReadStore(path(uri, unquote(place)), unquote(query.removeprefix(QUERY_ASIDE)))
        return LocalStore(path(uri, unquote(rest)), clock=clock)
    if scheme == "memory":
        return named(memory_name(uri), clock=clock)
    if scheme in ("s3", "gs", "az"):
        if clock is not None:
            raise InvalidUri(f"{uri!r} keeps its own time; a clock can be set only for a directory or memory")
        from desilt.objects.cloud import CloudStore  # takes a moment to load, and most lakes are in a directory
        from desilt.objects.cloud_dated import QUERY, DatedCloudStore

        place, _, query = rest.partition("?")
        if query == QUERY:
            return DatedCloudStore(scheme, *bucket_and_prefix(uri, place))
        return CloudStore(scheme, *bucket_and_prefix(uri, rest))
    raise InvalidUri(f"{uri!r} is not a place for objects; write {FORMS}")


def dated(store: ObjectStore, clock: Clock) -> ObjectStore:
    """``store`` with its objects dated by ``clock``; in a bucket, in what they carry besides their bytes."""
    if isinstance(store, OnlyReadStore):
        return store  # nothing is put there that had a date
    if isinstance(store, LocalStore):
        return LocalStore(store.root, clock=clock, fsync=store.fsync)
    if isinstance(store, MemoryStore):
        return store.dated(clock)
    if store.uri.startswith(("s3://", "gs://", "az://")):
        from desilt.objects.cloud_dated import DatedCloudStore

        scheme, _, rest = store.uri.partition("?")[0].partition("://")
        return DatedCloudStore(scheme, *bucket_and_prefix(store.uri, rest), clock=clock)
    raise InvalidUri(f"{store.uri} keeps its own time; a manual clock needs a directory, memory or a bucket")


def path(uri: str, found: str) -> str:
    if not found or "\0" in found:
        raise InvalidUri(f"{uri!r} is not a place for objects; write {FORMS}")
    return found


def memory_name(uri: str) -> str:
    parts = urlsplit(uri)
    if not parts.netloc or parts.path or parts.fragment:
        raise InvalidUri(f"{uri!r} does not name a store in memory; write memory://name")
    if parts.query not in ("", f"process={os.getpid()}"):
        raise InvalidUri(f"{uri!r} lives in another process; use a directory or a bucket to share objects")
    return parts.netloc


def bucket_and_prefix(uri: str, rest: str) -> tuple[str, str]:
    bucket, _, prefix = rest.partition("/")
    prefix = prefix.removesuffix("/")
    if not bucket or not {"?", "#", "@", ":"}.isdisjoint(bucket):
        raise InvalidUri(f"{uri!r} does not name a bucket; write {FORMS}")
    if prefix and (reason := flaw(prefix)):
        raise InvalidUri(f"the prefix of {uri!r} {reason}; use plain segments divided by single slashes")
    if not {"?", "#"}.isdisjoint(prefix):
        raise InvalidUri(f"the prefix of {uri!r} holds a '?' or '#'; choose another prefix")
    return bucket, prefix
