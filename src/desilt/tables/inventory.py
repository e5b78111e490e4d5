"""What the store lists, as a table: listed when it is read, stretch by stretch; or as a run has listed it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from desilt.columns.layout import Layout
from desilt.errors import BadRequest, DamagedRun, NotFound
from desilt.executors.executor import HERE
from desilt.inventory import listing
from desilt.inventory.listing import Span
from desilt.jobs.report import group_names
from desilt.objects.file import ObjectFile
from desilt.objects.store import ObjectStore
from desilt.repository.protocol import Repository
from desilt.runs import folder as folders
from desilt.runs.folder import Folder
from desilt.runs.report import read_report
from desilt.tables import schemas
from desilt.tables.piece import branches_of
from desilt.tables.request import Asked

LISTED = "listed"  # what a run that lists calls the number of objects in its report


@dataclass(frozen=True, slots=True)
class ListedPiece:
    """Keys to be listed."""

    span: Span
    names: Mapping[str, str]  # of branches, by uid

    def read(self, repository: Repository) -> Iterator[pa.Table]:
        span = self.span
        for batch in repository.store.list(span.prefix, after=span.after, until=span.until):
            addresses = pc.utf8_slice_codeunits(batch["key"], len(repository.prefix))
            yield _table(addresses, batch["size_bytes"], batch["modified_at"], repository.layout, self.names)


@dataclass(frozen=True, slots=True)
class InventoryPiece:
    """A file of what a run listed."""

    key: str
    rows: int
    names: Mapping[str, str]

    def read(self, repository: Repository) -> Iterator[pa.Table]:
        try:
            file = pq.ParquetFile(_opened(repository.store, self.key), page_checksum_verification=True)
            rows = file.read(columns=["folder", "name", "size_bytes", "modified_at"], use_threads=False)
        except NotFound:
            raise DamagedRun(self.key, "is missing", WAY_OUT) from None
        except (OSError, pa.ArrowException) as error:
            raise DamagedRun(self.key, f"cannot be read ({' '.join(str(error).split())})", WAY_OUT) from error
        if rows.num_rows != self.rows:
            raise DamagedRun(self.key, f"has {rows.num_rows} rows, and had {self.rows}", WAY_OUT)
        rows = rows.combine_chunks()
        folders_of = rows["folder"].combine_chunks().cast(pa.string())
        addresses = pc.binary_join_element_wise(folders_of, rows["name"].combine_chunks(), "")
        yield _table(addresses, rows["size_bytes"], rows["modified_at"], repository.layout, self.names)


WAY_OUT = "leave 'run' out to list what is there now"


def inventory(repository: Repository, asked: Asked) -> list[ListedPiece] | list[InventoryPiece]:
    """What is there now; or, of a run, what it has listed: all, or what was new to it."""
    names = group_names(repository)
    if asked.run is not None:
        return [InventoryPiece(key, rows, names) for key, rows in _of_run(repository, asked.run).items()]
    source, data = repository.source(HERE), repository.prefix + repository.layout.data
    return [ListedPiece(span, names) for span in listing.cut(data, source.folders(source.groups()), until="")]


def _of_run(repository: Repository, wanted: str) -> dict[str, int]:
    """The files that a run listed into, with their rows, which are as many as its report says."""
    store = repository.store
    run = folders.find(store, repository.prefix, wanted)
    folder = Folder(store, repository.prefix, run)
    try:
        said = read_report(folder.get_text("report.json")).inputs.get(LISTED)
    except NotFound:
        raise NotFound("report of run", run.id, "it was cut off before it had planned anything") from None
    if said is None:
        raise BadRequest(f"run {run.id} of {run.job} listed no objects; name one of gc, or {WAY_OUT}")
    keys = [key for batch in store.list(f"{folder.root}inputs/inventory/") for key in batch["key"].to_pylist()]
    found = {key: _rows(store, key) for key in keys}
    if sum(found.values()) != said:
        where = f"{folder.root}inputs/inventory/"
        raise DamagedRun(where, f"has {sum(found.values())} objects, and the run listed {said}", WAY_OUT)
    return found


def _rows(store: ObjectStore, key: str) -> int:
    try:
        return int(pq.read_metadata(_opened(store, key)).num_rows)
    except (OSError, pa.ArrowException) as error:
        raise DamagedRun(key, f"cannot be read ({' '.join(str(error).split())})", WAY_OUT) from error


def _opened(store: ObjectStore, key: str) -> pa.PythonFile:
    return pa.PythonFile(ObjectFile(store, key), mode="r")


def _table(addresses: pa.Array, sizes: pa.Array, times: pa.Array, layout: Layout, names: Mapping[str, str]) -> pa.Table:
    return pa.table([addresses, branches_of(addresses, layout, names), sizes, times], schema=schemas.INVENTORY)
