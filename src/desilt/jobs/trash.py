"""What runs moved to the trash: brought back, or removed for good after its days."""

import secrets
from datetime import datetime, timedelta

from desilt.domain.run import is_run_id, started
from desilt.errors import BadRequest, Conflict, NotFound, span
from desilt.jobs import collection, expiration, uncommitted
from desilt.jobs.place import opening
from desilt.jobs.running import check_clock
from desilt.jobs.situation import quiet_since
from desilt.lake import ledger, locks, moves, tombstones, traces, watermarks
from desilt.lake.events import BroughtBack
from desilt.lake.ledger import RunRow, RunState
from desilt.lake.repository import Repository
from desilt.lake.tombstones import State
from desilt.runs.folder import LAST, TRASH, trash_of
from desilt.runs.plan import Action
from desilt.sources.held import as_json
from desilt.sources.spread import Spread
from desilt.sweep.guard import check_jump
from desilt.sweep.purging import Heap, Purged, purge
from desilt.sweep.restoring import Back, Wanted, restore

DAYS = timedelta(days=7)
AFTER_TAKEOVER = timedelta(minutes=10)  # by then, a delete that an earlier owner had sent has arrived
BATCHES_TO_A_TASK = 20
DELETED = "deleted what it removed; only runs with --to trash can be brought back"
NO_WAY_BACK = {
    expiration.JOB: "removed no object: it edited history; to have a commit back, make a tag or a branch at its id "
    "(`desilt lake tag`, `desilt lake branch`), before `desilt collect` takes it",
    collection.JOB: "is a collection: what it removed cannot be brought back",
}


def bring_back(repository: Repository, spread: Spread, run_id: str, *, prefix: str = "") -> Back:
    """Everything that the trash still holds of a run, below ``prefix`` (of addresses), put where it was."""
    check_clock(repository)
    row, began = swept_run(repository, run_id), repository.clock()
    settled_down = row.ended_at is not None and began - row.ended_at >= AFTER_TAKEOVER
    taken_over = row.ended_fence is not None and row.ended_fence != row.fence
    if taken_over and not settled_down:
        raise Conflict(
            f"run {row.id} was taken over from an owner that may still be at work; try again in {span(AFTER_TAKEOVER)}"
        )
    if row.state is RunState.SWEEPING:
        raise Conflict(f"run {row.id} was cut off; finish it first, with `desilt sweep`")
    with repository.database.read() as tx:
        left = tombstones.batches_in(tx, repository.uid, row.id, State.CONDEMNED, State.FAILED)
    if row.action != Action.TRASH and not (left and settled_down):
        raise Conflict(f"run {row.id} {NO_WAY_BACK.get(row.job, DELETED)}")
    with locks.held(repository.database, repository.uid, run=row.id) as lock:
        with moves.moving(repository.core) as move:
            tx = move.tx
            locks.check(tx, lock)
            move.do(BroughtBack(row.id))
            numbers = tombstones.batches_in(tx, repository.uid, row.id, *State)
            at = max(began, tombstones.last_restored(tx, repository.uid, row.id) + timedelta(microseconds=1))
            mark = watermarks.find(tx, repository.uid, uncommitted.JOB)
            watermarks.forget(tx, repository.uid, uncommitted.JOB)  # if this is cut off, the next run looks everywhere
        folder = f"{repository.prefix}_desilt/restored/{row.id}-{secrets.token_hex(4)}/"
        wanted = [
            Wanted(
                opening(repository, spread),
                lock,
                row.id,
                tuple(numbers[first : first + BATCHES_TO_A_TASK]),
                prefix,
                at,
                mark[1].get("settled", {}) if mark else {},
                f"{folder}{first:08d}.parquet",
                failed_too=settled_down or repository.store.moves_cheaply,
            )
            for first in range(0, len(numbers), BATCHES_TO_A_TASK)
        ]
        spread.watch.begins("restore")
        back = sum(spread(restore, wanted, weigh=restored), Back())
        if mark is not None and mark[1]:
            pending = [*mark[1]["pending"], *map(as_json, back.files)]
            with repository.database.write() as tx:
                locks.check(tx, lock)
                # under another name: a plan made before this must not put the old one back
                name = f"{mark[0].partition('+')[0]}+{secrets.token_hex(4)}"
                watermarks.write(tx, repository.uid, uncommitted.JOB, name, {**mark[1], "pending": pending})
    return back


def restored(back: Back) -> int:
    return back.restored


def empty(
    repository: Repository,
    spread: Spread,
    *,
    older_than: timedelta = DAYS,
    run_id: str | None = None,
    clock_is_right: bool = False,
) -> dict[str, Purged]:
    """Remove for good what has been in the trash for ``older_than``, of all runs or of one; by run."""
    now = repository.clock()
    if not clock_is_right:
        check_jump(now, quiet_since(repository))
    check_clock(repository)
    moves.check(repository.core)
    wanted = None if run_id is None else swept_run(repository, run_id).id
    with locks.held(repository.database, repository.uid, run=f"purge {now:%Y-%m-%d %H:%M}") as lock:
        with repository.database.write() as tx:
            if clock_is_right:
                traces.agree(tx, repository.uid, now)
            traces.passed(tx, repository.uid, now)
        heaps = [
            Heap(opening(repository, spread), lock, run, branch)
            for run, at in in_trash(repository)
            if now - at >= older_than and wanted in (None, run)
            for branch in repository.store.folders(f"{trash_of(repository.prefix, run)}branches/")
        ]
        spread.watch.begins("purge")
        found: dict[str, Purged] = {}
        for heap, gone in zip(heaps, spread(purge, heaps, weigh=purged), strict=True):
            found[heap.run] = found.get(heap.run, Purged()) + gone
    return found


def purged(gone: Purged) -> int:
    return gone.objects


def in_trash(repository: Repository) -> list[tuple[str, datetime]]:
    """Runs that have something in the trash, newest first, and since when."""
    found = []
    with repository.database.read() as tx:
        for folder in repository.store.folders(repository.prefix + TRASH):
            run_id = folder.rstrip("/").rpartition("/")[2]
            if not is_run_id(run_id):
                continue  # not ours
            row = ledger.find(tx, repository.uid, run_id)
            found.append((run_id, (row and row.ended_at) or started(run_id)))
    return found


def swept_run(repository: Repository, wanted: str) -> RunRow:
    """The run in the ledger whose id is ``wanted``, begins so, or is the last one."""
    if not wanted:
        raise BadRequest("the id of a run is empty; write it, or the beginning of it, or `last`")
    with repository.database.read() as tx:
        rows = ledger.every(tx, repository.uid)
    found = rows[:1] if wanted == LAST else [row for row in rows if row.id.startswith(wanted)]
    if not found:
        raise NotFound("swept run", wanted, "see `desilt runs`")
    if len(found) > 1:
        raise BadRequest(f"{len(found)} runs begin with {wanted!r}; write more of the id, see `desilt runs`")
    return found[0]
