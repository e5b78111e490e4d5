"""Hard delete in a database that was restored from a copy: what its workers removed since, and nothing it may condemn.

What the copy calls fresh may have been committed since, and what it has condemned may have
been restored. So all of that is left to the collector. What workers claimed since is on
record in the folders of their runs; the store is asked whether it is gone.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from desilt.domain.record import Record
from desilt.domain.run import Run, started
from desilt.domain.times import IN_FLIGHT
from desilt.errors import Conflict, span
from desilt.lake import discards, fresh
from desilt.lake.change import read
from desilt.lake.events import DiscardsClaimed
from desilt.lake.fsck.tables import MOST_AT_ONCE, at_once
from desilt.lake.repository import LakeRepository
from desilt.objects import store_clock
from desilt.objects.store import Result
from desilt.records import ledger, locks
from desilt.records import removals as tombstones
from desilt.records.database import Transaction
from desilt.records.ledger import BatchRow, RunRow, RunState
from desilt.records.locks import Lock
from desilt.records.removals import State, Tombstone
from desilt.recovery.outcomes import is_there
from desilt.repository.hard_delete import JOB, LEASE
from desilt.runs import folder as folders
from desilt.runs.folder import Folder
from desilt.runs.steps import Action
from desilt.sweep.outcome import read_outcome

CLAIMED = re.compile(r"(\d{8})\.parquet")
OUTCOME = re.compile(r"(\d{8})-[0-9a-f]{8}\.parquet")
KNOWN = (State.REMOVED, State.GONE)


@dataclass(frozen=True, slots=True)
class ClaimFile:
    """What a worker was about to remove, and what it wrote down of that; "" where it did not come to it."""

    run: str
    number: int
    key: str
    outcome: str


def check_still(repository: LakeRepository, records: Sequence[Record]) -> None:
    """Refuse to go on while a worker may be about to remove what it claimed from the database that was lost.

    ``records`` are of moves that the database lacks; a claim among them may have left no file yet.
    """
    now, files = store_clock.store_time(repository.store), list(_claims(repository))
    over = {(one.run, one.number) for one in files if one.outcome}
    began = {(one.run, one.number): repository.store.head(one.key).modified_at for one in files if not one.outcome}
    for record in records:
        for change in map(read, record.changes):
            if isinstance(change, DiscardsClaimed):
                began.setdefault((change.run, change.number), record.at)
    for (run, number), at in began.items():
        left = LEASE + IN_FLIGHT - (now - at)
        if (run, number) not in over and left > timedelta(0):
            raise Conflict(
                f"a worker of hard delete, run {run}, was at work {span(now - at)} ago, with the database that "
                f"was lost; make sure that it is not any more, and try again in {span(left)}"
            )


def remember(repository: LakeRepository, lock: Lock, rows: Mapping[str, RunRow]) -> int:
    """Write what workers removed into the ledger; how many objects that are. Done twice, it is done once."""
    count = 0
    for claim in _claims(repository):
        with repository.database.read() as tx:
            if ledger.batch(tx, repository.uid, claim.run, claim.number) is not None:
                continue
        count += _remember(repository, lock, claim, rows.get(claim.run) or _row(claim.run))
    return count


def release(tx: Transaction, repository: str, *, at: datetime) -> None:
    """Nothing is fresh, and nothing waits to be removed, in a database that is about to be recovered."""
    fresh.forget_all(tx, repository)
    discards.forget_all(tx, repository, at=at)


def _claims(repository: LakeRepository) -> Iterator[ClaimFile]:
    for _, run_id in folders.runs_of(repository.store, repository.prefix, job=JOB):
        folder = Folder(repository.store, repository.prefix, Run(run_id, JOB, started(run_id)))
        written = {match[1]: key for key, match in _files(repository, folder.outcome, OUTCOME)}
        for key, match in _files(repository, folder.claimed, CLAIMED):
            yield ClaimFile(run_id, int(match[1]), key, written.get(match[1], ""))


def _files(repository: LakeRepository, folder: str, name: re.Pattern[str]) -> Iterator[tuple[str, re.Match[str]]]:
    for listed in repository.store.list(folder):
        for key in listed["key"].to_pylist():
            if match := name.fullmatch(key.removeprefix(folder)):
                yield key, match


def _remember(repository: LakeRepository, lock: Lock, claim: ClaimFile, row: RunRow) -> int:
    claimed = read_outcome(repository.store, claim.key).to_pylist()
    looked = dict(
        at_once(
            lambda one: is_there(repository, repository.prefix + one), [r["address"] for r in claimed], MOST_AT_ONCE
        )
    )
    now = repository.clock()
    gone = [
        Tombstone(
            one["address"], row.id, one["detail"], one["modified_at"], one["size_bytes"], claim.number, State.REMOVED
        )
        for one in claimed
        if not looked[one["address"]]
    ]
    with repository.database.write() as tx:
        locks.check(tx, lock)
        ledger.begin(tx, repository.uid, row)
        known = tombstones.recorded(tx, repository.uid, [one.address for one in gone])
        new = [one for one in gone if one.address not in known or known[one.address].state not in KNOWN]
        tombstones.condemn(tx, repository.uid, new)
        discards.forget(tx, repository.uid, [one.address for one in new])
        if claim.outcome:
            ledger.write_ahead(tx, repository.uid, row.id, _counted(repository, claim))
            ledger.record(tx, repository.uid, row.id, claim.number, at=now)
        ledger.end(tx, repository.uid, row.id, RunState.SWEPT, at=now, fence=0)
    return len(new)


def _counted(repository: LakeRepository, claim: ClaimFile) -> BatchRow:
    rows = read_outcome(repository.store, claim.outcome).to_pylist()
    results = [one["result"] for one in rows]
    size = sum(one["size_bytes"] for one in rows if one["result"] == Result.REMOVED)
    removed, gone, failed = (results.count(one.value) for one in (Result.REMOVED, Result.GONE, Result.FAILED))
    file = claim.outcome.rpartition("/")[2]
    return BatchRow(claim.number, file, len(rows), removed, gone, failed, removed_bytes=size)


def _row(run_id: str) -> RunRow:
    return RunRow(run_id, JOB, "", Action.DELETE, started(run_id), None, RunState.SWEPT, 0, 0)
