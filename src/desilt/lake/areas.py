"""What every staging area points to, as columns: read from one snapshot of the database, and kept nowhere."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from desilt.cache.ranges import pointing_in
from desilt.columns.hashing import address_hash
from desilt.columns.pins import POINTERS
from desilt.errors import Unreadable
from desilt.lake import refs, staging
from desilt.lake.core import Core
from desilt.repository.source import Pointers
from desilt.sstable.columns import entry_columns


def areas(core: Core) -> Pointers:
    """Everything staged on every branch, sealed areas and what a newer entry hides included."""
    names: list[str] = []
    found = [POINTERS.empty_table()]
    with core.database.read() as tx:
        if stray := staging.strays(tx):
            raise Unreadable(f"staging area {stray[0]} belongs to no branch: rows are missing; see `desilt fsck`")
        for branch in refs.branches(tx, core.uid):
            mine = []
            for token in branch.tokens:
                for batch in staging.changes(tx, [token]):
                    mine.append(_pointers(core, token, batch, place=len(names)))
            if sum(rows.num_rows for rows in mine):
                names.append(branch.name)
                found += mine
    return Pointers(tuple(names), pa.concat_tables(found).combine_chunks())


def _pointers(core: Core, token: str, changes: pa.RecordBatch, place: int) -> pa.Table:
    entries = changes.filter(pc.is_valid(changes["value"]))  # the others hide what a commit has
    rows = pointing_in(entry_columns(entries, f"staging area {token}"), core.prefix, 0)
    hashes = address_hash(rows["address"].combine_chunks())
    return pa.table([hashes, np.full(rows.num_rows, place, np.int64), rows["size_bytes"]], schema=POINTERS)
