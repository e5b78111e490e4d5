"""What people mean when they want something back: marked objects by prefix or address, as a set of hashes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from desilt.columns.buckets import HASH, Bucket, present
from desilt.columns.files import Files, HeldFile, put
from desilt.columns.kernel import DamagedFiles, Judge, judge_buckets
from desilt.columns.layout import Layout
from desilt.columns.rules import Terms
from desilt.domain.retention import Kind, Period, Retention, RetentionRule
from desilt.domain.run import Run
from desilt.errors import NotReadBack
from desilt.executors.executor import Executor
from desilt.jobs.retention.reach import reached
from desilt.jobs.rules.candidates import Contents, GroupedFile
from desilt.jobs.sets import Recorded
from desilt.repository.protocol import Repository


@dataclass(frozen=True, slots=True)
class BelowJudge(Judge[tuple[HeldFile, ...]]):
    """Of what is marked, the objects with an entry that ``terms`` are about."""

    layout: Layout
    entries: tuple[GroupedFile, ...]
    terms: Terms
    marked: tuple[HeldFile, ...]
    folder: str

    def inputs(self) -> Iterator[Sequence[HeldFile]]:
        yield [one.file for one in self.entries]
        yield self.marked

    def judge(self, files: Files, buckets: Sequence[Bucket]) -> tuple[HeldFile, ...]:
        found = [np.zeros(0, np.uint64)]
        for bucket in buckets:
            marked = files.hashes(self.marked, bucket)
            below = Contents(files, self.entries, bucket, self.terms, self.layout).candidates()
            found.append(marked[present(marked, below)])
        hashes = np.concatenate(found)
        if not len(hashes):
            return ()
        return (put(files.store, f"{self.folder}part-{buckets[0].number:05d}.parquet", pa.table({HASH: hashes})),)


def below(repository: Repository, executor: Executor, prefix: str, run: Run) -> tuple[HeldFile, ...]:
    """What is marked and has an entry below ``prefix``, a branch and a path as a rule has them."""
    source, recorded, now = repository.source(executor), Recorded(repository, run), repository.clock()
    whole = RetentionRule(1, True, prefix, {Kind.ALL: Period()})  # whatever its age
    staged = source.staged_entries(run)
    seen = source.snapshot(now)
    found = reached(source, seen, staged, Retention((whole,)), (), now + repository.grace)
    folder = f"{repository.prefix}{run.folder}chosen/"
    judge = BelowJudge(repository.layout, found.entries, found.terms, (recorded.marks(),), folder)
    answer = judge_buckets(executor, repository.store.uri, judge)
    if isinstance(answer, DamagedFiles):
        source.distrust(key for key in answer.names if any(one.file.key == key for one in found.entries))
        raise NotReadBack(min(answer.names))
    return answer
