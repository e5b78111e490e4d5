"""What a plan does, step by step: each is carried out whole before the next begins, and done twice it is done once."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from desilt.columns.files import HeldFile
from desilt.repository.editor import GoingRef, Parents
from desilt.repository.sealed import Sealed
from desilt.repository.snapshot import Revision
from desilt.runs.report import Amount


class Action(StrEnum):
    """What becomes of the objects that go."""

    DELETE = "delete"
    TRASH = "trash"
    PURGE_VERSIONS = "purge-versions"  # deleted, with every version that a bucket keeps of them
    MARK = "mark"  # hidden; what comes next is a step of its own


CHOICES = (Action.DELETE, Action.TRASH)
"""Those that people have the choice between everywhere; versions are purged only where a bucket keeps some."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a file, from where the one before it ends."""

    end: int
    sha256: str


@dataclass(frozen=True, slots=True)
class PlanFile:
    """Some rows of a plan."""

    key: str
    rows: int
    bytes: int  # of the objects
    group: int  # rows to a row group; the last one may have fewer
    sections: tuple[Section, ...]  # one for each row group, then the footer


@dataclass(frozen=True, slots=True)
class RemoveObjects:
    """Objects go, or files of metadata do: ranges and metaranges, or snapshots, logs and manifests."""

    files: tuple[PlanFile, ...]
    tables: bool = False

    @property
    def amount(self) -> Amount:
        return sum((Amount(file.rows, file.bytes) for file in self.files), Amount())


@dataclass(frozen=True, slots=True)
class EditHistory:
    """Commits get other parents, and expired refs go."""

    wish: Mapping[str, Any]
    edits: tuple[tuple[str, Parents, Parents], ...]
    refs: tuple[GoingRef, ...]
    abandons: int  # commits that no ref reaches any more
    reached: int  # commits that refs reach
    released: tuple[str, ...] = ()  # commits that leave history at once, reached or not


@dataclass(frozen=True, slots=True)
class TakeCommits:
    """Commits that nothing reaches go."""

    commits: Sealed  # a line each, children before parents
    count: int
    released_since: datetime | None  # what was released since then stays


@dataclass(frozen=True, slots=True)
class DeleteRefs:
    """Branches go."""

    refs: tuple[GoingRef, ...]


@dataclass(frozen=True, slots=True)
class OwnFiles:
    """Files of desilt itself, of one kind."""

    what: str
    keys: tuple[str, ...]  # below the repository's prefix; folders end with a slash
    objects: int
    bytes: int


@dataclass(frozen=True, slots=True)
class TidyFiles:
    """Files of desilt itself that are needed no longer go."""

    files: tuple[OwnFiles, ...]


@dataclass(frozen=True, slots=True)
class BatchWish:
    """Tagging by a job of the store's own, S3 Batch Operations."""

    account: str
    role: str


@dataclass(frozen=True, slots=True)
class FollowMarks:
    """What was marked, by this run or one before, is tagged for the store to remove; or is removed, where it waited."""

    tag: str  # "key=value"; "": the store has none, and what was marked waits
    ripe_before: datetime  # what was marked by then has waited long enough
    spared: tuple[HeldFile, ...]  # of what was marked, what somebody ordered to be kept
    since: Revision  # when people's orders were read
    batch: BatchWish | None = None


Step = RemoveObjects | EditHistory | TakeCommits | DeleteRefs | TidyFiles | FollowMarks
