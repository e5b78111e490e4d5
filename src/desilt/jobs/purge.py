"""The trash emptied: what has been in it for its days is removed for good, unless people ordered it to be kept."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np
import pyarrow as pa

from desilt.columns.buckets import HASH, Bucket, present, within
from desilt.columns.files import Files, HeldFile, among
from desilt.columns.hashing import Hashes, address_hash
from desilt.columns.kernel import DamagedFiles, Judge, judge_buckets
from desilt.columns.rules import starts
from desilt.errors import NotReadBack
from desilt.executors.executor import Executor
from desilt.jobs.lifecycle.replay import ground, reaching
from desilt.jobs.situation import check_clock
from desilt.jobs.trash import in_trash, swept_run
from desilt.logs import logger, under_way
from desilt.records import ledger, locks
from desilt.records import removals as tombstones
from desilt.records.holds import HoldKind
from desilt.records.removals import State
from desilt.repository.handle import Access
from desilt.repository.protocol import Repository
from desilt.repository.snapshot import Snapshot
from desilt.runs.folder import trash_of
from desilt.runs.report import Amount
from desilt.sweep.batches import ROWS_TO_A_REMOVAL
from desilt.sweep.guard import check_clock_moved
from desilt.sweep.limits import Limits
from desilt.sweep.purge import Heap, Purged, purge

DAYS = timedelta(days=7)
TRASHED = pa.schema([(HASH, pa.uint64()), ("run", pa.int64())])
"""One row per object in the trash, and the number of the run that moved it there."""
HELD, LISTED = 1, 2  # bits: a commit that people ordered to be kept has it; some commit has
log = logger(__name__)


def empty(
    repository: Repository,
    executor: Executor,
    *,
    older_than: timedelta = DAYS,
    run_id: str | None = None,
    clock_is_right: bool = False,
    max_deletes_per_second: int | None = None,
) -> dict[str, Purged]:
    """Remove for good what has been in the trash for ``older_than``, of all runs or of one; by run."""
    now = repository.clock()
    check(repository, clock_is_right=clock_is_right)
    per_second = Limits(max_deletes_per_second=max_deletes_per_second).max_deletes_per_second  # if it can be one
    wanted = None if run_id is None else swept_run(repository, run_id).id
    with locks.held(repository.records, repository.uid, run=f"purge {now:%Y-%m-%d %H:%M}") as lock:
        repository.gate.begin(lock, None, now=now, clock_is_right=clock_is_right)
        runs = [run for run, at in in_trash(repository) if now - at >= older_than and wanted in (None, run)]
        seen = repository.source(executor).snapshot(now)
        held = ordered(repository, executor, seen, runs) if runs else {}
        heaps = [
            Heap(Access(repository), lock, run, folder, seen.revision, per_second)
            for run in runs
            if run not in held
            for folder in _folders(repository, run)
        ]
        executor.watch.begins("purge")
        found = {run: Purged(held=count) for run, count in held.items()}
        moved = moved_to_trash(repository, {heap.run for heap in heaps})
        executor.watch.expects(moved)
        emptied = executor(purge, heaps, rows=moved * ROWS_TO_A_REMOVAL, weigh=purged)
        for heap, gone in zip(heaps, emptied, strict=True):
            found[heap.run] = found.get(heap.run, Purged()) + gone
        for run, gone in found.items():
            with under_way(run):
                log.info("%s removed from the trash for good, %s failed", gone.objects, gone.failed)
    return found


def due_to_go(
    repository: Repository, executor: Executor, older_than: timedelta, *, clock_is_right: bool = False
) -> tuple[Amount, int]:
    """How much :func:`empty` would remove now; and how many runs stay because people ordered something of theirs."""
    now, found = repository.clock(), Amount()
    check(repository, clock_is_right=clock_is_right)
    runs = [run for run, at in in_trash(repository) if now - at >= older_than]
    held = ordered(repository, executor, repository.source(executor).snapshot(now), runs) if runs else {}
    with repository.records.read() as tx:
        for run in runs:
            if run not in held:
                found += Amount(*tombstones.total_in(tx, repository.uid, State.TRASHED, run=run))
    return found, sum(held.values())


def check(repository: Repository, *, clock_is_right: bool) -> None:
    """Refuse to go on by a clock that cannot be right, or with records that know less than the store."""
    gate = repository.gate
    quiet = gate.quiet_since()  # before the store is asked for the time
    if not clock_is_right:
        check_clock_moved(repository.clock(), quiet, gate.last_trace())
    check_clock(repository)
    gate.check()


def _folders(repository: Repository, run: str) -> Sequence[str]:
    """Where a run's trash has something: by branch, or by kind where commits are files, and go as these do."""
    trash = trash_of(repository.prefix, run)
    return repository.store.folders(trash + (repository.layout.data if repository.assets is None else ""))


def purged(gone: Purged) -> int:
    return gone.objects


def moved_to_trash(repository: Repository, runs: Collection[str]) -> int:
    """How many objects ``runs`` were to move there, at most."""
    with repository.records.read() as tx:
        return sum(row.objects for row in ledger.every(tx, repository.uid) if row.id in runs)


def ordered(repository: Repository, executor: Executor, seen: Snapshot, runs: Sequence[str]) -> dict[str, int]:
    """Which of ``runs`` have something in the trash that people ordered to be kept since, and how much."""
    if not seen.holds:
        return {}
    source = repository.source(executor)
    kept = {hold.value for hold in seen.held(HoldKind.REF)}
    bits = {name: LISTED | (HELD if name in kept else 0) for name in seen.commits}
    reached = reaching(ground(source, seen), seen.commits, bits)
    judge = TrashJudge(
        trashed(repository, runs),
        tuple(
            (file, frozenset(owner for owner, place in enumerate(places) if place >= 0 and reached.sets[place] & HELD))
            for file, places in reached.files
        ),
        tuple(hold.value for hold in seen.held(HoldKind.PREFIX)),
        np.sort(address_hash(pa.array([hold.value for hold in seen.held(HoldKind.ADDRESS)], pa.string()))),
    )
    answer = judge_buckets(executor, repository.store.uri, judge)
    if isinstance(answer, DamagedFiles):
        source.distrust(answer.names)
        raise NotReadBack(min(answer.names))
    return {runs[number]: count for number, count in sorted(answer.items())}


def trashed(repository: Repository, runs: Sequence[str]) -> pa.Table:
    """What lies in the trash by the ledger, as TRASHED, by the place of its run among ``runs``."""
    found = [TRASHED.empty_table()]
    with repository.records.read() as tx:
        for number, run in enumerate(runs):
            stones = tombstones.of_run(tx, repository.uid, run)
            hashes = address_hash(
                pa.array([one.address for one in stones if one.state in tombstones.IN_TRASH], pa.string())
            )
            found.append(pa.table([hashes, np.full(len(hashes), number)], schema=TRASHED))
    return pa.concat_tables(found).combine_chunks()


@dataclass(frozen=True, slots=True)
class TrashJudge(Judge["Counter[int]"]):
    """How many objects in the trash people ordered to be kept, by the number of the run that moved them there."""

    trashed: pa.Table
    entries: tuple[tuple[HeldFile, frozenset[int]], ...]  # of commits, and which owners a held one has
    prefixes: tuple[str, ...]
    addresses: Hashes

    def inputs(self) -> Iterator[Sequence[HeldFile]]:
        yield [held for held, _ in self.entries]

    def within(self, buckets: Sequence[Bucket]) -> "TrashJudge":
        return replace(self, trashed=self.trashed.filter(pa.array(within(self.trashed[HASH].to_numpy(), buckets))))

    def judge(self, files: Files, buckets: Sequence[Bucket]) -> "Counter[int]":
        counts: Counter[int] = Counter()
        for bucket in buckets:
            mine = self.trashed.filter(pa.array(within(self.trashed[HASH].to_numpy(), [bucket])))
            hashes = mine[HASH].to_numpy()
            kept = [self.addresses, *(self._kept(files, one, bucket, np.sort(hashes)) for one in self.entries)]
            flags = present(hashes, np.unique(np.concatenate(kept)))
            counts.update(mine["run"].to_numpy()[flags].tolist())
        return counts

    def _kept(self, files: Files, one: tuple[HeldFile, frozenset[int]], bucket: Bucket, hashes: Hashes) -> Hashes:
        """Those of ``hashes`` that one file has below a held prefix, or in a held commit."""
        held, owners = one
        rows = files.rows(held, bucket, [HASH, "owner", "path"] if self.prefixes else [HASH, "owner"])
        found = present(rows[HASH].to_numpy(), hashes)
        named = among(rows["owner"].to_numpy(), owners)
        if self.prefixes:
            named = named | starts(rows["path"].combine_chunks(), self.prefixes)
        kept: Hashes = rows[HASH].to_numpy()[found & named]
        return kept
