"""A repository of any kind, opened by what people write: the scheme says which kind it is.

A kind is a module that is loaded when it is asked for; nothing here knows one by more than its name.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

from desilt.errors import InvalidUri
from desilt.repository.protocol import Repository

KINDS = {
    **dict.fromkeys(("", "lake", "file", "s3", "gs", "az"), "desilt.lake.opening"),
    **dict.fromkeys(("lakefs", "lakefs+https", "lakefs+http"), "desilt.lakefs.opening"),
    **dict.fromkeys((f"icechunk+{store}" for store in ("file", "s3", "gs", "az")), "desilt.icechunk.opening"),
}  # each has a function open_uri(uri, db) -> Opened
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//)?")


class Closing(Protocol):
    def __call__(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Opened:
    """A repository, and how to close what was opened for it."""

    repository: Repository
    close: Closing


def open_uri(uri: str, *, db: str | None = None) -> Opened:
    """The repository at ``uri``, its records in ``db`` where they are not beside it."""
    match = SCHEME.match(uri)
    scheme = match[1].lower() if match else ""
    if match and not match[2] and scheme not in KINDS:  # a directory whose name has a colon
        scheme = ""
    kind = KINDS.get(scheme)  # which says what is wrong with a URI that has too few slashes
    if kind is None:
        shown = re.sub("//.*@", "//…@", uri)  # somebody may have written keys into it
        raise InvalidUri(
            f"{shown!r} is no kind of repository that is known here; write DIRECTORY#REPO, lake:///DIRECTORY#REPO, "
            "s3://BUCKET/PREFIX#REPO, lakefs://REPO, icechunk+file:///DIRECTORY or icechunk+s3://BUCKET/PREFIX"
        )
    module: Any = import_module(kind)
    opened: Opened = module.open_uri(uri, db)
    return opened


@contextmanager
def repository_at(uri: str, *, db: str | None = None) -> Iterator[Repository]:
    """The same, for as long as the block runs."""
    opened = open_uri(uri, db=db)
    try:
        yield opened.repository
    finally:
        opened.close()
