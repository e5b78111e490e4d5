"""How long people wait for a command, from the shell and back: most of it is what the command has to load.

    python benchmarks/commands.py

The lake is the demo's (34 objects); `lifecycle simulate` replays 61 days of another, with 127 commits. Each command
runs three times in a process of its own, and the median counts; then once on Spark, where all of them once ran.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import chdir
from datetime import UTC, datetime, timedelta
from pathlib import Path

from machine import keep

DESILT = [sys.executable, "-m", "desilt"]
TIMES = 3
DAYS, COMMITS = 61, 127
POLICY = {"rules": {"logs": {"prefix": "logs/", "days": 14}, "tmp": {"prefix": "tmp/", "days": 3}}}
PLANS = {
    "gc plan": "gc plan demo",
    "lifecycle plan": "lifecycle plan demo --policy policy.json",
    "expire plan": "expire plan demo --older-than 14d",
    "collect plan": "collect plan demo",
    "pins": "pins demo",
    "stats": "stats demo",
    "upkeep plan": "upkeep plan demo --file upkeep.json",
    "lifecycle simulate": "lifecycle simulate long --policy policy.json --from 2026-01-01",
}
OTHERS = {
    "--help": "--help",
    "--version": "--version",
    "lake ls": "lake ls demo main",
    "restore": "restore demo last",
    "purge": "purge demo",
}


def main() -> None:
    with tempfile.TemporaryDirectory() as directory, chdir(directory):
        prepare()
        rows = [{"command": name, "seconds": median(line)} for name, line in OTHERS.items()]
        rows += [
            {"command": name, "seconds": median(line), "on Spark": once(f"{line} --spark")}
            for name, line in PLANS.items()
        ]
    for row in rows:
        spark = f"{row['on Spark']:>8.1f} s on Spark" if "on Spark" in row else ""
        print(f"{row['command']:<20}{row['seconds']:>8.2f} s{spark}")
    keep("commands", {"rows": rows})


def prepare() -> None:
    """The demo's lake with garbage in its trash, and a lake with a longer past."""
    (Path() / "policy.json").write_text(json.dumps(POLICY))
    (Path() / "upkeep.json").write_text(json.dumps({"gc": {}, "collect": {}, "expire": {"older_than": "14d"}}))
    (Path() / "story.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in story()))
    once("demo --keep demo --no-collect")
    once("gc run demo --to trash --confirm --max-share 60%")
    once("lake replay story.jsonl long#long")


def story() -> list[dict[str, object]]:
    start, step = datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=DAYS) / COMMITS
    found: list[dict[str, object]] = []
    for number in range(COMMITS):
        at = (start + number * step).isoformat()
        found += [
            {"do": "put", "branch": "main", "path": f"{folder}/{number}", "bytes": 1000, "at": at}
            for folder in ("logs", "tmp", "data")
        ]
        found.append({"do": "commit", "branch": "main", "message": f"commit {number}"})
    return found


def median(line: str) -> float:
    return round(statistics.median(once(line) for _ in range(TIMES)), 2)


def once(line: str) -> float:
    began = time.perf_counter()
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env["PYTHONPYCACHEPREFIX"] = str(Path("compiled").absolute())  # as after an installation
    done = subprocess.run([*DESILT, *line.split()], capture_output=True, text=True, env=env)
    took = time.perf_counter() - began
    assert done.returncode == 0, (line, done.stderr)
    return round(took, 2)


if __name__ == "__main__":
    main()
