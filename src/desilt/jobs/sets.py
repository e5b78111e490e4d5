"""What the records hold, as sets of addresses in a run's folder."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from desilt.columns.files import HeldFile, put_addresses
from desilt.domain.run import Run
from desilt.records import marks, removals
from desilt.records.holds import Hold, HoldKind
from desilt.repository.protocol import Repository


class Recorded:
    """The sets of one run."""

    def __init__(self, repository: Repository, run: Run) -> None:
        self._repository, self._run = repository, run

    def restored(self, since: datetime) -> HeldFile:
        """What was brought back from the trash since then."""
        with self._repository.records.read() as tx:
            return self._put("restored", removals.restored_since(tx, self._repository.uid, since))

    def unsettled(self) -> HeldFile:
        """What is on record as removed, and may be there, or there again."""
        with self._repository.records.read() as tx:
            return self._put("unsettled", removals.unsettled(tx, self._repository.uid))

    def marks(self) -> HeldFile:
        """Whatever was marked, and what became of it: gone or not."""
        with self._repository.records.read() as tx:
            return self._put("marks", marks.ever_marked(tx, self._repository.uid))

    def marked(self) -> HeldFile:
        """What runs have marked, and is still to go."""
        with self._repository.records.read() as tx:
            return self._put("marked", marks.marked(tx, self._repository.uid))

    def discarded(self) -> HeldFile:
        """What hard delete has condemned, and removes itself."""
        with self._repository.records.read() as tx:
            return self._put("discarded", removals.left_to_hard_delete(tx, self._repository.uid))

    def ordered(self, holds: Iterable[Hold]) -> HeldFile:
        """What people ordered to be kept, object by object."""
        return self._put("holds", [hold.value for hold in holds if hold.kind is HoldKind.ADDRESS])

    def _put(self, name: str, addresses: Sequence[str]) -> HeldFile:
        key = f"{self._repository.prefix}{self._run.folder}inputs/{name}.parquet"
        return put_addresses(self._repository.store, key, addresses)
