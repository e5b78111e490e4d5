"""Whole runs over files on this disk: what one costs where nothing changed, and what memory the driver takes.

    python benchmarks/runs.py [--objects 1000000,5000000] [--rounds 2]

The lake is :mod:`large_lake` with an empty file for each object. Every step is a
process of its own, as from the command line: a clean run, which looks at
everything and removes the garbage; then runs that find nothing new. Memory is the
driver's Python process: by how much it grew from the moment Spark had started to
its peak while planning. Spark's start is told apart. Each object takes an inode.
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

from desilt.executors import session as spark
from desilt.executors.executor import Nobody
from desilt.executors.on_spark import OnSpark
from desilt.jobs import runner as running
from desilt.jobs.gc.job import job
from desilt.lake import Lake
from desilt.lake.lake import locate
from desilt.sweep.limits import Limits
from large_lake import COMMITTED, GARBAGE, STAGED, Shape, make, stage, store
from machine import keep


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", default="1000000,5000000")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--step", choices=["prepare", "run"], help=argparse.SUPPRESS)
    parser.add_argument("--directory", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step == "prepare":
        prepare(options.directory, int(options.objects))
    elif options.step:
        print(json.dumps(measured(options.directory)))
    else:
        compare([int(objects) for objects in options.objects.split(",")], options.rounds)


def compare(sizes: list[int], rounds: int) -> None:
    rows = [measure(objects, rounds) for objects in sizes]
    columns = ("clean run", "nothing new", "Spark's start", "planning took", "took, nothing new")
    print(f"{'objects':>10}" + "".join(f"{column:>19}" for column in columns))
    for row in rows:
        clean, again = row["clean"], row["nothing_new"]
        print(
            f"{row['objects']:>10,}{clean['seconds']:>17.1f} s{again['seconds']:>17.1f} s"
            f"{again['spark_start_seconds']:>17.1f} s{clean['grew_mb']:>16,} MB{again['grew_mb']:>16,} MB"
        )
    for row in rows:
        stages = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in row["nothing_new"]["stages"].items())
        print(f"{row['objects']:,}, nothing new, in seconds: {stages}")
    growth = rows[-1]["clean"]["grew_mb"] / rows[0]["clean"]["grew_mb"]
    print(f"memory: × {growth:.2f} for × {rows[-1]['objects'] / rows[0]['objects']:.1f} the objects")
    keep("runs", {"rows": rows, "memory_ratio": round(growth, 2)})


def measure(objects: int, rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        step("prepare", directory, objects)
        return measured_row(directory, objects, rounds)


def measured_row(directory: str, objects: int, rounds: int) -> dict[str, Any]:
    clean = step("run", directory, objects)
    again = [step("run", directory, objects) for _ in range(rounds)]
    return {"objects": objects, "clean": clean, "nothing_new": min(again, key=lambda one: one["seconds"])}


def step(name: str, directory: str, objects: int) -> Any:
    command = [sys.executable, __file__, "--step", name, "--directory", directory, "--objects", str(objects)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(said.splitlines()[-1]) if said else None


def prepare(directory: Path, objects: int) -> None:
    shape = Shape(objects)
    repo = make(directory, shape)
    stage(repo, shape)
    store(repo, directory / "lake", shape.addresses(COMMITTED, STAGED, GARBAGE, at_once=100_000))


class Peak(Nobody):
    """Remembers how big this process had been when a sweep began."""

    mb = 0.0

    def begins(self, stage: str) -> None:
        if stage == "sweep":
            self.mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(directory: Path) -> dict[str, Any]:
    """Run here and now: seconds (without Spark's start), where they went, and memory."""
    began, peak = time.perf_counter(), Peak()
    executor = OnSpark(spark.session("benchmark"), peak)
    executor(len, ["warm", "up"])
    start, before = time.perf_counter() - began, resident_mb()
    began = time.perf_counter()
    repo = Lake.open(locate(f"{directory}/lake")).repository("bench")
    report = running.run(job, repo, executor, job.ask(), Limits(confirm=True, clock_is_right=True))[-1]
    assert report.swept is not None
    return {
        "seconds": round(time.perf_counter() - began, 2),
        "spark_start_seconds": round(start, 2),
        "stages": dict(report.seconds),
        "looked_at": report.inputs["objects"],
        "removed": report.swept.removed,
        "before_mb": round(before),
        "grew_mb": round(peak.mb - before),
    }


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


if __name__ == "__main__":
    main()
