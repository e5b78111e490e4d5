"""A plan's memory, and a run where nothing changed: whole runs over files on this disk.

    python benchmarks/runs.py [--objects 1000000,5000000] [--rounds 2]

The lake is :mod:`large_lake` with an empty file for each object. Every step is a
process of its own, as from the command line: a plan of everything, a run of
everything (which removes the garbage), then runs that find nothing new. Memory is
the driver's Python process, by how much it grew from the moment Spark had started
to its peak. Spark's start is told apart. It needs an inode for each object.
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

from desilt.jobs import running
from desilt.jobs.job import Ask
from desilt.jobs.uncommitted import job
from desilt.lake import Lake
from desilt.lake.lake import locate
from desilt.sources.spread import OnSpark
from desilt.sweep.guard import Limits
from large_lake import STAGED, make, stage, store
from machine import keep

LIMIT_SECONDS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", default="1000000,5000000")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--step", choices=["prepare", "plan", "run"], help=argparse.SUPPRESS)
    parser.add_argument("--directory", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step == "prepare":
        prepare(options.directory, int(options.objects))
    elif options.step:
        print(json.dumps(measured(options.directory, options.step)))
    else:
        compare([int(objects) for objects in options.objects.split(",")], options.rounds)


def compare(sizes: list[int], rounds: int) -> None:
    rows = [measure(objects, rounds) for objects in sizes]
    columns = ("clean plan", "clean run", "nothing new", "of that, Spark", "plan grew by")
    print(f"{'objects':>10}" + "".join(f"{column:>16}" for column in columns))
    for row in rows:
        plan, clean, again = row["plan"], row["run"], row["nothing_new"]
        print(
            f"{row['objects']:>10,}{plan['seconds']:>14.1f} s{clean['seconds']:>14.1f} s{again['seconds']:>14.1f} s"
            f"{again['spark_start_seconds']:>14.1f} s{plan['grew_mb']:>13,.0f} MB"
        )
    for row in rows:
        again = row["nothing_new"]
        left = again["seconds"] - again["spark_start_seconds"]
        stages = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in again["stages"].items())
        print(f"{row['objects']:,}, nothing new: {left:.1f} s without Spark's start, aim {LIMIT_SECONDS}: {stages}")
    first, last = rows[0], rows[-1]
    growth = last["plan"]["grew_mb"] / first["plan"]["grew_mb"]
    print(f"memory: × {growth:.2f} for × {last['objects'] / first['objects']:.1f} the objects")
    keep("runs", {"rows": rows, "memory_ratio": round(growth, 2)})


def measure(objects: int, rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        began = time.perf_counter()
        step("prepare", directory, objects)
        print(f"{objects:,} objects made in {time.perf_counter() - began:.0f} s", flush=True)
        plan, clean = step("plan", directory, objects), step("run", directory, objects)
        print(json.dumps({"plan": plan, "run": clean}), flush=True)
        again = [step("run", directory, objects) for _ in range(rounds)]
        best = min(again, key=lambda one: one["seconds"] - one["spark_start_seconds"])
        print(json.dumps({"nothing_new": best}), flush=True)
        return {"objects": objects, "plan": plan, "run": clean, "nothing_new": best}


def step(name: str, directory: str, objects: int) -> Any:
    command = [sys.executable, __file__, "--step", name, "--directory", directory, "--objects", str(objects)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(said.splitlines()[-1]) if said else None


def prepare(directory: Path, objects: int) -> None:
    repo, addresses, kinds = make(directory, objects)
    stage(repo, addresses.filter(pa.array(kinds == STAGED)))
    store(repo, directory / "lake", addresses)


def measured(directory: Path, what: str) -> dict[str, Any]:
    """Plan or run here and now: seconds, where they went, and memory."""
    from desilt import spark

    began = time.perf_counter()
    spread = OnSpark(spark.session("benchmark"))
    spread(len, ["warm", "up"])
    start = time.perf_counter() - began
    before = resident_mb()
    repo = Lake.open(locate(f"{directory}/lake")).repository("bench")
    if what == "plan":
        report = running.plan(job, repo, spread, Ask(full=True))
    else:
        report = running.run(job, repo, spread, Ask(), Limits(confirm=True))[-1]
    seconds = time.perf_counter() - began
    return {
        "seconds": round(seconds, 2),
        "spark_start_seconds": round(start, 2),
        "stages": dict(report.seconds),
        "looked_at": report.inputs["objects"],
        "removed": report.swept.removed if report.swept else 0,
        "before_mb": round(before),
        "grew_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before),
    }


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


if __name__ == "__main__":
    main()
