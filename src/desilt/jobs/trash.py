"""What runs moved to the trash: which they are, and all of it brought back."""

import secrets
from datetime import datetime, timedelta

from desilt.columns.files import as_json
from desilt.domain.run import is_run_id, started
from desilt.domain.times import IN_FLIGHT
from desilt.errors import BadRequest, Conflict, NotFound, span
from desilt.executors.executor import Executor
from desilt.jobs import registry
from desilt.jobs.gc.watermark import PENDING
from desilt.jobs.situation import check_clock
from desilt.logs import logger, under_way
from desilt.records import ledger, locks, watermarks
from desilt.records import removals as tombstones
from desilt.records.ledger import RunRow, RunState
from desilt.records.removals import State
from desilt.repository.handle import Access
from desilt.repository.protocol import Repository
from desilt.runs.folder import LAST, TRASH
from desilt.runs.steps import Action
from desilt.sweep.batches import BATCHES_TO_A_PIECE, ROWS_TO_A_REMOVAL
from desilt.sweep.restore import Restored, Wanted, restore

GC = "gc"  # the job that looks where nothing new appears only if it is told to
log = logger(__name__)

DELETED = "deleted what it removed; only runs with --to trash can be brought back"


def bring_back(repository: Repository, executor: Executor, run_id: str, *, prefix: str = "") -> Restored:
    """Everything that the trash still holds of a run, below ``prefix`` (of addresses), put where it was."""
    check_clock(repository)
    row, began = swept_run(repository, run_id), repository.clock()
    settled_down = row.ended_at is not None and began - row.ended_at >= IN_FLIGHT
    taken_over = row.ended_fence is not None and row.ended_fence != row.fence
    if taken_over and not settled_down:
        raise Conflict(
            f"run {row.id} was taken over from an owner that may still be at work; try again in {span(IN_FLIGHT)}"
        )
    if row.state is RunState.SWEEPING:
        raise Conflict(f"run {row.id} was cut off; finish it first, with `desilt sweep`")
    with repository.records.read() as tx:
        left = tombstones.batches_in(tx, repository.uid, row.id, State.CONDEMNED, State.FAILED)
    if row.action != Action.TRASH and (row.action == Action.MARK or not (left and settled_down)):
        raise Conflict(f"run {row.id} {registry.traits(row.job, repository).no_way_back or DELETED}")
    with under_way(row.id), locks.held(repository.records, repository.uid, run=row.id) as lock:
        with repository.gate.restoring(lock, row.id) as tx:
            numbers = tombstones.batches_in(tx, repository.uid, row.id, *State)
            at = max(began, tombstones.last_restored(tx, repository.uid, row.id) + timedelta(microseconds=1))
            mark = watermarks.find(tx, repository.uid, GC)
            watermarks.forget(tx, repository.uid, GC)  # if this is cut off, the next run looks everywhere
        folder = f"{repository.prefix}_desilt/restored/{row.id}-{secrets.token_hex(4)}/"
        wanted = [
            Wanted(
                Access(repository),
                lock,
                row.id,
                tuple(numbers[first : first + BATCHES_TO_A_PIECE]),
                prefix,
                at,
                mark[1].get("settled", {}) if mark else {},
                f"{folder}{first:08d}.parquet",
                failed_too=settled_down or repository.store.moves_cheaply,
            )
            for first in range(0, len(numbers), BATCHES_TO_A_PIECE)
        ]
        executor.watch.begins("restore")
        executor.watch.expects(row.objects)
        back = sum(executor(restore, wanted, rows=row.objects * ROWS_TO_A_REMOVAL, weigh=restored), Restored())
        with repository.gate.restoring(lock, row.id):
            pass  # again: a copy of the database from in between is not up to date
        log.info("%s restored, %s missing, %s failed", back.restored, back.missing, back.failed)
        if mark is not None and mark[1]:
            pending = [*mark[1][PENDING], *map(as_json, back.files)]
            with repository.records.write() as tx:
                locks.check(tx, lock)
                # under another name: a plan made before this must not put the old one back
                name = f"{mark[0].partition('+')[0]}+{secrets.token_hex(4)}"
                watermarks.write(tx, repository.uid, GC, name, {**mark[1], PENDING: pending})
    return back


def restored(back: Restored) -> int:
    return back.restored


def in_trash(repository: Repository) -> list[tuple[str, datetime]]:
    """Runs that are over and have something in the trash, newest first, and since when."""
    found = []
    with repository.records.read() as tx:
        for folder in repository.store.folders(repository.prefix + TRASH):
            run_id = folder.rstrip("/").rpartition("/")[2]
            row = ledger.find(tx, repository.uid, run_id) if is_run_id(run_id) else None
            if row is not None and row.state is not RunState.SWEEPING:
                found.append((run_id, row.ended_at or started(run_id)))
    return found


def swept_run(repository: Repository, wanted: str) -> RunRow:
    """The run in the ledger whose id is ``wanted``, begins so, or is the last one."""
    if not wanted:
        raise BadRequest("the id of a run is empty; write it, or the beginning of it, or `last`")
    with repository.records.read() as tx:
        rows = ledger.every(tx, repository.uid)
    found = rows[:1] if wanted == LAST else [row for row in rows if row.id.startswith(wanted)]
    if not found:
        raise NotFound("swept run", wanted, "see `desilt runs`")
    if len(found) > 1:
        raise BadRequest(f"{len(found)} runs begin with {wanted!r}; write more of the id, see `desilt runs`")
    return found[0]
