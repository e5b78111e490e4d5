"""Sweep: does an object cost the same, however many go?

    python benchmarks/sweep_growth.py [--objects 50000,500000,2000000] [--rounds 2]

A plan of so many objects is swept by one process, batch by batch: rows read and
verified, condemned in a real SQLite database, written down. The objects are only
simulated: the store is a directory, for plan and outcomes, that answers *removed*
for every key it is asked to delete and does nothing. The named alternative is the
old way in the same run: each task fetches, hashes and checks its whole plan file.
It is left out where that would take too long. Tasks run here, one after another.
Read microseconds of CPU for each object, and their ratio to the smallest size.
"""

import argparse
import cProfile
import hashlib
import io
import pstats
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from desilt.columns.schemas import PLAN
from desilt.executors.executor import HERE
from desilt.jobs import runner as running
from desilt.jobs.gc.job import job
from desilt.jobs.gc.kernel import SAID
from desilt.jobs.situation import situation
from desilt.lake import Lake, LakeRepository
from desilt.lake.lake import locate
from desilt.objects.local import LocalStore
from desilt.objects.store import Outcome, Result, nothing
from desilt.records import ledger, locks
from desilt.runs import folder as folders
from desilt.runs import plan as plans
from desilt.runs import plan_files
from desilt.runs.folder import Folder
from desilt.runs.plan import Plan
from desilt.runs.steps import RemoveObjects
from desilt.sweep import batches as sweeping
from desilt.sweep.guard import row as row_of
from desilt.sweep.limits import Limits
from desilt.sweep.sweep import Sweep
from large_lake import ADDRESS, OLD
from machine import keep
from sweep import Took, Watch

BEARABLE = 500_000  # objects, for the old way
FOLDERS = 200
PARTS = {
    "read and check rows": ("batches.py", "plan_rows"),
    "condemn: one transaction a batch": ("gate.py", "condemn"),
    "record: the other transaction": ("gate.py", "settle"),
    "write the outcome file": ("outcome.py", "write_outcome"),
}
Rows = Callable[..., pa.Table]


class Simulated(LocalStore):
    """Says of everything that it is removed."""

    def delete_many(self, keys: Sequence[str], *, between: Callable[[], None] = nothing) -> list[Outcome]:
        between()
        return [Outcome(key, Result.REMOVED) for key in keys]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", default="50000,500000,2000000")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    sizes = sorted(int(size) for size in options.objects.split(","))
    found: list[dict[str, Any]] = []
    print(f"{'objects':>10} {'way':>12} {'seconds':>9} {'CPU':>9} {'µs/object':>10} {'of CPU':>8} {'of the least':>13}")
    for way, rows_of in (("sections", None), ("whole files", whole_file)):
        first = 0.0
        for objects in sizes:
            if rows_of and objects > BEARABLE:
                continue
            took = min((swept(objects, rows_of) for _ in range(options.rounds)), key=lambda one: one.cpu)
            each = took.cpu / objects * 1e6
            first = first or each
            row = {
                "way": way,
                "objects": objects,
                "seconds": took.seconds,
                "cpu_seconds": took.cpu,
                "us_per_object": round(took.seconds / objects * 1e6, 2),
                "cpu_us_per_object": round(each, 2),
                "times_the_smallest": round(each / first, 2),
            }
            found.append(row)
            print(
                f"{objects:>10,} {way:>12} {took.seconds:>7.2f} s {took.cpu:>7.2f} s {row['us_per_object']:>10.1f}"
                f" {each:>8.1f} {each / first:>12.2f}×"
            )
    shares = {str(objects): profiled(objects) for objects in (sizes[0], sizes[-1])}
    for objects, parts in shares.items():
        print(f"{int(objects):,} objects: " + ", ".join(f"{part} {share:.1%}" for part, share in parts.items()))
    keep(
        "sweep_growth",
        {
            "store": "a directory whose deletes do nothing",
            "database": "SQLite",
            "rows": found,
            "shares": shares,
            "rounds": options.rounds,
        },
    )


def swept(objects: int, rows_of: Rows | None = None, profile: cProfile.Profile | None = None) -> Took:
    """Time to sweep a plan of so many objects, with another way to read its rows if one is given."""
    with tempfile.TemporaryDirectory() as directory:
        repo, plan = planned(Path(directory), objects)
        real = sweeping.plan_rows
        sweeping.plan_rows = rows_of or real
        try:
            with locks.held(repo.database, repo.uid, run=plan.run) as lock:
                (step,) = plan.steps_of(RemoveObjects)
                pieces = sweeping.pieces(Sweep(repo, plan, lock, HERE), step, set())
                watch = Watch()
                if profile:
                    profile.enable()
                asked = sum(HERE(sweeping.sweep_piece, pieces))
                if profile:
                    profile.disable()
                took = watch.took()
        finally:
            sweeping.plan_rows = real
        with repo.database.read() as tx:
            total = ledger.total(ledger.batches(tx, repo.uid, plan.run))
        assert asked == total.removed == objects
        repo.database.close()
        return took


def planned(directory: Path, objects: int) -> tuple[LakeRepository, Plan]:
    """A repository, and a plan by which so many objects go that it never had."""
    lake = Lake.create(locate(f"{directory}/lake"))
    repo = Lake(lake.database, Simulated(directory / "lake")).create_repository("bench")
    run_id = running.plan(job, repo, HERE).run
    folder = Folder(repo.store, repo.prefix, folders.find(repo.store, repo.prefix, run_id))
    empty = plans.read(folder, repo.secret)
    files = plan_files.write(repo.store, f"{folder.plan}part-00000.parquet", rows(objects))
    made = replace(empty, steps=(RemoveObjects(files),))
    if objects <= BEARABLE:
        write_whole(repo, made, rows(objects))
    seen = situation(job, repo, made)
    with repo.database.write() as tx:
        ledger.begin(tx, repo.uid, row_of(made, Limits(), seen, 0))
    return repo, made


def rows(objects: int, first: int = 0, *, partitions: int = FOLDERS) -> pa.Table:
    numbers = range(first, first + objects)
    addresses = [ADDRESS.format(branch=number % partitions, number=number) for number in numbers]
    times = pa.array(np.full(objects, int(OLD.timestamp()) * 1_000_000)).cast(PLAN.field("modified_at").type)
    said = [pa.repeat(text, objects) for text in SAID.values()]
    return pa.table([addresses, np.full(objects, 1_000), times, *said], schema=PLAN)


def write_whole(repo: LakeRepository, plan: Plan, table: pa.Table) -> None:
    """The same rows as one file with one hash, as plans were written before."""
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", use_dictionary=list(SAID), write_page_checksum=True)
    repo.store.put(f"{plan.files[0].key}.whole", [sink.getvalue()])
    repo.store.put(f"{plan.files[0].key}.sha256", [hashlib.sha256(sink.getvalue()).hexdigest().encode()])


def whole_file(repo: LakeRepository, piece: sweeping.SweepPiece) -> pa.Table:
    """The old way to some rows: the file is fetched, hashed and checked whole, by each task."""
    data = repo.store.get(f"{piece.file.key}.whole")
    assert hashlib.sha256(data).hexdigest().encode() == repo.store.get(f"{piece.file.key}.sha256")
    table = pq.read_table(io.BytesIO(data))
    assert all(repo.layout.is_object(address) for address in table["address"].to_pylist())
    first, last = ((number - piece.first) * piece.plan.batch for number in (piece.numbers.start, piece.numbers.stop))
    return table.slice(first, last - first)


def profiled(objects: int) -> dict[str, float]:
    """What share of a sweep's time goes where, in one more round under a profiler."""
    profile = cProfile.Profile()
    total = swept(objects, profile=profile).seconds
    spent = {
        (Path(file).name, name): figures[3]
        for (file, _, name), figures in pstats.Stats(profile).stats.items()  # type: ignore[attr-defined]
    }
    return {part: round(spent.get(place, 0.0) / total, 3) for part, place in PARTS.items()}


if __name__ == "__main__":
    main()
