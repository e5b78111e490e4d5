"""Tables that come back: a range is named by its content, so a new commit may need one that a run has collected.

While its tombstone stands, the run may be about to remove the file that was just
written again. The commit waits until that is over, and then lifts the tombstone
in the transaction in which it moves its branch: nothing is condemned meanwhile.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from desilt.domain.times import IN_FLIGHT
from desilt.errors import BeingCollected, MissingTable, NotFound
from desilt.lake.core import Core
from desilt.records import ledger
from desilt.records import removals as tombstones
from desilt.records.database import Transaction
from desilt.records.removals import State, Tombstone
from desilt.sstable.ranges import EMPTY, FOLDER

ELSEWHERE = (State.TRASHED, State.RESTORING)


@dataclass(frozen=True, slots=True)
class Needed:
    """The tables of a new commit, and those of their tombstones that it may lift."""

    addresses: tuple[str, ...]
    liftable: Mapping[str, Tombstone]


def look(core: Core, metarange: str, *, begun: datetime) -> Needed:
    """What a commit of ``metarange`` needs, once all of it is written; ``begun`` is when that began.

    A tombstone may be lifted if its run was done with it when we looked, and the file is there since.
    """
    if metarange == EMPTY:
        return Needed((), {})
    try:
        addresses = tables_of(core, metarange)
    except MissingTable:
        with core.database.read() as tx:
            _refuse(tombstones.found_in(tx, core.uid, [FOLDER + metarange]))
        raise
    with core.database.read() as tx:
        stones = {
            address: stone
            for address, stone in _stones(tx, core, addresses).items()
            if stone.state not in ELSEWHERE and _is_over(tx, core, stone, begun - IN_FLIGHT)
        }
    return Needed(addresses, {address: stone for address, stone in stones.items() if _is_there(core, address)})


def coming_back(tx: Transaction, core: Core, needed: Needed) -> tuple[tuple[str, str], ...]:
    """In the transaction that makes the commit: the tombstones of tables it needs, each by run and address.

    They are to be lifted with it; where one may not be, the commit is refused.
    """
    stones = _stones(tx, core, needed.addresses)
    _refuse({address: stone for address, stone in stones.items() if needed.liftable.get(address) != stone})
    return tuple((stone.run, address) for address, stone in stones.items())


def tables_of(core: Core, metarange: str) -> tuple[str, ...]:
    """The addresses of a metarange that is there, and of its ranges."""
    return (FOLDER + metarange, *(FOLDER + listed.id for listed in core.ranges.metarange(metarange)))


def stored_tables(core: Core, metarange: str) -> tuple[str, ...]:
    """The same, each seen in the store; :class:`MissingTable` if one is not there."""
    if metarange == EMPTY:
        return ()
    addresses = tables_of(core, metarange)
    for address in addresses:
        if not _is_there(core, address):
            raise MissingTable(address.removeprefix(FOLDER))
    return addresses


def _stones(tx: Transaction, core: Core, addresses: tuple[str, ...]) -> dict[str, Tombstone]:
    if not addresses or tombstones.none_at_all(tx, core.uid):
        return {}
    return tombstones.found_in(tx, core.uid, addresses)


def _refuse(stones: Mapping[str, Tombstone]) -> None:
    for address, stone in sorted(stones.items()):
        way_out = "try again in ten minutes; if it is still so then, finish that run with `desilt sweep`"
        if stone.state in ELSEWHERE:
            way_out = "it is in the trash: bring it back with `desilt restore`, or empty the trash with `desilt purge`"
        raise BeingCollected(address.removeprefix(FOLDER), stone.run, way_out)


def _is_over(tx: Transaction, core: Core, stone: Tombstone, before: datetime) -> bool:
    """Whether the run was done with the file by then: it wrote down what came of it, or was given up."""
    since = ledger.over_since(tx, core.uid, stone.run, stone.batch)
    return since is not None and since < before


def _is_there(core: Core, address: str) -> bool:
    try:
        core.store.head(core.prefix + address)
    except NotFound:
        return False
    return True
