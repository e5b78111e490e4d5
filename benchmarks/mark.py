"""Mark: which of so many objects does nobody hold? On Spark, against DuckDB on the same rows.

    python benchmarks/mark.py [--objects 1000000]

Hundreds of branches, thousands of commits, a quarter of the objects staged, one
in twenty garbage. Committed metadata is written directly; the listing is handed
in as files. Both sides write the rows that go as Parquet. Spark's start is not counted.
"""

import argparse
import resource
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from desilt import spark
from desilt.domain.entry import Entry
from desilt.domain.history import new_commit
from desilt.domain.reason import Reason
from desilt.domain.run import Run
from desilt.frames.buckets import hashed
from desilt.frames.schemas import HELD, INVENTORY
from desilt.jobs.judging import Answer, judge, questions
from desilt.lake import Lake, Repository, commits
from desilt.lake.apply import apply
from desilt.lake.lake import locate
from desilt.lake.staging import CHANGES
from desilt.sources.held import put
from desilt.sources.inventory import inventory_rows
from desilt.sources.lake import LakeSource
from desilt.sources.spread import OnSpark
from desilt.sstable.values import encode_entry
from machine import keep

BRANCHES, COMMITS = 200, 2_000
OLD, NOW = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)
ADDRESS = "branches/d5ari0dei0bs72fp{branch:04d}/62293363200000_d5ari0dei0bs72fpblu0/d5ari0dei0{number:010d}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", default="1000000")
    spread = OnSpark(spark.session("benchmark"))
    spread(len, ["warm", "up"])
    rows = [measure(int(objects), spread) for objects in parser.parse_args().objects.split(",")]
    keep("mark", {"rows": rows})


def measure(objects: int, spread: OnSpark) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as directory:
        repo = Lake.create(locate(f"{directory}/lake")).create_repository("bench", clock_at=NOW)
        branch = np.arange(objects) % BRANCHES
        addresses = pa.array([ADDRESS.format(branch=b, number=n) for n, b in enumerate(branch.tolist())])
        kind = np.random.default_rng(1).choice(3, objects, p=[0.70, 0.25, 0.05])  # committed, staged, garbage
        fill(repo, addresses.filter(pa.array(kind == 0)))
        run = Run("00000000000000-00000000", "gc", NOW)
        source = LakeSource(repo, spread)
        first = timed(source.committed)[0]
        inventory, staged = handed_in(repo, run, addresses, addresses.filter(pa.array(kind == 1)))

        def mark() -> Answer:
            committed = source.committed()
            held = {Reason.COMMITTED: committed.files, Reason.STAGED: [staged]}
            folder = f"{repo.prefix}{run.folder}plan/"
            asked = questions(
                repo.store.uri,
                inventory,
                held,
                before=NOW - timedelta(days=1),
                folder=folder,
                width=spread.width,
            )
            return sum(spread(judge, asked), Answer())

        ours, answer = min((timed(mark) for _ in range(3)), key=lambda pair: pair[0])
        garbage = int((kind == 2).sum())
        assert answer.objects.total() == objects
        assert sum(n for (_, reason), n in answer.objects.items() if reason == "unreferenced") == garbage
        theirs = alternative(Path(directory), addresses, kind, garbage)
        row = {
            "objects": objects,
            "garbage": garbage,
            "decode_ranges_once_seconds": round(first, 2),
            "mark_seconds": round(ours, 2),
            "duckdb_seconds": round(theirs, 2),
            "times_duckdb": round(ours / theirs, 2),
            "driver_peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        }
        print(row)
        return row


def fill(repo: Repository, addresses: pa.Array) -> None:
    """Commits over so many entries, each with ranges of its own branch."""
    paths = [f"tables/{number:010d}".encode() for number in range(len(addresses))]
    template = encode_entry(Entry("", ADDRESS.format(branch=0, number=0), 1_000, "0" * 32, 0))
    at, width = template.index(b"branches/"), len(ADDRESS.format(branch=0, number=0))
    values = np.tile(np.frombuffer(template, np.uint8), (len(addresses), 1))
    values[:, at : at + width] = np.frombuffer("".join(addresses.to_pylist()).encode(), np.uint8).reshape(-1, width)
    packed = pa.Array.from_buffers(pa.binary(len(template)), len(addresses), [None, pa.py_buffer(values.tobytes())])
    table = pa.record_batch([pa.array(paths, pa.binary()), packed.cast(pa.binary())], schema=CHANGES)
    size = -(-len(addresses) // BRANCHES)
    parent = repo.resolve("main").commit
    with repo.database.write() as tx:
        for number in range(COMMITS):
            if number < BRANCHES:
                metarange = apply(repo.ranges, "", [table.slice(number * size, size)])
            made = new_commit(
                parents=[parent], metarange=metarange, created_at=OLD, committer="", message=str(number), metadata={}
            )
            commits.insert(tx, repo.uid, made)


def handed_in(repo: Repository, run: Run, addresses: pa.Array, staged: pa.Array):
    """The listing and the staged set, as the files that a run would have written."""
    folder = f"{repo.prefix}{run.folder}inputs/"
    sizes, times = (
        pa.array(np.full(len(addresses), 1_000)),
        pa.array([OLD]).take(pa.array(np.zeros(len(addresses), int))),
    )
    listing = inventory_rows(addresses, sizes, times.cast(INVENTORY.field("modified_at").type))
    step = 500_000
    inventory = [
        put(
            repo.store,
            f"{folder}inventory/part-{at:09d}.parquet",
            hashed(listing.slice(at, step), addresses.slice(at, step)),
        )
        for at in range(0, len(addresses), step)
    ]
    held = pa.table([staged, pa.array(np.zeros(len(staged), np.int32))], schema=HELD)
    return inventory, put(repo.store, f"{folder}staged.parquet", hashed(held))


def alternative(directory: Path, addresses: pa.Array, kind: np.ndarray, garbage: int) -> float:
    """The same set difference in DuckDB, from Parquet to Parquet."""
    sizes = np.full(len(addresses), 1_000)
    pq.write_table(pa.table({"address": addresses, "size": sizes}), directory / "inventory.parquet", compression="zstd")
    held = addresses.filter(pa.array(kind != 2))
    pq.write_table(pa.table({"address": held}), directory / "held.parquet", compression="zstd")
    question = f"""COPY (SELECT * FROM '{directory}/inventory.parquet' i WHERE NOT EXISTS
        (SELECT 1 FROM '{directory}/held.parquet' h WHERE h.address = i.address))
        TO '{directory}/plan.parquet' (FORMAT parquet)"""
    seconds = min(timed(lambda: duckdb.sql(question))[0] for _ in range(3))
    assert pq.read_metadata(directory / "plan.parquet").num_rows == garbage
    return seconds


def timed(work):
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


if __name__ == "__main__":
    main()
