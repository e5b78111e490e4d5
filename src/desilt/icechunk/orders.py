"""What people order to be kept in an Icechunk repository: a ref's snapshot, a snapshot by its id, or one chunk."""

import re

from desilt.errors import BadRequest, NotFound
from desilt.icechunk import seen
from desilt.icechunk.core import PREFIX, IcechunkCore
from desilt.icechunk.format import states
from desilt.icechunk.format.ids import NAME
from desilt.icechunk.layout import MANIFESTS, SNAPSHOTS
from desilt.inventory.listing import stored_at
from desilt.records.holds import HoldKind
from desilt.repository.ordered import GracedOrders

NO_PREFIXES = (
    "an Icechunk repository has no paths that could be kept apart; hold the branch, tag or snapshot with --ref instead"
)

NO_PARTS = (
    "kept alone, it would be of no use to anybody; hold the branch, tag or snapshot that has it, with --ref instead"
)


class IcechunkOrders(GracedOrders):
    """Of one repository."""

    def __init__(self, core: IcechunkCore) -> None:
        super().__init__(core)
        self._core = core

    def named(self, kind: HoldKind, value: str) -> str:
        """A snapshot that no ref reaches may be held too, for as long as its file is there."""
        core = self._core
        if kind is HoldKind.PREFIX:
            raise BadRequest(NO_PREFIXES)
        if kind is HoldKind.ADDRESS and value.startswith((SNAPSHOTS, MANIFESTS)):
            raise BadRequest(NO_PARTS)
        if kind is HoldKind.ADDRESS:
            if stored_at(core.store, PREFIX + value) is None:
                raise NotFound("object", value, "write chunks/ID, as `desilt explain` shows it for a path")
            return value
        try:
            return seen.resolved(seen.read(core, core.clock()), value)
        except NotFound:
            if not re.fullmatch(NAME, value) or stored_at(core.store, PREFIX + SNAPSHOTS + value) is None:
                raise
            return states.fetch(core.store, value).id
