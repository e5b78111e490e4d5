"""`desilt runs open` and `export`: the page of a run in a browser, its plan as a table for other programs."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import BinaryIO

import click
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

from desilt.cli.command import DesiltCommand
from desilt.cli.common import with_repository
from desilt.cli.complete import runs as runs_known
from desilt.cli.output import done
from desilt.domain.run import SIMULATIONS, UPKEEP, Run
from desilt.domain.units import many
from desilt.errors import BadRequest, NotFound
from desilt.jobs.plan_rows import REMOVALS, tables
from desilt.repository.protocol import Repository
from desilt.runs import folder as folders
from desilt.runs import plan as plans
from desilt.runs.folder import Folder
from desilt.runs.history import FILE as HISTORY
from desilt.runs.history import read_change
from desilt.runs.plan import Plan
from desilt.runs.simulation import PAGE as SIMULATED
from desilt.runs.steps import EditHistory
from desilt.runs.upkeep import PAGE as KEPT_UP

PAGES = {SIMULATIONS: SIMULATED, UPKEEP: KEPT_UP}
COMMITS = pa.schema(
    [
        ("commit", pa.string()),
        ("created_at", pa.string()),
        ("fate", pa.string()),
        ("why", pa.string()),
        ("refs", pa.list_(pa.string())),  # that point to it
        ("parents", pa.list_(pa.string())),
        ("new_parents", pa.list_(pa.string())),
        ("message", pa.string()),
    ]
)
"""One row per commit that a run which edits history looks at."""
STDOUT = "-"
KINDS = {"": "csv", ".csv": "csv", ".parquet": "parquet"}  # by the ending of a file


@click.command("open", cls=DesiltCommand)
@with_repository
@click.argument("run", shell_complete=runs_known)
@click.option("--print", "only_print", is_flag=True, help="Say where it is; do not open it.")
def open_page(repository: Repository, run: str, only_print: bool, as_json: bool) -> None:
    """Show the page of RUN in a browser; of one in a bucket, a copy is made first.

    RUN is the id of a run, the beginning of one, or `last`; upkeeps and simulations are runs here, too.
    """
    found = folders.find(repository.store, repository.prefix, run, beside=True)
    place = page_of(repository, found)
    if not only_print and click.launch(place):
        only_print = True  # there is no browser here
    text = f"The page of run {found.id} is {place}" if only_print else f"Opened {place}"
    done(text, {"run": found.id, "job": found.job, "page": place}, as_json=as_json)


def page_of(repository: Repository, run: Run) -> str:
    """Where a browser finds it."""
    folder, name = Folder(repository.store, repository.prefix, run), PAGES.get(run.job, "report.html")
    try:
        text = folder.get_text(name)
    except NotFound:
        raise NotFound("page of run", run.id, "it was cut off before it had planned anything") from None
    where = f"{repository.uri}{run.folder}{name}"
    if where.startswith("file://"):
        return where
    copy = Path(tempfile.gettempdir()) / f"desilt-{run.job}-{run.id}.html"
    copy.write_text(text, encoding="utf-8")
    return copy.as_uri()


@click.command(cls=DesiltCommand)
@with_repository
@click.argument("run", shell_complete=runs_known)
@click.argument("file", default=STDOUT, type=click.Path(dir_okay=False, allow_dash=True))
@click.option(
    "--format",
    "kind",
    type=click.Choice(["csv", "parquet"]),
    help="By the ending of FILE, unless it is said; on stdout, csv.",
)
def export(repository: Repository, run: str, file: str, kind: str | None, as_json: bool) -> None:
    """Write the plan of RUN into FILE (- is stdout), a row for each object, as CSV or Parquet.

    \b
      address  path  paths  branch  size  modified_at  reason  rule

    Paths are known of what was committed; the branch is the one it was uploaded to. Of a run that edits history, a row
    for each commit: commit, created_at, fate, why, refs, parents, new_parents, message.
    """
    chosen = kind or KINDS.get(Path(file).suffix.lower())
    if chosen is None:
        raise BadRequest(f"{file!r} ends in neither .csv nor .parquet; say which it is to be with --format")
    if chosen == "parquet" and file == STDOUT and sys.stdout.isatty():
        raise BadRequest("Parquet is not for a terminal; give a FILE, or --format csv")
    found = folders.find(repository.store, repository.prefix, run)
    folder = Folder(repository.store, repository.prefix, found)
    made = plans.read(folder, repository.secret)
    schema, some = rows_of(repository, folder, made)
    with target(file) as sink:
        written = write(sink, schema, some, chosen)
    if file != STDOUT:
        done(
            f"Wrote {many(written, 'row')} to {file}", {"run": made.run, "rows": written, "file": file}, as_json=as_json
        )


def rows_of(repository: Repository, folder: Folder, made: Plan) -> tuple[pa.Schema, Iterator[pa.Table]]:
    """What there is to write: objects, or commits where none are removed."""
    if any(True for _ in made.steps_of(EditHistory)) and not made.removes.objects:
        return COMMITS, iter([commits(folder)])
    return REMOVALS, tables(repository, made)


def commits(folder: Folder) -> pa.Table:
    dots = read_change(folder.get_text(HISTORY)).dots
    rows = [
        (one.id, one.created_at, str(one.fate), one.why, one.refs, one.before, one.after, one.message) for one in dots
    ]
    return pa.table(
        [list(column) for column in zip(*rows, strict=True)] if rows else [[]] * len(COMMITS), schema=COMMITS
    )


def target(file: str) -> AbstractContextManager[BinaryIO]:
    return nullcontext(sys.stdout.buffer) if file == STDOUT else Path(file).open("wb")


def write(sink: BinaryIO, schema: pa.Schema, some: Iterator[pa.Table], kind: str) -> int:
    """All tables, one after the other; how many rows."""
    written = 0
    plain = schema if kind == "parquet" else as_text(schema.empty_table()).schema
    with pq.ParquetWriter(sink, plain) if kind == "parquet" else csv.CSVWriter(sink, plain) as writer:
        for table in some:
            writer.write_table(table if kind == "parquet" else as_text(table))
            written += table.num_rows
    return written


def as_text(table: pa.Table) -> pa.Table:
    """With lists as one text, a line each: CSV has none."""
    for place, field in enumerate(table.schema):
        if pa.types.is_list(field.type):
            joined = pc.binary_join(table[field.name], os.linesep)
            table = table.set_column(place, field.name, joined)
    return table
