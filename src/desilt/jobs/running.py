"""The sentence that every job shares: open a run, mark, write the plan and its report."""

import os
from collections.abc import Iterator, Mapping
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq

from desilt.clock import ManualClock
from desilt.domain.run import Run, new_run
from desilt.domain.times import check_date
from desilt.errors import BadRequest
from desilt.jobs import uncommitted
from desilt.jobs.uncommitted import Marked
from desilt.lake import timekeeping
from desilt.lake.repository import Repository
from desilt.objects.file import ObjectFile
from desilt.runs import html
from desilt.runs.html import Removed
from desilt.runs.report import Amount, Report, of_run
from desilt.sources.lake import LakeSource
from desilt.sources.spread import Spread

BIGGEST = 10


def plan(repository: Repository, spread: Spread, *, now: datetime | None = None) -> Report:
    """Mark what may go, remove nothing; the plan and its report are in the run's folder."""
    run = open_run(repository, uncommitted.JOB, now=now)
    marked = uncommitted.mark(run, LakeSource(repository, spread), spread)
    report = reported(repository, run, marked)
    folder = repository.prefix + run.folder
    page = html.render(report, removals(repository, run, marked.branches))
    repository.store.put(f"{folder}report.html", [page.encode()])
    repository.store.put(f"{folder}report.json", [report.to_json().encode()])
    return report


def removals(repository: Repository, run: Run, branches: Mapping[str, str]) -> Iterator[Removed]:
    """What the plan of ``run`` removes, as it is read."""
    for batch in repository.store.list(f"{repository.prefix}{run.folder}plan/"):
        for key in batch["key"].to_pylist():
            if not key.endswith(".parquet"):
                continue  # what a killed task left behind
            for rows in pq.ParquetFile(pa.PythonFile(ObjectFile(repository.store, key), mode="r")).iter_batches():
                for row in rows.to_pylist():
                    where = row["address"].split("/")
                    branch = branch_name(branches, where[1] if len(where) > 2 else "")
                    yield Removed(
                        row["address"], row["size_bytes"], row["modified_at"], branch, row["reason"], row["detail"]
                    )


def branch_name(branches: Mapping[str, str], uid: str) -> str:
    return branches.get(uid, f"deleted branch {uid}")


def open_run(repository: Repository, job: str, *, now: datetime | None) -> Run:
    """A run at ``now``, which may look back freely, and ahead only where the clock is a manual one."""
    clock = repository.clock()
    if now is not None:
        check_date(now)
    if not isinstance(repository.clock, ManualClock):
        timekeeping.check(clock, timekeeping.store_time(repository.store))
        if now is not None and now > clock:
            raise BadRequest(f"--now {now.isoformat()} is ahead of this clock, {clock.isoformat()}; look back only")
    return new_run(job, now=now or clock, started_at=clock, entropy=os.urandom(4))


def reported(repository: Repository, run: Run, marked: Marked) -> Report:
    """The plan in figures."""
    remove: dict[str, dict[str, Amount]] = {}
    keep: dict[str, Amount] = {}
    for (branch, reason), objects in sorted(marked.answer.objects.items()):
        amount = Amount(objects, marked.answer.bytes[branch, reason])
        if branch:
            remove.setdefault(branch_name(marked.branches, branch), {})[reason] = amount
        else:
            keep[reason] = amount
    biggest = marked.answer.prefix_bytes.most_common(BIGGEST)
    prefixes = {prefix: Amount(marked.answer.prefix_objects[prefix], size) for prefix, size in biggest}
    return Report(
        **of_run(run),
        repository=repository.name,
        cutoff=marked.before.isoformat(),
        remove=remove,
        keep=keep,
        prefixes=prefixes,
        inputs=marked.inputs,
        seconds=marked.seconds,
    )
