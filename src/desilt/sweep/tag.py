"""Marked objects and their tags, on the executors: set, looked for, and taken off again."""

from collections.abc import Sequence
from dataclasses import dataclass

from desilt.errors import BadRequest
from desilt.inventory.present import present_keys
from desilt.logs import logger
from desilt.objects.tags import ObjectTag, Tagging, TagOutcome, TagResult
from desilt.records import locks, marks
from desilt.records.removals import State
from desilt.repository.protocol import Repository
from desilt.sweep.delete import Sure
from desilt.sweep.marked import MarkedPiece, batch, spared, to_follow

TO_TAG = (State.MARKED, State.TAG_FAILED)
BECOMES = {TagResult.TAGGED: State.TAGGED, TagResult.GONE: State.REMOVED, TagResult.FAILED: State.TAG_FAILED}
CARRIES = (State.TAGGED, *TO_TAG)  # the tag, or may: an answer of the store was lost, say
OFF = (TagResult.UNTAGGED, TagResult.BARE)
log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Tagged:
    """What came of tagging."""

    tagged: int = 0
    gone: int = 0
    failed: int = 0
    why: str = ""  # of a failure

    def __add__(self, other: "Tagged") -> "Tagged":
        return Tagged(
            self.tagged + other.tagged, self.gone + other.gone, self.failed + other.failed, self.why or other.why
        )


def asked(done: Tagged) -> int:
    return done.tagged + done.gone + done.failed


def tag(piece: MarkedPiece) -> Tagged:
    """On an executor: tag what is marked in these batches. Nobody sees these objects any more."""
    repository = piece.open()
    tagging, wanted = tagging_of(repository), ObjectTag.parse(piece.tags[0])
    done = Tagged()
    for number in piece.numbers:
        stones, sure = to_follow(repository, piece, number, *TO_TAG)
        keys = [repository.prefix + stone.address for stone in stones]
        outcomes = tagging.tag_many(keys, wanted, between=sure.check) if keys else []
        settle(repository, piece, outcomes)
        done += counted(outcomes)
    return done


def settle(repository: Repository, piece: MarkedPiece, outcomes: Sequence[TagOutcome]) -> None:
    """What came of it, in the ledger: if nobody else has the lock by now."""
    with repository.records.write() as tx:
        locks.check(tx, piece.lock)
        for result, state in BECOMES.items():
            some = [one.key.removeprefix(repository.prefix) for one in outcomes if one.result is result]
            marks.remark(tx, repository.uid, piece.run, some, state, only=TO_TAG)


def counted(outcomes: Sequence[TagOutcome]) -> Tagged:
    how_many = {result: sum(one.result is result for one in outcomes) for result in BECOMES}
    why = next((one.detail for one in outcomes if one.result is TagResult.FAILED), "")
    return Tagged(how_many[TagResult.TAGGED], how_many[TagResult.GONE], how_many[TagResult.FAILED], why)


def look_for_gone(piece: MarkedPiece) -> int:
    """On an executor: of what is tagged in these batches, how much the store has removed by now."""
    repository = piece.open()
    gone = 0
    for number in piece.numbers:
        stones, _ = batch(repository, piece, number, State.TAGGED)
        there = present_keys(repository.store, [repository.prefix + stone.address for stone in stones])
        went = [stone.address for stone in stones if repository.prefix + stone.address not in there]
        with repository.records.write() as tx:
            locks.check(tx, piece.lock)
            marks.remark(tx, repository.uid, piece.run, went, State.REMOVED, only=[State.TAGGED])
        gone += len(went)
    return gone


def untag_held(piece: MarkedPiece) -> int:
    """On an executor: of what is marked in these batches, how much people ordered to be kept, and is tagged no longer.

    It stays hidden, and the store leaves it alone. One may carry a tag that the ledger does not know.
    """
    repository = piece.open()
    count = 0
    for number in piece.numbers:
        stones, sure = batch(repository, piece, number, *CARRIES)
        held = sorted(spared(repository, piece, stones))
        outcomes = untag(repository, [repository.prefix + address for address in held], piece.tags, sure)
        off = [one.key.removeprefix(repository.prefix) for one in outcomes if one.result in OFF]
        with repository.records.write() as tx:
            locks.check(tx, piece.lock)
            marks.remark(tx, repository.uid, piece.run, off, State.MARKED, only=CARRIES)
        count += len(off)
    return count


def untag_restored(piece: MarkedPiece) -> int:
    """On an executor: of what was restored since ``piece.before``, how much carried a tag of ours again."""
    repository = piece.open()
    late = 0
    for number in piece.numbers:
        stones, sure = batch(repository, piece, number, State.RESTORED)
        lately = [stone for stone in stones if stone.restored_at is not None and stone.restored_at >= piece.before]
        keys = [repository.prefix + stone.address for stone in lately]
        for outcome in untag(repository, keys, piece.tags, sure):
            if outcome.result is TagResult.UNTAGGED:
                late += 1
                log.warning("%s was restored, and tagged since: the tag is off again", outcome.key)
            elif outcome.result is TagResult.FAILED:
                log.error("whether %s, which was restored, is tagged is not known: %s", outcome.key, outcome.detail)
    return late


def untag(repository: Repository, keys: Sequence[str], tags: Sequence[str], sure: Sure) -> list[TagOutcome]:
    """``keys`` without any of ``tags``; for each key the worst that was heard, else whether it had one."""
    tagging, found = tagging_of(repository), dict[str, TagOutcome]()
    for wanted in dict.fromkeys(ObjectTag.parse(one).key for one in tags):
        for one in tagging.untag_many(keys, ObjectTag(wanted, ""), between=sure.check) if keys else []:
            known = found.get(one.key)
            if known is None or _weight(one) > _weight(known):
                found[one.key] = one
    return [found[key] for key in keys]


def _weight(outcome: TagOutcome) -> int:
    return [TagResult.BARE, TagResult.UNTAGGED, TagResult.GONE, TagResult.FAILED].index(outcome.result)


def tagging_of(repository: Repository) -> Tagging:
    found = repository.store.tagging
    if found is None:
        raise BadRequest(f"{repository.store.uri} has no tags; run without --tag")
    return found
