"""The moment of removal on a server's repository: nothing there can be condemned, so age is the only fence.

What is held is read again from the server right before; what is younger than an address may still be linked, by the
store's clock or by its name, stays. Somebody who stages, links or reverts to an object in the seconds between is not
kept from it.
"""

from desilt.errors import Conflict
from desilt.lakefs.core import LakefsCore
from desilt.lakefs.held import LakefsHeld
from desilt.repository.gate import Reliance
from desilt.repository.graced import GracedGate
from desilt.repository.snapshot import Revision
from desilt.sstable.ranges import FOLDER as RANGES


class LakefsGate(GracedGate):
    """Of one repository of a server."""

    def __init__(self, core: LakefsCore) -> None:
        super().__init__(core, (RANGES,))
        self._core = core

    def held(self, run: str, since: Revision, relies_on: Reliance, *, swept: bool = False) -> LakefsHeld:
        return LakefsHeld(self._core, run, since, relies_on, swept=swept)

    def following(self, *_: object, **__: object) -> None:
        raise Conflict("this run marks objects, which a lakeFS server does not know of; use lifecycle instead")

    def forget(self, *_: object, **__: object) -> None:
        raise Conflict("nothing is marked in a lakeFS repository, so nothing can be vacuumed; see `desilt purge`")
