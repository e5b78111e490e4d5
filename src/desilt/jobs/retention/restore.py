"""What was marked, brought back: as long as the store has not removed it."""

import os
from collections.abc import Iterable
from datetime import timedelta

import pyarrow as pa

from desilt.columns.buckets import HASH
from desilt.columns.files import HeldFile, put
from desilt.columns.hashing import address_hash
from desilt.domain.run import RESTORES, Run, new_run
from desilt.domain.times import IN_FLIGHT
from desilt.errors import BadRequest, Conflict, span
from desilt.executors.executor import Executor
from desilt.jobs.retention.chosen import below
from desilt.jobs.retention.document import JOB
from desilt.jobs.situation import check_clock
from desilt.jobs.trash import swept_run
from desilt.logs import logger, under_way
from desilt.records import ledger, locks
from desilt.records import removals as tombstones
from desilt.records.ledger import RunState
from desilt.records.locks import Lock
from desilt.repository.handle import Access
from desilt.repository.protocol import Repository
from desilt.runs import folder as folders
from desilt.runs.steps import Action
from desilt.sweep import batch_tags
from desilt.sweep.follow import known_tags
from desilt.sweep.marked import batches_of
from desilt.sweep.unmark import COMES_BACK, TOO_LATE, Unmarked, WantedPiece, coming, unmark

ROWS_TO_A_TAG = 20
log = logger(__name__)


def restore(
    repository: Repository,
    executor: Executor,
    *,
    run: str | None = None,
    prefix: str | None = None,
    addresses: tuple[str, ...] = (),
) -> Unmarked:
    """Lift the marks of a run, of what lies below a prefix (branch and path, as in a rule), or of some addresses."""
    if run is None and prefix is None and not addresses:
        raise BadRequest("say what is to come back: --run, --prefix or --address")
    check_clock(repository)
    of_run = None if run is None else _marking(repository, run)
    began = repository.clock()
    last = folders.newest(repository.store, repository.prefix)
    own = new_run(RESTORES, now=began, started_at=began, entropy=os.urandom(4), last=last)
    with under_way(own.id), locks.held(repository.records, repository.uid, run=own.id) as lock:
        repository.gate.settle_moves()
        repository.gate.check()
        _check_still(repository)
        cancelled = batch_tags.cancel(repository) if repository.store.tagging is not None else 0
        chosen = _chosen(repository, executor, own, prefix, addresses)
        found = [
            (name, numbers)
            for name, numbers in batches_of(repository, *COMES_BACK, *TOO_LATE)
            if of_run is None or name == of_run
        ]
        with repository.records.read() as tx:
            times = [tombstones.last_restored(tx, repository.uid, name) for name, _ in found]
        at = max([began, *(time + timedelta(microseconds=1) for time in times)])
        tags = known_tags(repository)
        pieces = [WantedPiece(Access(repository), lock, name, numbers, chosen, tags, at) for name, numbers in found]
        executor.watch.begins("restore")
        runs = {piece.run for piece, count in zip(pieces, executor(coming, pieces), strict=True) if count}
        _known(repository, lock, runs)
        rows = sum(len(piece.numbers) for piece in pieces) * repository.store.delete_batch
        done = sum(executor(unmark, pieces, rows=rows * ROWS_TO_A_TAG, weigh=unmarked), Unmarked())
        _known(repository, lock, runs)  # again: a copy of the database from in between is not up to date
        log.info("%s restored, %s gone, %s failed", done.restored, done.gone, done.failed)
        if cancelled:
            log.warning("what other objects the cancelled job was to tag, the next run tags")
    return done


def _known(repository: Repository, lock: Lock, runs: Iterable[str]) -> None:
    """From here on it is known that what some runs marked may be there again."""
    for run in sorted(runs):
        with repository.gate.restoring(lock, run):
            pass


def unmarked(done: Unmarked) -> int:
    return done.restored + done.gone + done.failed


def _marking(repository: Repository, wanted: str) -> str:
    row = swept_run(repository, wanted)
    if row.action != Action.MARK:
        raise BadRequest(
            f"run {row.id} is one of {row.job!r}, and marked nothing; see `desilt restore` for what it removed"
        )
    return row.id


def _check_still(repository: Repository) -> None:
    """Refuse to go on while somebody may still be at work on what was marked."""
    now = repository.clock()
    with repository.records.read() as tx:
        rows = ledger.every(tx, repository.uid, job=JOB)
    for row in rows:
        if row.state is RunState.SWEEPING:
            raise Conflict(
                f"run {row.id} was cut off; finish it with `desilt sweep`, or give it up with `desilt runs give-up`"
            )
        lately = row.ended_at is not None and now - row.ended_at < IN_FLIGHT
        taken_over = row.ended_fence is not None and row.ended_fence != row.fence
        if lately and (taken_over or repository.store.tagging is not None):
            assert row.ended_at is not None
            raise Conflict(
                f"run {row.id} ended {span(now - row.ended_at)} ago, and a tag that it sent may still arrive; "
                f"try again in {span(IN_FLIGHT - (now - row.ended_at))}"
            )


def _chosen(
    repository: Repository, executor: Executor, own: Run, prefix: str | None, addresses: tuple[str, ...]
) -> tuple[HeldFile, ...] | None:
    """The objects that are meant; None: whatever was marked."""
    if prefix is None and not addresses:
        return None
    found = () if prefix is None else below(repository, executor, prefix, own)
    if addresses:
        hashes = pa.array(sorted(set(address_hash(pa.array(addresses, pa.string())).tolist())), pa.uint64())
        key = f"{repository.prefix}{own.folder}chosen/addresses.parquet"
        found = (*found, put(repository.store, key, pa.table({HASH: hashes})))
    return found
