"""The ledger as a table: what the database has, run by run, and what only its archive has any more."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from desilt.columns.hashing import address_hash
from desilt.columns.schemas import MOMENT
from desilt.domain.run import is_run_id
from desilt.errors import BadRequest, StorageFailed
from desilt.jobs.report import group_names
from desilt.records import ledger, pages
from desilt.records import removals as tombstones
from desilt.records.database import Row
from desilt.records.pages import Page
from desilt.repository.protocol import Repository
from desilt.runs import archive
from desilt.runs.archive import ARCHIVED
from desilt.runs.folder import LAST
from desilt.tables import schemas
from desilt.tables.piece import branches_of
from desilt.tables.request import ALL, Asked

ROWS_TO_A_PIECE = 100_000
ARCHIVED_TO_A_PIECE = 2_000_000  # of which a task remembers the hashes


@dataclass(frozen=True, slots=True)
class LedgerPiece:
    """Some tombstones of the database."""

    page: Page
    names: Mapping[str, str]  # of branches, by uid

    def read(self, repository: Repository) -> Iterator[pa.Table]:
        count = 0
        with repository.records.read() as tx:
            jobs = {row.id: row.job for row in ledger.every(tx, repository.uid)}
            for some in pages.read(tx, repository.uid, self.page):
                count += len(some)
                yield _told(repository, _archived(some), jobs, self.names)
        if count < self.page.rows:  # condemned again by another run, or gone to the archive
            raise StorageFailed(
                f"the ledger has {count} removals of run {self.page.run}, and had {self.page.rows} when reading began; "
                "a run has changed it since, load it again"
            )


@dataclass(frozen=True, slots=True)
class ArchivePiece:
    """Tombstones of the archive whose addresses have hashes of this rest: each once, and none that the database has."""

    keys: tuple[str, ...]
    rest: int
    of: int
    run: str | None
    names: Mapping[str, str]

    def read(self, repository: Repository) -> Iterator[pa.Table]:
        with repository.records.read() as tx:
            jobs = {row.id: row.job for row in ledger.every(tx, repository.uid)}
        known = np.zeros(0, np.uint64)
        for key in self.keys:
            rows = archive.read(repository.store, key)
            hashes = address_hash(rows["address"].combine_chunks())
            new = (hashes % np.uint64(self.of) == self.rest) & ~np.isin(hashes, known)
            known = np.concatenate([known, hashes[new]])
            rows = rows.filter(pa.array(new))
            with repository.records.read() as tx:
                there = tombstones.recorded(tx, repository.uid, rows["address"].to_pylist())
            rows = rows.filter(pc.invert(pc.is_in(rows["address"], value_set=pa.array(there, pa.string()))))
            if self.run is not None:
                rows = rows.filter(pc.equal(rows["run"], self.run))
            yield _told(repository, rows, jobs, self.names)


def removals(repository: Repository, asked: Asked) -> list[LedgerPiece | ArchivePiece]:
    """All that was ever condemned, or what one run condemned."""
    names = group_names(repository)
    with repository.records.read() as tx:
        every = pages.pages(tx, repository.uid, most=ROWS_TO_A_PIECE)
        known = {row.id for row in ledger.every(tx, repository.uid)} | {page.run for page in every}
    run = None if asked.run is None or asked.run == ALL else _meant(asked.run, sorted(known))
    wanted = [page for page in every if run in (None, page.run)]
    keys = tuple(archive.keys(repository.store, repository.prefix))
    rows = sum(archive.count(repository.store, key) for key in keys)
    parts = -(-rows // ARCHIVED_TO_A_PIECE)
    archived = [ArchivePiece(keys, rest, parts, run, names) for rest in range(parts)]
    return [*(LedgerPiece(page, names) for page in wanted), *archived]


def _meant(wanted: str, known: Sequence[str]) -> str:
    """The run whose id is ``wanted``, or begins so, or is the last one; whether its folder is there or not."""
    ids = [run for run in known if is_run_id(run)]
    found = ids[:1] if wanted == LAST else [run for run in known if run.startswith(wanted)]
    if len(found) != 1:
        fact = f"{len(found)} runs begin with {wanted!r}" if found else f"there is no swept run {wanted!r}"
        raise BadRequest(f"{fact}; write the id of one, see `desilt runs`")
    return found[0]


def _archived(rows: list[Row]) -> pa.Table:
    """Rows of the database as ARCHIVED."""
    columns = []
    for values, field in zip(zip(*rows, strict=True), ARCHIVED, strict=True):
        moments = field.type == MOMENT
        column = pa.array(values, pa.int64() if moments else field.type)
        columns.append(column.cast(MOMENT) if moments else column)
    return pa.table(columns, schema=ARCHIVED)


def _told(repository: Repository, rows: pa.Table, jobs: Mapping[str, str], names: Mapping[str, str]) -> pa.Table:
    addresses = rows["address"].combine_chunks()
    runs = rows["run"].combine_chunks().dictionary_encode()
    of = pa.array([jobs.get(run) for run in runs.dictionary.to_pylist()], pa.string())
    made = {
        **{name: rows[name] for name in ARCHIVED.names},
        "branch": branches_of(addresses, repository.layout, names),
        "job": of.take(runs.indices),
    }
    return pa.table([made[name] for name in schemas.REMOVALS.names], schema=schemas.REMOVALS)
