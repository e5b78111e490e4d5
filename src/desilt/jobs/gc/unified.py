"""Reports as lakeFS's own job writes them, so that what reads those goes on working: ``unified/<run>/``.

summary.json     what its job says: when it ran, up to when objects counted, how many went
deleted/         Parquet with one column, ``address``
deleted.text/    the same, a line each

What theirs counts as deleted was marked; here it is what went. Sizes, reasons and failures are in our own report.
"""

import io
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from desilt.domain.times import CLOCK_MARGIN
from desilt.objects.store import Result
from desilt.records.ledger import BatchRow, total
from desilt.repository.protocol import Repository
from desilt.runs.folder import Folder
from desilt.runs.plan import Plan, run_of
from desilt.sweep.outcome import read_outcome

ROWS_TO_A_PART = 1_000_000
DELETED = pa.schema([("address", pa.string())])


def write(repository: Repository, plan: Plan, batches: Sequence[BatchRow]) -> None:
    """Once a run has swept; written twice, they are written once. Nothing, where nobody looks for them."""
    if not repository.reports:
        return
    root = f"{repository.prefix}{repository.reports}unified/{plan.run}/"
    folder, removed = Folder(repository.store, repository.prefix, run_of(plan)), total(batches)
    for number, addresses in enumerate(_parts(repository, folder, batches)):
        sink = io.BytesIO()
        pq.write_table(pa.table([addresses], schema=DELETED), sink, compression="snappy")
        repository.store.put(f"{root}deleted/part-{number:05d}.snappy.parquet", [sink.getvalue()])
        lines = "".join(f"{address}\n" for address in addresses.to_pylist())
        repository.store.put(f"{root}deleted.text/part-{number:05d}.txt", [lines.encode()])
    said = {
        "run_id": plan.run,
        "success": not removed.failed,
        "first_slice": "",
        "start_time": _time(plan.started_at),
        "cutoff_time": _time(plan.now - repository.grace - CLOCK_MARGIN),
        "num_deleted_objects": removed.removed,
    }
    repository.store.put(f"{root}summary.json", [json.dumps(said).encode()])


def _parts(repository: Repository, folder: Folder, batches: Sequence[BatchRow]) -> Iterator[pa.Array]:
    """The addresses of what went, many together; one part at least, as there, though it be empty."""
    waiting, count, parts = [pa.array([], pa.string())], 0, 0
    for row in batches:
        rows = read_outcome(repository.store, folder.outcome + row.file)
        went = rows.filter(pc.equal(rows["result"], Result.REMOVED.value))["address"]
        waiting.append(went.combine_chunks())
        count += len(went)
        if count >= ROWS_TO_A_PART:
            yield pa.concat_arrays(waiting)
            waiting, count, parts = [pa.array([], pa.string())], 0, parts + 1
    if count or not parts:
        yield pa.concat_arrays(waiting)


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
