"""Lifecycle: a day's run as history grows, a full one against DuckDB, and a thousand branches.

    python benchmarks/lifecycle.py [--days 30,300,3000] [--rounds 5]

(1) A lake with a long past (:mod:`long_lake`) is run once, one more day is
committed, and that day is planned: from where the last run ended, and in full.
(2) Before that, a full mark against DuckDB, which computes the same answer from the
same cache files and writes the same rows. (3) A thousand branches that reach a
million entries. (4) How many commits two suggestions would save (:mod:`graphs`).

Everything runs in this process; each figure is the best of its rounds, in seconds
of CPU, with those by the wall beside them: the machine may be busy.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import graphs
import long_lake
from desilt.columns.rules import NEVER, Terms
from desilt.columns.schemas import MOMENT
from desilt.domain import cutoffs as cut
from desilt.domain.history import new_commit
from desilt.domain.policy import parse
from desilt.domain.run import Run
from desilt.executors.executor import HERE
from desilt.jobs.job import Mark, Work
from desilt.jobs.lifecycle import job as lifecycle
from desilt.jobs.lifecycle.reach import reached
from desilt.jobs.runner import plan, run
from desilt.lake import Lake, LakeRepository, commits
from desilt.lake.apply import apply
from desilt.lake.lake import locate
from desilt.runs.report import Report
from desilt.runs.steps import RemoveObjects
from desilt.sweep.limits import Limits
from large_lake import addresses_of, entries
from long_lake import DAY, START
from machine import keep
from runs import resident_mb

POLICY = parse({"logs": {"prefix": "logs/", "days": 7}})
SURE = Limits(max_share=1.0, confirm=True, allow_empty=True)
WIDE_BRANCHES, WIDE_ENTRIES = 1_000, 1_000_000
WIDE_POLICY = parse(
    {"r": {"prefix": "tables/00000", "days": 30, "branch_days": {f"b-*{digit}": 10 + digit for digit in range(10)}}}
)
Result = TypeVar("Result")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", default="30,300,3000")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--step", choices=["wide"], help=argparse.SUPPRESS)
    parser.add_argument("--directory", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        print(json.dumps(wide_measured(options.directory)))
    else:
        compare([int(days) for days in options.days.split(",")], options.rounds)


def compare(histories: list[int], rounds: int) -> None:
    wide = measure_wide()
    print(
        f"{WIDE_BRANCHES:,} branches over {WIDE_ENTRIES:,} entries: {wide['cpu']:.2f} s of CPU ({wide['wall']:.2f} s),"
        f" {wide['grew_mb']:,} MB more at the peak, {wide['groups']} groups, {wide['removed']:,} go"
    )
    columns = ("incremental", "full", "DuckDB", "mark before", "times DuckDB", "looked into")
    print(f"{'days':>6} {'entries':>10}" + "".join(f"{column:>14}" for column in columns))
    rows = []
    for days in histories:
        row = measure(days, rounds)
        rows.append(row)
        print(
            f"{days:>6} {row['entries']:>10,}{row['incremental']['cpu']:>12.2f} s{row['full']['cpu']:>12.2f} s"
            f"{row['duckdb']['cpu']:>12.2f} s{row['mark']['cpu']:>12.2f} s{row['times_duckdb']:>13.2f}×"
            f"{row['incremental']['looked_into']:>7,} of {row['commits']:,}"
        )
    growth = {side: round(rows[-1][side]["cpu"] / rows[0][side]["cpu"], 1) for side in ("incremental", "full")}
    times = histories[-1] // histories[0]
    print(f"{times} × the history: incremental × {growth['incremental']}, full × {growth['full']} (CPU)")
    there, suggested = graphs.compare(histories[-1])
    print(f"a history of {there['commits']:,} commits, {there['unreachable_share']:.0%} of which no branch reaches")
    for one in suggested:
        print(f"  {one['policy']}: looked into {one['by_branch']:,}; intersected by rule, {one['by_rule']:,}")
    figures = {"rows": rows, "growth": growth, "wide": wide, "graph": there, "by_rule": suggested, "rounds": rounds}
    keep("lifecycle", figures)


def measure(days: int, rounds: int) -> dict[str, Any]:
    """Plans of a history of so many days: before its first sweep, and on the day after."""
    with tempfile.TemporaryDirectory() as directory:
        repo = long_lake.make(Path(directory), days)
        cold, _ = timed(lambda: planned(repo, full=True))
        ask = alternative(repo, Path(directory))
        before, theirs = [], []
        for _ in range(rounds):
            took, answer = timed(lambda: marked(repo))
            before.append(took)
            theirs.append(timed(ask)[0])
            removed = addresses(*objects(repo, answer))
            assert removed == addresses(f"{directory}/plan.parquet") != set()
        run(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=POLICY), SURE)
        long_lake.add(repo, range(days, days + 1))
        repo.set_clock(repo.clock() + DAY)
        sides: dict[str, list[tuple[dict[str, float], Report]]] = {"incremental": [], "full": []}
        for _ in range(rounds):
            for side, results in sides.items():
                results.append(timed(lambda side=side: planned(repo, full=side == "full")))  # type: ignore[misc]
                assert results[-1][1].removed.objects == long_lake.CHANGED
        row: dict[str, Any] = {
            "days": days,
            "commits": answer.figures.inputs["commits"] + 1,
            "entries": answer.figures.inputs["entries"],
            "removed_before": len(removed),
            "decode_once": cold,
            "mark": best(before),
            "duckdb": best(theirs),
            "times_duckdb": round(best(before)["cpu"] / best(theirs)["cpu"], 2),
        }
        for side, results in sides.items():
            fastest = min(results, key=lambda one: one[0]["cpu"])[1]
            looked = fastest.inputs["commits looked into"]
            row[side] = best([took for took, _ in results]) | {"looked_into": looked, "stages": dict(fastest.seconds)}
        return row


def planned(repo: LakeRepository, *, full: bool) -> Report:
    with reopened(repo) as again:
        return plan(lifecycle.job, again, HERE, lifecycle.job.ask(policy=POLICY, full=full))


@contextmanager
def reopened(repo: LakeRepository) -> Iterator[LakeRepository]:
    """As a process of its own would open it: nothing is remembered from before."""
    lake = Lake.open(locate(str(repo.store.root)))  # type: ignore[attr-defined]
    try:
        yield lake.repository("bench")
    finally:
        lake.close()


def marked(repo: LakeRepository) -> Mark:
    """The part of a full plan that decides, and writes down what goes; no page is made of it."""
    with reopened(repo) as again:
        request = lifecycle.job.ask(policy=POLICY, full=True)
        return lifecycle.mark(Work(a_run(again), again, again.source(HERE), HERE, request))


def a_run(repo: LakeRepository) -> Run:
    return Run("00000000000000-00000000", "lifecycle", repo.clock())


def objects(repo: LakeRepository, answer: Mark) -> list[str]:
    """The files that say which objects go."""
    steps = (step for step in answer.steps if isinstance(step, RemoveObjects) and not step.tables)
    return [f"{repo.store.root}/{file.key}" for step in steps for file in step.files]  # type: ignore[attr-defined]


def addresses(*files: str) -> set[str]:
    return {address for file in files for address in pq.read_table(file, columns=["address"])["address"].to_pylist()}


def alternative(repo: LakeRepository, directory: Path) -> Callable[[], None]:
    """The same answer by DuckDB, on one core: from the same cache files, and who reaches which of their owners."""
    source, at = repo.source(HERE), repo.clock()
    seen = source.snapshot(at)
    found = reached(source, seen, POLICY, cut.resolve(POLICY, seen.names, at), set(seen.commits))
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
    question = f"""COPY (SELECT address, max(size_bytes) AS size_bytes, max(created_at) AS created_at,
            'remove' AS verdict, 'expired' AS reason, list(DISTINCT path) AS paths, ['logs'] AS rules
        FROM read_parquet({sorted(set(paths))}, filename = true, binary_as_string = true) e
        JOIN '{directory}/owners.parquet' o USING (filename, owner)
        GROUP BY address HAVING bool_and(starts_with(path, 'logs/') AND created_at < before))
        TO '{directory}/plan.parquet' (FORMAT parquet)"""
    return asking(question)


def asking(question: str) -> Callable[[], None]:
    """DuckDB on one core."""

    def ask() -> None:
        with duckdb.connect() as connection:
            connection.execute("SET threads = 1")
            connection.execute(question)

    return ask


def threshold(terms: Terms, group: int) -> int:
    """What the one rule's cutoff is for a group; the beginning of time, where something else keeps it."""
    one = terms.groups[group]
    before = terms.decided(group, b"\1")[0]
    return 0 if one.tagged or one.detached or one.held or before == NEVER else before


def measure_wide() -> dict[str, Any]:
    """Every branch with a commit of its own over nearly the same ranges: a join by branch would make a billion rows."""
    with tempfile.TemporaryDirectory() as directory:
        make_wide(Path(directory))
        command = [sys.executable, __file__, "--step", "wide", "--directory", directory]
        said = [subprocess.run(command, check=True, capture_output=True, text=True).stdout for _ in range(3)]
        return min((json.loads(one.splitlines()[-1]) for one in said[1:]), key=lambda one: one["cpu"])


def make_wide(directory: Path) -> None:
    repo = Lake.create(locate(f"{directory}/lake")).create_repository("bench", clock_at=START)
    numbers = np.arange(WIDE_ENTRIES)
    made_of = entries(numbers, addresses_of(numbers, numbers % WIDE_BRANCHES))
    ranges = repo.ranges.metarange(apply(repo.ranges, "", [made_of]))
    root = repo.resolve("main").commit
    for number in range(WIDE_BRANCHES):
        repo.create_branch(f"b-{number:04d}", "main")
        lacking = number % len(ranges)
        made = new_commit(
            parents=[root],
            metarange=repo.ranges.put_metarange([one for place, one in enumerate(ranges) if place != lacking]),
            created_at=START,
            committer="",
            message=str(number),
            metadata={},
        )
        with repo.database.write() as tx:
            commits.insert(tx, repo.uid, made)
        long_lake.point(repo, f"b-{number:04d}", made)
    repo.set_clock(START + 60 * DAY)


def wide_measured(directory: Path) -> dict[str, Any]:
    repo = Lake.open(locate(f"{directory}/lake")).repository("bench")
    before = resident_mb()
    took, report = timed(lambda: plan(lifecycle.job, repo, HERE, lifecycle.job.ask(policy=WIDE_POLICY, full=True)))
    peak = peak_mb()
    source, now = repo.source(HERE), repo.clock()
    seen = source.snapshot(now)
    found = reached(source, seen, WIDE_POLICY, cut.resolve(WIDE_POLICY, seen.names, now), set(seen.commits))
    return {
        **took,
        "branches": len(seen.branches),
        "entries": report.inputs["entries"],
        "rows_of_a_join_by_branch": report.inputs["entries"] * len(seen.branches),
        "ranges": len(found.ranges),
        "groups": len(found.terms.groups),
        "classes": len(found.terms.classes),
        "removed": report.removed.objects,
        "stages": dict(report.seconds),
        "grew_mb": round(peak - before),
    }


def peak_mb() -> float:
    """The most that this program ever took; ``ru_maxrss`` would count the one that started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def best(rounds: list[dict[str, float]]) -> dict[str, Any]:
    every = [one["cpu"] for one in rounds]
    return {
        "cpu": min(every),
        "wall": min(one["wall"] for one in rounds),
        "median_cpu": round(float(np.median(every)), 3),
    }


def timed(work: Callable[[], Result]) -> tuple[dict[str, float], Result]:
    began = time.perf_counter(), time.process_time()
    result = work()
    took = {"wall": round(time.perf_counter() - began[0], 3), "cpu": round(time.process_time() - began[1], 3)}
    return took, result


if __name__ == "__main__":
    main()
