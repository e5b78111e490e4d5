"""Sweep: removing garbage through a run, against a bare loop of unlinks on the same disk.

    python benchmarks/sweep.py [--objects 50000] [--rounds 3]

Small files of a repository that nobody holds, in folders of partitions, among as
many that are staged. A run plans, then condemns, removes and writes down what
became of each, in batches; only its sweep is timed, in this process and on one
core, as the loop is. Where its time goes is measured by a profiler in one more
round, which is slower: read its shares.
"""

import argparse
import cProfile
import os
import pstats
import tempfile
import time
from pathlib import Path

import pyarrow as pa

from desilt.jobs import running
from desilt.jobs.uncommitted import job
from desilt.lake import Lake, Repository
from desilt.lake.lake import locate
from desilt.sources.spread import in_process
from desilt.sweep.guard import Limits
from large_lake import ADDRESS, stage, store
from machine import keep

BODY = bytes(1_000)
FOLDERS = 20
PARTS = {
    "condemn: one transaction a batch": ("condemn.py", "condemn"),
    "remove: the objects themselves": ("removing.py", "remove"),
    "of that, unlink": ("~", "<built-in method posix.unlink>"),
    "write the outcome file": ("outcome.py", "write_outcome"),
    "record: the other transaction": ("sweeping.py", "_record"),
    "of all, fsync": ("~", "<built-in method posix.fsync>"),
    "read and check the plan": ("sweeping.py", "plan_rows"),
}


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
    ratio = min(ours) / min(theirs)
    print(f"{'objects':>10} {'sweep':>9} {'unlink':>9} {'ratio':>7}")
    print(f"{options.objects:>10,} {min(ours):>7.2f} s {min(theirs):>7.2f} s {ratio:>6.1f}×")
    for part, share in shares.items():
        print(f"  {part:<36} {share:>6.1%}")
    figures = {
        "objects": options.objects,
        "sweep_seconds": round(min(ours), 2),
        "unlink_seconds": round(min(theirs), 2),
    }
    keep("sweep", {**figures, "times_unlink": round(ratio, 1), "shares": shares, "rounds": options.rounds})


def swept(objects: int, profile: cProfile.Profile | None = None) -> float:
    """Seconds to sweep a plan of ``objects``."""
    with tempfile.TemporaryDirectory() as directory:
        repo = garbage(Path(directory), objects)
        run_id = running.plan(job, repo, in_process).run
        began = time.perf_counter()
        if profile:
            profile.enable()
        report = running.sweep(repo, in_process, run_id, Limits(confirm=True, max_share=1))
        if profile:
            profile.disable()
        seconds = time.perf_counter() - began
        assert report.swept is not None
        assert report.swept.removed == objects
        return seconds


def unlinked(objects: int) -> float:
    """Seconds to unlink as many files that were made the same way."""
    with tempfile.TemporaryDirectory() as directory:
        repo = garbage(Path(directory), objects)
        paths = [f"{directory}/lake/{repo.prefix}{address}" for address in addresses(0, objects).to_pylist()]
        began = time.perf_counter()
        for path in paths:
            os.unlink(path)  # noqa: PTH108 - the barest there is
        return time.perf_counter() - began


def profiled(objects: int) -> dict[str, float]:
    """What share of a sweep's time goes where."""
    profile = cProfile.Profile()
    total = swept(objects, profile)
    spent = {
        (Path(file).name, name): figures[3]
        for (file, _, name), figures in pstats.Stats(profile).stats.items()  # type: ignore[attr-defined]
    }
    return {part: round(spent.get(place, 0.0) / total, 3) for part, place in PARTS.items()}


def garbage(directory: Path, objects: int) -> Repository:
    """A repository with so many objects that nobody holds, and as many that are staged."""
    repo = Lake.create(locate(f"{directory}/lake")).create_repository("bench")
    held = addresses(objects, 2 * objects)
    stage(repo, held)
    store(repo, directory / "lake", pa.concat_arrays([addresses(0, objects), held]), BODY)
    return repo


def addresses(first: int, last: int) -> pa.Array:
    return pa.array([ADDRESS.format(branch=number % FOLDERS, number=number) for number in range(first, last)])


if __name__ == "__main__":
    main()
