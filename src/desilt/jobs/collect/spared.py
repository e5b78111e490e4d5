"""What stays whatever refs say: what came back from the trash lately, and what people ordered to be kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from desilt.columns.files import HeldFile
from desilt.domain.reason import Reason
from desilt.domain.run import Run
from desilt.jobs.sets import Recorded
from desilt.records import removals
from desilt.records.holds import HoldKind
from desilt.repository.protocol import Repository
from desilt.repository.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Spared:
    """Addresses, and the same as files in a run's folder."""

    addresses: frozenset[str]
    held: Mapping[Reason, Sequence[HeldFile]]

    @classmethod
    def of(cls, repository: Repository, run: Run, seen: Snapshot, since: datetime) -> "Spared":
        """What was restored at ``since`` or later, or is on its way; and what holds name, of the moment of ``seen``."""
        with repository.records.read() as tx:
            restored = removals.restored_since(tx, repository.uid, since)
        ordered = [hold.value for hold in seen.held(HoldKind.ADDRESS)]
        recorded = Recorded(repository, run)
        held = {Reason.RESTORED: [recorded.restored(since)], Reason.HELD: [recorded.ordered(seen.holds)]}
        return cls(frozenset({*restored, *ordered}), held)

    def ids(self, folder: str) -> frozenset[str]:
        """Those of files in ``folder``."""
        return frozenset(one.removeprefix(folder) for one in self.addresses if one.startswith(folder))
