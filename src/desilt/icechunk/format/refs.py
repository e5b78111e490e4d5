"""Branches and tags of format 1: ``refs/<kind>.<name>/ref.json`` has the id of a snapshot.

A deleted tag leaves its file, and another beside it that says so. Files are read by their keys, never by names:
in a directory the library writes odd letters of names as ``%C3%BC``, lists them so, and cannot find them again
by what it listed.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from desilt.errors import DamagedAsset, NotFound, RefsMoved, UnknownAsset
from desilt.icechunk.format.container import blaming
from desilt.icechunk.format.ids import bytes_of
from desilt.icechunk.layout import REFS
from desilt.objects.store import ObjectStore
from desilt.sstable.varint import Malformed

KEY = re.compile(rf"{REFS}(branch|tag)\.([^/]+)/ref\.json(\.deleted)?")
UNFINISHED = re.compile(rf"{REFS}[^/]+/(?:ref\.json(?:\.deleted)?#[0-9]+|[0-9a-f]{{16}}\.partial)")
"""What a crash leaves in a directory: of the library, or of desilt."""
TRIES = 5


@dataclass(frozen=True, slots=True)
class RefFiles:
    """All refs there are."""

    branches: Mapping[str, str]  # the snapshot of each
    tags: Mapping[str, str]
    deleted_tags: frozenset[str]
    keys: Mapping[tuple[str, str], str]  # of the files of those that are there, by kind and name


def read(store: ObjectStore) -> RefFiles:
    """Every ref; a file below ``refs/`` that is not known to be one is raised, and so is one that says nothing."""
    for _ in range(TRIES):
        try:
            return _read(store)
        except NotFound:  # a branch was deleted since it was listed
            continue
    raise RefsMoved("they were read")


def _read(store: ObjectStore) -> RefFiles:
    names = _name_as_stored if store.uri.startswith("s3://") else unquote
    found: dict[tuple[str, str], str] = {}
    deleted: set[str] = set()
    for key in (key for batch in store.list(REFS) for key in batch["key"].to_pylist()):
        if UNFINISHED.fullmatch(key):
            continue
        if not (match := KEY.fullmatch(key)) or (match[1], bool(match[3])) == ("branch", True):
            raise UnknownAsset(key, "it lies among refs, and is none")
        kind, name = match[1], names(match[2])
        if match[3]:
            deleted.add(name)
        elif (kind, name) in found:
            raise DamagedAsset(key, f"{kind} {name!r} is there twice")
        else:
            found[kind, name] = key
    there = {ref: key for ref, key in found.items() if ref[0] == "branch" or ref[1] not in deleted}
    targets = {ref: target(store.get(key), key) for ref, key in there.items()}
    return RefFiles(
        {name: targets[kind, name] for kind, name in sorted(targets) if kind == "branch"},
        {name: targets[kind, name] for kind, name in sorted(targets) if kind == "tag"},
        frozenset(deleted),
        there,
    )


def target(data: bytes, key: str) -> str:
    """The snapshot that a ref's file names."""
    with blaming(key):
        try:
            found = json.loads(data)["snapshot"]
        except (ValueError, TypeError, KeyError):
            raise Malformed("it does not name a snapshot") from None
        bytes_of(str(found))
        return str(found)


def _name_as_stored(name: str) -> str:
    return name
