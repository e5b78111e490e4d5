"""The same run in one process, in several, and on Spark: from the first import to the end, as from the command line.

    python benchmarks/places.py [--objects 20000,100000,300000,1000000,3000000]

The lake is :mod:`large_lake` with an empty file for each object. Each way plans a clean run and sweeps the garbage of
it in a process of its own, on a copy of its own, with nothing decoded before. Where Spark overtakes, if it does, is
where it pays to start it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from large_lake import COMMITTED, GARBAGE, STAGED, Shape, make, stage, store
from machine import keep

WAYS = ("one process", "processes", "Spark")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", default="20000,100000,300000,1000000,3000000")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--directory", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        print(json.dumps(run(options.directory, options.way)))
    else:
        compare([int(objects) for objects in options.objects.split(",")])


def compare(sizes: list[int]) -> None:
    rows = [measured(objects) for objects in sizes]
    print(f"{'objects':>10}" + "".join(f"{way:>16}" for way in WAYS) + f"{'Spark ÷ processes':>20}")
    for row in rows:
        took = row["seconds"]
        ratio = took["Spark"] / took["processes"]
        print(f"{row['objects']:>10,}" + "".join(f"{took[way]:>14.1f} s" for way in WAYS) + f"{ratio:>19.2f}×")
    keep("places", {"rows": rows})


def measured(objects: int) -> dict[str, Any]:
    found = {}
    for way in WAYS:
        with tempfile.TemporaryDirectory() as directory:
            shape = Shape(objects, branches=200, commits=2_000)
            repo = make(Path(directory), shape)
            stage(repo, shape)
            store(repo, Path(directory) / "lake", shape.addresses(COMMITTED, STAGED, GARBAGE, at_once=100_000))
            began = time.perf_counter()
            command = [sys.executable, __file__, "--way", way, "--directory", directory]
            said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            found[way] = {"whole": round(time.perf_counter() - began, 2), **json.loads(said.splitlines()[-1])}
    removed = {one.pop("removed") for one in found.values()}
    assert len(removed) == 1, removed
    return {
        "objects": objects,
        "removed": removed.pop(),
        "seconds": {way: one["whole"] for way, one in found.items()},
        "stages": {way: one["stages"] for way, one in found.items()},
    }


def run(directory: Path, way: str) -> dict[str, Any]:
    from desilt.executors.executor import Executor, Here
    from desilt.executors.on_spark import OnSpark
    from desilt.executors.processes import Processes
    from desilt.executors.session import session
    from desilt.jobs import runner
    from desilt.jobs.gc.job import job
    from desilt.lake import Lake
    from desilt.lake.lake import locate
    from desilt.sweep.limits import Limits

    executor: Executor
    if way == "Spark":
        executor = OnSpark(session())
    else:
        executor = Here() if way == "one process" else Processes(len(os.sched_getaffinity(0)))
    repo = Lake.open(locate(f"{directory}/lake")).repository("bench")
    report = runner.run(job, repo, executor, job.ask(), Limits(confirm=True, clock_is_right=True))[-1]
    assert report.swept is not None
    return {"stages": dict(report.seconds), "removed": report.swept.removed}


if __name__ == "__main__":
    main()
