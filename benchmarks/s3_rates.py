"""On an S3 server: listing and sweeping by one executor, against bare loops of the same calls.

    python benchmarks/s3_rates.py [--objects 20000] [--rounds 6] [--databases sqlite,postgresql]
        [--partitions 1]

SeaweedFS on this machine, small objects in partitions. *Listing* is what tasks of an
inventory do: folders found, listed, and written down; the loop asks for one page after
another and throws it away. SeaweedFS is listed folder by folder, since it loses keys in one
stream that begins in the middle. *Sweeping* is what one task does with its pieces of a
plan: rows read and verified, condemned in a real database, removed, written down; the
loop sends the same keys, a thousand to a DeleteObjects. Both have one DeleteObjects on its way
at a time. Objects of both are stored in turns, in the order of their keys: what was stored together
is removed sooner. In turns, in one run; the rate is the median of all turns' own ratios. Seconds are by
the wall, for the server's work is in them; CPU of this process stands beside.
"""

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import obstore
import pyarrow as pa

from desilt.domain.run import Run
from desilt.executors.executor import HERE
from desilt.jobs import runner as running
from desilt.jobs.gc.job import job
from desilt.jobs.situation import situation
from desilt.lake import Lake, LakeRepository, restored
from desilt.lake.lake import locate
from desilt.objects.buckets import Client, connect
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
from desilt.testing.servers import postgres, seaweedfs
from large_lake import ADDRESS
from machine import keep
from sweep import Took, Watch
from sweep_growth import rows

BODY = bytes(100)
AT_ONCE = 16  # uploads
PAGE = 1_000
LISTINGS = 3  # turns in a round: nothing is gone after one


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--databases", default="sqlite,postgresql")
    options = parser.parse_args()
    found: dict[str, Any] = {}
    for database in options.databases.split(","):
        with served(database) as (bucket, url):
            found[database] = measured(bucket, url, options.objects, options.rounds, options.partitions)
        for what, one in found[database].items():
            print(
                f"{database:<11} {what:<6} {one['ours_per_second']:>8,} / s  loop {one['loop_per_second']:>8,} / s"
                f"  {one['rate']:>5.2f}×   CPU {one['cpu_us']:>5.1f} µs, loop {one['loop_cpu_us']:>5.1f} µs an object"
            )
    keep(
        "s3_rates",
        {
            "objects": options.objects,
            "partitions": options.partitions,
            "rounds": options.rounds,
            "server": "SeaweedFS",
            **found,
        },
    )


@contextmanager
def served(database: str) -> Iterator[tuple[str, str]]:
    """A bucket, and the URL of a database."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(seaweedfs(directory / "s3"))
        os.environ.update(server.env)
        server.create_bucket("lake")
        url = f"sqlite://{directory}/lake.db"
        if database == "postgresql":
            url = stack.enter_context(postgres(directory / "database"))
        yield "lake", url


def measured(bucket: str, url: str, objects: int, rounds: int, partitions: int) -> dict[str, Any]:
    """Both, by us and by a loop, in turns."""
    repo = Lake.create(locate(f"s3://{bucket}/here", db=url)).create_repository("bench")
    client = connect("s3", bucket)
    with repo.database.write() as tx:  # the server keeps folders that are empty
        restored.adopt(tx, [ADDRESS.format(branch=one, number=0).rpartition("/")[0] + "/" for one in range(partitions)])
    took: dict[str, list[tuple[Took, Took]]] = {"list": [], "sweep": []}
    for number in range(rounds):
        going = rows(objects, number * objects, partitions=partitions)
        ours = sorted(f"here/{repo.prefix}{address}" for address in going["address"].to_pylist())
        theirs = [key.replace("here/", "there/", 1) for key in ours]
        plan = planned(repo, going)
        upload(client, [key for pair in zip(ours, theirs, strict=True) for key in pair])
        for turn in range(LISTINGS):
            took["list"].append(turns(turn, partial(listed, repo, objects), partial(pages, client, objects)))
        took["sweep"].append(turns(number, partial(swept, repo, plan), partial(deleted, client, theirs)))
        assert not any(one.num_rows for one in repo.store.list(f"{repo.prefix}branches/"))
    return {what: compared(some, objects) for what, some in took.items()}


def turns(number: int, ours: Callable[[], Took], theirs: Callable[[], Took]) -> tuple[Took, Took]:
    """Who comes first changes with every round."""
    if number % 2:
        last = theirs()
        return ours(), last
    return ours(), theirs()


def compared(some: list[tuple[Took, Took]], objects: int) -> dict[str, Any]:
    """The median of each side, and of the ratios of those who took turns; every turn stands beside."""
    ours, theirs = (median(one[side].seconds for one in some) for side in (0, 1))
    cpu, loop_cpu = (min(one[side].cpu for one in some) for side in (0, 1))
    return {
        "ours_per_second": round(objects / ours),
        "loop_per_second": round(objects / theirs),
        "rate": round(median(other.seconds / one.seconds for one, other in some), 2),
        "cpu_us": round(cpu / objects * 1e6, 1),
        "loop_cpu_us": round(loop_cpu / objects * 1e6, 1),
        "every_round": [[one.seconds, other.seconds] for one, other in some],
    }


def upload(client: Client, keys: list[str]) -> None:
    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(lambda key: obstore.put(client, key, BODY, use_multipart=False), keys))


def listed(repo: LakeRepository, objects: int) -> Took:
    """By an inventory, all pieces of which run here, one after another."""
    watch = Watch()
    found = repo.source(HERE).inventory(Run("00000000000000-00000000", "gc", repo.clock()))
    took = watch.took()
    assert sum(one.file.rows for one in found.listed) == objects
    return took


def pages(client: Client, objects: int) -> Took:
    """By one stream of pages."""
    watch = Watch()
    seen = sum(pa.record_batch(page).num_rows for page in obstore.list(client, "there", return_arrow=True))
    took = watch.took()
    assert seen == objects
    return took


def planned(repo: LakeRepository, going: pa.Table) -> Plan:
    """A run at work, by whose plan all of them go, however young."""
    run_id = running.plan(job, repo, HERE).run
    folder = Folder(repo.store, repo.prefix, folders.find(repo.store, repo.prefix, run_id))
    empty = plans.read(folder, repo.secret)
    files = plan_files.write(repo.store, f"{folder.plan}part-00000.parquet", going)
    made = replace(empty, steps=(RemoveObjects(files),))
    seen = situation(job, repo, made)
    with repo.database.write() as tx:
        ledger.begin(tx, repo.uid, row_of(made, Limits(), seen, 0))
    return made


def swept(repo: LakeRepository, plan: Plan) -> Took:
    """By pieces of a sweep that run here, one after another."""
    with locks.held(repo.database, repo.uid, run=plan.run) as lock:
        (step,) = plan.steps_of(RemoveObjects)
        pieces = sweeping.pieces(Sweep(repo, plan, lock, HERE), step, set())
        watch = Watch()
        asked = sum(HERE(sweeping.sweep_piece, pieces))
        took = watch.took()
    with repo.database.read() as tx:
        assert asked == plan.removes.objects == ledger.total(ledger.batches(tx, repo.uid, plan.run)).removed
    return took


def deleted(client: Client, keys: list[str]) -> Took:
    """By bulk calls, one after another."""
    watch = Watch()
    for at in range(0, len(keys), PAGE):
        obstore.delete(client, keys[at : at + PAGE])
    return watch.took()


if __name__ == "__main__":
    main()
