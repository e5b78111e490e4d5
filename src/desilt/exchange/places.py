"""Where the two sides of a copy are: never the same place, and never one inside the other.

Two owners of one location would each collect what the other has.
"""

import os
from urllib.parse import unquote, urlsplit

from desilt.domain.address import is_inside
from desilt.errors import BadRequest
from desilt.objects.store import ObjectStore


def check_apart(lake: ObjectStore, server: ObjectStore) -> None:
    """Refuse where the lake's objects and the server's namespace are in one place, or in one another."""
    ours, theirs = _real(lake), _real(server)
    if is_inside(ours, theirs) or is_inside(theirs, ours):
        raise BadRequest(
            f"the lake at {ours} and the namespace {theirs} are one place, or one is inside the other: each owner "
            "would collect what the other has; choose another place"
        )


def _real(store: ObjectStore) -> str:
    """Its URI; of a directory, with links followed."""
    uri = store.uri.partition("?")[0]
    parts = urlsplit(uri)
    return f"file://{os.path.realpath(unquote(parts.path))}" if parts.scheme == "file" else uri
