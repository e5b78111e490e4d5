"""The rows of a plan as Parquet files, of which some can be read, and verified, without the others.

A file is cut into sections: one for each row group, then its footer. The plan,
which is signed, has the SHA-256 of every section. Whoever wants some rows fetches
their row groups and the footer, and looks at no byte that is not what was planned.
"""

import hashlib
import io

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from desilt.columns.sorting import in_order
from desilt.errors import DamagedRun, NotFound
from desilt.objects.file import ReadFile
from desilt.objects.store import ObjectStore
from desilt.runs.steps import PlanFile, Section

BATCHES_TO_A_GROUP = 20  # what one task sweeps
GROUPS_TO_A_FILE = 50  # each task reads the footer: so it stays small, however much goes
REPEATED = ["verdict", "reason", "detail"]
TAIL = 8  # bytes of a Parquet file that say how long its footer is


def write(store: ObjectStore, key: str, rows: pa.Table) -> tuple[PlanFile, ...]:
    """``rows`` as a file at ``key``, with more beside it where they are many, and none where there are none.

    A row group is some whole batches. Rows are in order of addresses, so that a batch is of few folders, and its
    tombstones are neighbours.
    """
    rows = rows.take(pa.array(in_order(rows["address"].combine_chunks())))
    group = store.delete_batch * BATCHES_TO_A_GROUP
    size = group * GROUPS_TO_A_FILE
    stem = key.removesuffix(".parquet")
    return tuple(
        write_one(store, f"{stem}-{at // size:05d}.parquet" if at else key, rows.slice(at, size), group)
        for at in range(0, rows.num_rows, size)
    )


def write_one(store: ObjectStore, key: str, rows: pa.Table, group: int) -> PlanFile:
    """``rows`` in the order that they are in, as one file."""
    sink = io.BytesIO()
    with pq.ParquetWriter(
        sink, rows.schema, compression="zstd", use_dictionary=REPEATED, write_page_checksum=True
    ) as writer:
        for at in range(0, rows.num_rows, group):
            writer.write_table(rows.slice(at, group), row_group_size=group)
    data = sink.getvalue()
    store.put(key, [data])
    return PlanFile(key, rows.num_rows, pc.sum(rows["size_bytes"]).as_py() or 0, group, sections(data))


def sections(data: bytes) -> tuple[Section, ...]:
    """A Parquet file, cut after each row group: nothing of it is in no section."""
    found = pq.read_metadata(pa.BufferReader(data))
    starts = [
        min(_begins(found.row_group(number).column(place)) for place in range(found.num_columns))
        for number in range(found.num_row_groups)
    ]
    ends = [*starts[1:], len(data) - TAIL - int.from_bytes(data[-TAIL:-4], "little"), len(data)]
    ends = ends[-1 - len(starts) :]  # the footer has all of a file without rows
    return tuple(
        Section(end, hashlib.sha256(data[start:end]).hexdigest())
        for start, end in zip([0, *ends[:-1]], ends, strict=True)
    )


def _begins(chunk: pq.ColumnChunkMetaData) -> int:
    return int(chunk.dictionary_page_offset or chunk.data_page_offset)


def read(store: ObjectStore, file: PlanFile, first: int = 0, last: int | None = None) -> pa.Table:
    """The rows from number ``first`` on, and before ``last``, as they were planned; or :class:`DamagedRun`."""
    last = file.rows if last is None else last
    groups = range(first // file.group, -(-last // file.group))
    if len(file.sections) != -(-file.rows // file.group) + 1 or not 0 <= first <= last <= file.rows:
        raise DamagedRun(file.key, f"has no rows {first} to {last} that the plan knows of")
    end = len(file.sections) - 1
    start, data = _verified(store, file, groups) if groups else (0, b"")
    footer = _verified(store, file, range(end, end + 1))[1]
    try:
        known = pq.read_metadata(pa.BufferReader(footer))
        window = pa.PythonFile(Window(data, start, file.sections[-1].end), mode="r")
        rows = pq.ParquetFile(window, metadata=known).read_row_groups(list(groups), use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise DamagedRun(file.key, " ".join(str(error).split())) from error
    if rows.num_rows != min(groups.stop * file.group, file.rows) - groups.start * file.group:
        raise DamagedRun(file.key, f"has {rows.num_rows} rows where others were planned")
    return rows.slice(first - groups.start * file.group, last - first)


def _verified(store: ObjectStore, file: PlanFile, numbers: range) -> tuple[int, bytes]:
    """Neighbouring sections in one request: where they begin, and their bytes, all of which were planned."""
    start = file.sections[numbers.start - 1].end if numbers.start else 0
    length = file.sections[numbers.stop - 1].end - start
    more = int(numbers.stop == len(file.sections))  # nothing follows the footer
    try:
        data = store.get(file.key, start=start, length=length + more)
    except NotFound:
        raise DamagedRun(file.key, "is missing") from None
    at = start
    for section in file.sections[numbers.start : numbers.stop]:
        if hashlib.sha256(memoryview(data)[at - start : section.end - start]).hexdigest() != section.sha256:
            raise DamagedRun(file.key, "is not what was planned")
        at = section.end
    if len(data) != length:
        raise DamagedRun(file.key, "is not what was planned")
    return start, data


class Window(ReadFile):
    """Some bytes of a file, at their place in it; whoever reads beside them fails."""

    def __init__(self, data: bytes, start: int, size: int) -> None:
        super().__init__(size)
        self._data, self._start = data, start

    def read(self, size: int = -1) -> bytes:
        at = self._at - self._start
        if size < 0 or at < 0 or at + size > len(self._data):
            raise OSError(f"bytes {self._at} to {self._at + size} were not fetched")
        self._at += size
        return self._data[at : at + size]
