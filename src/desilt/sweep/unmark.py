"""Marks taken back, on the executors: the object loses its tag, is looked at, and then its tombstone is lifted."""

from collections.abc import Callable
from dataclasses import astuple, dataclass
from datetime import datetime

from desilt.clock import elapsed
from desilt.columns.files import HeldFile
from desilt.inventory.present import present_keys
from desilt.objects.tags import TagResult
from desilt.records import locks, marks
from desilt.records import removals as tombstones
from desilt.records.locks import Lock
from desilt.records.removals import State
from desilt.repository.protocol import Repository
from desilt.sweep.delete import Sure
from desilt.sweep.marked import check_lock, chosen
from desilt.sweep.tag import untag

COMES_BACK = (State.MARKED, State.TAGGED, State.TAG_FAILED, State.RESTORING, State.CONDEMNED)
"""The last: a run that was given up left it so, and nothing has happened to the object."""
TOO_LATE = (State.REMOVED, State.GONE, State.REMOVING)


@dataclass(frozen=True, slots=True)
class WantedPiece:
    """Some batches of a run whose marks are to be taken back."""

    open: Callable[[], Repository]
    lock: Lock
    run: str
    numbers: tuple[int, ...]
    chosen: tuple[HeldFile, ...] | None  # None: all of them
    tags: tuple[str, ...]  # that were ever set
    at: datetime


@dataclass(frozen=True, slots=True)
class Unmarked:
    """What came back."""

    restored: int = 0
    bytes: int = 0
    gone: int = 0  # removed in between, by rule
    failed: int = 0  # the store did not say that the tag is off: it stays hidden

    def __add__(self, other: "Unmarked") -> "Unmarked":
        return Unmarked(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))


def coming(piece: WantedPiece) -> int:
    """On an executor: how many of what is wanted of these batches may come back."""
    repository = piece.open()
    count = 0
    for number in piece.numbers:
        with repository.records.read() as tx:
            every = list(tombstones.of_run(tx, repository.uid, piece.run, batch=number))
        stones = [one for one in every if one.state in COMES_BACK]
        count += len(stones if piece.chosen is None else chosen(repository, piece.chosen, stones))
    return count


def unmark(piece: WantedPiece) -> Unmarked:
    """On an executor: bring these batches back. Cut off and done again, it ends the same."""
    repository = piece.open()
    done = Unmarked()
    for number in piece.numbers:
        done += _unmark(repository, piece, number)
    return done


def _unmark(repository: Repository, piece: WantedPiece, number: int) -> Unmarked:
    uid, prefix, began = repository.uid, repository.prefix, elapsed()
    with repository.records.read() as tx:
        every = list(tombstones.of_run(tx, uid, piece.run, batch=number))
    mine = None if piece.chosen is None else chosen(repository, piece.chosen, every)
    with repository.records.write() as tx:
        locks.check(tx, piece.lock)
        every = list(tombstones.of_run(tx, uid, piece.run, batch=number))
        wanted = [one for one in every if mine is None or one.address in mine]
        stones = [one for one in wanted if one.state in COMES_BACK]
        tombstones.lift(tx, uid, piece.run, [one.address for one in stones], State.RESTORING, at=piece.at)
    late = sum(one.state in TOO_LATE for one in wanted)
    sure = Sure(lambda: check_lock(repository, piece.lock), since=began)
    keys = [prefix + one.address for one in stones]
    unsure: set[str] = set()
    if repository.store.tagging is not None and piece.tags:
        unsure = {one.key for one in untag(repository, keys, piece.tags, sure) if one.result is TagResult.FAILED}
    there = present_keys(repository.store, keys)
    back = [one for one in stones if prefix + one.address in there - unsure]
    went = [one.address for one in stones if prefix + one.address not in there]
    with repository.records.write() as tx:
        locks.check(tx, piece.lock)
        tombstones.lift(tx, uid, piece.run, [one.address for one in back], State.RESTORED, at=piece.at)
        marks.remark(tx, uid, piece.run, went, State.REMOVED, only=[State.RESTORING])
    failed = len(stones) - len(back) - len(went)
    return Unmarked(len(back), sum(one.size for one in back), len(went) + late, failed)
