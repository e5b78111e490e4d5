"""Holds made and lifted, and policies set, in desilt's own records: each a move, so that no batch can pass it by."""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from desilt.domain.names import check_text
from desilt.errors import NotFound
from desilt.inventory.listing import stored_at
from desilt.lakefs import history
from desilt.lakefs.core import PREFIX, LakefsCore
from desilt.records import elsewhere, holds, locks, policies, revisions
from desilt.records.holds import Hold, HoldKind
from desilt.records.locks import Lock
from desilt.repository import lease
from desilt.repository.lease import Keeper

ID_BYTES = 4


class LakefsOrders:
    """Of one repository of a server. They count for whoever has these records, and others are refused."""

    def __init__(self, core: LakefsCore) -> None:
        self._core = core

    def add(self, kind: HoldKind, value: str, *, reason: str, until: datetime | None) -> Hold:
        """A ref is held as the commit that it has now."""
        core = self._core
        self._check()
        named = value
        if kind is HoldKind.ADDRESS and stored_at(core.store, PREFIX + value) is None:
            raise NotFound("object", value, "see `lakectl fs stat` for the address of a path")
        if kind is HoldKind.REF:
            named = history.resolve(core, core.clock, value)
        if kind is HoldKind.PREFIX:
            check_text("a prefix", value)
        with core.records.write() as tx:
            number = revisions.order(tx, core.uid, now=core.clock())
            made = Hold(secrets.token_hex(ID_BYTES), kind, named, reason, core.clock(), until, number)
            holds.add(tx, core.uid, made)
        by = replace(keeper(core), run=f"hold {made.id}")
        lease.take(core.store, PREFIX, by, core.clock())  # so that no other records pass it by
        return made

    def lift(self, hold_id: str) -> None:
        self._check()
        with self._core.records.write() as tx:
            holds.remove(tx, self._core.uid, hold_id)
            revisions.order(tx, self._core.uid, now=self._core.clock())

    def every(self) -> list[Hold]:
        with self._core.records.read() as tx:
            return holds.every(tx, self._core.uid)

    def set_policy(self, job: str, document: Mapping[str, Any], agreed: Iterable[str]) -> datetime:
        self._check()
        now = self._core.clock()
        with self._core.records.write() as tx:
            policies.write(tx, self._core.uid, job, document, agreed, at=now)
            revisions.order(tx, self._core.uid, now=now)
        return now

    def _check(self) -> None:
        """An order in records that do not count would keep nothing."""
        lease.check(lease.newest(self._core.store, PREFIX), keeper(self._core))


def keeper(core: LakefsCore, lock: Lock | None = None) -> Keeper:
    """These records, to whoever asks whether they count."""
    with core.records.read() as tx:
        fence, run = locks.last(tx, core.uid)
    if lock is not None:
        fence, run = lock.fence, lock.run
    records, uid = core.records, core.uid
    tokens, intend = partial(elsewhere.links_of, records, uid), partial(elsewhere.link, records, uid)
    return Keeper(core.records_name, records.name, fence, run, tokens, intend)
