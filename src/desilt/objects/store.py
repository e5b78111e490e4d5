"""What every object store can do, and what a key may be.

An :class:`ObjectStore` keeps whole objects under keys. A key is a plain string
of segments divided by ``/``; it is stored as it is given, and listed in the
order of its bytes.

``delete_many`` and ``move_many`` take objects away. Only the package ``sweep``
may call them; a test in ``tests/architecture`` keeps it so.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import pyarrow as pa

from desilt.errors import BadRequest

if TYPE_CHECKING:
    from desilt.objects.conditional import ConditionalPuts
    from desilt.objects.parts import UploadedInParts
    from desilt.objects.tags import Tagging
    from desilt.objects.versions import ObjectVersions

LISTING = pa.schema(
    [("key", pa.string()), ("size_bytes", pa.int64()), ("modified_at", pa.timestamp("us", tz="UTC"))],
)
"""One row per object the store listed."""

BATCH_ROWS = 4096
CHUNK_BYTES = 4 << 20
MAX_KEY_BYTES = 1024
PLAIN = re.compile(r"[\w=-][\w.=-]*(?:/[\w=-][\w.=-]*)*", re.ASCII)  # what most keys are: seen to be sound in one look
PLAIN_LINES = re.compile(rf"(?>{PLAIN.pattern}\n)*", re.ASCII)  # and many of them, one to a line
REFUSED = frozenset(map(chr, range(32))) | {"\x7f", "\\"}  # a store somewhere drops or changes each of these


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One object, as the store describes it."""

    key: str
    size: int
    modified_at: datetime  # whole seconds on S3, where a listing may be finer


class Result(StrEnum):
    """What came of taking one object away."""

    REMOVED = "removed"
    GONE = "already gone"
    FAILED = "failed"  # whether the object is still there is not known; to ask again does no harm


class Outcome(NamedTuple):
    """What came of one key of many: a tuple, for there are millions."""

    key: str
    result: Result
    detail: str = ""  # of a failure: why, in one line
    tried: bool = True  # False, of a failure: nothing was asked for


Outcomes: TypeAlias = list[Outcome]  # a name of its own, since inside of a store `list` is a method


def nothing() -> None:
    """Happens between."""


class ObjectStore(Protocol):
    """Objects under keys. Every method may raise :class:`~desilt.errors.StorageFailed`."""

    @property
    def uri(self) -> str:
        """Where the store is: for messages, and for :func:`~desilt.objects.open_store` in another process."""
        ...

    def put(self, key: str, body: Iterable[bytes]) -> int:
        """Stores the whole of ``body``, or nothing if it raises; the bytes written.

        An object already at ``key`` is replaced at once: readers see the old body or
        the new one. Memory stays flat, however long the body.
        """
        ...

    def put_new(self, key: str, body: bytes) -> bool:
        """Stores ``body`` unless there is an object at ``key``; of any number who try at once, one succeeds.

        False may also be told to the one who did, where the answer to a first try was lost:
        what is there says who it was.
        """
        ...

    def get(self, key: str, *, start: int = 0, length: int | None = None) -> bytes:
        """The bytes from ``start``, at most ``length`` of them; what lies past the end is left out."""
        ...

    def stream(self, key: str, *, start: int = 0, length: int | None = None) -> Iterator[bytes]:
        """The same in chunks of some MiB, all of one version; a missing object is noticed at the first chunk."""
        ...

    def head(self, key: str) -> ObjectInfo: ...

    def copy(self, source: str, destination: str) -> None:
        """The bytes, and what metadata there is; never tags, whose owner has not seen the copy."""
        ...

    def folders(self, folder: str = "") -> Sequence[str]:
        """What lies one level below ``folder`` and holds objects: each a prefix that ends in a slash, in order."""
        ...

    def list(self, prefix: str = "", *, after: str = "", until: str = "") -> Iterator[pa.RecordBatch]:
        """Every object whose key starts with ``prefix`` and is greater than ``after``, in order of key bytes.

        With ``until`` only keys before that; what comes later is not asked for.
        """
        ...

    @property
    def delete_batch(self) -> int:
        """The most keys that one request removes; a longer list is taken too, and cut up."""
        ...

    @property
    def moves_cheaply(self) -> bool:
        """Whether a move is a change of name, and not a copy."""
        ...

    def delete_many(self, keys: Sequence[str], *, between: Callable[[], None] = nothing) -> Outcomes:
        """One outcome for each key, in their order; a key's failure is its outcome and stops no other.

        ``between`` is called before anything goes, and again before each request of several; what it raises
        leaves the rest.

        A key that cannot be one raises :class:`BadRequest` before anything goes. S3
        does not tell whether there was an object: a missing one counts as removed
        there. A key given twice is removed once, and gone the second time.
        """
        ...

    def move_many(self, pairs: Sequence[tuple[str, str]], *, between: Callable[[], None] = nothing) -> Outcomes:
        """Each object from its first key to its second, in order; outcomes are of the first keys, as above.

        REMOVED: it is at the second key now, in place of what was there, and no longer
        at the first. GONE: nothing was at the first, and the second is untouched. Done
        again after a crash it ends the same. ``between`` is called before the first original
        goes, after its copy is there, and again before each request; what it raises leaves the rest.
        """
        ...

    @property
    def tagging(self) -> "Tagging | None":
        """How objects are tagged; None where the store has no tags."""
        ...

    @property
    def versions(self) -> "ObjectVersions | None":
        """What a removed object may leave behind; None where a store cannot keep versions, or we cannot remove them."""
        ...

    @property
    def conditional(self) -> "ConditionalPuts | None":
        """How an object is replaced only if nobody else has; None where the store cannot compare."""
        ...

    @property
    def parts(self) -> "UploadedInParts | None":
        """Which objects are dated by when their upload began; None where a date is that of the object itself."""
        ...


def check_key(key: str) -> str:
    """``key``, if every store keeps it exactly as it is; else :class:`BadRequest`."""
    if reason := flaw(key):
        shown = key if len(key) <= 80 else key[:77] + "…"
        raise BadRequest(f"object key {shown!r} {reason}; use plain segments divided by single slashes")
    return key


def check_keys(keys: Sequence[str]) -> None:
    """:class:`BadRequest` unless each can be a key; plain ones are looked at all together."""
    lines = "".join([f"{key}\n" for key in keys])
    plain = lines.count("\n") == len(keys) and PLAIN_LINES.fullmatch(lines)
    if not plain or max(map(len, keys), default=0) > MAX_KEY_BYTES:
        for key in keys:
            check_key(key)


def check_prefix(prefix: str) -> str:
    """``prefix``, if some key can start with it; its last segment may be cut anywhere."""
    folder = prefix.rpartition("/")[0]
    if folder or prefix.startswith("/"):
        check_key(folder)
    return prefix


def check_range(start: int, length: int | None) -> None:
    if start < 0 or (length is not None and length < 0):
        raise BadRequest(f"cannot read {length} bytes from {start}; neither may be negative")


def flaw(key: str) -> str | None:
    """Why ``key`` cannot be a key, or None."""
    if len(key) <= MAX_KEY_BYTES and PLAIN.fullmatch(key):
        return None
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        return "is not valid UTF-8"
    if not 1 <= size <= MAX_KEY_BYTES:
        return f"is {size:,} bytes long, and must be 1 to {MAX_KEY_BYTES:,}"
    if not REFUSED.isdisjoint(key):
        return "holds a control character or a backslash"
    if not {"", ".", ".."}.isdisjoint(key.split("/")):
        return "has an empty, '.' or '..' segment"
    return None


def within(key: str, prefix: str, after: str) -> bool:
    """Whether a listing shows ``key``. Code points of a string sort as its UTF-8 bytes do."""
    return key.startswith(prefix) and key > after


def may_hold(folder: str, prefix: str, after: str) -> bool:
    """Whether any key below ``folder`` (which ends in a slash) can be in the listing."""
    return (folder.startswith(prefix) or prefix.startswith(folder)) and (folder > after or after.startswith(folder))


def batches(rows: Iterable[tuple[str, int, int]]) -> Iterator[pa.RecordBatch]:
    """Rows of key, size and microseconds since 1970, as batches of :data:`LISTING`."""
    rows = iter(rows)
    while some := list(islice(rows, BATCH_ROWS)):
        columns = [pa.array(values, field.type) for values, field in zip(zip(*some, strict=True), LISTING, strict=True)]
        yield pa.record_batch(columns, schema=LISTING)
