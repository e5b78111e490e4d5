"""How fast tables are read and written: beside a reader in plain Python, and beside Parquet.

Run ``python benchmarks/sstable.py``; it prints a table and writes ``benchmarks/results/sstable.json``.
Each number is the best of several runs on one thread of the same process; ratios are what to compare.
"""

import hashlib
import io
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import naive_sstable as naive
from desilt.domain.entry import Entry
from desilt.sstable.columns import ENTRIES, entry_columns, scan_entries
from desilt.sstable.table import RAW, Table
from desilt.sstable.values import encode_entry
from desilt.sstable.writer import RangeWriter, write_table
from machine import keep

COUNT = 200_000
RUNS = 5


def generate(count: int) -> pa.RecordBatch:
    """Files of a partitioned table, as a lake would hold them."""
    entries = []
    for n in range(count):
        noise = hashlib.md5(str(n).encode()).hexdigest()
        day, part = divmod(n, 500)
        path = f"tables/events/date=2024-{day // 28 % 12 + 1:02}-{day % 28 + 1:02}/part-{part:05}-{noise[:8]}.parquet"
        address = f"data/{noise[:20]}/{noise[12:]}{noise[:14]}"
        moment = 1_700_000_000_000_000_000 + n * 1_234_567_891
        entries.append(Entry(path, address, 1000 + n * 7919 % 10**8, noise, moment))
    rows = sorted((entry.path.encode(), encode_entry(entry)) for entry in entries)
    return pa.RecordBatch.from_arrays(
        [pa.array([key for key, _ in rows], pa.binary()), pa.array([value for _, value in rows], pa.binary())],
        schema=RAW,
    )


def best(task: Callable[[], object], runs: int = RUNS) -> float:
    """Seconds of the fastest of several runs."""
    seconds = []
    for _ in range(runs):
        begin = time.perf_counter()
        task()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def naive_key_and_address(data: bytes) -> pa.Table:
    rows = [(key.decode(), naive.message_of(value)[1].decode()) for key, value in naive.records(data)]
    return pa.table({"path": [path for path, _ in rows], "address": [address for _, address in rows]})


def main() -> None:
    pa.set_cpu_count(1)
    records = generate(COUNT)
    written = write_table(records, kind="ranges")
    columns = entry_columns(records)
    parquet = io.BytesIO()
    plain = pa.Table.from_batches([columns])
    encodings = dict.fromkeys(("path", "address"), "DELTA_BYTE_ARRAY")
    pq.write_table(plain, parquet, compression="zstd", use_dictionary=False, column_encoding=encodings)
    stored = parquet.getvalue()

    def read_table() -> Table:
        return Table.from_bytes(written.data, "bench")

    def from_parquet(names: list[str] | None = None) -> pa.Table:
        return pq.read_table(io.BytesIO(stored), columns=names, use_threads=False)

    def ranges() -> None:
        writer = RangeWriter()
        for start in range(0, COUNT, 10_000):
            writer.add(records.slice(start, 10_000))
        writer.finish()

    pair = ["path", "address"]
    seconds = {
        "plain Python: path and address": best(lambda: naive_key_and_address(written.data), 3),
        "scan: raw keys and values": best(lambda: list(read_table().scan())),
        "scan: path and address": best(lambda: [batch.select(pair) for batch in scan_entries(read_table())]),
        "scan: all nine columns": best(lambda: list(scan_entries(read_table()))),
        "read: raw, the whole file verified": best(lambda: read_table().read()),
        "parquet: path and address": best(lambda: from_parquet(pair)),
        "parquet: all nine columns": best(lambda: from_parquet()),
        "write: one table": best(lambda: write_table(records, kind="ranges"), 3),
        "write: ranges, from batches of 10,000": best(ranges, 3),
    }
    assert pa.Table.from_batches(list(scan_entries(read_table())), ENTRIES).equals(plain)
    table = read_table()
    wanted = records["key"].take(pa.array(np.arange(0, COUNT, 199))).to_pylist()
    lookup = best(lambda: [table.get(key) for key in wanted]) / len(wanted)

    slowest = seconds["plain Python: path and address"]
    ratios = {name: slowest / spent for name, spent in seconds.items() if not name.startswith("write")}
    print(f"{'':40}{'entries/s':>12}{'× plain':>10}")
    for name, spent in seconds.items():
        ratio = f"{ratios[name]:.1f}" if name in ratios else ""  # there is no plain writer to compare with
        print(f"{name:40}{COUNT / spent:>12,.0f}{ratio:>10}")
    print(f"{'get: one key of an open table':40}{1 / lookup:>12,.0f}")
    print(f"sizes: table {len(written.data):,} B, parquet {len(stored):,} B")
    figures = {
        "entries": COUNT,
        "entries_per_second": {name: round(COUNT / spent) for name, spent in seconds.items()},
        "times_plain_python": {name: round(ratio, 2) for name, ratio in ratios.items()},
        "lookups_per_second": round(1 / lookup),
        "bytes": {"table": len(written.data), "parquet_zstd": len(stored)},
    }
    keep("sstable", figures)


if __name__ == "__main__":
    main()
