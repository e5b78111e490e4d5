"""Holds made and lifted, and policies set: each a move, so that no batch can pass it by."""

import secrets
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from desilt.domain.names import check_text
from desilt.errors import NotFound
from desilt.inventory.listing import stored_at
from desilt.lake import refs
from desilt.lake.changes import HoldLifted, PolicySet, hold_made
from desilt.lake.core import Core
from desilt.lake.moves import moving
from desilt.records import holds
from desilt.records import removals as tombstones
from desilt.records.database import Transaction
from desilt.records.holds import Hold, HoldKind
from desilt.records.removals import State

ID_BYTES = 4


class LakeOrders:
    """Of one repository of a lake of our own."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def add(self, kind: HoldKind, value: str, *, reason: str, until: datetime | None) -> Hold:
        """A ref is held as the commit that it has now."""
        core = self._core
        is_there = kind is not HoldKind.ADDRESS or stored_at(core.store, core.prefix + value) is not None
        with moving(core) as move:  # nothing is condemned between a look and the order
            tx = move.tx
            if kind is HoldKind.ADDRESS:
                stone = tombstones.find(tx, core.uid, value)
                if stone is None or stone.state is not State.DISCARDED:  # that one waits, and is kept by this
                    tombstones.refuse_gone(tx, core.uid, value, value)
                if not is_there:
                    raise NotFound("object", value, "see `desilt lake stat` for the address of a path")
            named = {
                HoldKind.PREFIX: lambda: check_text("a prefix", value),
                HoldKind.REF: lambda: refs.resolve(tx, core.uid, value).commit.id,
                HoldKind.ADDRESS: lambda: value,
            }[kind]()
            made = Hold(_new_id(tx, core.uid), kind, named, reason, core.clock(), until)
            move.do(hold_made(made))
        return made

    def lift(self, hold_id: str) -> None:
        with moving(self._core) as move:
            move.do(HoldLifted(hold_id))

    def every(self) -> list[Hold]:
        with self._core.database.read() as tx:
            return holds.every(tx, self._core.uid)

    def set_policy(self, job: str, document: Mapping[str, Any], agreed: Iterable[str]) -> datetime:
        with moving(self._core) as move:
            move.do(PolicySet(job, document, tuple(agreed)))
            return move.at


def _new_id(tx: Transaction, repository: str) -> str:
    taken = {one.id for one in holds.every(tx, repository)}
    while (made := secrets.token_hex(ID_BYTES)) in taken:
        pass
    return made
