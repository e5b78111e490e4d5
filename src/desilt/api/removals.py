"""What a plan removes, object by object: as a table here, or as a frame that Spark's executors make."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from desilt.columns.layout import Layout
from desilt.columns.schemas import DIVIDER, MOMENT
from desilt.executors.executor import HERE, Executor
from desilt.executors.on_spark import OnSpark
from desilt.jobs.report import branch_name
from desilt.objects import ObjectStore, open_store
from desilt.repository.protocol import Repository
from desilt.runs import plan_files
from desilt.runs.plan import Plan
from desilt.runs.steps import PlanFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

REMOVALS = pa.schema(
    [
        ("address", pa.string()),
        ("path", pa.string()),  # the first, where any is known: of what was committed
        ("paths", pa.list_(pa.string())),
        ("branch", pa.string()),  # that it was uploaded to; of ranges and metaranges, ""
        ("size", pa.int64()),
        ("modified_at", MOMENT),
        ("reason", pa.string()),
        ("rule", pa.string()),  # what it goes by, where rules have names; else the reason
    ]
)
"""One row per object that a plan removes."""

AS_SQL = (
    "address string, path string, paths array<string>, branch string, size bigint, modified_at timestamp, "
    "reason string, rule string"
)
"""The same, as Spark writes it."""


@dataclass(frozen=True, slots=True)
class RowsToShow:
    """A file of a plan, for whoever reads it."""

    store: str
    layout: Layout
    names: Mapping[str, str]  # of branches, by uid
    file: PlanFile


def removals(repository: Repository, plan: Plan, executor: Executor) -> "pa.Table | DataFrame":
    """Every object of ``plan``; with Spark, read from the store by its executors whenever the frame is."""
    seen = repository.source(HERE).snapshot(repository.clock())
    names = {branch.uid: branch.name for branch in seen.branches}
    files = [RowsToShow(repository.store.uri, repository.layout, names, file) for file in plan.files if file.rows]
    if isinstance(executor, OnSpark):
        return executor.frame(as_tuples, files, AS_SQL)
    return pa.concat_tables([REMOVALS.empty_table(), *(as_table(repository.store, one) for one in files)])


def as_tuples(one: RowsToShow) -> Iterator[tuple[Any, ...]]:
    """On an executor: the rows, one by one."""
    for row in as_table(open_store(one.store), one).to_pylist():
        yield tuple(row.values())


def as_table(store: ObjectStore, one: RowsToShow) -> pa.Table:
    """The rows of a file, as REMOVALS."""
    rows = plan_files.read(store, one.file)
    addresses, reasons = rows["address"].to_pylist(), rows["reason"].to_pylist()
    branches = [_branch(one, address) for address in addresses]
    told = [detail.split(DIVIDER) for detail in rows["detail"].to_pylist()]
    columns = [
        addresses,
        [paths[0] if paths else None for _, *paths in told],
        [paths for _, *paths in told],
        branches,
        rows["size_bytes"],
        rows["modified_at"],
        reasons,
        [rule if paths else reason for reason, (rule, *paths) in zip(reasons, told, strict=True)],
    ]
    return pa.table(columns, schema=REMOVALS)


def _branch(one: RowsToShow, address: str) -> str:
    return branch_name(one.names, one.layout.group_of(address)) if one.layout.is_object(address) else ""
