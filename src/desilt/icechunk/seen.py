"""History as an Icechunk repository has it at one moment, with people's orders; its moves are counted here.

An order to keep a snapshot counts whether a ref reaches it or not: its file is read beside those that refs reach.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from desilt.errors import MissingAsset, NotFound, RefsMoved, Unreadable
from desilt.icechunk.core import IcechunkCore
from desilt.icechunk.history import IcechunkHistory, history
from desilt.icechunk.layout import SNAPSHOTS
from desilt.records import holds, revisions
from desilt.records.holds import Hold, HoldKind
from desilt.repository.snapshot import Revision, Snapshot, Use

TRIES = 5
WRITE = "write a branch, a tag or the id of a snapshot"
PROTECTED = "it is the default branch, which the library lets nobody delete"


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found at one moment."""

    found: IcechunkHistory
    seen: Snapshot


def read(core: IcechunkCore, now: datetime) -> Snapshot:
    """All of it, checked; a hold counts if it does at ``now`` or by the clock."""
    return look(core, now).seen


def with_uses(whole: Snapshot) -> Snapshot:
    """The same, with what is known of branches."""
    main = whole.default_branch
    return replace(whole, uses={name: Use(None, PROTECTED if name == main else "") for name in whole.names})


def look(core: IcechunkCore, now: datetime) -> Looked:
    """The same, with what is told of the repository besides; orders are those that count once refs were read."""
    with core.records.read() as tx:
        orders = _counting(holds.every(tx, core.uid), core, now)
    for _ in range(TRIES):
        found = _with_ordered(core, orders)
        whole = seen(core, found, now)
        if all(hold.value in whole.commits for hold in whole.held(HoldKind.REF)):
            return Looked(found, whole)
        orders = whole.holds  # one came since
    raise RefsMoved("orders to keep were read")


def seen(core: IcechunkCore, found: IcechunkHistory, now: datetime) -> Snapshot:
    """A history that was just read, as it is counted here; of its number, and with the orders there are by then."""
    with core.records.write() as tx:
        known = revisions.see(tx, core.uid, found.seen.revision.mark, "", now=core.clock())
        orders = _counting(holds.every(tx, core.uid), core, now)
    return replace(found.seen, revision=Revision(known.number, known.mark), holds=orders)


def _with_ordered(core: IcechunkCore, orders: Iterable[Hold]) -> IcechunkHistory:
    """All that refs reach, and the snapshots that orders name."""
    named = [hold for hold in orders if hold.kind is HoldKind.REF]
    try:
        return history(core.store, [hold.value for hold in named])
    except MissingAsset as fault:
        for hold in named:
            if fault.name == f"{SNAPSHOTS}{hold.value}":
                raise Unreadable(
                    f"hold {hold.id} orders snapshot {hold.value} to be kept, whose file is missing; restore it from a "
                    "copy, or lift the hold with `desilt hold rm`"
                ) from None
        raise


def _counting(orders: Iterable[Hold], core: IcechunkCore, now: datetime) -> tuple[Hold, ...]:
    return tuple(hold for hold in orders if hold.counts(min(now, core.clock())))


def resolved(whole: Snapshot, ref: str) -> str:
    """The snapshot that a branch, a tag or a whole id means; branches come first, as in the library."""
    named = {tag.name: tag.target for tag in whole.tags} | {branch.name: branch.head for branch in whole.branches}
    if ref in named or ref in whole.commits:
        return named.get(ref, ref)
    raise NotFound("ref", ref, WRITE)
