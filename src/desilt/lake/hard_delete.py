"""Hard delete of a lake: switched on and off, and what its workers do in transactions.

A claim and a restore are moves: a database that does not know of them is found out by
the journal before anybody removes anything by it.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import islice

from desilt.errors import BatchOver
from desilt.lake import discards, fresh, repositories, undiscard
from desilt.lake.changes import HardDeleteSet
from desilt.lake.core import Core
from desilt.lake.events import DiscardsClaimed, run_began
from desilt.lake.moves import moving
from desilt.objects.store import Outcome, Result
from desilt.records import holds, ledger
from desilt.records import removals as tombstones
from desilt.records.database import Transaction
from desilt.records.ledger import BatchRow, RunRow, RunState
from desilt.records.removals import DISCARDS, State, Tombstone
from desilt.repository.hard_delete import (
    JOB,
    LEASE,
    MAX_SHARE,
    WINDOW,
    Claim,
    Discards,
    HardDeleteSetting,
    Restaged,
    WantedBack,
)

MICROSECOND = timedelta(microseconds=1)
PAUSES = timedelta(minutes=1), timedelta(hours=1)  # until what is held, or what the store failed at, is looked at again
STATES = {Result.REMOVED: State.REMOVED, Result.GONE: State.GONE}


class LakeHardDelete:
    """Of one repository of a lake of our own."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def setting(self) -> HardDeleteSetting | None:
        with self._core.database.read() as tx:
            return _setting(tx, self._core.uid)

    def switch(self, to: HardDeleteSetting | None) -> int:
        with moving(self._core, alone=True) as move:  # nobody stages an upload by what was set before
            if _setting(move.tx, self._core.uid) == to:
                return 0
            watched = 0 if to else fresh.count(move.tx, self._core.uid)
            move.do(HardDeleteSet(to.grace // MICROSECOND, str(to.max_share)) if to else HardDeleteSet(None, ""))
        return watched

    def discards(self) -> Discards:
        uid, now = self._core.uid, self._core.clock()
        with self._core.database.read() as tx:
            waiting, waiting_bytes, oldest = tombstones.unsettled_in(tx, uid, State.DISCARDED)
            claimed, claimed_bytes, older = tombstones.unsettled_in(tx, uid, State.CLAIMED)
            due, leased = discards.count_due(tx, uid, now), discards.count_leased(tx, uid, now)
            watched = fresh.count(tx, uid)
            removed = ledger.removed_since(tx, uid, now - WINDOW, only=JOB)[0]
            metaranges = repositories.head_metaranges(tx, uid)
            staged = repositories.count_staged(tx, uid)
        ranges = {one.id: one.count for metarange in metaranges for one in self._core.ranges.metarange(metarange)}
        stored = sum(ranges.values()) + staged + waiting + claimed + removed
        first = min((one for one in (oldest, older) if one is not None), default=None)
        return Discards(waiting, waiting_bytes, claimed, claimed_bytes, due, leased, first, watched, removed, stored)

    def is_due(self) -> bool:
        with self._core.database.read() as tx:
            return next(discards.due(tx, self._core.uid, self._core.clock()), None) is not None

    def claim(self, run: RunRow, number: int, *, most: int) -> Claim | None:
        uid = self._core.uid
        with moving(self._core, alone=True) as move:  # nobody orders anything to be kept meanwhile
            tx, now = move.tx, self._core.clock()
            stones = _free(tx, uid, now, most)
            if not stones:
                return None
            if ledger.find(tx, uid, run.id) is None:
                move.do(run_began(run))
            going = [stone.address for stone in stones]
            tombstones.claim(tx, uid, going, run=run.id, batch=number)
            discards.wait(tx, uid, going, now + LEASE)
            move.note(DiscardsClaimed(run.id, number, len(going)))
        return Claim(run.id, number, tuple(stones), now + LEASE)

    def sure(self, claim: Claim) -> None:
        with self._core.database.read() as tx:
            still = _claimed(tx, self._core.uid, claim)
        if self._core.clock() >= claim.until or len(still) < len(claim.stones):
            raise BatchOver(claim.run, claim.number)

    def settle(self, claim: Claim, file: str, outcomes: Sequence[Outcome]) -> BatchRow:
        uid, now, prefix = self._core.uid, self._core.clock(), self._core.prefix
        told = {one.key.removeprefix(prefix): one.result for one in outcomes}
        with self._core.database.write() as tx:
            repositories.writing(tx, uid)
            mine = [stone for stone in _claimed(tx, uid, claim) if stone.address in told]
            by_result = {result: [one for one in mine if told[one.address] is result] for result in Result}
            for result, state in STATES.items():
                went = [stone.address for stone in by_result[result]]
                tombstones.end_claim(tx, uid, claim.run, went, state)
                discards.forget(tx, uid, went)
            for stone in by_result[Result.FAILED]:
                discards.wait(tx, uid, [stone.address], now + _pause(stone, now))
            done = BatchRow(
                claim.number,
                file,
                asked=len(mine),
                removed=len(by_result[Result.REMOVED]),
                gone=len(by_result[Result.GONE]),
                failed=len(by_result[Result.FAILED]),
                removed_bytes=sum(stone.size for stone in by_result[Result.REMOVED]),
            )
            if ledger.batch(tx, uid, claim.run, claim.number) is None:
                ledger.write_ahead(tx, uid, claim.run, done)
                ledger.record(tx, uid, claim.run, claim.number, at=now)
            total = ledger.total(ledger.batches(tx, uid, claim.run))
            ledger.end(tx, uid, claim.run, RunState.PARTLY if total.failed else RunState.SWEPT, at=now, fence=0)
        return done

    def restore(self, wanted: WantedBack) -> Restaged:
        return undiscard.restore(self._core, wanted)


def _free(tx: Transaction, repository: str, now: datetime, most: int) -> list[Tombstone]:
    """Some of what is due, but for what is held by now, which waits; as the ledger has them."""
    orders = [hold for hold in holds.every(tx, repository) if hold.counts(now)]
    while found := list(dict.fromkeys(islice(discards.due(tx, repository, now), most))):
        stones = tombstones.found_in(tx, repository, found)
        ours = {address: stone for address, stone in stones.items() if stone.state in DISCARDS}
        discards.forget(tx, repository, [address for address in found if address not in ours])
        kept = discards.held_among(tx, repository, list(ours), orders) if orders else set()
        for address in sorted(kept):
            discards.wait(tx, repository, [address], now + _pause(ours[address], now))
        if free := [stone for address, stone in ours.items() if address not in kept]:
            return free
    return []


def _pause(stone: Tombstone, now: datetime) -> timedelta:
    """Longer and longer: what has waited for long can wait."""
    least, most = PAUSES
    return min(max((now - stone.condemned_at) / 4, least), most)


def _claimed(tx: Transaction, repository: str, claim: Claim) -> list[Tombstone]:
    """What is still this claim's."""
    mine = {stone.address for stone in claim.stones}
    found = tombstones.of_run(tx, repository, claim.run, batch=claim.number)
    return [stone for stone in found if stone.state is State.CLAIMED and stone.address in mine]


def _setting(tx: Transaction, repository: str) -> HardDeleteSetting | None:
    row = tx.one("SELECT discard_after, discard_share FROM repositories WHERE uid = ?", repository)
    if row is None or row[0] is None:
        return None
    return HardDeleteSetting(timedelta(microseconds=int(row[0])), float(row[1] or MAX_SHARE))
