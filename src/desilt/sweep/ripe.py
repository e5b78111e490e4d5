"""Marked objects that have waited long enough, on the executors: removed, where the store does it not itself.

An object is on its way out (*removing*) before it is touched, and from then on nobody brings it back.
"""

import time
from dataclasses import astuple, dataclass
from datetime import UTC, datetime

from desilt.clock import elapsed
from desilt.objects.store import Result
from desilt.records import locks, marks
from desilt.records import removals as tombstones
from desilt.records.removals import State
from desilt.repository.protocol import Repository
from desilt.sweep.budget import Budget
from desilt.sweep.delete import Sure, delete
from desilt.sweep.marked import MarkedPiece, as_ordered, check_lock, looked_at, spared

NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Cleared:
    """What came of it."""

    removed: int = 0
    failed: int = 0
    spared: int = 0  # that people ordered to be kept
    waiting: int = 0  # not marked for long enough

    def __add__(self, other: "Cleared") -> "Cleared":
        return Cleared(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))


def asked(done: Cleared) -> int:
    return done.removed + done.failed + done.spared + done.waiting


def remove(piece: MarkedPiece) -> Cleared:
    """On an executor: remove what was marked in these batches long enough ago."""
    repository = piece.open()
    done = Cleared()
    for number in piece.numbers:
        done += _remove(repository, piece, number)
    return done


def _remove(repository: Repository, piece: MarkedPiece, number: int) -> Cleared:
    repository.gate.check()
    with repository.records.read() as tx:
        known = list(tombstones.of_run(tx, repository.uid, piece.run, batch=number))
    kept = spared(repository, piece, [one for one in known if one.state is State.MARKED])
    began = elapsed()
    with repository.records.write() as tx:
        stones = looked_at(tx, repository, piece, number, State.MARKED, State.REMOVING)
        before = piece.before if as_ordered(tx, repository, piece) else NEVER
        ready = [one for one in stones if one.state is State.REMOVING or one.condemned_at <= before]
        kept &= {one.address for one in ready}
        going = [one.address for one in ready if one.address not in kept]
        marks.remark(tx, repository.uid, piece.run, going, State.REMOVING, only=[State.MARKED])
    keys = [repository.prefix + address for address in going]
    sure = Sure(lambda: check_lock(repository, piece.lock), since=began)
    budget = Budget(repository, piece.per_second, time.sleep)
    outcomes = delete(repository.store, keys, trash=None, sure=sure, budget=budget) if keys else []
    went = [one.key.removeprefix(repository.prefix) for one in outcomes if one.result is not Result.FAILED]
    with repository.records.write() as tx:
        locks.check(tx, piece.lock)
        marks.remark(tx, repository.uid, piece.run, went, State.REMOVED, only=[State.REMOVING])
    return Cleared(len(went), len(going) - len(went), len(kept), len(stones) - len(ready))
