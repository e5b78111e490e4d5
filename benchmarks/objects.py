"""Put, list and stat against what a directory of plain files does.

    python benchmarks/objects.py [--files 2000] [--entries 200000]

Puts are durable: each waits for the disk, twice (the object, then the database).
So they stand beside a plain copy, and beside one that waits for the disk as well.
"""

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from commits import batches, put_on_main
from desilt.lake import Lake
from desilt.lake.apply import apply
from desilt.lake.lake import locate
from machine import keep

BODY_BYTES = 64_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--entries", type=int, default=200_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        figures = {"put": put(Path(directory), options.files), "list": listing(Path(directory), options.entries)}
    for name, row in figures.items():
        print(f"\n{name}")
        for what, figure in row.items():
            print(f"  {what:<40} {figure:>12,.1f}")
    keep("objects", figures)


def put(directory: Path, files: int) -> dict[str, float]:
    """Files a second, and how many times as long as the two kinds of copy a put takes."""
    source = directory / "source"
    source.mkdir()
    for number in range(files):
        (source / f"{number:06d}").write_bytes(os.urandom(BODY_BYTES))
    names = sorted(source.iterdir())
    repo = Lake.create(locate(str(directory / "lake"))).create_repository("bench")
    copies, durable = directory / "copies", directory / "durable"
    copies.mkdir()
    durable.mkdir()
    plain = timed(lambda: [shutil.copyfile(name, copies / name.name) for name in names])
    synced = timed(lambda: [copy_durably(name, durable / name.name) for name in names])
    ours = timed(lambda: [repo.put("main", f"in/{name.name}", name.read_bytes()) for name in names])
    return {
        "puts/s": files / ours,
        "plain copies/s": files / plain,
        "durable copies/s": files / synced,
        "put takes × plain copy": ours / plain,
        "put takes × durable copy": ours / synced,
    }


def listing(directory: Path, entries: int) -> dict[str, float]:
    """Entries a second from a commit, against os.walk with stat over as many empty files."""
    repo = Lake.create(locate(str(directory / "big"))).create_repository("bench")
    put_on_main(repo, apply(repo.ranges, "", batches(range(entries), "base")))
    files = directory / "files"
    for number in range(entries):
        path = files / f"day={number // 1000:05d}" / f"part-{number % 1000:05d}.parquet"
        if number % 1000 == 0:
            path.parent.mkdir(parents=True)
        path.touch()
    ours = timed(lambda: sum(1 for _ in repo.list("main")))
    folded = timed(lambda: list(repo.list("main", "tables/events/", delimiter="/")))
    walked = timed(lambda: sum(1 for root, _, names in os.walk(files) for name in names if os.stat(f"{root}/{name}")))
    lookups = 2_000
    step = entries // lookups
    paths = [f"tables/events/day={n // 1000:05d}/part-{n % 1000:05d}.parquet" for n in range(0, entries, step)]
    stats = timed(lambda: [repo.stat("main", path) for path in paths])
    return {
        "entries/s, lake": entries / ours,
        "files/s, os.walk and stat": entries / walked,
        "lake takes × os.walk": ours / walked,
        f"seconds to list {entries // 1000} folders": folded,
        "stats/s": len(paths) / stats,
    }


def copy_durably(source: Path, destination: Path) -> None:
    shutil.copyfile(source, destination)
    for path in (destination, destination.parent):
        handle = os.open(path, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
