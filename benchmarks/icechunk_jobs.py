"""Expiration and collection of an Icechunk repository, beside its own library.

    python benchmarks/icechunk_jobs.py [--formats 1,2] [--only 2] [--rounds 3]

The library makes a repository, whose files are given a date of a month ago. On copies of it each side expires what is
older than a commit in the middle, and collects: the library by ``expire_snapshots`` and ``garbage_collect``, desilt by
its jobs, in one process and in as many as there are cores. Then both collect once more, when nothing is left to go.
Each side is a process of its own, in which time counts from when the repository is open; memory is the most that it
had. Sides take turns, figures are the best of their rounds, and what the sides leave must be the same files.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import icechunk
import numpy as np
import zarr

from machine import keep

MONTH = timedelta(days=30)
FOLDERS = ("snapshots", "manifests", "transactions", "chunks")
SIDES = ("library", "desilt", "desilt, processes")
BYTES = 64  # of a chunk: too many to lie inside its manifest


@dataclass(frozen=True, slots=True)
class Shape:
    """A history in which each commit writes an array anew, or a part of one that grows old."""

    commits: int
    chunks: int  # of a commit
    garbage: bool  # whether a half of the history expires

    @property
    def objects(self) -> int:
        return self.commits * self.chunks


SHAPES = [Shape(1_000, 50, True), Shape(1_000, 50, False), Shape(3, 100_000, True), Shape(3, 100_000, False)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--formats", default="1,2" if int(icechunk.__version__.split(".")[0]) >= 2 else "1")
    parser.add_argument("--only", type=int, help="so many of the shapes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--place", help=argparse.SUPPRESS)
    parser.add_argument("--before", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        print(json.dumps(told(options.side, options.place, datetime.fromisoformat(options.before))))
        return
    print(f"{'format':>6} {'objects':>9} {'commits':>8}  {'side':<20}" + "".join(f"{one:>11}" for one in COLUMNS))
    rows = []
    for version in map(int, options.formats.split(",")):
        for shape in SHAPES[: options.only]:
            rows.append(measured(version, shape, options.rounds))
            keep("icechunk", {"library": icechunk.__version__, "rounds": options.rounds, "rows": rows})


COLUMNS = ("expire", "collect", "again", "memory")


def measured(version: int, shape: Shape, rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        here = Path(directory)
        before = made(here / "made", version, shape)
        found: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
        for _ in range(rounds):
            left = []
            for side in SIDES:
                place = here / "copy"
                subprocess.run(["cp", "-a", here / "made", place], check=True)
                found[side].append(asked(side, place, before))
                left.append(files(place))
                shutil.rmtree(place)
            assert all(one == left[0] for one in left), "what is left is not the same"
    best = {side: {name: min(one[name] for one in some) for name in COLUMNS} for side, some in found.items()}
    for side, one in best.items():
        told = "".join(f"{one[name]:>9.3f} s" for name in COLUMNS[:3]) + f"{one['memory']:>8,.0f} MB"
        print(f"{version:>6} {shape.objects:>9,} {shape.commits:>8,}  {side:<20}{told}", flush=True)
    return {"format": version, **asdict(shape), "objects": shape.objects, "sides": best}


def asked(side: str, place: Path, before: datetime) -> dict[str, Any]:
    command = [sys.executable, __file__, "--side", side, "--place", str(place), "--before", before.isoformat()]
    environment = {**os.environ, "DESILT_DB": f"sqlite://{place}.db"}
    ended = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    for name in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            Path(f"{place}.db{name}").unlink()
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


def told(side: str, place: str, before: datetime) -> dict[str, Any]:
    steps = library(place, before) if side == "library" else ours(place, before, processes=side != "desilt")
    seconds = {}
    for name, step in steps.items():
        began = time.perf_counter()
        step()
        seconds[name] = round(time.perf_counter() - began, 4)
    return {**seconds, "memory": peak_mb()}


def peak_mb() -> float:
    """The most that this process had, and each of its workers; what it was started from had memory of its own."""
    own = os.getpid()
    workers = Path(f"/proc/{own}/task/{own}/children").read_text().split()
    said = [Path(f"/proc/{one}/status").read_text() for one in (own, *workers)]
    return sum(int(found.split("VmHWM:")[1].split()[0]) for found in said if "VmHWM:" in found) / 1024


def library(place: str, before: datetime) -> dict[str, Callable[[], object]]:
    repo = icechunk.Repository.open(icechunk.local_filesystem_storage(place))
    old = datetime.now(UTC) - timedelta(days=7)
    return {
        "expire": lambda: repo.expire_snapshots(before),
        "collect": lambda: repo.garbage_collect(old),
        "again": lambda: repo.garbage_collect(old),
    }


def ours(place: str, before: datetime, *, processes: bool) -> dict[str, Callable[[], object]]:
    from desilt.domain.expiry import Expiry
    from desilt.executors.executor import HERE
    from desilt.executors.processes import Processes
    from desilt.jobs.collect import job as collection
    from desilt.jobs.expire import job as expiration
    from desilt.jobs.runner import run
    from desilt.repository.opening import open_uri
    from desilt.sweep.limits import Limits

    repository = open_uri(f"icechunk+file://{place}").repository
    cores = os.cpu_count() or 1
    executor: Any = Processes(cores) if processes else HERE
    executor(exec, ["import desilt.icechunk.opening, desilt.jobs.collect.by_listing, desilt.sweep.batches"] * cores)
    sure = Limits(max_share=1.0, confirm=True, allow_empty=True)
    wish = Expiry(before, mode=repository.modes[0])
    expiring = expiration.job.request(repository, confirm=True, wish=wish, sizes=False)

    def collect() -> None:
        run(
            collection.job,
            repository,
            executor,
            collection.job.request(repository, confirm=True, action="delete"),
            sure,
        )

    return {
        "expire": lambda: run(expiration.job, repository, executor, expiring, sure),
        "collect": collect,
        "again": collect,
    }


def made(place: Path, version: int, shape: Shape) -> datetime:
    """A repository with files of a month ago; what is older than the answer is a half of it, or nothing."""
    config = icechunk.RepositoryConfig.default()
    config.inline_chunk_threshold_bytes = 0
    words = {"spec_version": version} if int(icechunk.__version__.split(".")[0]) >= 2 else {}
    repo = icechunk.Repository.create(icechunk.local_filesystem_storage(str(place)), config=config, **words)
    repo.save_config()
    session = repo.writable_session("main")
    zarr.create_array(
        session.store, name="a", shape=(shape.chunks * BYTES,), chunks=(BYTES,), dtype="u1", compressors=None
    )
    session.commit("an array")
    for number in range(shape.commits):
        session = repo.writable_session("main")
        array = zarr.open_array(session.store, path="a")
        array[:] = np.random.default_rng(number).integers(1, 255, array.shape, "u1")
        snapshot = session.commit(f"commit {number}")
        if number % 50 == 49:
            repo.create_tag(f"t{number}", snapshot)
    log = [one.written_at for one in repo.ancestry(branch="main")]
    old = (datetime.now(UTC) - MONTH).timestamp()
    for found in place.rglob("*"):
        if found.is_file():
            os.utime(found, (old, old))
    return log[len(log) // 2 - 1] if shape.garbage else log[-1]


def files(place: Path) -> dict[str, set[str]]:
    return {
        folder: {found.name for found in (place / folder).iterdir()} for folder in FOLDERS if (place / folder).is_dir()
    }


if __name__ == "__main__":
    main()
