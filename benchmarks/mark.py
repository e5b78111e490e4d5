"""Mark: which of so many objects does nobody hold? On Spark, against DuckDB and Polars on the same rows.

    python benchmarks/mark.py [--objects 1000000,5000000,20000000] [--rounds 5]
    python benchmarks/mark.py --grow [--rounds 2]

A thousand branches, thirty thousand commits, a quarter of the objects staged, one
in twenty garbage (:mod:`large_lake`). The listing and what is staged are handed in
as files. A mark reads the commits, finds their ranges' cache files, compares, and
writes the rows that go as Parquet; DuckDB, and Polars with its streaming engine, do the set
difference from Parquet to Parquet and write the same rows, each with as many threads as
Spark has cores. Rounds alternate; each figure is the best of its side's, with the ratio
of the medians beside it. Spark's start is not counted. What only a mark does, to
read commits and find their ranges, is told apart.

``--grow`` has objects, commits and branches grow one at a time: seconds, and by how
much the driver's memory grew at its peak, ranges decoded before and not.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from desilt.columns.buckets import hashed
from desilt.columns.files import HeldFile, put, put_addresses
from desilt.columns.kernel import DamagedFiles, judge_buckets
from desilt.columns.schemas import INVENTORY
from desilt.domain.reason import Reason
from desilt.domain.run import Run
from desilt.executors import session as spark
from desilt.executors.on_spark import OnSpark
from desilt.inventory.listing import ROWS_TO_A_FILE, inventory_rows
from desilt.jobs.counts import Counts
from desilt.jobs.gc.job import CommittedSet, Options, job, judged_objects, read_committed
from desilt.jobs.gc.kernel import SAID, GarbageJudge
from desilt.jobs.job import Work
from desilt.jobs.sets import Recorded
from desilt.lake import LakeRepository
from desilt.lake.areas import ENTRIES_TO_A_FILE
from large_lake import COMMITTED, GARBAGE, OLD, SIZE, STAGED, Shape, make
from machine import keep
from runs import resident_mb

NOW = datetime(2026, 6, 1, tzinfo=UTC)
BEFORE = NOW - timedelta(days=1)
RUN = Run("00000000000000-00000000", "gc", NOW)
ALTERNATIVES = ("DuckDB", "Polars")
GROWING = [
    Shape(1_000_000, 100, 1_000),
    Shape(5_000_000, 100, 1_000),
    Shape(20_000_000, 100, 1_000),
    Shape(1_000_000, 100, 10_000),
    Shape(1_000_000, 100, 30_000),
    Shape(1_000_000, 1_000, 1_000),
]
Result = TypeVar("Result")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", default="1000000,5000000,20000000")
    parser.add_argument("--branches", type=int, default=1_000)
    parser.add_argument("--commits", type=int, default=30_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--grow", action="store_true")
    options = parser.parse_args()
    executor = OnSpark(spark.session("benchmark"))
    executor(len, ["warm", "up"])
    if options.grow:
        grow(executor, options.rounds)
    else:
        sizes = [int(objects) for objects in options.objects.split(",")]
        compare([Shape(size, options.branches, options.commits) for size in sizes], executor, options.rounds)


def compare(shapes: Sequence[Shape], executor: OnSpark, rounds: int) -> None:
    rows = []
    columns = ("mark", *ALTERNATIVES, *(f"÷ {name}" for name in ALTERNATIVES), "commits", "verdicts", "empty job")
    print(f"{'objects':>10} {'garbage':>9}" + "".join(f"{column:>11}" for column in columns))
    for shape in shapes:
        with tempfile.TemporaryDirectory() as directory:
            row = measure(Path(directory), shape, executor, rounds)
        rows.append(row)
        print(
            f"{row['objects']:>10,} {row['garbage']:>9,}{row['mark_seconds']:>9.2f} s{row['duckdb_seconds']:>9.2f} s"
            f"{row['polars_seconds']:>9.2f} s{row['times_duckdb']:>10.2f}×{row['times_polars']:>10.2f}×"
            f"{row['commits_seconds']:>9.2f} s{row['verdicts_seconds']:>9.2f} s{row['empty_spark_job_seconds']:>9.2f} s"
        )
    keep("mark", {"branches": shapes[0].branches, "commits": shapes[0].commits, "rows": rows})


def grow(executor: OnSpark, rounds: int) -> None:
    rows = []
    columns = ("decode once", "commits", "verdicts", "driver, once", "driver")
    print(f"{'objects':>10} {'branches':>9} {'commits':>9}" + "".join(f"{column:>14}" for column in columns))
    for shape in GROWING:
        with tempfile.TemporaryDirectory() as directory:
            lake = Made.ready(Path(directory), shape, executor)
            first, took_mb = peaked(lake.committed)
            took = []
            for _ in range(rounds):
                row, memory = peaked(lake.mark)
                took.append(
                    {**{f"{name}_seconds": round(one, 3) for name, one in row.seconds.items()}, "grew_mb": memory}
                )
        best = {name: min(one[name] for one in took) for name in took[0]}
        rows.append(
            {
                "objects": shape.objects,
                "branches": shape.branches,
                "commits": shape.commits,
                "decode_ranges_once_seconds": round(first[1], 2),
                "decode_grew_mb": took_mb,
                **best,
            }
        )
        print(
            f"{shape.objects:>10,} {shape.branches:>9,} {shape.commits:>9,}{first[1]:>12.2f} s"
            f"{best['commits_seconds']:>12.2f} s{best['verdicts_seconds']:>12.2f} s"
            f"{took_mb:>11,} MB{best['grew_mb']:>11,} MB"
        )
    keep("mark_growth", {"rows": rows, "rounds": rounds})


def measure(directory: Path, shape: Shape, executor: OnSpark, rounds: int) -> dict[str, Any]:
    lake = Made.ready(directory, shape, executor)
    _, first = lake.committed()
    write_parquet(directory, shape)
    sides: dict[str, Callable[[], int]] = {
        "DuckDB": lambda: in_duckdb(directory, executor.width),
        "Polars": lambda: in_polars(directory),
    }
    garbage = shape.count(GARBAGE)
    ours: list[dict[str, float]] = []
    theirs: dict[str, list[float]] = {name: [] for name in sides}
    empty = []
    for _ in range(rounds):
        answer = lake.mark()
        found = answer.counts
        assert found.objects.total() == shape.objects
        assert sum(n for (_, reason), n in found.objects.items() if reason == Reason.UNREFERENCED.value) == garbage
        assert sum(file.rows for file in found.files) == garbage
        ours.append(answer.seconds)
        for name, ask in sides.items():
            seconds, rows = timed(ask)
            assert rows == garbage
            theirs[name].append(seconds)
        empty.append(timed(lambda: executor(len, ["nothing", "to do"]))[0])
    whole = [sum(one.values()) for one in ours]
    row: dict[str, Any] = {
        "objects": shape.objects,
        "garbage": garbage,
        "decode_ranges_once_seconds": round(first, 2),
        "mark_seconds": round(min(whole), 2),
        "commits_seconds": round(min(one["commits"] for one in ours), 2),
        "verdicts_seconds": round(min(one["verdicts"] for one in ours), 2),
    }
    for name, seconds in theirs.items():
        called = name.lower()
        row[f"{called}_seconds"] = round(min(seconds), 2)
        row[f"times_{called}"] = round(min(whole) / min(seconds), 2)
        row[f"times_{called}_by_median"] = round(median(whole) / median(seconds), 2)  # far from it: a busy machine
        row[f"verdicts_times_{called}"] = round(row["verdicts_seconds"] / min(seconds), 2)
    return {**row, "empty_spark_job_seconds": round(min(empty), 2), "rounds": rounds}


@dataclass(frozen=True, slots=True)
class Marked:
    """What a mark said, and how long its parts took."""

    counts: Counts
    seconds: dict[str, float]


@dataclass(frozen=True, slots=True)
class Made:
    """A lake that is ready to be marked."""

    repo: LakeRepository
    work: Work[Options]
    inventory: tuple[HeldFile, ...]
    staged: tuple[HeldFile, ...]

    @classmethod
    def ready(cls, directory: Path, shape: Shape, executor: OnSpark) -> "Made":
        repo = make(directory, shape)
        work = Work(RUN, repo, repo.source(executor), executor, job.ask())
        return cls(repo, work, tuple(listing(repo, shape)), tuple(staging(repo, shape)))

    def committed(self) -> tuple[CommittedSet, float]:
        """What commits hold, after decoding what is new; and how long that took."""
        seconds, found = timed(lambda: read_committed(self.work, Recorded(self.repo, RUN)))
        return found, seconds

    def mark(self) -> Marked:
        """What a run does once it has a listing."""
        committed, first = self.committed()
        held = {Reason.COMMITTED: committed.files, Reason.STAGED: self.staged}
        judge = GarbageJudge(
            self.repo.layout,
            self.inventory,
            held,
            now=BEFORE,
            before=BEFORE,
            copied_at=None,
            folder=self.work.folder,
        )
        second, answer = timed(
            lambda: judge_buckets(self.work.executor, self.repo.store.uri, judge, weigh=judged_objects)
        )
        assert not isinstance(answer, DamagedFiles)
        return Marked(answer, {"commits": first, "verdicts": second})


def listing(repo: LakeRepository, shape: Shape) -> Iterator[HeldFile]:
    """The files that a listing would have written."""
    every = shape.addresses(COMMITTED, STAGED, GARBAGE, at_once=ROWS_TO_A_FILE)
    for number, addresses in enumerate(every):
        rows = inventory_rows(addresses, pa.array(np.full(len(addresses), SIZE)), times(len(addresses)))
        key = f"{repo.prefix}{RUN.folder}inputs/inventory/part-{number:05d}.parquet"
        yield put(repo.store, key, hashed(rows, addresses))


def staging(repo: LakeRepository, shape: Shape) -> Iterator[HeldFile]:
    """The files that a look at the staging areas would have written."""
    for number, addresses in enumerate(shape.addresses(STAGED, at_once=ENTRIES_TO_A_FILE)):
        key = f"{repo.prefix}{RUN.folder}inputs/staged/part-{number:05d}.parquet"
        yield put_addresses(repo.store, key, addresses)


def write_parquet(directory: Path, shape: Shape) -> None:
    """The same rows, for anybody: what is stored, and what is held."""
    tables = {
        "inventory": (
            pa.table([addresses, np.full(len(addresses), SIZE), times(len(addresses))], names=STORED)
            for addresses in shape.addresses(COMMITTED, STAGED, GARBAGE, at_once=1 << 20)
        ),
        "held": (pa.table({"address": some}) for some in shape.addresses(COMMITTED, STAGED, at_once=1 << 20)),
    }
    for name, parts in tables.items():
        first = next(parts)
        with pq.ParquetWriter(directory / f"{name}.parquet", first.schema, compression="zstd") as writer:
            writer.write_table(first)
            for part in parts:
                writer.write_table(part)


STORED = ["address", "size_bytes", "modified_at"]


def in_duckdb(directory: Path, threads: int) -> int:
    """The set difference, written; how many rows."""
    said = ", ".join(f"'{text}' AS {name}" for name, text in SAID.items())
    with duckdb.connect(config={"threads": threads}) as connection:
        connection.sql(f"""COPY (SELECT address, size_bytes, modified_at, {said}
            FROM '{directory}/inventory.parquet' i WHERE modified_at < '{BEFORE.isoformat()}' AND NOT EXISTS
            (SELECT 1 FROM '{directory}/held.parquet' h WHERE h.address = i.address))
            TO '{directory}/plan.parquet' (FORMAT parquet)""")
    return int(pq.read_metadata(directory / "plan.parquet").num_rows)


def in_polars(directory: Path) -> int:
    """The same; with as many threads as there are cores, which is its default."""
    (
        pl.scan_parquet(directory / "inventory.parquet")
        .filter(pl.col("modified_at") < BEFORE)
        .join(pl.scan_parquet(directory / "held.parquet"), on="address", how="anti")
        .with_columns(**{name: pl.lit(text) for name, text in SAID.items()})
        .sink_parquet(directory / "polars.parquet", engine="streaming")
    )
    return int(pq.read_metadata(directory / "polars.parquet").num_rows)


def times(count: int) -> pa.Array:
    return pa.array(np.full(count, int(OLD.timestamp()) * 1_000_000)).cast(INVENTORY.field("modified_at").type)


def peaked(work: Callable[[], Result]) -> tuple[Result, int]:
    """What came of it, and by how many megabytes this process grew at its peak."""
    Path("/proc/self/clear_refs").write_text("5")  # from here on, the peak is counted anew
    before = resident_mb()
    found = work()
    lines = Path(f"/proc/{os.getpid()}/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    return found, round(peak - before)


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


if __name__ == "__main__":
    main()
