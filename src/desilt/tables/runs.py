"""What runs planned, and what became of it: from their folders, some files to a task."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from desilt.domain.run import Run, started
from desilt.errors import DamagedRun, NotFound
from desilt.jobs.plan_rows import RowsToShow, as_table, sections_of
from desilt.jobs.report import group_names
from desilt.records import ledger
from desilt.records.ledger import BatchRow
from desilt.repository.protocol import Repository
from desilt.runs import folder as folders
from desilt.runs import plan as plans
from desilt.runs.folder import LAST, Folder
from desilt.runs.plan import Plan
from desilt.sweep.outcome import WAY_OUT, read_outcome
from desilt.tables import schemas
from desilt.tables.piece import branches_of, grouped, repeated
from desilt.tables.request import ALL, Asked

ROWS_TO_A_PIECE = 200_000


@dataclass(frozen=True, slots=True)
class PlanPiece:
    """Some sections of a plan's files."""

    run: Run
    sections: tuple[RowsToShow, ...]

    def read(self, repository: Repository) -> Iterator[pa.Table]:
        for section in self.sections:
            rows = as_table(repository.store, section)
            own = [repeated(self.run.id, rows.num_rows), repeated(self.run.job, rows.num_rows)]
            yield pa.table([*own, *rows.rename_columns({"size": "size_bytes"}).columns], schema=schemas.PLAN)


@dataclass(frozen=True, slots=True)
class OutcomePiece:
    """Some batches of a run, whose results are known."""

    run: Run
    batches: tuple[BatchRow, ...]
    names: Mapping[str, str]

    def read(self, repository: Repository) -> Iterator[pa.Table]:
        folder = Folder(repository.store, repository.prefix, self.run)
        for batch in self.batches:
            rows = read_outcome(repository.store, folder.outcome + batch.file)
            if rows.num_rows != batch.asked + batch.held_again:
                said = f"has {rows.num_rows} rows, and {batch.asked + batch.held_again} are on record"
                raise DamagedRun(folder.outcome + batch.file, said, WAY_OUT)
            addresses, count = rows["address"].combine_chunks(), rows.num_rows
            columns = [
                repeated(self.run.id, count),
                repeated(self.run.job, count),
                repeated(batch.number, count, pa.int64()),
                addresses,
                branches_of(addresses, repository.layout, self.names),
                *(rows[name] for name in ("size_bytes", "modified_at", "result", "detail")),
            ]
            yield pa.table(columns, schema=schemas.OUTCOME)


def plan(repository: Repository, asked: Asked) -> list[PlanPiece]:
    """The plan of a run, of the last one where none is named, or of all whose folders are there."""
    found: list[PlanPiece] = []
    for run in _runs(repository, asked):
        made = _plan(repository, run, may_lack=asked.run == ALL)
        sections = sections_of(repository, made) if made else []
        groups = grouped(sections, lambda one: one.last - one.first, ROWS_TO_A_PIECE)
        found += [PlanPiece(run, tuple(group)) for group in groups]
    return found


def outcome(repository: Repository, asked: Asked) -> list[OutcomePiece]:
    """The same of what became of it; batches that are not over are not among it."""
    names, found = group_names(repository), list[OutcomePiece]()
    for run in _runs(repository, asked):
        with repository.records.read() as tx:
            known, rows = ledger.find(tx, repository.uid, run.id), ledger.batches(tx, repository.uid, run.id)
        if known is None and asked.run != ALL:
            raise NotFound("outcome of run", run.id, "it was not swept; see table 'plan'")
        over = [row for row in rows if row.file]
        for batches in grouped(over, lambda row: row.asked + row.held_again, ROWS_TO_A_PIECE):
            found.append(OutcomePiece(run, tuple(batches), names))
    return found


def _runs(repository: Repository, asked: Asked) -> list[Run]:
    if asked.run != ALL:
        return [folders.find(repository.store, repository.prefix, asked.run or LAST)]
    every = folders.runs_of(repository.store, repository.prefix)
    return [Run(run_id, job, started(run_id)) for job, run_id in every]


def _plan(repository: Repository, run: Run, *, may_lack: bool) -> Plan | None:
    """The plan of a run; of one that was cut off before it had any, None if that ``may_lack``."""
    try:
        return plans.read(Folder(repository.store, repository.prefix, run), repository.secret)
    except NotFound:
        if may_lack:
            return None
        raise
