"""Holds made and lifted, and policies set, in desilt's own records of a repository of others.

Each is a move, so that no batch can pass it by. They count for whoever has these records, and others are refused.
"""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from desilt.records import holds, policies, revisions
from desilt.records.holds import Hold, HoldKind
from desilt.repository import lease
from desilt.repository.graced import PREFIX, GracedCore, keeper

ID_BYTES = 4


class GracedOrders:
    """Of one repository."""

    def __init__(self, core: GracedCore) -> None:
        self._graced = core

    def named(self, kind: HoldKind, value: str) -> str:  # noqa: ARG002
        """What a hold names for good; refused if it is not there, or of a kind that keeps nothing here."""
        return value

    def add(self, kind: HoldKind, value: str, *, reason: str, until: datetime | None) -> Hold:
        """A ref is held as the commit that it has now."""
        core = self._graced
        self._check()
        named = self.named(kind, value)
        with core.records.write() as tx:
            number = revisions.order(tx, core.uid, now=core.clock())
            made = Hold(secrets.token_hex(ID_BYTES), kind, named, reason, core.clock(), until, number)
            holds.add(tx, core.uid, made)
        by = replace(keeper(core), run=f"hold {made.id}")
        lease.take(core.store, PREFIX, by, core.clock())  # so that no other records pass it by
        return made

    def lift(self, hold_id: str) -> None:
        self._check()
        with self._graced.records.write() as tx:
            holds.remove(tx, self._graced.uid, hold_id)
            revisions.order(tx, self._graced.uid, now=self._graced.clock())

    def every(self) -> list[Hold]:
        with self._graced.records.read() as tx:
            return holds.every(tx, self._graced.uid)

    def set_policy(self, job: str, document: Mapping[str, Any], agreed: Iterable[str]) -> datetime:
        self._check()
        now = self._graced.clock()
        with self._graced.records.write() as tx:
            policies.write(tx, self._graced.uid, job, document, agreed, at=now)
            revisions.order(tx, self._graced.uid, now=now)
        return now

    def _check(self) -> None:
        """An order in records that do not count would keep nothing."""
        lease.check(lease.newest(self._graced.store, PREFIX), keeper(self._graced))
