"""Where new objects go: open partitions, handed out in slots.

A partition takes 50,000 objects or lives an hour, then a new one is opened.
Slots are reserved in the database before they are used, so that any number of
processes share a partition, and none is ever filled past its size.
"""

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from desilt.clock import Clock
from desilt.domain import address
from desilt.domain.times import CLOCK_MARGIN, microseconds, moment
from desilt.records.database import Database, Transaction, among

FIRST_SLOTS = 8
MOST_SLOTS = 1_024
WITHIN = address.PARTITION_AGE + CLOCK_MARGIN  # of a lease's end; earlier, this clock has run backwards


@dataclass(slots=True)
class Lease:
    """Slots in one partition that this process may use until the partition closes."""

    partition: str
    slots: int
    until: datetime


class Partitions:
    """The addresses of new objects, for one process."""

    def __init__(self, database: Database, clock: Clock, check: Callable[[], None]) -> None:
        self._database, self._clock, self._check = database, clock, check
        self._leases: dict[str, Lease] = {}
        self._slots: dict[str, int] = {}
        self._lock = threading.Lock()
        self._pid = os.getpid()

    def new_address(self, branch: str) -> str:
        """An address that nobody has, below the branch with uid ``branch``."""
        now = self._clock()
        with self._lock:
            if self._pid != os.getpid():  # the slots of a lease belong to one process
                self._leases, self._pid = {}, os.getpid()
            lease = self._leases.get(branch)
            if lease is None or not lease.slots or not lease.until - WITHIN <= now < lease.until:
                lease = self._leases[branch] = self._lease(branch, now)
            lease.slots -= 1
        return f"{address.branch_prefix(branch)}{lease.partition}/{new_uid(now)}"

    def _lease(self, branch: str, now: datetime) -> Lease:
        """Slots in the fullest open partition, or in a new one; more each time a process comes back."""
        slots = self._slots[branch] = min(2 * self._slots.get(branch, FIRST_SLOTS // 2), MOST_SLOTS)
        found = self._share(branch, now, slots)
        if found is None:
            self._check()  # a name from a wrong clock would lie where collectors no longer look
            found = self._share(branch, now, slots, opening=True)
        assert found is not None
        return Lease(found[0], slots, found[1] + address.PARTITION_AGE)

    def _share(self, branch: str, now: datetime, slots: int, *, opening: bool = False) -> tuple[str, datetime] | None:
        """The name of a partition with ``slots`` more handed out, and when it was opened; None if there is none."""
        with self._database.write() as tx:
            tx.lock(f"partitions/{branch}")
            row = tx.one(
                "SELECT name, opened_at FROM partitions WHERE branch = ? AND opened_at > ? AND opened_at <= ? "
                "AND objects + ? <= ? ORDER BY objects DESC LIMIT 1",
                *(branch, microseconds(now - address.PARTITION_AGE), microseconds(now), slots),
                address.PARTITION_OBJECTS,
            )
            if row is not None:
                tx.execute(
                    "UPDATE partitions SET objects = objects + ? WHERE branch = ? AND name = ?", slots, branch, row[0]
                )
                return str(row[0]), moment(row[1])
            if not opening:
                return None
            name = address.partition(now, new_uid(now))
            tx.execute(
                "INSERT INTO partitions (branch, name, opened_at, objects) VALUES (?, ?, ?, ?)",
                *(branch, name, microseconds(now), slots),
            )
            return name, now


def new_uid(now: datetime) -> str:
    """A fresh uid of this moment."""
    return address.uid(now, os.urandom(8))


def handed_out(tx: Transaction, names: Sequence[str]) -> list[int]:
    """How many addresses were, in each of those that are known."""
    return [int(objects) for (objects,) in among(tx, "SELECT objects FROM partitions WHERE name IN ({})", names)]
