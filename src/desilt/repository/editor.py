"""History changed in place, where a kind of repository lets anybody do that."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from desilt.records.locks import Lock
from desilt.repository.gate import Reliance
from desilt.repository.snapshot import Revision, Snapshot

DELETED = "deleted"  # what became of a ref; else "kept: ", and why


@dataclass(frozen=True, slots=True)
class GoingRef:
    """A branch or tag that goes."""

    kind: str
    name: str
    uid: str
    head: str
    why: str


Parents = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Edits:
    """What is done to history: commits that get other parents, refs that go, why others of the plan do not,
    and commits that go at once."""

    parents: Sequence[tuple[str, Parents, Parents]] = ()  # id, those it has, those it gets
    refs: Sequence[GoingRef] = ()
    spared: Mapping[str, str] = field(default_factory=dict)  # by name; DELETED of those that are gone by now
    released: frozenset[str] = frozenset()  # commits that leave history with it; none where they stay until collected


class HistoryEditor(Protocol):
    """History, changed in place. Cut off and done again, it ends the same."""

    def edit(
        self, lock: Lock, since: Revision, relies_on: Reliance, decide: Callable[[Snapshot], Edits]
    ) -> tuple[Snapshot, Mapping[str, str]]:
        """Carry out what ``decide`` says of the history as it is in that very moment; that, and what became of refs."""

    def delete_refs(
        self, lock: Lock, run: str, refs: Sequence[GoingRef], since: Revision, relies_on: Reliance
    ) -> Mapping[str, str]:
        """Delete refs one by one, each only if it is still as it was seen; what became of each."""

    def take(
        self, lock: Lock, run: str, ids: Sequence[str], since: Revision, at: datetime, released_since: datetime | None
    ) -> None:
        """Take commits, children before parents, that nothing reaches at that moment."""

    def there(self, ids: Sequence[str]) -> set[str]:
        """Which of ``ids`` are commits."""
