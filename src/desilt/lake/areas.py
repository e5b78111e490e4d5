"""What every staging area points to, as columns, read from one snapshot of the database."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from desilt.cache.ranges import CACHED, pointing_in
from desilt.columns.buckets import hashed
from desilt.columns.files import HeldFile, put
from desilt.columns.hashing import address_hash
from desilt.columns.pins import POINTERS
from desilt.errors import Unreadable
from desilt.lake import refs, staging
from desilt.lake.core import Core
from desilt.repository.source import Pointers, StagedEntries
from desilt.sstable.columns import ENTRIES, entry_columns

ENTRIES_TO_A_FILE = 200_000


def areas(core: Core) -> Pointers:
    """What branches with something staged point to, by their names; kept nowhere."""
    names: list[str] = []
    found = [POINTERS.empty_table()]
    for branch, rows in _entries(core):
        if not names or names[-1] != branch:
            names.append(branch)
        hashes = address_hash(rows["address"].combine_chunks())
        place = np.full(rows.num_rows, len(names) - 1, np.int64)
        found.append(pa.table([hashes, place, rows["size_bytes"]], schema=POINTERS))
    return Pointers(tuple(names), pa.concat_tables(found).combine_chunks())


def staged_entries(core: Core, folder: str) -> StagedEntries:
    """All of it, written into ``folder`` in the form in which the range cache keeps what is committed."""
    files: list[HeldFile] = []
    names: list[str] = []
    waiting = [CACHED.empty_table()]

    def write() -> None:
        table = pa.concat_tables(waiting).combine_chunks()
        files.append(put(core.store, f"{folder}part-{len(files):05d}.parquet", hashed(table)))
        waiting[:] = [CACHED.empty_table()]

    for branch, rows in _entries(core):
        if not names or names[-1] != branch:
            names.append(branch)
        owners = pa.array(np.full(rows.num_rows, len(names) - 1, np.int32))
        waiting.append(rows.set_column(rows.schema.get_field_index("owner"), "owner", owners))
        if sum(table.num_rows for table in waiting) >= ENTRIES_TO_A_FILE:
            write()
    write()
    return StagedEntries(files, tuple(names), sum(file.rows for file in files))


def changes_on(core: Core, branch: str) -> Iterator[pa.RecordBatch]:
    """What a commit of ``branch`` would take, as ENTRIES; of a path that would go, the rest is null."""
    with core.database.read() as tx:
        for changes in staging.changes(tx, refs.branch(tx, core.uid, branch).tokens):
            put = pc.is_valid(changes["value"])
            yield entry_columns(changes.filter(put), f"what is staged on {branch}")
            gone = changes.filter(pc.invert(put))["key"]
            nothing = [pa.nulls(len(gone), field.type) for field in ENTRIES if field.name != "path"]
            yield pa.RecordBatch.from_arrays([gone, *nothing], schema=ENTRIES)


def _entries(core: Core) -> Iterator[tuple[str, pa.Table]]:
    """Branch by branch, everything staged, sealed areas and what a newer entry hides included, as CACHED."""
    with core.database.read() as tx:
        if stray := staging.strays(tx):
            raise Unreadable(f"staging area {stray[0]} belongs to no branch: rows are missing; see `desilt fsck`")
        for branch in refs.branches(tx, core.uid):
            for token in branch.tokens:
                for changes in staging.changes(tx, [token]):
                    entries = changes.filter(pc.is_valid(changes["value"]))  # the others hide what a commit has
                    rows = pointing_in(entry_columns(entries, f"staging area {token}"), core.prefix, 0)
                    if rows.num_rows:
                        yield branch.name, rows
