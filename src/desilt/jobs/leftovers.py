"""What a sweep was to remove and did not: failed deletes, and what came back to life. The next run looks again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from desilt.columns.buckets import hashed
from desilt.columns.files import HeldFile, put
from desilt.columns.layout import Layout
from desilt.columns.settled import settled
from desilt.executors.executor import Executor
from desilt.inventory.listing import inventory_rows
from desilt.objects import open_store
from desilt.objects.store import Result
from desilt.records.ledger import BatchRow
from desilt.repository.protocol import Repository
from desilt.runs.folder import Folder
from desilt.runs.plan import Plan, run_of
from desilt.sweep.outcome import HELD_AGAIN, read_outcome

BATCHES_TO_A_FILE = 500


@dataclass(frozen=True, slots=True)
class Some:
    """The results of some batches, some of whose objects are still there."""

    store: str
    keys: tuple[str, ...]
    settled: Mapping[str, str] | None
    layout: Layout
    target: str


def gather(
    repository: Repository,
    executor: Executor,
    plan: Plan,
    batches: Sequence[BatchRow],
    settled: Mapping[str, str] | None,
) -> list[HeldFile]:
    """Files of what is left; with ``settled``, only where no listing would find it again."""
    folder = Folder(repository.store, repository.prefix, run_of(plan))
    left = [one for one in batches if one.failed or one.held_again]
    keys = [folder.outcome + one.file for one in left]
    groups = [keys[at : at + BATCHES_TO_A_FILE] for at in range(0, len(keys), BATCHES_TO_A_FILE)]
    asked = [
        Some(
            repository.store.uri, tuple(group), settled, repository.layout, f"{folder.pending}left-{number:05d}.parquet"
        )
        for number, group in enumerate(groups)
    ]
    written = executor(write_left, asked, rows=sum(one.asked + one.held_again for one in left))
    return [file for file in written if file.rows]


def write_left(some: Some) -> HeldFile:
    """On an executor: those that are left, as INVENTORY."""
    store = open_store(some.store)
    rows = pa.concat_tables(read_outcome(store, key) for key in some.keys)
    rows = rows.filter(pc.is_in(rows["result"], pa.array([Result.FAILED.value, HELD_AGAIN])))
    rows = rows.combine_chunks()
    columns = [rows[name].combine_chunks() for name in ("address", "size_bytes", "modified_at")]
    table = inventory_rows(*columns)
    if some.settled is None:
        return put(store, some.target, hashed(table, columns[0]))
    over = pa.array(settled(table, some.settled, some.layout))
    return put(store, some.target, hashed(table.filter(over), columns[0].filter(over)))
