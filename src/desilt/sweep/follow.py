"""What runs marked, followed up: tagged for the store to remove, or removed once it has waited.

All of it goes by the ledger, not by a plan: whatever is marked, by this run or by one that was
cut off, is taken up where it stands. Done twice, it is done once.
"""

from datetime import datetime, timedelta

from desilt.logs import logger
from desilt.objects.tags import EXPIRE_NOW
from desilt.records import locks, marks, policies
from desilt.records.removals import MARKS, State
from desilt.repository.handle import Access
from desilt.repository.protocol import Repository
from desilt.runs.steps import FollowMarks
from desilt.sweep import batch_tags, ripe, tag
from desilt.sweep.marked import MarkedPiece, batches_of
from desilt.sweep.sweep import Sweep

LOOK_AGAIN = timedelta(hours=48)  # for which a tag may come late to what was restored
TAGS = "retention-tags"  # where it is kept which tags were ever used: what comes back must carry none of them
ROWS_TO_A_TAG = 20
log = logger(__name__)


def look_again(sweep: Sweep) -> None:
    """What was restored lately, and a late tag came to: the store would remove what people see."""
    for step in sweep.plan.steps_of(FollowMarks):
        if step.tag:
            _look_again(sweep, step, known_tags(sweep.repository))


def follow(sweep: Sweep, step: FollowMarks) -> None:
    """All marks there are, one step further each."""
    with sweep.repository.records.write() as tx:
        locks.check(tx, sweep.lock)
        marks.adopt(tx, sweep.repository.uid)
    if any(True for _ in batches_of(sweep.repository, *MARKS)):
        sweep.repository.gate.following(sweep.lock, sweep.plan.run)
    if not step.tag:
        _remove(sweep, step)
        return
    tags = known_tags(sweep.repository, step.tag)
    batch_tags.finish(sweep.repository, sweep.lock)
    if step.spared:
        left = pieces(sweep, step, tags, *tag.CARRIES)
        held = sum(sweep.executor(tag.untag_held, left, rows=_rows(sweep, left), weigh=int))
        log.info("%s marked objects are ordered to be kept, and carry no tag", held)
    _look_for_gone(sweep, step, tags)
    if step.batch is not None:
        batch_tags.run(sweep, step, step.batch, pieces(sweep, step, tags, State.MARKED, State.TAG_FAILED))
    _tag(sweep, step, tags)


def known_tags(repository: Repository, tag: str = "") -> tuple[str, ...]:
    """``tag``, and all that were ever set here; it is written down before it is set for the first time."""
    with repository.records.read() as tx:
        found = policies.find(tx, repository.uid, TAGS)
    known = list(found.document["tags"]) if found else []
    if tag and tag not in known:
        repository.orders.set_policy(TAGS, {"tags": [*known, tag]}, ())
    return tuple(dict.fromkeys([*([tag] if tag else []), *known, str(EXPIRE_NOW)]))


def pieces(
    sweep: Sweep, step: FollowMarks, tags: tuple[str, ...], *states: State, before: datetime | None = None
) -> list[MarkedPiece]:
    """The batches of all runs that have something in one of ``states``, for tasks."""
    now = sweep.repository.clock()
    found = batches_of(sweep.repository, *states)
    return [
        MarkedPiece(
            *(Access(sweep.repository), sweep.lock, run, numbers, tags, before or now, step.spared, step.since),
            per_second=sweep.per_second,
        )
        for run, numbers in found
    ]


def _look_again(sweep: Sweep, step: FollowMarks, tags: tuple[str, ...]) -> None:
    since = sweep.repository.clock() - LOOK_AGAIN
    left = pieces(sweep, step, tags, State.RESTORED, before=since)
    sweep.executor.watch.begins("restored")
    late = sum(sweep.executor(tag.untag_restored, left, rows=_rows(sweep, left), weigh=int))
    if late:
        log.warning("%s restored objects carried the tag that lets the store remove them: it is off again", late)


def _look_for_gone(sweep: Sweep, step: FollowMarks, tags: tuple[str, ...]) -> None:
    """What was tagged, and the store has removed by now."""
    left = pieces(sweep, step, tags, State.TAGGED)
    sweep.executor.watch.begins("gone")
    gone = sum(sweep.executor(tag.look_for_gone, left, rows=_rows(sweep, left), weigh=int))
    log.info("%s tagged objects were removed by the store", gone)


def _tag(sweep: Sweep, step: FollowMarks, tags: tuple[str, ...]) -> None:
    left = pieces(sweep, step, tags, State.MARKED, State.TAG_FAILED)
    sweep.executor.watch.begins("tag")
    rows = _rows(sweep, left)
    sweep.executor.watch.expects(rows)
    done = sum(sweep.executor(tag.tag, left, rows=rows * ROWS_TO_A_TAG, weigh=tag.asked), tag.Tagged())
    log.info("%s tagged, %s gone, %s failed", done.tagged, done.gone, done.failed)
    if done.failed:
        log.warning("%s objects could not be tagged (%s); the next run tries again", done.failed, done.why)


def _remove(sweep: Sweep, step: FollowMarks) -> None:
    left = pieces(sweep, step, (), State.MARKED, State.REMOVING, before=step.ripe_before)
    sweep.executor.watch.begins("remove")
    rows = _rows(sweep, left)
    sweep.executor.watch.expects(rows)
    done = sum(sweep.executor(ripe.remove, left, rows=rows * ROWS_TO_A_TAG, weigh=ripe.asked), ripe.Cleared())
    log.info("%s removed, %s failed, %s spared, %s wait", done.removed, done.failed, done.spared, done.waiting)


def _rows(sweep: Sweep, left: list[MarkedPiece]) -> int:
    """How many objects there are in ``left``, at most."""
    return sum(len(piece.numbers) for piece in left) * sweep.plan.batch
