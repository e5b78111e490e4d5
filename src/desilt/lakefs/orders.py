"""What people order to be kept in a server's repository, named as the server has it."""

from desilt.domain.names import check_text
from desilt.errors import NotFound
from desilt.inventory.listing import stored_at
from desilt.lakefs import history
from desilt.lakefs.core import PREFIX, LakefsCore
from desilt.records.holds import HoldKind
from desilt.repository.ordered import GracedOrders


class LakefsOrders(GracedOrders):
    """Of one repository of a server."""

    def __init__(self, core: LakefsCore) -> None:
        super().__init__(core)
        self._core = core

    def named(self, kind: HoldKind, value: str) -> str:
        core = self._core
        if kind is HoldKind.ADDRESS and stored_at(core.store, PREFIX + value) is None:
            raise NotFound("object", value, "see `lakectl fs stat` for the address of a path")
        if kind is HoldKind.REF:
            return history.resolve(core, core.clock, value)
        if kind is HoldKind.PREFIX:
            check_text("a prefix", value)
        return value
