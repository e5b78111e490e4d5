"""Hard delete on against off: what writes cost, and what it saves; and staged entries listed, against the store.

    python benchmarks/hard_delete.py [--quick] [--only operations,bulk,workload,listing]

(1) Put, overwrite and rm, one at a time, on two repositories of one database, one with hard delete and one without,
in turns: medians. Objects in a directory are what people see, objects in memory what the database costs.
(2) Commit, reset and branch deletion of 1 k, 10 k and 40 k staged uploads, in turns likewise; objects in memory.
On PostgreSQL, once with statistics that have just been gathered, and, up to 2 k, with some that know nothing of the
repository, as a new one has it.
(3) A branch whose paths are overwritten all day, for days on a manual clock: hard delete with a worker every minute,
against gc once a day, both with the limits and times they are shipped with.
(4) 240 k staged entries listed through the lake, against as many objects listed from a directory; and fewer of both,
against an S3 server (SeaweedFS, on this machine).

SQLite lies in a directory and waits for the disk, as it is shipped; PostgreSQL is a server on this machine.
Each figure of (1) and (2) is both by the wall and in seconds of CPU, of this process and of PostgreSQL's for it: where
others use the machine, read the latter. With ``--quick``, nothing is kept.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import obstore

from desilt.domain import address
from desilt.domain.entry import Entry
from desilt.executors.executor import HERE
from desilt.jobs.gc import job as gc
from desilt.jobs.harddelete import worker
from desilt.jobs.runner import run
from desilt.lake import Lake, LakeRepository, refs, schema
from desilt.lake.partitions import new_uid
from desilt.objects import open_store
from desilt.objects.cloud import CloudStore
from desilt.objects.memory import MemoryStore, named
from desilt.objects.store import ObjectStore
from desilt.records.database import Database, open_database
from desilt.records.postgres import PostgreSQL
from desilt.repository.hard_delete import HardDeleteSetting
from desilt.sstable.values import encode_entry
from desilt.sweep.limits import Limits
from desilt.testing.servers import postgres, seaweedfs
from machine import keep

BODY = os.urandom(1_000)
STAGED = 10_000  # entries that a branch has while single operations are measured
WARM = 20  # rounds that are not counted
AIMS = {"put": 1.15, "overwrite": 1.15, "rm": 1.15, "commit": 1.15, "reset": 3.0, "branch deleted": 3.0}
START = datetime(2030, 1, 1, tzinfo=UTC)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
SURE = Limits(max_share=1.0, confirm=True)  # most of what such a branch stores is garbage: gc asks, we agree
AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is measured."""

    rounds: int = 300  # of single operations
    sizes: tuple[int, ...] = (1_000, 10_000, 40_000)
    unknown: tuple[int, ...] = (1_000, 2_000)
    repeats: int = 3  # of operations in bulk
    paths: int = 240
    days: int = 4
    listed: int = 240_000
    listed_s3: int = 24_000  # an S3 server on the same machine takes long to fill
    lists: int = 5


QUICK = Scale(
    rounds=30,
    sizes=(500, 2_000),
    unknown=(500, 1_000),
    repeats=3,
    paths=60,
    days=3,
    listed=5_000,
    listed_s3=1_000,
    lists=3,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default=",".join(PARTS))
    options = parser.parse_args()
    chosen, scale = options.only.split(","), QUICK if options.quick else Scale()
    measured = sources()  # before anything is: they may change meanwhile
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(postgres(directory / "postgres"))
        databases = {"SQLite": made(f"sqlite://{directory}/lake.db"), "PostgreSQL": made(url)}
        for database in databases.values():
            stack.callback(database.close)
        for name in chosen:
            figures = PARTS[name](databases, directory, scale)
            if not options.quick:
                keep(f"hard_delete_{name}", {**measured, "rows": figures})


def sources() -> dict[str, Any]:
    """The commit that is measured, and whether its sources are as they were committed."""
    head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    same = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", "src"]).returncode == 0
    return {"commit": head.stdout.strip(), "as_committed": same}


def made(url: str) -> Database:
    database = open_database(url, create=True)
    schema.create(database, storage="")
    return database


# ---- one at a time


def operations(databases: dict[str, Database], directory: Path, scale: Scale) -> list[dict[str, Any]]:
    rows = []
    print(f"{'database':<11} {'objects':<10} {'':<10} {HEADS} {'statements':>11}")
    for database, records in databases.items():
        for objects in ("memory", "directory"):
            store = MemoryStore() if objects == "memory" else open_store(str(directory / "objects" / database))
            for row in single(Lake(records, store), scale.rounds):
                rows.append({"database": database, "objects": objects, **row})
                sent = f"{row['statements_on']:>5} / {row['statements_off']}"
                print(f"{database:<11} {objects:<10} {row['what']:<10} {shown(row)} {sent}")
    return rows


def single(lake: Lake, rounds: int) -> Iterator[dict[str, Any]]:
    """Put, overwrite and rm of one path after the other, on both sides in turns."""
    pair = on_and_off(lake)
    for repo, watched in pair:
        stage(repo, "main", STAGED, watched=watched)
    acts: dict[str, Callable[[LakeRepository, str], object]] = {
        "put": lambda repo, path: repo.put("main", path, BODY),
        "overwrite": lambda repo, path: repo.put("main", path, BODY),
        "rm": lambda repo, path: repo.remove("main", path),
    }
    took: dict[str, dict[bool, list[Spent]]] = {what: {True: [], False: []} for what in acts}
    for number in range(WARM + rounds):
        for what, act in acts.items():
            for repo, watched in pair if number % 2 else reversed(pair):
                took[what][watched].append(spending(lake.database, lambda: act(repo, f"new/{number:06d}")))  # noqa: B023
    counted = {watched: [statements(lambda: act(repo, "last")) for act in acts.values()] for repo, watched in pair}  # noqa: B023
    for position, (what, seconds) in enumerate(took.items()):
        told = {f"statements_{'on' if side else 'off'}": counted[side][position] for side in (True, False)}
        yield {"what": what, **compared(seconds[True][WARM:], seconds[False][WARM:]), **told}


def statements(act: Callable[[], object]) -> int:
    """How many statements ``act`` sends, those that begin and end transactions not counted."""
    from desilt.records import postgres as postgres_records
    from desilt.records import sqlite as sqlite_records

    sent: Counter[str] = Counter()
    with ExitStack() as stack:
        for kind in (postgres_records.PostgreSQLTransaction, sqlite_records.SQLiteTransaction):
            for name in ("execute", "execute_many", "rows", "each", "one"):
                stack.enter_context(mock.patch.object(kind, name, counting(getattr(kind, name), sent)))
        act()
    return sent.total()


def counting(method: Callable[..., Any], sent: Counter[str]) -> Callable[..., Any]:
    def counted(self: object, sql: str, *values: object) -> Any:
        sent[sql] += 1
        return method(self, sql, *values)

    return counted


# ---- in bulk


def bulk(databases: dict[str, Database], _directory: Path, scale: Scale) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    print(f"{'database':<11} {'statistics':<10} {'':<15} {'uploads':>8} {HEADS} {'CPU on, µs each':>16}")
    for database, records in databases.items():
        known = {"SQLite": ("none",), "PostgreSQL": ("new", "old")}[database]
        for statistic, size in (
            (one, size) for one in known for size in (scale.unknown if one == "old" else scale.sizes)
        ):
            for row in at_once(Lake(records, MemoryStore()), size, scale.repeats, statistic):
                rows.append({"database": database, "statistics": statistic, "uploads": size, **row})
                each = row["cpu_on_ms"] * 1000 / size
                print(f"{database:<11} {statistic:<10} {row['what']:<15} {size:>8,} {shown(row)} {each:>16.1f}")
    return rows


def at_once(lake: Lake, size: int, repeats: int, known: str) -> Iterator[dict[str, Any]]:
    if known == "old":
        analyze(lake)
    pair = on_and_off(lake)
    acts: dict[str, Callable[[LakeRepository, str], object]] = {
        "commit": lambda repo, branch: repo.commit(branch, "all"),
        "reset": lambda repo, branch: repo.reset(branch),
        "branch deleted": lambda repo, branch: repo.delete_branch(branch, force=True),
    }
    took: dict[str, dict[bool, list[Spent]]] = {what: {True: [], False: []} for what in acts}
    for number in range(1 + repeats):
        for what, act in acts.items():
            for repo, watched in pair if number % 2 else reversed(pair):
                branch = staged_for(what, repo, size, watched=watched)
                if known == "new":
                    analyze(lake)
                before = repo.resolve("main").commit.id
                took[what][watched].append(spending(lake.database, lambda: act(repo, branch)))  # noqa: B023
                with repo.database.write() as tx:  # the next commit finds the branch as this one did
                    refs.move(tx, refs.branch(tx, repo.uid, "main").uid, head=before)
    for what, seconds in took.items():
        yield {"what": what, **compared(seconds[True][1:], seconds[False][1:])}


def staged_for(what: str, repo: LakeRepository, size: int, *, watched: bool) -> str:
    """The branch that it is to be done to, with so many uploads."""
    branch = "main"
    if what == "branch deleted":
        branch = repo.create_branch("work", "main").name
    stage(repo, branch, size, watched=watched)
    return branch


def analyze(lake: Lake) -> None:
    """Gather statistics of all tables."""
    with lake.database.write() as tx:
        tx.execute("ANALYZE")


# ---- a workload that overwrites


def workload(databases: dict[str, Database], _directory: Path, scale: Scale) -> dict[str, Any]:
    """The same days twice. What is stored is objects of data, all of one size; not what jobs write down beside them."""
    ways = {"hard delete": days(databases["SQLite"], scale, watched=True)}
    ways["gc once a day"] = days(databases["SQLite"], scale, watched=False)
    ours, theirs = ways.values()
    print(f"{'':<14} {'stored, mean':>13} {'at most':>9} {'to removal':>12} {'at most':>10}", end=" ")
    print(f"{'removed':>8} {'CPU a day':>10}")
    for name, way in ways.items():
        print(
            f"{name:<14} {way['mean']:>11.2f} × {way['most']:>7.2f} × {way['minutes_to_removal']:>8.0f} min"
            f" {way['minutes_at_most']:>6.0f} min {way['removed']:>8,} {way['cpu_seconds_a_day']:>8.2f} s"
        )
    ratios = {
        "stored": round(theirs["mean"] / ours["mean"], 2),
        "garbage": round((theirs["mean"] - 1) / (ours["mean"] - 1), 1),
        "to_removal": round(theirs["minutes_to_removal"] / ours["minutes_to_removal"], 1),
        "cpu": round(ours["cpu_seconds_a_day"] / theirs["cpu_seconds_a_day"], 1),
    }
    print(f"gc stores × {ratios['stored']}, garbage alone × {ratios['garbage']}; to removal × {ratios['to_removal']}")
    return {"paths": scale.paths, "overwritten_every_hours": HOURS, "days": scale.days, **ways, "gc_to_ours": ratios}


HOURS = 4  # between two writes of one path


def days(database: Database, scale: Scale, *, watched: bool) -> dict[str, Any]:
    """Every minute some paths are written; then a worker looks, or once a day the collector.

    What is stored counts from the third day on, when both have found their measure: in multiples of what is live.
    """
    store = named(f"days-{uuid.uuid4().hex}")
    repo = Lake(database, store).create_repository(f"days-{uuid.uuid4().hex[:8]}", clock_at=START)
    if watched:
        repo.hard_delete.switch(HardDeleteSetting())
    at_work = worker.Worker(repo)
    live: dict[int, str] = {}
    dropped: dict[str, datetime] = {}
    waited: list[timedelta] = []
    stored: list[float] = []
    cpu = 0.0
    every = HOURS * 60
    due = [[number for number in range(scale.paths) if number * every // scale.paths == at] for at in range(every)]
    for minute in range(scale.days * 24 * 60):
        now = START + minute * MINUTE
        repo.set_clock(now)
        for number in due[minute % every]:
            if number in live:
                dropped[live[number]] = now
            live[number] = repo.prefix + repo.put("main", f"tables/{number:05d}", BODY).address
        began = time.process_time()
        if watched:
            at_work.work()
        elif minute and minute % (24 * 60) == 0:
            run(gc.job, repo, HERE, gc.job.ask(), SURE)
        cpu += time.process_time() - began
        if watched or minute % (24 * 60) == 0:
            gone = set(dropped) - store._objects.keys()
            waited += [now - dropped.pop(key) for key in gone]
        if now - START >= 2 * DAY:
            stored.append((len(live) + len(dropped)) / len(live))
    assert waited
    assert set(live.values()) <= store._objects.keys()
    minutes = sorted(one / MINUTE for one in waited)
    return {
        "mean": round(statistics.mean(stored), 3),
        "most": round(max(stored), 3),
        "minutes_to_removal": round(statistics.median(minutes)),
        "minutes_at_most": round(minutes[-1]),
        "removed": len(waited),
        "cpu_seconds_a_day": round(cpu / scale.days, 2),
    }


# ---- listing


def listing(databases: dict[str, Database], directory: Path, scale: Scale) -> list[dict[str, Any]]:
    rows = []
    print(f"{'listed':<16} {'entries':>8} {'':>9} {'times a directory':>18} {'times S3':>9}")
    with seaweedfs(directory / "s3") as server:
        os.environ.update(server.env)
        bucket = open_store(f"{server.create_bucket(f'list-{uuid.uuid4().hex[:8]}')}/lake")
        assert isinstance(bucket, CloudStore)
        asyncio.run(filled(bucket, list(addresses("listed", scale.listed_s3))))
        rows += listed(databases, directory / "few", scale.listed_s3, scale.lists, bucket)
    rows += listed(databases, directory / "many", scale.listed, scale.lists, None)
    return rows


def listed(
    databases: dict[str, Database], directory: Path, count: int, times: int, bucket: ObjectStore | None
) -> list[dict[str, Any]]:
    """So many entries through the lake, and as many objects from stores, in turns."""
    ways: dict[str, Callable[[], int]] = {}
    for name, database in databases.items():
        repo = Lake(database, MemoryStore()).create_repository(f"list-{uuid.uuid4().hex[:8]}")
        stage(repo, "main", count, watched=False)
        ways[name] = partial(entries, repo)
    for key in addresses("listed", count):
        path = directory / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    ways["a directory"] = partial(objects_in, open_store(str(directory)))
    if bucket:
        ways["S3"] = partial(objects_in, bucket)
    took: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(times):
        for name, way in ways.items():
            began = time.perf_counter()
            assert way() == count, name
            took[name].append(time.perf_counter() - began)
    seconds = {name: statistics.median(some) for name, some in took.items()}
    rows = []
    for name, one in seconds.items():
        beside = {other: round(one / seconds[other], 2) for other in ("a directory", "S3") if other in seconds}
        rows.append({"listed": name, "entries": count, "seconds": round(one, 3), "times": beside})
        print(f"{name:<16} {count:>8,} {one:>7.2f} s {beside['a directory']:>17}× {beside.get('S3', ''):>8}")
    return rows


def entries(repo: LakeRepository) -> int:
    return sum(1 for _ in repo.list("main"))


def objects_in(store: ObjectStore) -> int:
    return sum(batch.num_rows for batch in store.list())


async def filled(store: CloudStore, keys: Sequence[str]) -> None:
    """One small object at each of ``keys``, some at once."""
    left = iter(keys)

    async def put() -> None:
        for key in left:
            await obstore.put_async(store.client, store.root + key, b"x")

    await asyncio.gather(*(put() for _ in range(AT_ONCE)))


# ---- what they share


def on_and_off(lake: Lake) -> list[tuple[LakeRepository, bool]]:
    """Two repositories of one database and one store: hard delete is on in the first."""
    name = uuid.uuid4().hex[:8]
    on, off = (lake.create_repository(f"{side}-{name}") for side in ("on", "off"))
    on.hard_delete.switch(HardDeleteSetting())
    return [(on, True), (off, False)]


def stage(repo: LakeRepository, branch: str, count: int, *, watched: bool) -> str:
    """So many uploads, staged directly, as if put while hard delete was on or off; the branch's head."""
    with repo.database.write() as tx:
        on = refs.branch(tx, repo.uid, branch)
        names = list(addresses(on.uid, count))
        tx.execute_many(
            "INSERT INTO staging (token, path, value, address) VALUES (?, ?, ?, ?)",
            (
                (on.token, path(number), encode_entry(Entry("", name, 1_000, "0" * 32, number)), name)
                for number, name in enumerate(names)
            ),
        )
        if watched:
            tx.execute_many(
                "INSERT INTO fresh (repository, address, size_bytes) VALUES (?, ?, ?)",
                ((repo.uid, name, 1_000) for name in names),
            )
    return on.head


def addresses(branch: str, count: int) -> Iterator[str]:
    now = datetime.now(UTC)
    for number in range(count):
        if number % address.PARTITION_OBJECTS == 0:
            partition = address.partition(now + number * timedelta(microseconds=1), new_uid(now))
        yield f"{address.branch_prefix(branch)}{partition}/{new_uid(now)}"


def path(number: int) -> bytes:
    return f"tables/events/day={number // 1_000:05d}/part-{number % 1_000:05d}.parquet".encode()


Spent = tuple[float, float]  # by the wall, and of CPU


def spending(database: Database, act: Callable[[], object]) -> Spent:
    """What ``act`` takes: the server's share of the CPU is that of the processes that serve us."""
    began, cpu = time.perf_counter(), cpu_of(database)
    act()
    return time.perf_counter() - began, cpu_of(database) - cpu


def cpu_of(database: Database) -> float:
    backends = [one.info.backend_pid for one in database._pool._idle] if isinstance(database, PostgreSQL) else []
    theirs = sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in backends)
    return time.process_time() + theirs / 1e9


def compared(on: Sequence[Spent], off: Sequence[Spent]) -> dict[str, float]:
    figures: dict[str, float] = {}
    for kind, ours, bare in zip(("wall", "cpu"), zip(*on, strict=True), zip(*off, strict=True), strict=True):
        with_it, without = statistics.median(ours) * 1000, statistics.median(bare) * 1000
        figures |= {f"{kind}_on_ms": round(with_it, 3), f"{kind}_off_ms": round(without, 3)}
        figures[f"{kind}_ratio"] = round(with_it / without, 3)
    return figures


def shown(row: dict[str, Any]) -> str:
    wall, cpu = (f"{row[f'{kind}_off_ms']:>8.2f} ms {row[f'{kind}_ratio']:>6.2f}×" for kind in ("wall", "cpu"))
    return f"{wall} {cpu} {AIMS[row['what']]:>6.2f}×"


HEADS = f"{'off, wall':>11} {'on':>7} {'off, CPU':>11} {'on':>7} {'aim':>7}"
PARTS = {"operations": operations, "bulk": bulk, "workload": workload, "listing": listing}

if __name__ == "__main__":
    main()
