"""A thousand days of daily runs on a manual clock: what day 1,000 costs against day 10.

    python benchmarks/thousand_days.py [--days 1000]

Every day is the same: 200 of a branch's 10,000 entries are uploaded anew and committed,
50 more uploads are staged and dropped, and `gc run` takes what was dropped the day
before. Before the first of these days three weeks have passed. There are two such lakes.
(1) In one history is bounded: once a week it is expired to seven days and collected,
as `desilt upkeep` would. (2) In the other nobody ever does that: every commit holds what
it has, so what a run compares grows by what is committed.

Each lake is a process, with files below TMPDIR; figures are medians of two weeks around
a day, in seconds of CPU. Uploads and commits are not in a day's, and weekly runs are told apart.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from desilt.domain.entry import Entry
from desilt.domain.times import nanoseconds
from desilt.executors.executor import HERE
from desilt.jobs.collect.job import job as collect
from desilt.jobs.expire.job import job as expire
from desilt.jobs.gc.job import job as gc
from desilt.jobs.job import Job, Request
from desilt.jobs.runner import run
from desilt.lake import Lake, LakeRepository, refs
from desilt.lake.lake import locate
from desilt.lake.partitions import new_uid
from desilt.objects.local import LocalStore
from desilt.runs.report import Report
from desilt.sstable.values import encode_entry
from desilt.sweep.limits import Limits
from machine import keep

START = datetime(2030, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
ENTRIES, CHANGED, DROPPED = 10_000, 200, 50
RAGGEDNESS = 500  # entries to a range: a change rewrites a few of them, as in a big branch
KEPT = timedelta(days=7)  # of history
WEEK = 7
PAST = 3 * WEEK  # days before the first run
MOMENTS = (10, 100, 300, 1_000)
LAKES = {"bounded": True, "growing": False}
SURE = Limits(max_share=1.0, confirm=True, allow_empty=True)
PATH = "tables/{:06d}"
BODY = b"x" * 100
TABLES = ("commits", "collected", "dropped", "partitions", "move_marks", "runs", "batches", "tombstones")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=1_000)
    options = parser.parse_args()
    figures: dict[str, object] = {"days": options.days}
    with ProcessPoolExecutor(len(LAKES), mp_context=get_context("spawn")) as processes:
        for name, days in zip(LAKES, processes.map(live, LAKES, [options.days] * len(LAKES)), strict=True):
            figures[name] = summary(name, days)
    keep("thousand_days", figures)


def live(name: str, days: int) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as directory:
        return list(lived(Path(directory), days, bounded=LAKES[name]))


def summary(name: str, days: list[dict[str, Any]]) -> dict[str, Any]:
    rows = [told(days, moment) for moment in MOMENTS if moment <= days[-1]["day"]]
    show(name, rows)
    first, last = rows[0], rows[-1]
    found = {"rows": rows, "ratio": round(last["cpu"] / first["cpu"], 2)}
    print(f"day {last['day']:,} takes {found['ratio']} × day {first['day']}")
    if not LAKES[name]:
        found["microseconds_a_thousand_entries"] = slope_of(days)
        print(f"{slope_of(days):.0f} µs of CPU more for every thousand entries that were committed")
    return found


def lived(directory: Path, days: int, *, bounded: bool) -> Iterator[dict[str, Any]]:
    """What the run of each day came to."""
    root = directory / "lake"
    hasty = Lake(Lake.create(locate(str(root))).database, LocalStore(root, fsync=False), raggedness=RAGGEDNESS)
    repo = hasty.create_repository("bench", clock_at=START - (PAST + 1) * DAY)
    write(repo, root, map(PATH.format, range(ENTRIES)))
    repo.commit("main", "everything")
    for day in range(1 - PAST, days + 1):
        repo.set_clock(START + day * DAY)
        write(repo, root, [PATH.format(number % ENTRIES) for number in range(day * CHANGED, (day + 1) * CHANGED)])
        repo.commit("main", str(day))
        write(repo, root, map("tmp/{:06d}".format, range(DROPPED)))
        repo.reset("main")
        repo.set_clock(START + day * DAY + DAY / 4)
        weekly = 0.0
        if day > 0:
            cpu, report = timed(repo, gc, gc.ask())
            assert report.swept is not None
            assert report.swept.removed == DROPPED * (PAST if day == 1 else 1), (day, report.swept)
        if bounded and day % WEEK == 0:
            repo.set_clock(START + day * DAY + DAY / 2)
            weekly = timed(repo, expire, expire.ask(older_than=KEPT, sizes=False))[0]
            weekly += timed(repo, collect, collect.ask())[0]
        if day > 0:
            yield {
                "day": day,
                "cpu": cpu,
                "weekly": weekly,
                "stages": dict(report.seconds),
                "looked_at": report.inputs["objects"],
                "entries": report.inputs["committed entries"],
                "commits": report.inputs["commits"],
                "files": below(root / repo.prefix / "_desilt") if around(day) else {},
                "rows": rows_of(repo) if around(day) else {},
            }


def timed(repo: LakeRepository, job: Job[Any], request: Request[Any]) -> tuple[float, Report]:
    """Seconds of CPU that a run takes, and what it reports."""
    began = time.process_time()
    (report,) = run(job, repo, HERE, request, SURE)
    return time.process_time() - began, report


def write(repo: LakeRepository, root: Path, paths: Iterable[str]) -> None:
    """Uploads, staged: files in the day's partition, and rows in one transaction."""
    with repo.database.read() as tx:
        branch = refs.branch(tx, repo.uid, "main")
    now = repo.clock()
    partition, _, _ = repo._partitions.new_address(branch.uid).rpartition("/")
    (root / repo.prefix / partition).mkdir(parents=True, exist_ok=True)
    rows = []
    for path in paths:
        address = f"{partition}/{new_uid(now)}"
        descriptor = os.open(root / repo.prefix / address, os.O_WRONLY | os.O_CREAT)
        os.write(descriptor, BODY)
        os.utime(descriptor, (now.timestamp(), now.timestamp()))
        os.close(descriptor)
        value = encode_entry(Entry("", address, len(BODY), "0" * 32, nanoseconds(now)))
        rows.append((branch.token, path.encode(), value, address))
    with repo.database.write() as tx:
        tx.execute_many("INSERT INTO staging (token, path, value, address) VALUES (?, ?, ?, ?)", rows)


def around(day: int) -> int | None:
    """The moment that a day counts for: two weeks around it, or before the last of all."""
    return next((one for one in MOMENTS if -WEEK < day - min(one, MOMENTS[-1] - WEEK) <= WEEK), None)


def told(days: list[dict[str, Any]], moment: int) -> dict[str, Any]:
    """Medians of the days around a moment; files and rows as they were at the end of these."""
    some = [day for day in days if around(day["day"]) == moment]
    stages = {name: round(statistics.median(day["stages"][name] for day in some), 4) for name in some[0]["stages"]}
    return {
        "day": moment,
        "cpu": round(statistics.median(day["cpu"] for day in some), 4),
        "least": round(min(day["cpu"] for day in some), 4),
        "most": round(max(day["cpu"] for day in some), 4),
        "weekly": round(statistics.median([day["weekly"] for day in some if day["weekly"]] or [0]), 4),
        "stages_by_the_wall": stages,
        **{name: statistics.median(day[name] for day in some) for name in ("looked_at", "entries", "commits")},
        **{name: some[-1][name] for name in ("files", "rows")},
    }


def show(name: str, rows: list[dict[str, Any]]) -> None:
    print(f"history {name}:")
    print("".join(f"{column:>12}" for column in ("day", "CPU", "least", "most", "weekly", "entries", "looked at")))
    for row in rows:
        times = "".join(f"{row[column] * 1000:>9.1f} ms" for column in ("cpu", "least", "most", "weekly"))
        print(f"{row['day']:>12,}{times}{row['entries']:>12,.0f}{row['looked_at']:>12,.0f}")
    for row in rows:
        print(f"  {row['day']}: files {row['files']}, rows {row['rows']}")


def slope_of(days: list[dict[str, Any]]) -> float:
    """Microseconds of CPU for every thousand entries that commits have: the slope of a line through the days."""
    line = statistics.linear_regression([day["entries"] for day in days], [day["cpu"] for day in days])
    return round(line.slope * 1e9, 1)


def below(folder: Path) -> dict[str, int]:
    """How many files there are in each folder of ours."""
    found: Counter[str] = Counter()
    for one in os.scandir(folder):
        found[one.name] = sum(len(files) for _, _, files in os.walk(one.path))
    return dict(found)


def rows_of(repo: LakeRepository) -> dict[str, int]:
    """How many rows the tables have that grow."""
    with repo.database.read() as tx:
        return {name: int(tx.rows(f"SELECT COUNT(*) FROM {name}")[0][0]) for name in TABLES}


if __name__ == "__main__":
    main()
