"""Marked objects that have waited long enough, on the executors: removed, where the store does it not itself.

An object is on its way out (*removing*) before it is touched, and from then on nobody brings it back.
"""

import time
from dataclasses import astuple, dataclass
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from desilt.columns.buckets import around
from desilt.columns.files import Files, HeldFile
from desilt.columns.hashing import Hashes, address_hash
from desilt.objects.store import Result
from desilt.records import holds, locks, marks
from desilt.records.database import Transaction
from desilt.records.removals import State, Tombstone
from desilt.repository.protocol import Repository
from desilt.sweep.delete import Sure, delete, now
from desilt.sweep.marked import MarkedPiece, check_lock, looked_at

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
    began = now()
    with repository.records.write() as tx:
        stones = looked_at(tx, repository, piece, number, State.MARKED, State.REMOVING)
        before = piece.before if _as_ordered(tx, repository, piece) else NEVER
        ready = [one for one in stones if one.state is State.REMOVING or one.condemned_at <= before]
        kept = _spared(repository, piece.spared, ready)
        going = [one.address for one in ready if one.address not in kept]
        marks.remark(tx, repository.uid, piece.run, going, State.REMOVING, only=[State.MARKED])
    keys = [repository.prefix + address for address in going]
    sure = Sure(lambda: check_lock(repository, piece.lock), since=began)
    outcomes = delete(repository.store, keys, trash=None, sure=sure, sleep=time.sleep) if keys else []
    went = [one.key.removeprefix(repository.prefix) for one in outcomes if one.result is not Result.FAILED]
    with repository.records.write() as tx:
        locks.check(tx, piece.lock)
        marks.remark(tx, repository.uid, piece.run, went, State.REMOVED, only=[State.REMOVING])
    return Cleared(len(went), len(going) - len(went), len(kept), len(stones) - len(ready))


def _as_ordered(tx: Transaction, repository: Repository, piece: MarkedPiece) -> bool:
    """Whether nobody has ordered anything to be kept since orders were read; else all of it waits for the next run."""
    new = holds.since(tx, repository.uid, piece.since.number)
    return not any(one.counts(repository.clock()) for one in new)


def _spared(repository: Repository, files: tuple[HeldFile, ...], stones: list[Tombstone]) -> set[str]:
    """Those that people ordered to be kept, before any of them was on its way out."""
    marked = [one.address for one in stones if one.state is State.MARKED]
    if not files or not marked:
        return set()
    hashes = address_hash(pa.array(marked, pa.string()))
    held = np.isin(hashes, _held(repository, files, np.sort(hashes)))
    return {address for address, kept in zip(marked, held.tolist(), strict=True) if kept}


def _held(repository: Repository, files: tuple[HeldFile, ...], wanted: Hashes) -> Hashes:
    read = Files(repository.store)
    found = [read.hashes([file], bucket) for file in files for bucket in around(wanted, file.buckets)]
    return np.concatenate([np.zeros(0, np.uint64), *found])
