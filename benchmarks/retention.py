"""Retention: what expired found against DuckDB, marked in the database, and tagged against bare loops of tag calls.

    python benchmarks/retention.py [--days 300,3000] [--objects 500,5000] [--rounds 3]

(1) A lake with a long past (:mod:`long_lake`): the mark of a run, against DuckDB, which computes the same answer from
the same cache files and writes the same rows. (2) The whole run on it: objects marked, batch by batch, in SQLite.
(3) Marked objects tagged on an S3 server (SeaweedFS, on this machine), against a loop that sets a tag on as many other
objects of the same bucket, one call after the other; and the same loop with as many calls at once as desilt makes. The
loops do not look for other tags first, and write nothing down.

Figures of (1) are seconds of CPU, the best of its rounds; of (2) and (3), by the wall.
"""

import argparse
import os
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import long_lake
from desilt.columns.rules import NEVER, Terms
from desilt.columns.schemas import MOMENT
from desilt.domain.retention import parse
from desilt.domain.run import Run
from desilt.executors.executor import HERE
from desilt.jobs.job import Mark, Work
from desilt.jobs.retention import job as retention
from desilt.jobs.retention.reach import reached
from desilt.jobs.runner import run
from desilt.lake import Lake, LakeRepository, schema
from desilt.objects import open_store
from desilt.objects.cloud import CloudStore
from desilt.objects.cloud_removal import AT_ONCE
from desilt.objects.s3_client import s3_client
from desilt.records.database import open_database
from desilt.sweep.limits import Limits
from desilt.testing.servers import seaweedfs
from lifecycle import addresses, asking, best, objects, reopened, timed
from long_lake import DAY, START
from machine import keep

NAMES = ("main", *(f"release-{number}" for number in range(long_lake.BRANCHES)))
DOCUMENT = parse(
    {
        "rules": [
            {"status": "enabled", "filter": {"prefix": f"{name}/logs/"}, "expiration": {"all": {"weeks": 1}}}
            for name in NAMES
        ]
    }
)
SURE = Limits(max_share=1.0, confirm=True, allow_empty=True)
TAG = {"TagSet": [{"Key": "lakefs-expire-now", "Value": "1"}]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", default="300,3000")
    parser.add_argument("--objects", default="500,5000")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    decided = [deciding(int(days), options.rounds) for days in options.days.split(",")]
    print(
        f"{'days':>6} {'entries':>10} {'expired':>9} {'decided':>9} {'DuckDB':>9} {'times DuckDB':>13} {'marked':>16}"
    )
    for row in decided:
        print(
            f"{row['days']:>6} {row['entries']:>10,} {row['expired']:>9,} {row['mark']['cpu']:>7.2f} s"
            f" {row['duckdb']['cpu']:>7.2f} s {row['times_duckdb']:>12.2f}× {row['marked_per_second']:>10,.0f} / s"
        )
    with tempfile.TemporaryDirectory() as directory, seaweedfs(directory) as server:
        os.environ.update(server.env)
        tagged = [tagging(int(count), server.create_bucket) for count in options.objects.split(",")]
    print(f"{'objects':>8} {'desilt':>9} {'loop':>9} {f'{AT_ONCE} at once':>11} {'times the loop':>15}")
    for one in tagged:
        print(
            f"{one['objects']:>8,} {one['desilt']:>7.2f} s {one['loop']:>7.2f} s {one['at_once']:>9.2f} s"
            f" {one['times_loop']:>14.2f}×"
        )
    growth = {
        "entries": round(decided[-1]["entries"] / decided[0]["entries"], 1),
        "decided": round(decided[-1]["mark"]["cpu"] / decided[0]["mark"]["cpu"], 1),
        "objects": round(tagged[-1]["objects"] / tagged[0]["objects"], 1),
        "tagged": round(tagged[-1]["desilt"] / tagged[0]["desilt"], 1),
    }
    print(f"{growth['entries']} × the entries: decided × {growth['decided']}", end="; ")
    print(f"{growth['objects']} × the objects: tagged × {growth['tagged']}")
    keep("retention", {"decided": decided, "tagged": tagged, "growth": growth, "rounds": options.rounds})


def deciding(days: int, rounds: int) -> dict[str, Any]:
    """What expired in a history of so many days, found by both; then marked."""
    with tempfile.TemporaryDirectory() as directory:
        repo = long_lake.make(Path(directory), days)
        marked(repo)  # ranges are decoded once in their life
        ask = alternative(repo, Path(directory))
        ours, theirs = [], []
        for _ in range(rounds):
            took, answer = timed(lambda: marked(repo))
            ours.append(took)
            theirs.append(timed(ask)[0])
            expired = addresses(*objects(repo, answer))
            assert expired == addresses(f"{directory}/plan.parquet") != set()
        with reopened(repo) as again:
            report = run(retention.job, again, HERE, retention.job.ask(document=DOCUMENT), SURE)[-1]
        return {
            "days": days,
            "entries": answer.figures.inputs["entries"],
            "expired": len(expired),
            "mark": best(ours),
            "duckdb": best(theirs),
            "times_duckdb": round(best(ours)["cpu"] / best(theirs)["cpu"], 2),
            "marked_per_second": round(len(expired) / report.seconds["sweep"]),
        }


def marked(repo: LakeRepository) -> Mark:
    """The part of a plan that decides, and writes down what goes; no page is made of it."""
    with reopened(repo) as again:
        request = retention.job.ask(document=DOCUMENT)
        return retention.mark(Work(a_run(again), again, again.source(HERE), HERE, request))


def a_run(repo: LakeRepository) -> Run:
    return Run("00000000000000-00000000", "retention", repo.clock())


def alternative(repo: LakeRepository, directory: Path) -> Callable[[], None]:
    """The same answer by DuckDB, on one core: from the same cache files, and who reaches which of their owners."""
    source, at = repo.source(HERE), repo.clock()
    staged, seen = source.staged_entries(a_run(repo)), source.snapshot(at)
    found = reached(source, seen, staged, DOCUMENT, (), at)
    root = repo.store.root  # type: ignore[attr-defined]
    owners = [
        (f"{root}/{one.file.key}", owner, threshold(found.terms, group))
        for one in found.entries
        for owner, group in enumerate(one.groups)
        if group >= 0
    ]
    paths, numbers, before = (list(column) for column in zip(*owners, strict=True))
    table = {"filename": paths, "owner": pa.array(numbers, pa.int32()), "before": pa.array(before).cast(MOMENT)}
    pq.write_table(pa.table(table), directory / "owners.parquet")
    return asking(f"""COPY (SELECT address, max(size_bytes) AS size_bytes, max(created_at) AS created_at,
            'remove' AS verdict, 'expired' AS reason, list(DISTINCT path) AS paths, ['rule 1 (all)'] AS rules
        FROM read_parquet({sorted(set(paths))}, filename = true, binary_as_string = true) e
        JOIN '{directory}/owners.parquet' o USING (filename, owner)
        GROUP BY address HAVING bool_and(starts_with(path, 'logs/') AND created_at < before))
        TO '{directory}/plan.parquet' (FORMAT parquet)""")


def threshold(terms: Terms, group: int) -> int:
    """Before when all rules together, each of which has the prefix, let a group go; the beginning of time: never."""
    one, before = terms.groups[group], terms.decided(group, bytes([1] * len(NAMES)))[0]
    return 0 if one.tagged or one.detached or one.held or before == NEVER else before


def tagging(count: int, create_bucket: Callable[[str], str]) -> dict[str, Any]:
    """As many objects marked and tagged by a run, and by the loops."""
    with tempfile.TemporaryDirectory() as directory:
        database = open_database(f"sqlite://{directory}/lake.db", create=True)
        schema.create(database, storage="")
        store = open_store(f"{create_bucket(f'tags-{uuid.uuid4().hex[:8]}')}/lake")
        assert isinstance(store, CloudStore)
        repo = Lake(database, store).create_repository("bench", clock_at=START)
        for number in range(count):
            repo.put("main", f"logs/{number}", b"x")
        repo.commit("main", "all")
        repo.set_clock(START + 30 * DAY)
        others = [f"others/{number}" for number in range(count)]
        for key in others:
            store.put(key, [b"x"])
        report = run(retention.job, repo, HERE, retention.job.ask(document=DOCUMENT), SURE)[-1]
        assert report.marks["tagged"].objects == count
        loop, at_once = by_hand(store, others, 1), by_hand(store, others, AT_ONCE)
        database.close()
    ours = report.seconds["sweep"]
    figures = {"objects": count, "desilt": ours, "loop": loop, "at_once": at_once}
    return {**figures, "times_loop": round(ours / loop, 2), "times_at_once": round(ours / at_once, 2)}


def by_hand(store: CloudStore, keys: Iterable[str], at_once: int) -> float:
    """How long it takes to tag ``keys``, some at once, by nothing but that call."""
    client = s3_client(store.bucket)

    def tag(key: str) -> None:
        client.put_object_tagging(Bucket=store.bucket, Key=store.root + key, Tagging=TAG)

    began = time.perf_counter()
    with ThreadPoolExecutor(at_once) as threads:
        list(threads.map(tag, keys))
    return round(time.perf_counter() - began, 3)


if __name__ == "__main__":
    main()
