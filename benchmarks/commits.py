"""What a commit of 1,000 changes costs on branches of 10 k, 100 k and 1 M entries.

    python benchmarks/commits.py [--sizes 10000,100000,1000000]

Two shapes of change: one day's partition (all in one place; the median of five), and the same
number scattered evenly over the whole branch. A commit is the whole thing: seal
the staging area, read and write ranges, move the branch. The alternative is what
a table without shared ranges does: write the whole list of entries again.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from statistics import median

import pyarrow as pa

from desilt.domain.entry import Entry
from desilt.domain.history import Commit, new_commit
from desilt.lake import Lake, LakeRepository, commits, refs, staging
from desilt.lake.apply import apply
from desilt.lake.dropping import By, Dropping
from desilt.lake.lake import locate
from desilt.lake.staging import CHANGES
from desilt.sstable.values import encode_entry
from machine import keep

CHANGED = 1_000
PER_DAY = 1_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10000,100000,1000000")
    sizes = [int(size) for size in parser.parse_args().sizes.split(",")]
    rows = []
    print(f"{'entries':>10} {'changes':>10} {'seconds':>8} {'entries written':>16} {'rewrite all':>12} {'ratio':>6}")
    for size in sizes:
        with tempfile.TemporaryDirectory() as directory:
            repo = Lake.create(locate(f"{directory}/lake")).create_repository("bench")
            entries = list(batches(range(size), "base"))
            began = time.perf_counter()
            metarange = apply(repo.ranges, "", entries)
            whole = time.perf_counter() - began
            base = put_on_main(repo, metarange)
            before = {listed.id for listed in repo.ranges.metarange(metarange)}
            for shape, places in (
                ("one place", [range(at, at + CHANGED) for at in range(0, size, size // 5)]),
                ("scattered", [range(0, size, size // CHANGED)]),
            ):
                seconds, written = zip(*(commit(repo, base, numbers, before) for numbers in places), strict=True)
                row = {
                    "entries": size,
                    "changes": CHANGED,
                    "shape": shape,
                    "seconds": round(median(seconds), 4),
                    "entries_written": int(median(written)),
                    "ranges": len(before),
                    "rewrite_all_seconds": round(whole, 4),
                }
                rows.append(row)
                print(
                    f"{size:>10,} {shape:>10} {row['seconds']:>8.3f} {row['entries_written']:>16,} "
                    f"{whole:>10.2f} s {whole / median(seconds):>5.1f}×"
                )
    keep("commits", {"rows": rows})


def commit(repo: LakeRepository, base: Commit, numbers: range, before: set[str]) -> tuple[float, int]:
    """Seconds to commit these changes on ``base``, and entries in the ranges that it wrote."""
    stage(repo, batches(numbers, "changed"))
    began = time.perf_counter()
    made = repo.commit("main", "changes")
    seconds = time.perf_counter() - began
    with repo.database.write() as tx:
        refs.move(tx, refs.branch(tx, repo.uid, "main").uid, head=base.id)
    return seconds, sum(listed.count for listed in repo.ranges.metarange(made.metarange) if listed.id not in before)


def put_on_main(repo: LakeRepository, metarange: str) -> Commit:
    """A commit of ``metarange``, made directly: staging a million rows first would only take long."""
    with repo.database.write() as tx:
        branch = refs.branch(tx, repo.uid, "main")
        head = commits.fetching(tx, repo.uid)(branch.head)
        made = new_commit(
            parents=[head], metarange=metarange, created_at=repo.clock(), committer="", message="base", metadata={}
        )
        commits.insert(tx, repo.uid, made)
        refs.move(tx, branch.uid, head=made.id)
    return made


def stage(repo: LakeRepository, changes: Iterator[pa.RecordBatch]) -> None:
    with repo.database.write() as tx:
        on = refs.branch(tx, repo.uid, "main")
        dropping = Dropping(repo.uid, on.uid, on.head, By.OVERWRITTEN, repo.clock())
        for batch in changes:
            for key, value in zip(batch["key"].to_pylist(), batch["value"].to_pylist(), strict=True):
                staging.stage(tx, on.token, key, value, dropping)


def batches(numbers: range, marker: str) -> Iterator[pa.RecordBatch]:
    for at in range(0, len(numbers), 20_000):
        page = numbers[at : at + 20_000]
        keys = [f"tables/events/day={number // PER_DAY:05d}/part-{number % PER_DAY:05d}.parquet" for number in page]
        values = [
            encode_entry(
                Entry("", f"branches/main/00001/{marker}{number:020d}", number, f"{number:032x}", number * 1_000)
            )
            for number in page
        ]
        columns = [pa.array([key.encode() for key in keys], pa.binary()), pa.array(values, pa.binary())]
        yield pa.record_batch(columns, schema=CHANGES)


if __name__ == "__main__":
    main()
