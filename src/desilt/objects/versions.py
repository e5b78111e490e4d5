"""Versions of objects, where a bucket keeps them: an object that is removed stays there, under a marker that hides it.

Plain values, and what a store that may have versions can do with them. ``remove_versions`` takes them away for good.
Only the package ``sweep`` may call it; a test in ``tests/architecture`` keeps it so.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from desilt.objects.store import nothing


class Versioning(StrEnum):
    """Whether a bucket keeps versions."""

    ENABLED = "Enabled"
    SUSPENDED = "Suspended"  # what was written before has versions still
    OFF = "Off"  # and it never had any
    UNKNOWN = "unknown"  # it did not say, or we may not ask


@dataclass(frozen=True, slots=True)
class Version:
    """One version of one object, or a marker that says it was removed."""

    key: str
    id: str
    size: int  # of a marker, 0
    modified_at: datetime
    is_marker: bool = False
    is_latest: bool = False  # what a read finds; of those of a key, one


@dataclass(frozen=True, slots=True)
class KeyVersions:
    """All that there is of one key, markers too; or why that is not known."""

    key: str
    versions: tuple[Version, ...] = ()
    error: str = ""  # in one line; then ``versions`` says nothing


@dataclass(frozen=True, slots=True)
class VersionOutcome:
    """What came of removing one version. One that was gone before is as good as removed: a store does not tell."""

    version: Version
    error: str = ""  # why it may be there still; to ask again does no harm


class ObjectVersions(Protocol):
    """Versions of many objects at a time.

    ``between`` is called before each few requests; what it raises leaves the rest. A key that cannot be one
    raises :class:`~desilt.errors.BadRequest` before anything is asked.
    """

    def versioning(self) -> Versioning:
        """Whether there are any. That the bucket does not say so is an answer, and not an error."""
        ...

    def list_versions(self, keys: Sequence[str], *, between: Callable[[], None] = nothing) -> list[KeyVersions]:
        """Of each key, in their order: all of its versions, and of no other key, however alike."""
        ...

    def remove_versions(
        self, versions: Sequence[Version], *, between: Callable[[], None] = nothing
    ) -> list[VersionOutcome]:
        """One outcome for each, in order; these versions and no others, and a failure of one stops no other."""
        ...
