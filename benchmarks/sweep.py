"""Sweep: removing garbage through a run, against a bare loop of unlinks on the same disk.

    python benchmarks/sweep.py [--objects 50000] [--rounds 3]

Small files of a repository that nobody holds, in folders of partitions, among as
many that are staged. A run plans, then condemns, removes and writes down what
became of each, in batches; only its sweep is timed, in this process and on one
core, as the loop is. CPU seconds stand beside the others, for a machine that is
busy: there, read their ratio. Where the time goes is measured by a profiler in one more
round, which is slower: read its shares.
"""

import argparse
import cProfile
import os
import pstats
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from desilt.executors.executor import HERE
from desilt.jobs import runner as running
from desilt.jobs.gc.job import job
from desilt.lake import Lake, LakeRepository
from desilt.lake.lake import locate
from desilt.sweep.limits import Limits
from large_lake import addresses_of, stage_parts, store
from machine import keep

BODY = bytes(1_000)
FOLDERS = 20
PARTS = {
    "condemn: one transaction a batch": ("gate.py", "condemn"),
    "remove: the objects themselves": ("delete.py", "delete"),
    "of that, unlink": ("~", "<built-in method posix.unlink>"),
    "write the outcome file": ("outcome.py", "write_outcome"),
    "record: the other transaction": ("gate.py", "settle"),
    "of all, fsync": ("~", "<built-in method posix.fsync>"),
    "read and check the plan": ("batches.py", "plan_rows"),
}


@dataclass(frozen=True, slots=True, order=True)
class Took:
    """Seconds by the wall and of this process's CPU."""

    seconds: float
    cpu: float


class Watch:
    """Runs from the moment it is made."""

    def __init__(self) -> None:
        self._began = time.perf_counter(), time.process_time()

    def took(self) -> Took:
        return Took(round(time.perf_counter() - self._began[0], 3), round(time.process_time() - self._began[1], 3))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    ours, theirs = [], []
    for _ in range(options.rounds):
        ours.append(swept(options.objects))
        theirs.append(unlinked(options.objects))
    shares = profiled(options.objects)
    best, bare = min(ours), min(theirs)
    cpu, bare_cpu = (min(one.cpu for one in side) for side in (ours, theirs))
    print(f"{'objects':>10} {'sweep':>9} {'unlink':>9} {'ratio':>7} {'of CPU':>7}")
    print(
        f"{options.objects:>10,} {best.seconds:>7.2f} s {bare.seconds:>7.2f} s"
        f" {best.seconds / bare.seconds:>6.1f}× {cpu / bare_cpu:>6.1f}×"
    )
    for part, share in shares.items():
        print(f"  {part:<36} {share:>6.1%}")
    figures = {
        "objects": options.objects,
        "sweep_seconds": round(best.seconds, 2),
        "unlink_seconds": round(bare.seconds, 2),
        "times_unlink": round(best.seconds / bare.seconds, 1),
        "sweep_cpu_seconds": round(cpu, 2),
        "unlink_cpu_seconds": round(bare_cpu, 2),
        "times_unlink_by_cpu": round(cpu / bare_cpu, 1),
        "every_round": {"sweep": [asdict(one) for one in ours], "unlink": [asdict(one) for one in theirs]},
    }
    keep("sweep", {**figures, "shares": shares, "rounds": options.rounds})


def swept(objects: int, profile: cProfile.Profile | None = None) -> Took:
    """Time to sweep a plan of ``objects``."""
    with tempfile.TemporaryDirectory() as directory:
        repo = garbage(Path(directory), objects)
        run_id = running.plan(job, repo, HERE).run
        watch = Watch()
        if profile:
            profile.enable()
        report = running.sweep(repo, HERE, run_id, Limits(confirm=True, max_share=1))
        if profile:
            profile.disable()
        took = watch.took()
        assert report.swept is not None
        assert report.swept.removed == objects
        return took


def unlinked(objects: int) -> Took:
    """Time to unlink as many files that were made the same way."""
    with tempfile.TemporaryDirectory() as directory:
        repo = garbage(Path(directory), objects)
        paths = [f"{directory}/lake/{repo.prefix}{address}" for address in addresses(0, objects).to_pylist()]
        watch = Watch()
        for path in paths:
            os.unlink(path)  # noqa: PTH108 - the barest there is
        return watch.took()


def profiled(objects: int) -> dict[str, float]:
    """What share of a sweep's time goes where."""
    profile = cProfile.Profile()
    total = swept(objects, profile).seconds
    spent = {
        (Path(file).name, name): figures[3]
        for (file, _, name), figures in pstats.Stats(profile).stats.items()  # type: ignore[attr-defined]
    }
    return {part: round(spent.get(place, 0.0) / total, 3) for part, place in PARTS.items()}


def garbage(directory: Path, objects: int) -> LakeRepository:
    """A repository with so many objects that nobody holds, and as many that are staged."""
    repo = Lake.create(locate(f"{directory}/lake")).create_repository("bench")
    held = np.arange(objects, 2 * objects)
    stage_parts(repo, [(held, objects)])
    store(repo, directory / "lake", [addresses(0, objects), addresses_of(held, held // objects)], BODY)
    return repo


def addresses(first: int, last: int) -> pa.Array:
    numbers = np.arange(first, last)
    return addresses_of(numbers, numbers % FOLDERS)


if __name__ == "__main__":
    main()
