"""The ledger, kept short: tombstones that nothing points to any more move from the database to the archive.

Nothing is forgotten: whoever asks for such an address is told by the archive.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from desilt.columns.buckets import HASH, Bucket, present
from desilt.columns.files import Files, HeldFile, put_addresses
from desilt.columns.kernel import DamagedFiles, Judge, judge_buckets
from desilt.domain.run import VACUUMS, Run, new_run
from desilt.errors import NotFound, NotReadBack
from desilt.executors.executor import Executor
from desilt.jobs.situation import check_clock
from desilt.logs import logger, under_way
from desilt.objects.file import ObjectFile
from desilt.records import locks, outlived
from desilt.records import removals as tombstones
from desilt.records.locks import Lock
from desilt.records.removals import State
from desilt.repository.protocol import Repository
from desilt.repository.snapshot import Revision
from desilt.runs import archive
from desilt.runs import folder as folders
from desilt.runs.folder import TRASH

OLDER_THAN = timedelta(days=90)
PAGE = 10_000
OVER = (State.REMOVED, State.GONE)
log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """What left the database."""

    tombstones: int = 0
    used: int = 0  # old enough, and still pointed to by a commit, a staging area or the trash
    files: tuple[str, ...] = ()  # of the archive


@dataclass(frozen=True, slots=True)
class UnusedJudge(Judge[tuple[str, ...]]):
    """Of some addresses, those that nothing points to; written down, part by part."""

    asked: tuple[HeldFile, ...]
    used: tuple[HeldFile, ...]
    folder: str

    def inputs(self) -> Iterator[Sequence[HeldFile]]:
        yield self.asked
        yield self.used

    def judge(self, files: Files, buckets: Sequence[Bucket]) -> tuple[str, ...]:
        found = [pa.array([], pa.string())]
        for bucket in buckets:
            used = np.unique(files.hashes(self.used, bucket))
            for file in self.asked:
                rows = files.rows(file, bucket, [HASH, "address"])
                free = ~present(rows[HASH].to_numpy(), used)
                found.append(rows["address"].combine_chunks().filter(pa.array(free)))
        addresses = pa.concat_arrays(found)
        if not len(addresses):
            return ()
        key = f"{self.folder}part-{buckets[0].number:05d}.parquet"
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"address": addresses}), sink)
        files.store.put(key, [sink.getvalue().to_pybytes()])
        return (key,)


def vacuum(repository: Repository, executor: Executor, *, older_than: timedelta = OLDER_THAN) -> Vacuumed:
    """Move to the archive what was condemned ``older_than`` ago, is gone, and that nothing points to."""
    check_clock(repository)
    began = repository.clock()
    last = folders.newest(repository.store, repository.prefix)
    own = new_run(VACUUMS, now=began, started_at=began, entropy=os.urandom(4), last=last)
    with under_way(own.id), locks.held(repository.records, repository.uid, run=own.id) as lock:
        repository.gate.settle_moves()
        repository.gate.check()
        with repository.records.read() as tx:
            old = outlived.over(tx, repository.uid, before=began - older_than)
        tables = repository.layout.tables
        asked = [address for address in old if not address.startswith(tables)]  # those may come back, by their content
        if not asked:
            return Vacuumed()
        parts, seen = _unused(repository, executor, own, asked)
        found = Vacuumed()
        for key in parts:
            found = _archived(repository, lock, key, seen, found)
        log.info("%s tombstones moved to the archive", found.tombstones)
        return Vacuumed(found.tombstones, len(asked) - found.tombstones, found.files)


def _unused(repository: Repository, executor: Executor, own: Run, asked: list[str]) -> tuple[tuple[str, ...], Revision]:
    """Files of those of ``asked`` that nothing points to, and when that was so."""
    source, folder = repository.source(executor), f"{repository.prefix}{own.folder}"
    executor.watch.begins("staged")
    trash = put_addresses(repository.store, f"{folder}trash.parquet", _in_trash(repository))
    staged = source.staged(own)  # before commits: an entry only ever moves from the one to the other
    executor.watch.begins("commits")
    seen = source.snapshot(repository.clock())
    ranges = source.lists(seen.in_time).ranges
    entries = source.entries([ranges[name] for name in sorted(ranges)])
    wanted = put_addresses(repository.store, f"{folder}asked.parquet", asked)
    executor.watch.begins("verdicts")
    committed = [one.held for one in entries]
    judge = UnusedJudge((wanted,), (trash, *staged.files, *committed), f"{folder}unused/")
    answer = judge_buckets(executor, repository.store.uri, judge)
    if isinstance(answer, DamagedFiles):
        source.distrust(key for key in answer.names if any(one.file.key == key for one in entries))
        raise NotReadBack(min(answer.names))
    return answer, seen.revision


def _archived(repository: Repository, lock: Lock, key: str, seen: Revision, found: Vacuumed) -> Vacuumed:
    """One part of it: written beside the objects first, then taken out of the database."""
    addresses = pq.read_table(pa.PythonFile(ObjectFile(repository.store, key), mode="r"))["address"].to_pylist()
    for at in range(0, len(addresses), PAGE):
        with repository.records.read() as tx:
            stones = tombstones.recorded(tx, repository.uid, addresses[at : at + PAGE]).values()
        over = [one for one in stones if one.state in OVER]
        if over:
            file = archive.write(repository.store, repository.prefix, over)
            repository.gate.forget(over, seen, lock)
            found = Vacuumed(found.tombstones + len(over), 0, (*found.files, file))
    return found


def _in_trash(repository: Repository) -> list[str]:
    """The addresses of what lies in the trash."""
    root = repository.prefix + TRASH
    try:
        keys = [key for batch in repository.store.list(root) for key in batch["key"].to_pylist()]
    except NotFound:
        return []
    return [key.removeprefix(root).partition("/")[2] for key in keys]
