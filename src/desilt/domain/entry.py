"""What a path means in one commit or staging area: where its bytes are, and what they are.

Paths are kept exactly as given. Two spellings are two paths; nothing here, or
anywhere else in desilt, normalises one. A stored path is bytes, and need not be
UTF-8: in Python it is text in which each byte that is not stands as a lone
surrogate, so that every path is one text and every such text one path.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum

from desilt.domain.times import moment
from desilt.errors import InvalidPath

MAX_PATH_BYTES = 1024


class AddressType(IntEnum):
    """How an entry's address is to be read; the numbers are lakeFS's."""

    BY_PREFIX = 0  # an old entry: full if it has a scheme, else relative
    RELATIVE = 1  # below the repository's own prefix
    FULL = 2  # a whole URI; not ours to remove


@dataclass(frozen=True, slots=True)
class Entry:
    """One path and the object it points to."""

    path: str
    address: str
    size: int
    checksum: str
    modified_ns: int  # nanoseconds since 1970, UTC: datetime cannot hold what lakeFS writes
    metadata: Mapping[str, str] = field(default_factory=dict)
    address_type: AddressType = AddressType.RELATIVE
    content_type: str = ""

    @property
    def modified_at(self) -> datetime:
        return moment(self.modified_ns // 1000)


def encode_path(path: str) -> bytes:
    """The bytes that a path is stored and sorted by: of any that there may be, which are all but the empty one."""
    if not path:
        raise InvalidPath(path, "is empty")
    return encode_prefix(path)


def encode_prefix(prefix: str) -> bytes:
    """The bytes that paths begin with which begin with ``prefix``; it may be empty."""
    try:
        return prefix.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        raise InvalidPath(prefix, "is not valid UTF-8") from None


def after_prefix(prefix: bytes) -> bytes | None:
    """The first path that no longer begins with ``prefix``; None where there is none."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def decode_path(raw: bytes) -> str:
    """The path that is stored as ``raw``, whatever that is."""
    return raw.decode(errors="surrogateescape")


def shown_path(path: str) -> str:
    """``path`` for people and for other programs: a byte that is no UTF-8 is told as ``\\xff``."""
    return encode_prefix(path).decode(errors="backslashreplace")


def new_path(path: str) -> bytes:
    """The bytes of a path that somebody writes to: UTF-8, and not everything that is; or :class:`InvalidPath`."""
    try:
        raw = path.encode()
    except UnicodeEncodeError:
        raise InvalidPath(path, "is not valid UTF-8") from None
    if not raw:
        raise InvalidPath(path, "is empty")
    if b"\0" in raw:
        raise InvalidPath(path, "holds a NUL")
    if len(raw) > MAX_PATH_BYTES:
        raise InvalidPath(path, f"is {len(raw):,} bytes long")
    return raw
