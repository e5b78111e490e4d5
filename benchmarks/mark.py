"""Mark: which of so many objects does nobody hold? On Spark, against DuckDB on the same rows.

    python benchmarks/mark.py [--objects 1000000,5000000] [--rounds 15]

Hundreds of branches, thousands of commits, a quarter of the objects staged, one
in twenty garbage (:mod:`large_lake`). The listing and what is staged are handed in
as files. A mark reads the commits, finds their ranges' cache files, compares, and
writes the rows that go as Parquet; DuckDB does the set difference from Parquet to
Parquet and writes the same rows. Rounds alternate; each figure is the best of its
side's, with the ratio of the medians beside it. Spark's start is not counted.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import TypeVar

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from desilt.columns.buckets import hashed
from desilt.columns.files import HeldFile, put
from desilt.columns.kernel import DamagedFiles, judge_buckets
from desilt.columns.schemas import HELD, INVENTORY
from desilt.domain.reason import Reason
from desilt.domain.run import Run
from desilt.executors import session as spark
from desilt.executors.on_spark import OnSpark
from desilt.inventory.listing import ROWS_TO_A_FILE, inventory_rows
from desilt.jobs.counts import Counts
from desilt.jobs.gc.job import Options, job, judged_objects, read_committed
from desilt.jobs.gc.kernel import GarbageJudge
from desilt.jobs.job import Work
from desilt.jobs.sets import Recorded
from desilt.lake import LakeRepository
from large_lake import GARBAGE, OLD, STAGED, Kinds, make
from machine import keep

NOW = datetime(2026, 6, 1, tzinfo=UTC)
BEFORE = NOW - timedelta(days=1)
RUN = Run("00000000000000-00000000", "gc", NOW)
Result = TypeVar("Result")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", default="1000000,5000000")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    executor = OnSpark(spark.session("benchmark"))
    executor(len, ["warm", "up"])
    rows = []
    print(f"{'objects':>10} {'garbage':>9} {'mark':>7} {'DuckDB':>7} {'ratio':>6} {'of medians':>10} {'empty job':>10}")
    for objects in options.objects.split(","):
        row = measure(int(objects), executor, options.rounds)
        rows.append(row)
        print(
            f"{row['objects']:>10,} {row['garbage']:>9,} {row['mark_seconds']:>5.2f} s {row['duckdb_seconds']:>5.2f} s"
            f" {row['times_duckdb']:>5.2f}× {row['times_duckdb_by_median']:>9.2f}×"
            f" {row['empty_spark_job_seconds']:>8.2f} s"
        )
    keep("mark", {"rows": rows})


def measure(objects: int, executor: OnSpark, rounds: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as directory:
        repo, addresses, kinds = make(Path(directory), objects)
        work = Work(RUN, repo, repo.source(executor), executor, job.ask())
        inventory = listing(repo, addresses)
        staged = staging(repo, addresses.filter(pa.array(kinds == STAGED)))
        first, _ = timed(lambda: read_committed(work, Recorded(repo, RUN)))
        ask_duckdb = alternative(Path(directory), addresses, kinds)
        garbage = int((kinds == GARBAGE).sum())
        ours, theirs, empty = [], [], []
        for _ in range(rounds):
            seconds, answer = timed(lambda: mark(work, inventory, staged))
            assert answer.objects.total() == objects
            assert sum(n for (_, reason), n in answer.objects.items() if reason == Reason.UNREFERENCED.value) == garbage
            assert sum(file.rows for file in answer.files) == garbage
            ours.append(seconds)
            seconds, rows = timed(ask_duckdb)
            assert rows == garbage
            theirs.append(seconds)
            empty.append(timed(lambda: executor(len, ["nothing", "to do"]))[0])
        return {
            "objects": objects,
            "garbage": garbage,
            "decode_ranges_once_seconds": round(first, 2),
            "mark_seconds": round(min(ours), 2),
            "duckdb_seconds": round(min(theirs), 2),
            "times_duckdb": round(min(ours) / min(theirs), 2),
            "times_duckdb_by_median": round(median(ours) / median(theirs), 2),  # far from the other: a busy machine
            "empty_spark_job_seconds": round(min(empty), 2),
            "rounds": rounds,
        }


def mark(work: Work[Options], inventory: Sequence[HeldFile], staged: HeldFile) -> Counts:
    """What a run does once it has a listing."""
    repo = work.repository
    committed = read_committed(work, Recorded(repo, RUN))
    held = {Reason.COMMITTED: committed.files, Reason.STAGED: [staged]}
    judge = GarbageJudge(
        repo.layout, tuple(inventory), held, now=BEFORE, before=BEFORE, copied_at=None, folder=work.folder
    )
    answer = judge_buckets(work.executor, repo.store.uri, judge, weigh=judged_objects)
    assert not isinstance(answer, DamagedFiles)
    return answer


def listing(repo: LakeRepository, addresses: pa.Array) -> list[HeldFile]:
    """The files that a listing would have written."""
    count = len(addresses)
    times = pa.array(np.full(count, int(OLD.timestamp()) * 1_000_000)).cast(INVENTORY.field("modified_at").type)
    rows = inventory_rows(addresses, pa.array(np.full(count, 1_000)), times)
    return [
        put(
            repo.store,
            f"{repo.prefix}{RUN.folder}inputs/inventory/part-{at:09d}.parquet",
            hashed(rows.slice(at, ROWS_TO_A_FILE), addresses.slice(at, ROWS_TO_A_FILE)),
        )
        for at in range(0, count, ROWS_TO_A_FILE)
    ]


def staging(repo: LakeRepository, addresses: pa.Array) -> HeldFile:
    """The file that a look at the staging areas would have written."""
    rows = pa.table([addresses, pa.array(np.zeros(len(addresses), np.int32))], schema=HELD)
    return put(repo.store, f"{repo.prefix}{RUN.folder}inputs/staged.parquet", hashed(rows))


def alternative(directory: Path, addresses: pa.Array, kinds: Kinds) -> Callable[[], int]:
    """The same in DuckDB: a function that writes the rows that go, and says how many they are."""
    count = len(addresses)
    times = pa.array(np.full(count, int(OLD.timestamp()) * 1_000_000)).cast(INVENTORY.field("modified_at").type)
    stored = pa.table({"address": addresses, "size_bytes": np.full(count, 1_000), "modified_at": times})
    pq.write_table(stored, directory / "inventory.parquet", compression="zstd")
    held = addresses.filter(pa.array(kinds != GARBAGE))
    pq.write_table(pa.table({"address": held}), directory / "held.parquet", compression="zstd")
    question = f"""COPY (SELECT address, size_bytes, modified_at, 'remove' AS verdict, 'unreferenced' AS reason,
            'no commit, staging area or ticket holds it' AS detail
        FROM '{directory}/inventory.parquet' i WHERE modified_at < '{BEFORE.isoformat()}' AND NOT EXISTS
        (SELECT 1 FROM '{directory}/held.parquet' h WHERE h.address = i.address))
        TO '{directory}/plan.parquet' (FORMAT parquet)"""

    def ask() -> int:
        duckdb.sql(question)
        return int(pq.read_metadata(directory / "plan.parquet").num_rows)

    return ask


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


if __name__ == "__main__":
    main()
