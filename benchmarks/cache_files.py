"""A year of daily runs: what its cache files cost a mark, against those of one run over all of it.

    python benchmarks/cache_files.py [--days 365] [--rounds 5]

Every day some commits bring ranges of their own, and a run decodes them into a file.
A mark then finds where the ranges are, and reads the hashes and owners of each file:
measured with files that grow together, with files that do not, and with those of
one run that decodes everything at once. Everything runs in this process; marks take turns, once
all files are there; figures are the best of their rounds, in seconds of CPU.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence

import pyarrow as pa

from desilt.cache.ranges import Below, Placed, RangeDecoder, placed
from desilt.columns import classes
from desilt.columns.buckets import HASH, Bucket
from desilt.columns.files import Files
from desilt.domain.entry import Entry
from desilt.executors.executor import HERE
from desilt.objects import open_store
from desilt.objects.store import ObjectStore
from desilt.sstable.ranges import FOLDER, Ranges
from desilt.sstable.table import RAW
from desilt.sstable.values import RangeData, encode_entry
from machine import keep

RANGES_A_DAY, ENTRIES = 4, 1_000
PREFIX = "repos/bench/"
NEVER = 1 << 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        store = open_store(f"file://{directory}")
        days = [day(store, number) for number in range(options.days)]
        wanted = [one for some in days for one in some]
        sides = {"growing together": classes.FEW, "as they came": NEVER, "one run": NEVER}
        made: dict[str, float] = {}
        for name, few in sides.items():
            classes.FEW = few
            began = time.process_time()
            for number in range(1, len(days) + 1) if name != "one run" else [len(days)]:
                find(store, [one for day in days[:number] for one in day], name)
            made[name] = time.process_time() - began
            find(store, wanted, name)  # whatever was due
        classes.FEW = NEVER
        took = [{name: mark(store, wanted, name) for name in sides} for _ in range(options.rounds)]
        rows = []
        for name in sides:
            best, files = min(one[name] for one in took), len(find(store, wanted, name))
            rows.append({"files": name, "read": files, "mark": round(best, 4), "all_runs": round(made[name], 2)})
            print(f"{name:>17}: {files:>4} files, a mark {best:.4f} s, all runs together {made[name]:.1f} s")
        keep("cache_files", {"days": options.days, "entries": sum(one.count for one in wanted), "rows": rows})


def day(store: ObjectStore, number: int) -> list[RangeData]:
    """The ranges that a day brings."""
    ranges, found = Ranges(store, PREFIX), []
    for part in range(RANGES_A_DAY):
        at = (number * RANGES_A_DAY + part) * ENTRIES
        names = [f"d5ari0dei0{at + row:010d}" for row in range(ENTRIES)]
        keys = [f"tables/{number:05d}/{name}".encode() for name in names]
        values = [encode_entry(Entry("", f"branches/b/p/{name}", 1, "0" * 32, at)) for name in names]
        writer = ranges.writer()
        made = pa.RecordBatch.from_arrays([pa.array(keys), pa.array(values)], schema=RAW)
        found += [ranges.put(one) for one in (*writer.add(made), *writer.finish())]
    return found


def find(store: ObjectStore, wanted: Sequence[RangeData], name: str) -> list[Placed]:
    """The files of ``wanted``, each side's in a folder of its own."""
    decoder = RangeDecoder(FOLDER, Below(PREFIX))
    return placed(HERE, store, PREFIX, wanted, decoder=decoder, folder=f"_desilt/{name.replace(' ', '-')}/")


def mark(store: ObjectStore, wanted: Sequence[RangeData], name: str) -> float:
    """Seconds to find the files of all ranges, and to read what a judge compares."""
    began = time.process_time()
    files, rows = Files(store), 0
    for one in find(store, wanted, name):
        rows += files.rows(one.file, Bucket(0, 1), [HASH, "owner"]).num_rows
    assert rows == sum(one.count for one in wanted)
    return time.process_time() - began


if __name__ == "__main__":
    main()
