"""The moment of removal in a repository of others, where nothing can be condemned: what all kinds of them share.

Age is the fence there. What is held is read again right before; what is young stays. A batch is on record before it is
touched, for the audit and for restore; nobody else is told of that. Somebody who points to an object in the seconds
between is not kept from it. Records are in a database of desilt's own, and a chain of links beside the objects says
which one (:mod:`desilt.repository.lease`).
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from desilt.clock import Clock, ManualClock
from desilt.domain.times import CLOCK_MARGIN
from desilt.errors import Conflict
from desilt.inventory.listing import stored_at
from desilt.objects import store_clock
from desilt.objects.store import ObjectStore, Outcome
from desilt.records import edits, elsewhere, holds, ledger, locks, removals, revisions, traces
from desilt.records.database import Database, Transaction
from desilt.records.ledger import BatchRow, RunRow
from desilt.records.locks import Lock
from desilt.records.removals import State
from desilt.repository import lease, written
from desilt.repository.gate import Batch, Held, Reliance, Safety, Standing
from desilt.repository.lease import Keeper
from desilt.repository.policy import check_policy
from desilt.repository.snapshot import Revision

PREFIX = ""  # the store begins where such a repository does
HELD = "something holds it by now"
TRACES = (*traces.SOURCES, "SELECT seen_at AS at FROM revisions WHERE repository = ?")


class GracedCore(Protocol):
    """One repository: its place in a store, and what is on record of it."""

    @property
    def store(self) -> ObjectStore: ...
    @property
    def records(self) -> Database: ...
    @property
    def records_name(self) -> str: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def uid(self) -> str: ...
    @property
    def grace(self) -> timedelta: ...


def keeper(core: GracedCore, lock: Lock | None = None) -> Keeper:
    """These records, to whoever asks whether they count."""
    with core.records.read() as tx:
        fence, run = locks.last(tx, core.uid)
    if lock is not None:
        fence, run = lock.fence, lock.run
    records, uid = core.records, core.uid
    tokens, intend = partial(elsewhere.links_of, records, uid), partial(elsewhere.link, records, uid)
    return Keeper(core.records_name, records.name, fence, run, tokens, intend)


class _Ordered(Exception):
    """Somebody ordered something to be kept since the last look."""


class GracedGate:
    """Of one repository; ``tables`` are the folders of what is not an object there."""

    def __init__(self, core: GracedCore, tables: tuple[str, ...]) -> None:
        self._graced, self._tables = core, tables
        self._looked: dict[tuple[str, int], Held] = {}  # what batches that are under way were condemned by

    @property
    def safety(self) -> Safety:
        return Safety.GRACE

    # ---- before

    def settle_moves(self) -> None:
        """Nothing is begun there that could be cut off."""

    def check(self) -> None:
        core = self._graced
        lease.check(lease.newest(core.store, PREFIX), keeper(core))

    def standing(self, asked: Collection[Revision]) -> Standing:
        with self._graced.records.read() as tx:
            known = [one for one in asked if self._knows(tx, one)]
            edited = edits.last(tx, self._graced.uid)
        return Standing(frozenset(known), edited)

    def _knows(self, tx: Transaction, one: Revision) -> bool:
        found = revisions.at(tx, self._graced.uid, one.number)
        return found is not None and found.mark == one.mark

    def quiet_since(self, *others: datetime | None) -> datetime | None:
        core, now = self._graced, self._graced.clock()
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
        if isinstance(self._graced.clock, ManualClock):
            return None
        with self._graced.records.read() as tx:
            return traces.last(tx, self._graced.uid, sources=TRACES)

    def begin(self, lock: Lock, run: RunRow | None, *, now: datetime, clock_is_right: bool) -> None:
        """On record here, and beside the objects that these records are the ones that count."""
        core = self._graced
        self._take(lock)
        with core.records.write() as tx:
            locks.check(tx, lock)
            if clock_is_right:
                traces.agree(tx, core.uid, now)
            traces.passed(tx, core.uid, now)
            if run is not None:
                ledger.begin(tx, core.uid, run)

    def _take(self, lock: Lock) -> None:
        core = self._graced
        lease.take(core.store, PREFIX, keeper(core, lock), core.clock())

    # ---- the moment itself

    def waits(self, tx: Transaction, batch: Batch) -> Mapping[str, str]:  # noqa: ARG002
        """What of a batch stays for the sake of something else in its run: by address, why."""
        return {}

    def condemn(self, batch: Batch, held: Held, relies_on: Reliance, lock: Lock) -> dict[str, str]:
        """What of a batch is held, and what others have; the rest is on record as about to go.

        People's orders are in these very records: one that was given since the last look is waited for.
        """
        while True:
            with suppress(_Ordered):
                return self._condemn(batch, held, relies_on, lock)

    def _condemn(self, batch: Batch, held: Held, relies_on: Reliance, lock: Lock) -> dict[str, str]:
        core, addresses = self._graced, batch.rows["address"].to_pylist()
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
            back = {**self.waits(tx, batch), **back}
            if (before := written.known(tx, core.uid, batch)) is not None:
                return before | self._spared(tx, batch, {one: back[one] for one in back.keys() - before.keys()})
            rest = [address for address in addresses if address not in back]
            back |= written.others(tx, core.uid, batch.run, rest, lately=lately, by_rules=relies_on.rules is not None)
            written.ahead(tx, core.uid, batch, back, at=core.clock(), tables=self._tables)
        return back

    def _spared(self, tx: Transaction, batch: Batch, held: Mapping[str, str]) -> dict[str, str]:
        """Of a batch that was cut off, what came to be held since and is still there: it is on record no longer."""
        core = self._graced
        stones = removals.of_run(tx, core.uid, batch.run, batch=batch.number)
        before = [one.address for one in stones if one.state is State.RESTORED]
        held = {address: why for address, why in held.items() if address not in before}
        there = [address for address in sorted(held) if stored_at(core.store, PREFIX + address) is not None]
        removals.lift(tx, core.uid, batch.run, there, State.RESTORED, at=core.clock())
        ledger.spare(tx, core.uid, batch.run, batch.number, len(there))
        return {**dict.fromkeys(before, HELD), **{address: held[address] for address in there}}

    # ---- after

    def sure(self, batch: Batch, lock: Lock) -> None:
        """Asked for as long as a batch takes, and after a sleep: what is held is read again where that was long ago."""
        core = self._graced
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
        core = self._graced
        with core.records.write() as tx:
            locks.check(tx, lock)
            written.results(tx, core.uid, PREFIX, batch, done, outcomes, usual, at=core.clock())
        self._looked.pop((batch.run, batch.number), None)

    def end(self, lock: Lock, write: Callable[[Transaction], None]) -> None:
        with self._graced.records.write() as tx:
            locks.check(tx, lock)
            write(tx)

    @contextmanager
    def restoring(self, lock: Lock, _run: str) -> Iterator[Transaction]:
        self._take(lock)
        with self._graced.records.write() as tx:
            locks.check(tx, lock)
            yield tx

    def release_copied(self, tx: Transaction) -> None:
        """Nothing is kept for records that were restored: those of a copy are refused."""
