"""The read side of a repository. Whatever cannot be read is raised; it is never taken for empty."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import pyarrow as pa

from desilt.cache.metaranges import Lists
from desilt.cache.ranges import Placed
from desilt.columns.files import HeldFile
from desilt.domain.history import Commit
from desilt.domain.reason import Reason
from desilt.domain.run import Run
from desilt.inventory.listing import Inventory
from desilt.repository.gate import Rules
from desilt.repository.snapshot import Snapshot
from desilt.sstable.values import RangeData


@dataclass(frozen=True, slots=True)
class Staged:
    """What staging areas hold."""

    files: list[HeldFile]
    entries: int
    groups: Mapping[str, str]  # what objects are uploaded to (branches): names by uid


@dataclass(frozen=True, slots=True)
class Uploads:
    """What uploads under way hold."""

    file: HeldFile
    oldest: Mapping[str, str]  # by group, the oldest folder that one of them writes to


@dataclass(frozen=True, slots=True)
class Pointers:
    """What every staging area points to, as columns.pins.POINTERS: by the place of its branch among ``names``."""

    names: tuple[str, ...]
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class StagedEntries:
    """All that is staged anywhere, entry by entry, as the range cache has what is committed."""

    files: list[HeldFile]
    branches: tuple[str, ...]  # the owners of entries in those files, by their names
    entries: int


@dataclass(frozen=True, slots=True)
class KeptByRules:
    """The commits that a repository's own rules of garbage collection keep, and what these rules are."""

    rules: Rules
    text: str  # for people
    commits: frozenset[str]


class Source(Protocol):
    """The read side. In a mark: uploads and staged first, then a snapshot; an address only moves that way."""

    def snapshot(self, now: datetime, *, uses: bool = False) -> Snapshot:
        """Refs, commits, and the holds that count at ``now`` or by the clock, whole (``checked``)."""

    def kept_by_rules(self, seen: Snapshot, now: datetime, *, tags: bool) -> KeptByRules:
        """What the rules keep that the repository itself has; with ``tags``, what tags name as well."""

    def staged(self, run: Run) -> Staged:
        """Everything staged anywhere, of one moment, written into the run's folder."""

    def staged_pointers(self) -> Pointers: ...

    def staged_entries(self, run: Run) -> StagedEntries:
        """The same as ``staged``, with paths and times; what a newer entry hides, too."""

    def held_after_all(
        self, run: Run, going: Iterable[pa.Table], released: Sequence[Commit]
    ) -> Mapping[Reason, HeldFile]:
        """Of what would go, as PLAN, what stays for reasons that only a question about each can tell.

        ``released`` are the commits that rules let go: what they have was not taken for held.
        """

    def uploads(self, run: Run, now: datetime) -> Uploads:
        """Addresses that somebody may still be writing to, or about to stage."""

    def dropped(self, run: Run, since: datetime | None) -> HeldFile:
        """Addresses that lost a reference since then, if ever; to be read after what is staged."""

    def lists(self, commits: Iterable[Commit]) -> Lists:
        """The tables that commits list; commits that lie together in time are kept together."""

    def entries(self, tables: Sequence[RangeData]) -> list[Placed]:
        """The files that hold the entries of ``tables``, each decoded once in its life."""

    def distrust(self, damaged: Iterable[str]) -> None:
        """Files of decoded entries that turned out damaged are made again."""

    def inventory(
        self, run: Run, *, groups: Sequence[str] | None = None, newer_than: Mapping[str, str] | None = None
    ) -> Inventory:
        """What the store lists, in the run's folder: all, or some groups, or what is newer than boundaries."""

    def groups(self) -> list[str]:
        """What objects were ever uploaded to, and still lie in."""

    def group_names(self) -> Mapping[str, str]:
        """What people call them, by uid: those too that are no more, as far as that is known."""

    def folders(self, groups: Iterable[str]) -> list[str]:
        """The folders that uploads to ``groups`` lie in."""

    def since_copy(self) -> datetime | None:
        """From when on uploads may have lost what pointed to them, since records were restored; None if never."""

    def check_inventory(self, folders: Iterable[str]) -> None:
        """Refuse to go on where something was put that the records cannot know of."""

    def released_since(self, since: datetime) -> set[str]:
        """The commits that a ref, a hold or an edit released at ``since`` or later."""

    def paths(self, prefix: str) -> Iterator[str]:
        """Paths that begin with ``prefix``, some more than once: what branches show today, then what any commit has."""

    def called(self, folders: Iterable[str]) -> Mapping[str, str]:
        """What people call some folders that entries' paths begin with, where that is something else."""

    def resolve(self, ref: str) -> str:
        """The id of the commit that a ref expression means."""

    def tables_of(self, commit: Commit) -> Sequence[RangeData]:
        """The tables that one commit lists, in the order of their paths; nothing is kept of that."""

    def rows_of(self, table: RangeData) -> pa.RecordBatch:
        """Every entry of a table, as sstable.columns.ENTRIES, and as many as it counts; nothing is kept of that."""

    def staged_branches(self) -> list[str]:
        """The names of branches on which something is staged."""

    def changes_on(self, branch: str) -> Iterator[pa.RecordBatch]:
        """What a commit of ``branch`` would take, as ENTRIES; of a path that would go, everything else is null."""
