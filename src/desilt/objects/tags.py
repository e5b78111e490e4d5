"""Tags of objects: small words beside the bytes, by which a rule of the bucket knows what to expire.

Plain values, and what a store that has tags can do with them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from desilt.errors import BadRequest
from desilt.objects.store import nothing

KEY_LENGTH = 128
VALUE_LENGTH = 256
MARKS = frozenset(" +-=._:/@")
RULE = (
    f"write KEY=VALUE, the key of 1 to {KEY_LENGTH} characters and the value of up to {VALUE_LENGTH}, "
    "both of letters, digits, spaces and + - = . _ : / @"
)


@dataclass(frozen=True, slots=True)
class ObjectTag:
    """One tag, as S3 takes it."""

    key: str
    value: str

    def __post_init__(self) -> None:
        if reason := flaw(self.key, self.value):
            raise BadRequest(f"{str(self)[:80]!r} cannot be a tag: {reason}; {RULE}")

    @classmethod
    def parse(cls, text: str) -> "ObjectTag":
        """From ``KEY=VALUE``; what follows the first ``=`` is the value."""
        key, divided, value = text.partition("=")
        if not divided:
            raise BadRequest(f"{text[:80]!r} cannot be a tag: it has no '='; {RULE}")
        return cls(key, value)

    def __str__(self) -> str:
        return f"{self.key}={self.value}"


class TagResult(StrEnum):
    """What came of asking about the tags of one object."""

    TAGGED = "tagged"
    UNTAGGED = "untagged"  # it had our tag, and has it no longer
    BARE = "has no such tag"
    GONE = "already gone"
    FAILED = "failed"  # whether it has the tag is not known; to ask again does no harm


@dataclass(frozen=True, slots=True)
class TagOutcome:
    """What came of one key of many."""

    key: str
    result: TagResult
    detail: str = ""  # of a failure: why, in one line


class Tagging(Protocol):
    """Many objects at a time: one outcome for each key, in order; a key's failure is its outcome and stops no other.

    ``between`` is called before each few; what it raises leaves the rest. Once nothing
    answers any more, the rest fail untried. A key that cannot be one raises
    :class:`BadRequest` before anything is asked.
    """

    def tag_many(
        self, keys: Sequence[str], tag: ObjectTag, *, between: Callable[[], None] = nothing
    ) -> list[TagOutcome]:
        """TAGGED: each has ``tag`` now, and keeps what other tags it had."""
        ...

    def untag_many(
        self, keys: Sequence[str], tag: ObjectTag, *, between: Callable[[], None] = nothing
    ) -> list[TagOutcome]:
        """UNTAGGED: each has no tag of that key now, whatever its value was; BARE if it had none."""
        ...

    def tagless(self, keys: Sequence[str], *, between: Callable[[], None] = nothing) -> list[TagOutcome]:
        """BARE: it has no tags at all. TAGGED: it has some, whosever they are."""
        ...


def flaw(key: str, value: str) -> str | None:
    """Why they cannot be a tag, or None."""
    if not 1 <= len(key) <= KEY_LENGTH:
        return f"its key has {len(key)} characters"
    if len(value) > VALUE_LENGTH:
        return f"its value has {len(value)} characters"
    if key.lower().startswith("aws:"):
        return "a key that begins with aws: is for AWS alone"
    if odd := next((one for one in key + value if not (one.isalnum() or one in MARKS)), None):
        return f"it holds {odd!r}"
    return None


EXPIRE_NOW = ObjectTag("lakefs-expire-now", "1")
