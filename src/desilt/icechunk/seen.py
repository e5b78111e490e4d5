"""History as an Icechunk repository has it at one moment, with people's orders; its moves are counted here."""

from dataclasses import replace
from datetime import datetime

from desilt.icechunk.core import IcechunkCore
from desilt.icechunk.history import IcechunkHistory, history
from desilt.records import holds, revisions
from desilt.repository.snapshot import Revision, Snapshot


def read(core: IcechunkCore, now: datetime) -> Snapshot:
    """All of it, checked; a hold counts if it does at ``now`` or by the clock."""
    return seen(core, history(core.store), now)


def seen(core: IcechunkCore, found: IcechunkHistory, now: datetime) -> Snapshot:
    """The same of a history that was just read."""
    with core.records.write() as tx:
        known = revisions.see(tx, core.uid, found.seen.revision.mark, "", now=core.clock())
        orders = [hold for hold in holds.every(tx, core.uid) if hold.counts(min(now, core.clock()))]
    return replace(found.seen, revision=Revision(known.number, known.mark), holds=tuple(orders))
