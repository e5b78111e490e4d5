"""The files that history consists of, where nothing but listings tells which of them there are."""

from collections.abc import Collection, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from desilt.domain.history import Commit


@dataclass(frozen=True, slots=True)
class AssetFolders:
    """Where files of each kind lie, below the repository's prefix; each is called by its id."""

    snapshots: str
    logs: str  # of what each snapshot changed
    tables: str  # that snapshots list, and that name objects
    backups: str  # of what names all of these, as it was before each change


class Assets(Protocol):
    """What is known of such files besides where they are."""

    @property
    def folders(self) -> AssetFolders: ...

    def commits(self, names: Collection[str], known: Set[str]) -> list[Commit]:
        """By their own files: snapshots that no ref reaches, and all that they need to descend from but ``known``.

        One that is gone by now is left out, for nobody can reach it any more; one that cannot be read is raised.
        """

    def logs(self, dead: Set[str]) -> set[str]:
        """The ids of logs that snapshots need besides their own, all but those that are ``dead``."""

    def named_at(self, backup: str) -> datetime | None:
        """When the backup at that address was made, by its own name."""
