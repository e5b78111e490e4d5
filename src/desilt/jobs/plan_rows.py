"""What a plan removes, object by object: as a table here, or as a frame that Spark's executors make."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from desilt.columns.layout import Layout
from desilt.columns.schemas import DIVIDER, MOMENT
from desilt.executors.executor import Executor
from desilt.executors.on_spark import OnSpark
from desilt.jobs.report import branch_name, group_names
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
    """Some rows of a file of a plan, for whoever reads them."""

    store: str
    layout: Layout
    names: Mapping[str, str]  # of branches, by uid
    file: PlanFile
    first: int
    last: int  # and this one no more


def removals(repository: Repository, plan: Plan, executor: Executor) -> "pa.Table | DataFrame":
    """Every object of ``plan``; with Spark, read from the store by its executors whenever the frame is."""
    if isinstance(executor, OnSpark):
        return executor.frame(as_tuples, sections_of(repository, plan), AS_SQL)
    return pa.concat_tables([REMOVALS.empty_table(), *tables(repository, plan)])


def tables(repository: Repository, plan: Plan) -> Iterator[pa.Table]:
    """The same, section after section: a plan may be larger than memory."""
    for one in sections_of(repository, plan):
        yield as_table(repository.store, one)


def sections_of(repository: Repository, plan: Plan) -> list[RowsToShow]:
    names, store, layout = group_names(repository), repository.store.uri, repository.layout
    return [
        RowsToShow(store, layout, names, file, first, min(first + file.group, file.rows))
        for file in plan.files
        for first in range(0, file.rows, file.group)
    ]


def as_tuples(one: RowsToShow) -> Iterator[tuple[Any, ...]]:
    """On an executor: the rows, one by one."""
    for row in as_table(open_store(one.store), one).to_pylist():
        yield tuple(row.values())


def as_table(store: ObjectStore, one: RowsToShow) -> pa.Table:
    """The rows, as REMOVALS."""
    rows = plan_files.read(store, one.file, one.first, one.last)
    addresses, reasons = rows["address"].combine_chunks(), rows["reason"].combine_chunks()
    told = pc.split_pattern(rows["detail"].combine_chunks(), DIVIDER)
    many = pc.greater(pc.list_value_length(told), 1)  # else it names no rule
    first = pc.if_else(many, _element(told, 1), "")
    named = pc.not_equal(first, "")
    paths = pc.if_else(named, pc.list_slice(told, 1), pa.scalar([], told.type))
    columns = [
        addresses,
        pc.if_else(named, first, None),
        paths,
        _branches(one, addresses),
        rows["size_bytes"],
        rows["modified_at"],
        reasons,
        pc.if_else(many, _element(told, 0), reasons),
    ]
    return pa.table(columns, schema=REMOVALS)


def _element(lists: pa.ListArray, place: int) -> pa.Array:
    """One element of each list; None where it is shorter."""
    padded = pc.list_slice(lists, place, place + 1, return_fixed_size_list=True)
    return padded.flatten() if not padded.null_count else pc.list_element(padded, 0)


def _branches(one: RowsToShow, addresses: pa.Array) -> pa.Array:
    """The names of the branches that objects were uploaded to; "" of tables."""
    groups = one.layout.groups(addresses).dictionary_encode()
    names = pa.array([branch_name(one.names, uid) if uid else "" for uid in groups.dictionary.to_pylist()], pa.string())
    return names.take(groups.indices)
