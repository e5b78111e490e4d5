"""A plan of gc on a lakeFS server's repository: seconds, CPU, memory, and what the server is asked for.

    python benchmarks/lakefs.py [--only 6] [--after 0] [--anew 0] [--rounds 2]

The server is the model that tests have, in a process of its own, with a repository that is made directly
(:mod:`large_lakefs`); objects are files with nothing in them. Every plan is a process of its own, as from the command
line, in processes beside it where that pays, without Spark: first with nothing decoded, then again. Memory is the
most that all processes of a plan had at once. DuckDB does the plain set difference over the same files, tables decoded
already, with as many threads. What the server takes is told apart: a real one is not this one.

A server that says its blockstore is local is one of whose branches every entry is listed (see design 0047).
"""

import argparse
import base64
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

from large_lakefs import NAME, Shape
from machine import RESULTS, keep

SHAPES = [
    Shape(100_000, 50, 10),
    Shape(100_000, 250, 100),
    Shape(100_000, 50, 10, equal_sizes=True),
    Shape(100_000, 50, 10, blockstore="local"),
    Shape(100_000, 250, 100, blockstore="local"),
    Shape(1_000_000, 50, 10),
    Shape(1_000_000, 250, 100),
]
KINDS = {  # what is asked for, by the end of its path
    "/dump": "dump",
    "/gc/prepare_uncommited": "staged",
    "/objects/stat": "paths",
    "/objects/ls": "pages",
    "/diff": "differences",
}
OTHERS = "other"
KEYS = {
    "LAKECTL_CREDENTIALS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
    "LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY": "a-secret-that-nobody-may-ever-see",
}
TICK = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=int, help="so many of the shapes")
    parser.add_argument("--after", type=int, default=0, help="go on after so many, which were measured before")
    parser.add_argument("--anew", type=int, help="this shape alone, from 0 on; what is known of others stays")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--plan", help=argparse.SUPPRESS)
    parser.add_argument("--profile", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.plan:
        print(json.dumps(planned(options.plan, options.profile)))
        return
    columns = ("first", "CPU", "again", "CPU", "memory", "DuckDB", "÷ DuckDB", "requests")
    print(f"{'objects':>10} {'commits':>8} {'branches':>9}" + "".join(f"{column:>11}" for column in columns))
    anew, rows = options.anew, list[dict[str, Any]]()
    if options.after or anew is not None:
        rows = json.loads((RESULTS / "lakefs.json").read_text())["rows"][: options.after or None]
    for place in range(len(SHAPES))[options.after : options.only] if anew is None else [anew]:
        shape = SHAPES[place]
        row = measured(shape, options.rounds)
        rows[place : place + 1] = [row]
        first, again = row["first"], row["again"]
        took = (first["seconds"], first["cpu_seconds"], again["seconds"], again["cpu_seconds"])
        most = max(first["peak_mb"], again["peak_mb"])
        print(
            f"{shape.objects:>10,} {shape.commits:>8,} {shape.branches:>9,}"
            + "".join(f"{one:>9.2f} s" for one in took)
            + f"{most:>8,} MB{row['duckdb_seconds']:>9.2f} s{row['times_duckdb']:>10.2f}×"
            + f"{sum(again['asked'].values()):>11,}"
        )
        print(f"{'':>10} {shape.blockstore}{', equal sizes' if shape.equal_sizes else ''}: {again['asked']}")
        print(f"{'':>10} first {first['stages']}\n{'':>10} again {again['stages']}", flush=True)
        keep("lakefs", {"rows": rows})


def measured(shape: Shape, rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory, serving(Path(directory), shape) as server:
        first = server.plan()
        again = [server.plan() for _ in range(rounds)]
        best = min(again, key=lambda one: float(one["seconds"]))
        for one in (first, *again):
            assert one["garbage"] == server.told["garbage"], one
        took = min(in_duckdb(Path(directory), server.told) for _ in range(rounds + 1))
    return {
        **{name: told for name, told in server.told.items() if name != "endpoint"},
        "rounds": rounds,
        "first": first,
        "again": best,
        "duckdb_seconds": round(took, 3),
        "times_duckdb": round(best["seconds"] / took, 2),
    }


class Serving:
    """A server that runs, and plans of its repository."""

    def __init__(self, directory: Path, told: dict[str, Any], process: int) -> None:
        self.told, self._directory, self._process = told, directory, process
        self.environment = {
            **os.environ,
            **KEYS,
            "LAKECTL_SERVER_ENDPOINT_URL": told["endpoint"],
            "LAKEFS_BLOCKSTORE_LOCAL_PATH": os.path.realpath(directory / "blocks"),
            "DESILT_DB": f"sqlite://{directory}/records.db",
        }

    def plan(self) -> dict[str, Any]:
        """From the first import to the end; the server's own CPU apart."""
        self.asked()
        before, began = cpu_of(self._process), time.perf_counter()
        command = [sys.executable, __file__, "--plan", f"lakefs+{self.told['endpoint']}/{NAME}"]
        with subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, text=True) as process:
            peak = Peak(process.pid)
            said, _ = process.communicate()
            took, most = time.perf_counter() - began, peak.end()
        if process.returncode:
            raise SystemExit(f"a plan ended with {process.returncode}")
        return {
            "whole_seconds": round(took, 2),
            **json.loads(said.splitlines()[-1]),
            "peak_mb": most,
            "server_cpu_seconds": round(cpu_of(self._process) - before, 2),
            "asked": self.asked(),
        }

    def asked(self) -> dict[str, int]:
        """Requests since the last time, by kind."""
        pair = ":".join(KEYS.values()).encode()
        headers = {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
        request = urllib.request.Request(f"{self.told['endpoint']}/api/v1/asked", headers=headers)
        with urllib.request.urlopen(request) as answer:
            found = dict.fromkeys([*KINDS.values(), OTHERS], 0)
            for path, count in json.load(answer).items():
                found[next((kind for end, kind in KINDS.items() if path.endswith(end)), OTHERS)] += count
        return found


@contextmanager
def serving(directory: Path, shape: Shape) -> Iterator[Serving]:
    """A server with a repository of that shape, its files below ``directory``."""
    program = Path(__file__).with_name("large_lakefs.py")
    command = [sys.executable, str(program), str(directory / "blocks"), json.dumps(asdict(shape))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdin
        line = process.stdout.readline()
        if not line:
            raise SystemExit("there is no server")
        try:
            yield Serving(directory, json.loads(line), process.pid)
        finally:
            process.stdin.close()


def planned(uri: str, profile: str | None) -> dict[str, Any]:
    """Here and now; seconds from where imports are done, and how they were spent."""
    from desilt.executors.by_size import BySize
    from desilt.jobs import runner
    from desilt.jobs.gc.job import job
    from desilt.lakefs.opening import open_uri

    opened = open_uri(uri, None)
    executor, began = BySize(), time.perf_counter()

    def plan() -> Any:
        return runner.plan(job, opened.repository, executor)

    report = profiled(plan, profile) if profile else plan()
    took = time.perf_counter() - began
    place = executor.place
    executor.close()
    opened.close()
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {
        "seconds": round(took, 2),
        "cpu_seconds": round(sum(one.ru_utime + one.ru_stime for one in spent), 2),
        "stages": {**report.seconds, "everything else": round(took - sum(report.seconds.values()), 2)},
        "garbage": sum(one.objects for some in report.remove.values() for one in some.values()),
        "entries": report.inputs["committed entries"],
        "ranges": report.inputs["ranges"],
        "place": place,
    }


def profiled(plan: Any, file: str) -> Any:
    import cProfile

    profile = cProfile.Profile()
    found = profile.runcall(plan)
    profile.dump_stats(file)
    return found


def in_duckdb(directory: Path, told: Mapping[str, Any]) -> float:
    """The set difference over what the last plan had: listed, staged, and all tables decoded."""
    here = directory / "blocks" / NAME
    inputs = max(here.glob("**/inputs/inventory")).parent
    began = time.perf_counter()
    with duckdb.connect(config={"threads": len(os.sched_getaffinity(0))}) as connection:
        connection.sql(f"""COPY (SELECT address, size_bytes, modified_at FROM
            (SELECT folder || name AS address, size_bytes, modified_at FROM '{inputs}/inventory/**/*.parquet') i
            WHERE NOT EXISTS (SELECT 1 FROM '{here}/_desilt/ranges/**/*.parquet' c WHERE c.address = i.address)
            AND NOT EXISTS (SELECT 1 FROM '{inputs}/staged.parquet' s WHERE s.address = i.address))
            TO '{directory}/plan.parquet' (FORMAT parquet)""")
    took = time.perf_counter() - began
    assert pq.read_metadata(directory / "plan.parquet").num_rows == told["garbage"] + told["unlisted"]
    return took


class Peak:
    """Watches how much memory a process and all below it have."""

    def __init__(self, process: int) -> None:
        self._process, self._most, self._ended = process, 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def end(self) -> int:
        """The most there was at once, in megabytes."""
        self._ended.set()
        self._thread.join()
        return round(self._most)

    def _watch(self) -> None:
        while not self._ended.wait(0.05):
            self._most = max(self._most, sum(map(resident_mb, family(self._process))))


def family(process: int) -> list[int]:
    """A process and all below it."""
    found = [process]
    for one in found:
        try:
            tasks = list(Path(f"/proc/{one}/task").iterdir())
            found += [int(child) for task in tasks for child in (task / "children").read_text().split()]
        except OSError:  # it has ended
            continue
    return found


def resident_mb(process: int) -> float:
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def cpu_of(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


if __name__ == "__main__":
    main()
