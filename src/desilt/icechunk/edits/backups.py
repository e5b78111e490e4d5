"""What ``repo`` was before a change, kept beside it as the library does: its log of operations leads to them."""

import secrets
from datetime import UTC, datetime

from desilt.domain.times import microseconds
from desilt.errors import Conflict
from desilt.icechunk.format.ids import ID_BYTES, name_of
from desilt.icechunk.layout import OVERWRITTEN, REPO
from desilt.objects.store import ObjectStore

END = microseconds(datetime(3000, 1, 1, tzinfo=UTC)) // 1000  # names count down to it: the newest comes first


def name_at(now: datetime) -> str:
    """A name that nothing has yet."""
    return f"{REPO}.{END - microseconds(now) // 1000}.{name_of(secrets.token_bytes(ID_BYTES))}"


def put(store: ObjectStore, name: str, body: bytes) -> None:
    """Done before what it is a copy of is replaced."""
    key = f"{OVERWRITTEN}{name}"
    if not store.put_new(key, body) and store.get(key) != body:
        raise Conflict(f"{key} is there already, and is something else; run again")
