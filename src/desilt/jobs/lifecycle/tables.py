"""The tables that lifecycle keeps for others to read, where its document puts them: ``_lakefs/retention/lc/``.

policy/<run>.parquet            what the run applied: a row for each rule and branch
addresses/<date>/<run>-….parquet   every address that it was to remove, with paths and rules
stats/<date>.csv                a line for each run of that day
"""

import csv
import io
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from desilt.columns.schemas import MOMENT
from desilt.domain.cutoffs import resolve
from desilt.domain.policy import parse
from desilt.errors import NotFound
from desilt.records import ledger
from desilt.records.ledger import BatchRow
from desilt.repository.protocol import Repository
from desilt.runs.plan import Plan, run_of

FOLDER = "_lakefs/retention/lc/"

POLICY = pa.schema(
    [
        ("run_id", pa.string()),
        ("rule_id", pa.string()),
        ("prefix", pa.string()),
        ("branch", pa.string()),
        ("date_to_be_deleted", MOMENT),
    ]
)
"""One row per rule and branch; no branch: every one without a row of its own."""

STATS = ["run_id", "swept_at", "planned", "removed", "already_gone", "failed", "held_again", "removed_bytes"]


def write(repository: Repository, plan: Plan, batches: Sequence[BatchRow]) -> None:
    """All three, once the run has swept; written twice, they are written once."""
    rules = plan.evidence.rules
    assert rules is not None
    root, day = repository.prefix + FOLDER, f"{plan.now:%Y-%m-%d}"
    rows = resolve(parse(rules.document), [], plan.now).table
    columns = [
        [plan.run] * len(rows),
        [row.rule_id for row in rows],
        [row.prefix for row in rows],
        [row.branch for row in rows],
        [row.before for row in rows],
    ]
    sink = io.BytesIO()
    pq.write_table(pa.table(columns, schema=POLICY), sink)
    repository.store.put(f"{root}policy/{plan.run}.parquet", [sink.getvalue()])
    folder = f"{repository.prefix}{run_of(plan).folder}addresses/"
    for key in [key for batch in repository.store.list(folder) for key in batch["key"].to_pylist()]:
        repository.store.copy(key, f"{root}addresses/{day}/{plan.run}-{key.rpartition('/')[2]}")
    total = ledger.total(batches)
    counts = total.removed, total.gone, total.failed, total.held_again, total.removed_bytes
    _append(
        repository, f"{root}stats/{day}.csv", [plan.run, repository.clock().isoformat(), plan.removes.objects, *counts]
    )


def _append(repository: Repository, key: str, line: list[object]) -> None:
    try:
        known = repository.store.get(key).decode()
    except NotFound:
        known = _line(STATS)
    if not any(row and row[0] == line[0] for row in csv.reader(known.splitlines())):
        repository.store.put(key, [(known + _line(line)).encode()])


def _line(values: list[object] | list[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue()
