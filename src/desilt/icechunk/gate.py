"""The moment of removal in an Icechunk repository: snapshots first, then logs and manifests, chunks last.

Nobody can keep the library from pointing to something in the seconds between the last look and the deletion: what is
held is read again right before, and what is young stays. A file goes only once all that could refer to it is gone: it
is left alone where one of those could not be removed.
"""

from collections.abc import Mapping

from desilt.errors import Conflict
from desilt.icechunk.core import IcechunkCore
from desilt.icechunk.held import IcechunkHeld
from desilt.icechunk.layout import CHUNKS, MANIFESTS, OVERWRITTEN, SNAPSHOTS, TRANSACTIONS
from desilt.records import removals
from desilt.records.database import Transaction
from desilt.repository.gate import Batch, Reliance, Safety
from desilt.repository.graced import GracedGate
from desilt.repository.snapshot import Revision

TABLES = (SNAPSHOTS, TRANSACTIONS, MANIFESTS, OVERWRITTEN)
REFERRING = {SNAPSHOTS: (), TRANSACTIONS: (SNAPSHOTS,), MANIFESTS: (SNAPSHOTS,), CHUNKS: (SNAPSHOTS, MANIFESTS)}
"""What may refer to the files in a folder; a log is named by its snapshot, and names no file itself."""
SURVIVES = "something that refers to it could not be removed"


class IcechunkGate(GracedGate):
    """Of one repository."""

    def __init__(self, core: IcechunkCore) -> None:
        super().__init__(core, TABLES)
        self._core = core

    @property
    def safety(self) -> Safety:
        """One conditional write of ``repo`` edits history, where there is such a file and the store compares."""
        compares = self._core.format == 2 and self._core.store.conditional is not None
        return Safety.CONDITIONAL if compares else Safety.GRACE

    def held(self, run: str, since: Revision, relies_on: Reliance, *, swept: bool = False) -> IcechunkHeld:
        return IcechunkHeld(self._core, run, since, relies_on, swept=swept)

    def waits(self, tx: Transaction, batch: Batch) -> Mapping[str, str]:
        """What may still be referred to by something that its run was to remove before, and that is there."""
        uid, run, addresses = self._core.uid, batch.run, batch.rows["address"].to_pylist()
        of = {folder: by for folder, by in REFERRING.items() if by and any(one.startswith(folder) for one in addresses)}
        referring = {one for by in of.values() for one in by}
        there = {one for one in referring if removals.survives(tx, uid, run, one, but=batch.number)}
        stuck = tuple(folder for folder, by in of.items() if there & {*by})
        return {address: SURVIVES for address in addresses if stuck and address.startswith(stuck)}

    def following(self, *_: object, **__: object) -> None:
        raise Conflict("this run marks objects, which an Icechunk repository does not know of; use collect instead")

    def forget(self, *_: object, **__: object) -> None:
        raise Conflict("nothing is marked in an Icechunk repository, so nothing can be vacuumed; see `desilt purge`")
