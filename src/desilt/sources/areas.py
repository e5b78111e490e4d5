"""What every staging area points to, as columns: read from one snapshot of the database, and kept nowhere."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from desilt.errors import Unreadable
from desilt.frames.hashing import address_hash
from desilt.frames.pins import POINTERS
from desilt.lake import refs, staging
from desilt.lake.core import Core
from desilt.sources.range_cache import pointing_in
from desilt.sstable.columns import entry_columns


@dataclass(frozen=True, slots=True)
class Areas:
    """What is staged: for each branch that has something, its pointers into the repository."""

    names: tuple[str, ...]  # of branches
    pointers: pa.Table  # POINTERS, by the place of a name


def areas(core: Core) -> Areas:
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
    return Areas(tuple(names), pa.concat_tables(found).combine_chunks())


def _pointers(core: Core, token: str, changes: pa.RecordBatch, place: int) -> pa.Table:
    entries = changes.filter(pc.is_valid(changes["value"]))  # the others hide what a commit has
    rows = pointing_in(entry_columns(entries, f"staging area {token}"), core.prefix, 0)
    hashes = address_hash(rows["address"].combine_chunks())
    return pa.table([hashes, np.full(rows.num_rows, place, np.int64), rows["size_bytes"]], schema=POINTERS)
