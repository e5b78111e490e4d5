"""The moment of removal on a server's repository: nothing there can be condemned, so age is the only fence.

What is held is read again from the server right before; what is younger than an address may still be linked, by the
store's clock or by its name, stays. A batch is on record before it is touched, for the audit and for restore; nobody
else is told of that. Somebody who stages, links or reverts to an object in the seconds between is not kept from it.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from desilt.clock import ManualClock
from desilt.domain.times import CLOCK_MARGIN
from desilt.errors import Conflict
from desilt.inventory.listing import stored_at
from desilt.lakefs.core import PREFIX, LakefsCore
from desilt.lakefs.held import LakefsHeld
from desilt.lakefs.orders import keeper
from desilt.objects import store_clock
from desilt.objects.store import Outcome
from desilt.records import holds, ledger, locks, removals, revisions, traces
from desilt.records.database import Transaction
from desilt.records.ledger import BatchRow, RunRow
from desilt.records.locks import Lock
from desilt.records.removals import State
from desilt.repository import lease, written
from desilt.repository.gate import Batch, Held, Reliance, Safety, Standing
from desilt.repository.policy import check_policy
from desilt.repository.snapshot import Revision
from desilt.sstable.ranges import FOLDER as RANGES

HELD = "something holds it by now"
TRACES = (*traces.SOURCES, "SELECT seen_at AS at FROM revisions WHERE repository = ?")


class _Ordered(Exception):
    """Somebody ordered something to be kept since the last look."""


class LakefsGate:
    """Of one repository of a server."""

    safety = Safety.GRACE

    def __init__(self, core: LakefsCore) -> None:
        self._core = core
        self._looked: dict[tuple[str, int], Held] = {}  # what batches that are under way were condemned by

    # ---- before

    def settle_moves(self) -> None:
        """Nothing is begun on the server that could be cut off."""

    def check(self) -> None:
        core = self._core
        lease.check(lease.newest(core.store, PREFIX), keeper(core))

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
        lease.take(core.store, PREFIX, keeper(core, lock), core.clock())

    # ---- the moment itself

    def held(self, run: str, since: Revision, relies_on: Reliance, *, swept: bool = False) -> LakefsHeld:
        return LakefsHeld(self._core, run, since, relies_on, swept=swept)

    def condemn(self, batch: Batch, held: Held, relies_on: Reliance, lock: Lock) -> dict[str, str]:
        """What of a batch is held, and what others have; the rest is on record as about to go.

        People's orders are in these very records: one that was given since the last look is waited for.
        """
        while True:
            with suppress(_Ordered):
                return self._condemn(batch, held, relies_on, lock)

    def _condemn(self, batch: Batch, held: Held, relies_on: Reliance, lock: Lock) -> dict[str, str]:
        core, addresses = self._core, batch.rows["address"].to_pylist()
        held.catch_up()
        back = {addresses[place]: HELD for place in np.flatnonzero(held.holds(batch.rows))}
        lately = relies_on.made_at - CLOCK_MARGIN
        if relies_on.judged is None:
            lately -= core.grace
        with core.records.write() as tx:
            locks.check(tx, lock)
            check_policy(tx, core.uid, batch.run, relies_on)
            if any(True for _ in holds.since(tx, core.uid, held.generation)):
                raise _Ordered
            self._looked[batch.run, batch.number] = held
            if (before := written.known(tx, core.uid, batch)) is not None:
                return before | self._spared(tx, batch, back.keys() - before.keys())
            rest = [address for address in addresses if address not in back]
            back |= written.others(tx, core.uid, batch.run, rest, lately=lately, by_rules=relies_on.rules is not None)
            written.ahead(tx, core.uid, batch, back, at=core.clock(), tables=RANGES)
        return back

    def _spared(self, tx: Transaction, batch: Batch, held: Collection[str]) -> dict[str, str]:
        """Of a batch that was cut off, what came to be held since and is still there: it is on record no longer."""
        core = self._core
        stones = removals.of_run(tx, core.uid, batch.run, batch=batch.number)
        before = [one.address for one in stones if one.state is State.RESTORED]
        held = set(held) - set(before)
        there = [address for address in sorted(held) if stored_at(core.store, PREFIX + address) is not None]
        removals.lift(tx, core.uid, batch.run, there, State.RESTORED, at=core.clock())
        ledger.spare(tx, core.uid, batch.run, batch.number, len(there))
        return dict.fromkeys((*before, *there), HELD)

    # ---- after

    def sure(self, batch: Batch, lock: Lock) -> None:
        """Asked for as long as a batch takes, and after a sleep: what is held is read again where that was long ago."""
        core = self._core
        with core.records.write() as tx:
            locks.check(tx, lock)
            written.check_open(tx, core.uid, batch)
            stones = removals.of_run(tx, core.uid, batch.run, batch=batch.number)
            condemned = [one.address for one in stones if one.state is State.CONDEMNED]
        if (held := self._looked.get((batch.run, batch.number))) is None:
            return
        held.catch_up()
        rows = batch.rows.filter(pc.is_in(batch.rows["address"], value_set=pa.array(condemned, pa.string())))
        for address in rows["address"].filter(pa.array(held.holds(rows))).to_pylist():
            if stored_at(core.store, PREFIX + address) is not None:
                raise Conflict(f"{address} came to be held while it was about to go; go on with `desilt sweep`")

    def settle(self, batch: Batch, lock: Lock, done: BatchRow, outcomes: Sequence[Outcome], usual: State) -> None:
        with self._core.records.write() as tx:
            locks.check(tx, lock)
            written.results(tx, self._core.uid, PREFIX, batch, done, outcomes, usual, at=self._core.clock())
        self._looked.pop((batch.run, batch.number), None)

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
