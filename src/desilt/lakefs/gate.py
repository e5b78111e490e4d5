"""The moment of removal on a server's repository: nothing there can be condemned, so age is the only fence.

What is held is read again from the server right before; what is younger than an address may still be linked, by the
store's clock or by its name, stays. A batch is on record before it is touched, for the audit and for restore; nobody
else is told of that. Somebody who stages, links or reverts to an object in the seconds between is not kept from it.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

import numpy as np

from desilt.clock import ManualClock
from desilt.domain.times import CLOCK_MARGIN
from desilt.errors import Conflict
from desilt.inventory.listing import stored_at
from desilt.lakefs.core import PREFIX, LakefsCore
from desilt.lakefs.held import LakefsHeld
from desilt.objects import store_clock
from desilt.objects.store import Outcome
from desilt.records import ledger, locks, removals, revisions, traces
from desilt.records.database import Transaction
from desilt.records.ledger import BatchRow, RunRow
from desilt.records.locks import Lock
from desilt.records.removals import State
from desilt.repository import lease, written
from desilt.repository.gate import Batch, Held, Reliance, Safety, Standing
from desilt.repository.snapshot import Revision
from desilt.sstable.ranges import FOLDER as RANGES

TRACES = (*traces.SOURCES, "SELECT seen_at AS at FROM revisions WHERE repository = ?")


class LakefsGate:
    """Of one repository of a server."""

    safety = Safety.GRACE

    def __init__(self, core: LakefsCore) -> None:
        self._core = core

    # ---- before

    def settle_moves(self) -> None:
        """Nothing is begun on the server that could be cut off."""

    def check(self) -> None:
        core = self._core
        with core.records.read() as tx:
            fence = locks.fence_of(tx, core.uid)
        lease.check(lease.newest(core.store, PREFIX), core.records_name, fence)

    def standing(self, asked: Collection[Revision]) -> Standing:
        with self._core.records.read() as tx:
            known = [one for one in asked if self._knows(tx, one)]
        return Standing(frozenset(known))

    def _knows(self, tx: Transaction, one: Revision) -> bool:
        found = revisions.at(tx, self._core.uid, one.number)
        return found is not None and found.mark == one.mark

    def quiet_since(self, *others: datetime | None) -> datetime | None:
        core, now = self._core, self._core.clock()
        if isinstance(core.clock, ManualClock):
            return None
        times = [one for one in (*others, store_clock.last_asked(core.store)) if one is not None]
        with core.records.read() as tx:
            found = traces.quiet_since(tx, core.uid, now, times, sources=TRACES)
        if found is not None:
            with core.records.write() as tx:
                traces.suspect(tx, core.uid, found, now)
        return found

    def last_trace(self) -> datetime | None:
        if isinstance(self._core.clock, ManualClock):
            return None
        with self._core.records.read() as tx:
            return traces.last(tx, self._core.uid, sources=TRACES)

    def begin(self, lock: Lock, run: RunRow | None, *, now: datetime, clock_is_right: bool) -> None:
        """On record here, and beside the objects that these records are the ones that count."""
        self._take(lock)
        with self._core.records.write() as tx:
            locks.check(tx, lock)
            if clock_is_right:
                traces.agree(tx, self._core.uid, now)
            traces.passed(tx, self._core.uid, now)
            if run is not None:
                ledger.begin(tx, self._core.uid, run)

    def _take(self, lock: Lock) -> None:
        core = self._core
        lease.take(core.store, PREFIX, core.records_name, core.records.name, lock.fence, lock.run, core.clock())

    # ---- the moment itself

    def held(self, run: str, since: Revision, relies_on: Reliance) -> LakefsHeld:
        return LakefsHeld(self._core, run, since, relies_on)

    def condemn(self, batch: Batch, held: Held, relies_on: Reliance, lock: Lock) -> dict[str, str]:
        """What of a batch is held, and what others have; the rest is on record as about to go."""
        core, addresses = self._core, batch.rows["address"].to_pylist()
        held.catch_up()
        back = {addresses[place]: "something holds it by now" for place in np.flatnonzero(held.holds(batch.rows))}
        lately = relies_on.made_at - CLOCK_MARGIN
        if relies_on.judged is None:
            lately -= core.grace
        with core.records.write() as tx:
            locks.check(tx, lock)
            if (before := written.known(tx, core.uid, batch)) is not None:
                return before | self._spared(tx, batch, back.keys() - before.keys())
            rest = [address for address in addresses if address not in back]
            back |= written.others(tx, core.uid, batch.run, rest, lately=lately, by_rules=relies_on.rules is not None)
            written.ahead(tx, core.uid, batch, back, at=core.clock(), tables=RANGES)
        return back

    def _spared(self, tx: Transaction, batch: Batch, held: Collection[str]) -> dict[str, str]:
        """Of a batch that was cut off, what came to be held since and is still there: it is on record no longer."""
        there = [address for address in held if stored_at(self._core.store, PREFIX + address) is not None]
        removals.lift(tx, self._core.uid, batch.run, there, State.RESTORED, at=self._core.clock())
        return dict.fromkeys(there, "something holds it by now")

    # ---- after

    def sure(self, batch: Batch, lock: Lock) -> None:
        with self._core.records.write() as tx:
            locks.check(tx, lock)
            written.check_open(tx, self._core.uid, batch)

    def settle(self, batch: Batch, lock: Lock, done: BatchRow, outcomes: Sequence[Outcome], usual: State) -> None:
        with self._core.records.write() as tx:
            locks.check(tx, lock)
            written.results(tx, self._core.uid, PREFIX, batch, done, outcomes, usual, at=self._core.clock())

    def end(self, lock: Lock, write: Callable[[Transaction], None]) -> None:
        with self._core.records.write() as tx:
            locks.check(tx, lock)
            write(tx)

    @contextmanager
    def restoring(self, lock: Lock, _run: str) -> Iterator[Transaction]:
        self._take(lock)
        with self._core.records.write() as tx:
            locks.check(tx, lock)
            yield tx

    def following(self, *_: object, **__: object) -> None:
        raise Conflict("this run marks objects, which a lakeFS server does not know of; use lifecycle instead")

    def forget(self, *_: object, **__: object) -> None:
        raise Conflict("nothing is marked in a lakeFS repository, so nothing can be vacuumed; see `desilt purge`")

    def release_copied(self, tx: Transaction) -> None:
        """Nothing is kept for records that were restored: those of a copy are refused."""
