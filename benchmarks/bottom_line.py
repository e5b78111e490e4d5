"""Whole runs at the size that lakeFS's design for collecting uncommitted objects calls its bottom line.

    python benchmarks/bottom_line.py [--objects 20000000] [--branches 1000] [--commits 30000] [--call-seconds 0.1]
    python benchmarks/bottom_line.py --files --objects 2000000

20 M objects, a thousand branches, 30 k commits, 5 M staged, 1 M garbage; there, about three
hours on a cluster. (1) A run with the listing from an inventory (Parquet, as S3
writes it), nothing decoded before: it plans, condemns and removes the garbage, a call
of so many seconds for each thousand objects and nothing behind it. What is waited for
is told apart. (2) A run that lists everything, from a listing that is made up as fast as
it is read. (3) Runs that find nothing new. On Spark, as many cores as there are; each
run in a process of its own, whose start of Spark is told apart, as is by how much the
driver's memory grew. With ``--files``, each object is an empty file: it is really listed,
and really removed.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from desilt.executors import session as spark
from desilt.executors.executor import Executor, Nobody
from desilt.executors.on_spark import OnSpark
from desilt.jobs import runner as running
from desilt.jobs.gc.job import job
from desilt.lake import Lake, LakeRepository, restored
from desilt.lake.lake import locate
from desilt.sweep.limits import Limits
from large_lake import COMMITTED, GARBAGE, STAGED, Shape, make, stage, store
from machine import keep
from runs import resident_mb
from simulated import Pretence, Pretending, keys, rows_of

ROWS_TO_A_FILE = 500_000
SURE = Limits(confirm=True, clock_is_right=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=20_000_000)
    parser.add_argument("--branches", type=int, default=1_000)
    parser.add_argument("--commits", type=int, default=30_000)
    parser.add_argument("--call-seconds", type=float, default=0.1)
    parser.add_argument("--files", action="store_true", help="list and remove real files")
    parser.add_argument("--directory", type=Path, help="where a lake is kept, or made to be kept")
    parser.add_argument("--step", choices=["prepare", "inventory", "listing", "again"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    shape = Shape(options.objects, options.branches, options.commits)
    if options.step == "prepare":
        prepare(options.directory, shape, files=options.files)
    elif options.step:
        print(json.dumps(measured(options.step, options.directory, shape, options.call_seconds, files=options.files)))
    elif options.directory:
        compare(options.directory, shape, options.call_seconds, files=options.files)
    else:
        with tempfile.TemporaryDirectory() as directory:
            compare(Path(directory), shape, options.call_seconds, files=options.files)


def compare(directory: Path, shape: Shape, call_seconds: float, *, files: bool) -> None:
    def step(name: str) -> dict[str, Any]:
        command = [sys.executable, __file__, "--step", name, "--directory", str(directory)]
        command += ["--objects", str(shape.objects), "--branches", str(shape.branches)]
        command += ["--commits", str(shape.commits), "--call-seconds", str(call_seconds)] + ["--files"] * files
        said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        return dict(json.loads(said.splitlines()[-1])) if said else {}

    if not (directory / "lake").exists():
        began = time.perf_counter()
        step("prepare")
        print(f"made in {time.perf_counter() - began:.0f} s")
    found: dict[str, Any] = {}
    for name, what in {
        "inventory": "the first run, from an inventory",
        "listing": "all of it listed",
        "again": "nothing new",
    }.items():
        found[name] = row = step(name)
        told = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in row["stages"].items())
        print(
            f"{what}: {row['seconds']:.1f} s and {row['spark_start_seconds']:.1f} s for Spark's start;"
            f" {row['removed']:,} removed of {row['looked_at']:,}, {row['waited_seconds']:.0f} s of it waited for the"
            f" store; the driver took {row['grew_mb']:,} MB more"
        )
        print(f"  {told}")
    figures = {"objects": shape.objects, "branches": shape.branches, "commits": shape.commits, **found}
    store_is = "a directory" if files else f"listed from nothing, {call_seconds} s for a call that deletes 1,000"
    keep("bottom_line_files" if files else "bottom_line", {"store": store_is, "database": "SQLite", **figures})


def prepare(directory: Path, shape: Shape, *, files: bool) -> None:
    repo = make(directory, shape)
    stage(repo, shape)
    if files:
        store(repo, directory / "lake", shape.addresses(COMMITTED, STAGED, GARBAGE, at_once=ROWS_TO_A_FILE))
    else:
        folders = [shape.addresses_of(shape.numbers(branch, STAGED)[:1])[0].as_py() for branch in range(shape.branches)]
        folders = [address[: address.rindex("/") + 1] for address in folders]
        for folder in folders:
            Path(f"{directory}/lake/{repo.prefix}{folder}").mkdir(parents=True)
        with repo.database.write() as tx:
            restored.adopt(tx, folders)
    (directory / "inventory").mkdir()
    write_inventory(repo, directory / "inventory", shape)


def write_inventory(repo: LakeRepository, folder: Path, shape: Shape) -> None:
    """What is stored, in files as S3 writes them."""
    for number, addresses in enumerate(shape.addresses(COMMITTED, STAGED, GARBAGE, at_once=ROWS_TO_A_FILE)):
        rows = pa.Table.from_batches([rows_of(keys(addresses, repo.prefix))])
        rows = rows.rename_columns(["key", "size", "last_modified_date"])
        pq.write_table(rows, folder / f"part-{number:05d}.parquet", compression="snappy")


class Peak(Nobody):
    """Remembers how big this process had been when a sweep began, and how long a report took."""

    mb = 0.0

    def begins(self, stage: str) -> None:
        if stage == "sweep":
            self.mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(step: str, directory: Path, shape: Shape, call_seconds: float, *, files: bool) -> dict[str, Any]:
    """A run here and now: seconds (without Spark's start), where they went, and memory."""
    here = str(Path(__file__).parent)  # where workers find the pretence
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
    began, peak = time.perf_counter(), Peak()
    executor: Executor = OnSpark(spark.session("benchmark"), peak)
    executor(len, ["warm", "up"])
    start, before = time.perf_counter() - began, resident_mb()
    repo = Lake.open(locate(f"{directory}/lake")).repository("bench")
    if not files:
        pretence = Pretence(shape, repo.prefix, call_seconds)
        pretence.begin()
        executor = Pretending(executor, pretence)
    began = time.perf_counter()
    given = {"inventory": str(directory / "inventory")} if step == "inventory" else {}
    report = running.run(job, repo, executor, job.ask(**given), SURE)[-1]
    took = time.perf_counter() - began
    assert report.swept is not None
    calls = 0 if files else -(-report.swept.removed // repo.store.delete_batch)
    waited = calls * call_seconds / executor.width
    stages = {**report.seconds}
    if calls:
        stages["sweep"] = round(stages["sweep"] - waited, 3)
    stages["everything else"] = round(took - sum(report.seconds.values()), 3)
    return {
        "seconds": round(took, 2),
        "spark_start_seconds": round(start, 2),
        "waited_seconds": round(waited, 1),
        "stages": stages,
        "looked_at": report.inputs["objects"],
        "removed": report.swept.removed,
        "grew_mb": round(peak.mb - before),
    }


if __name__ == "__main__":
    main()
