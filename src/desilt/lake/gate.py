"""The moment of removal: one transaction that makes a batch of addresses gone for everybody.

It holds the repository alone: nobody stages and no ref moves meanwhile. What any
commit, staging area or ticket holds by now is left out. The objects themselves
are touched only afterwards.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

import numpy as np
import pyarrow as pa

from desilt.clock import ManualClock
from desilt.domain.times import CLOCK_MARGIN, DROPPED_KNOWN_FOR
from desilt.errors import RefsMoved
from desilt.lake import dropped, moves, repositories, restored, staged, staging, tickets
from desilt.lake.core import Core
from desilt.lake.events import BroughtBack, MarksFollowed, run_began
from desilt.lake.held import LakeHeld
from desilt.objects import store_clock
from desilt.objects.store import Outcome
from desilt.records import locks, outlived, traces
from desilt.records.database import Transaction
from desilt.records.ledger import BatchRow, RunRow
from desilt.records.locks import Lock
from desilt.records.removals import State, Tombstone
from desilt.repository import written
from desilt.repository.gate import Batch, Held, Reliance, Safety, Standing
from desilt.repository.snapshot import Revision
from desilt.sstable.ranges import FOLDER as RANGES

TRIES = 100
TRACES = (
    *traces.SOURCES,
    "SELECT created_at AS at FROM commits WHERE repository = ?",
    "SELECT created_at AS at FROM branches WHERE repository = ?",
    "SELECT created_at AS at FROM tags WHERE repository = ?",
    "SELECT dropped_at AS at FROM dropped WHERE repository = ?",
    "SELECT opened_at AS at FROM partitions WHERE branch IN (SELECT uid FROM branches WHERE repository = ?)",
    "SELECT expires_at - ticket_life AS at FROM tickets JOIN repositories ON uid = repository WHERE repository = ?",
)
"""Where a lake has the times of what was done in a repository."""
TICKET_LIVES = 2  # after which the row of an expired ticket is dropped


class LakeGate:
    """Of one repository of a lake of our own."""

    safety = Safety.ATOMIC

    def __init__(self, core: Core) -> None:
        self._core = core

    # ---- before

    def settle_moves(self) -> None:
        moves.settle(self._core)

    def check(self) -> None:
        moves.check(self._core)

    def standing(self, revisions: Collection[Revision]) -> Standing:
        uid = self._core.uid
        with self._core.database.read() as tx:
            newest = repositories.generation(tx, uid)
            known = [
                one
                for one in revisions
                if one.number <= newest and repositories.mark_at(tx, uid, one.number) == one.mark
            ]
            recovered, ask_again_from = restored.recovery(tx, uid)
            edited = repositories.edited(tx, uid)
        return Standing(frozenset(known), edited, recovered, ask_again_from, restored.kept_since(self._core))

    def quiet_since(self, *others: datetime | None) -> datetime | None:
        """It is remembered: whoever asks the store for the time next leaves a trace of this clock."""
        core, now = self._core, self._core.clock()
        if isinstance(core.clock, ManualClock):
            return None  # it is meant to be moved
        times = [one for one in (*others, store_clock.last_asked(core.store)) if one is not None]
        with core.database.read() as tx:
            found = traces.quiet_since(tx, core.uid, now, times, sources=TRACES)
        if found is not None:
            with core.database.write() as tx:
                traces.suspect(tx, core.uid, found, now)
        return found

    def last_trace(self) -> datetime | None:
        if isinstance(self._core.clock, ManualClock):
            return None
        with self._core.database.read() as tx:
            return traces.last(tx, self._core.uid, sources=TRACES)

    def begin(self, lock: Lock, run: RunRow | None, *, now: datetime, clock_is_right: bool) -> None:
        """On record in the database and beside the objects."""
        with moves.moving(self._core) as move:
            locks.check(move.tx, lock)
            if clock_is_right:
                traces.agree(move.tx, self._core.uid, now)
            traces.passed(move.tx, self._core.uid, now)
            if run is not None:
                move.do(run_began(run))

    # ---- the moment itself

    def held(self, run: str, since: Revision, relies_on: Reliance, *, swept: bool = False) -> LakeHeld:  # noqa: ARG002
        return LakeHeld(self._core, run, since, relies_on)

    def condemn(self, batch: Batch, held: Held, relies_on: Reliance, lock: Lock) -> dict[str, str]:
        """Condemn the rows of a batch; those that something holds again, and what.

        A batch that was condemned before stays as it was: tombstones are not written twice.
        """
        addresses, uid = batch.rows["address"].to_pylist(), self._core.uid
        for _ in range(TRIES):
            held.catch_up()
            again = held.holds(batch.rows)
            back = {addresses[place]: "what came after the plan holds it" for place in np.flatnonzero(again)}
            with self._core.database.write() as tx:
                generation = repositories.condemning(tx, uid)
                locks.check(tx, lock)
                if (before := written.known(tx, uid, batch)) is not None:
                    return before
                if generation == held.generation:
                    back |= self._held(tx, batch.run, batch.rows.filter(pa.array(~again)), relies_on)
                    written.ahead(tx, uid, batch, back, at=self._core.clock(), tables=RANGES)
                    return back
        raise RefsMoved("a batch was condemned")

    def _held(self, tx: Transaction, run: str, rows: pa.Table, relies_on: Reliance) -> dict[str, str]:
        """What else holds them at this moment."""
        now, uid, addresses = self._core.clock(), self._core.uid, rows["address"].to_pylist()
        back = dict.fromkeys(staged.holders(tx, uid, rows, relies_on), "it is staged")
        waiting = tickets.holders(tx, uid, addresses, since=now - CLOCK_MARGIN)
        back |= dict.fromkeys(waiting, "an upload under way holds it")
        if relies_on.dropped_for:
            since = min(relies_on.at, now) - relies_on.dropped_for
            back |= dict.fromkeys(dropped.lately(tx, uid, addresses, since=since), "it was dropped lately")
        lately = relies_on.made_at - CLOCK_MARGIN
        if relies_on.judged is None:  # nobody vouches that what came back before was left alone
            lately -= self._core.ticket_life
        return back | written.others(tx, uid, run, addresses, lately=lately, by_rules=relies_on.rules is not None)

    # ---- after

    def sure(self, batch: Batch, lock: Lock) -> None:
        with self._core.database.write() as tx:
            locks.check(tx, lock)
            written.check_open(tx, self._core.uid, batch)

    def settle(self, batch: Batch, lock: Lock, done: BatchRow, outcomes: Sequence[Outcome], usual: State) -> None:
        uid, prefix = self._core.uid, self._core.prefix
        with self._core.database.write() as tx:
            locks.check(tx, lock)
            written.results(tx, uid, prefix, batch, done, outcomes, usual, at=self._core.clock())

    def end(self, lock: Lock, write: Callable[[Transaction], None]) -> None:
        now = self._core.clock()
        with self._core.database.write() as tx:
            locks.check(tx, lock)
            write(tx)
            tickets.forget(tx, self._core.uid, before=now - TICKET_LIVES * self._core.ticket_life)
            dropped.forget(tx, self._core.uid, before=now - DROPPED_KNOWN_FOR)

    @contextmanager
    def restoring(self, lock: Lock, run: str) -> Iterator[Transaction]:
        with moves.moving(self._core) as move:
            locks.check(move.tx, lock)
            move.do(BroughtBack(run))
            yield move.tx

    def following(self, lock: Lock, run: str) -> None:
        with moves.moving(self._core) as move:
            locks.check(move.tx, lock)
            move.do(MarksFollowed(run))

    def forget(self, stones: Sequence[Tombstone], since: Revision, lock: Lock) -> None:
        with self._core.database.write() as tx:
            generation = repositories.condemning(tx, self._core.uid)
            locks.check(tx, lock)
            if generation != since.number:
                raise RefsMoved("the ledger was vacuumed")
            held = staging.holders(tx, [one.address for one in stones])
            outlived.forget(tx, self._core.uid, [one for one in stones if one.address not in held])

    def release_copied(self, tx: Transaction) -> None:
        restored.release(tx, self._core.uid)
