"""The moment of removal: one transaction that makes a batch of addresses gone for everybody.

It holds the repository alone: nobody stages and no ref moves meanwhile. What any
commit, staging area or ticket holds by now is left out. The objects themselves
are touched only afterwards.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime

import numpy as np
import pyarrow as pa

from desilt.clock import ManualClock
from desilt.columns.schemas import DIVIDER
from desilt.domain.times import CLOCK_MARGIN, DROPPED_KNOWN_FOR
from desilt.errors import BatchOver, RefsMoved
from desilt.lake import dropped, moves, repositories, restored, staged, staging, tickets, traces
from desilt.lake.core import Core
from desilt.lake.events import BroughtBack, MarksFollowed, run_began
from desilt.lake.held import LakeHeld
from desilt.objects import store_clock
from desilt.objects.store import Outcome, Result
from desilt.records import condemning, ledger, locks, outlived
from desilt.records import removals as tombstones
from desilt.records.database import Transaction
from desilt.records.ledger import BatchRow, RunRow, RunState
from desilt.records.locks import Lock
from desilt.records.removals import DISCARDS, MARKS, SETTLED, State, Tombstone
from desilt.repository.gate import Batch, Held, Reliance, Safety, Standing
from desilt.repository.snapshot import Revision
from desilt.sstable.ranges import FOLDER as RANGES

TRIES = 100
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
            found = traces.quiet_since(tx, core, now, times)
        if found is not None:
            with core.database.write() as tx:
                traces.suspect(tx, core.uid, found, now)
        return found

    def last_trace(self) -> datetime | None:
        if isinstance(self._core.clock, ManualClock):
            return None
        with self._core.database.read() as tx:
            return traces.last(tx, self._core.uid)

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

    def held(self, run: str, since: Revision, relies_on: Reliance) -> LakeHeld:
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
                if ledger.batch(tx, uid, batch.run, batch.number) is not None:
                    condemned = {one.address for one in tombstones.of_run(tx, uid, batch.run, batch=batch.number)}
                    return {address: "held again" for address in addresses if address not in condemned}
                if generation == held.generation:
                    back |= self._held(tx, batch.run, batch.rows.filter(pa.array(~again)), relies_on)
                    self._write(tx, batch, back)
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
        for address, stone in tombstones.recorded(tx, uid, addresses).items():
            if stone.run == run:
                back[address] = "the plan names it twice"
            elif stone.state is State.RESTORING or (stone.restored_at is not None and stone.restored_at >= lately):
                back[address] = "it was restored since"
            elif stone.state in MARKS:
                back[address] = f"run {stone.run} has marked it for the store to remove"
            elif stone.state in DISCARDS:
                back[address] = "hard delete removes it"
            elif stone.state is State.TRASHED:
                back[address] = f"run {stone.run} moved it to the trash"
            elif stone.state in (State.REMOVED, State.GONE) and (relies_on.rules or stone.condemned_at >= lately):
                back[address] = f"run {stone.run} removed it"  # a stray upload may come again, a committed object not
            elif stone.state not in SETTLED and _at_work(tx, uid, stone.run):
                back[address] = f"run {stone.run} is about to remove it"  # the first wins until it is settled
        return back

    def _write(self, tx: Transaction, batch: Batch, back: Mapping[str, str]) -> None:
        reasons, details = (batch.rows[name].to_pylist() for name in ("reason", "detail"))
        said = list(zip(reasons, details, strict=True))
        rule = {one: rule_of(*one) for one in set(said)}  # of many that go by one rule, it is found once
        columns = (batch.rows[name].to_pylist() for name in ("address", "size_bytes"))
        going = [row for row in zip(*columns, said, strict=True) if row[0] not in back]
        rules: dict[str, dict[str, int]] = {name: {} for name in rule.values()}
        for address, size, one in going:
            rules[rule[one]][address] = size
        condemning.condemn(tx, self._core.uid, batch.run, batch.number, rules, at=self._core.clock())
        of_tables = int(bool(going) and going[0][0].startswith(RANGES))
        ahead = BatchRow(batch.number, "", asked=len(going), held_again=len(back), tables=of_tables)
        ledger.write_ahead(tx, self._core.uid, batch.run, ahead)

    # ---- after

    def sure(self, batch: Batch, lock: Lock) -> None:
        with self._core.database.write() as tx:
            locks.check(tx, lock)
            ahead = ledger.batch(tx, self._core.uid, batch.run, batch.number)
            over = ahead is None or ahead.file or not _at_work(tx, self._core.uid, batch.run)
            if over:  # another try has done it, or it was given up: what it removed may be there again
                raise BatchOver(batch.run, batch.number)

    def settle(self, batch: Batch, lock: Lock, done: BatchRow, outcomes: Sequence[Outcome], usual: State) -> None:
        uid, prefix = self._core.uid, self._core.prefix
        with self._core.database.write() as tx:
            locks.check(tx, lock)
            if not ledger.write_result(tx, uid, batch.run, done, at=self._core.clock()):
                return
            for result, state in ((Result.GONE, State.GONE), (Result.FAILED, State.FAILED)):
                some = [one.key.removeprefix(prefix) for one in outcomes if one.result is result]
                tombstones.turn(tx, uid, batch.run, some, state)
            tombstones.settle(tx, uid, batch.run, batch.number, usual)

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


def _at_work(tx: Transaction, repository: str, run: str) -> bool:
    """Whether a run is at work, or will be taken up again."""
    row = ledger.find(tx, repository, run)
    return row is not None and row.state is RunState.SWEEPING


def rule_of(reason: str, detail: str) -> str:
    """What an object went by: the rules that its plan names before its paths, else the reason."""
    rules, divided, _ = detail.partition(DIVIDER)
    return rules if divided else reason
