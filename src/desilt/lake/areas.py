"""What every staging area points to, as columns, read from one snapshot of the database."""

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from desilt.cache.ranges import CACHED, Below, pointing_in
from desilt.columns.buckets import hashed
from desilt.columns.files import HeldFile, put, put_addresses
from desilt.columns.hashing import address_hash
from desilt.columns.pins import POINTERS
from desilt.errors import Unreadable
from desilt.lake import refs, staging
from desilt.lake.core import Core
from desilt.lake.refs import LakeBranch
from desilt.records.database import Transaction
from desilt.repository.source import Pointers, Staged, StagedEntries
from desilt.sstable.columns import ENTRIES, entry_columns

ENTRIES_TO_A_FILE = 200_000
BYTES_TO_A_FILE = 64 << 20  # of addresses
FILES_WAITING = 2  # while one is written, the database goes on


def staged(core: Core, folder: str) -> Staged:
    """All addresses that anything staged points to, written into ``folder`` as they are read."""
    writing: list[Future[HeldFile]] = []
    with _snapshot(core) as (tx, branches), ThreadPoolExecutor(1) as thread:
        tokens = sorted(token for branch in branches for token in branch.tokens)
        found = (some for token in tokens for some in staging.addresses(tx, token))
        for addresses in together(found, rows=ENTRIES_TO_A_FILE, size=BYTES_TO_A_FILE):
            key = f"{folder}part-{len(writing):05d}.parquet"
            writing.append(thread.submit(put_addresses, core.store, key, inside(addresses, core.prefix)))
            if len(writing) > FILES_WAITING:
                writing[-FILES_WAITING - 1].result()
        files = [one.result() for one in writing]
    return Staged(files, sum(file.rows for file in files), {branch.uid: branch.name for branch in branches})


def together(columns: Iterable[pa.Array], *, rows: int, size: int) -> Iterator[pa.Array]:
    """The same texts, some columns at a time, as one: none is empty, and all but the last have as many as that."""
    waiting: list[pa.Array] = []
    count = held = 0
    for column in columns:
        waiting.append(column)
        count, held = count + len(column), held + column.nbytes
        if count >= rows or held >= size:
            yield pa.concat_arrays(waiting)
            waiting, count, held = [], 0, 0
    if count:
        yield pa.concat_arrays(waiting)


def inside(addresses: pa.Array, prefix: str) -> pa.Array:
    """Addresses as the repository spells them, though a whole one may lead into it after all."""
    whole = pc.match_substring(addresses, prefix)
    if not pc.any(whole).as_py():
        return addresses
    tails = [address.rpartition(prefix)[2] for address in addresses.filter(whole).to_pylist()]
    return pc.replace_with_mask(addresses, whole, pa.array(tails, pa.string()))


def areas(core: Core) -> Pointers:
    """What branches with something staged point to, by their names; kept nowhere."""
    names: list[str] = []
    found = [POINTERS.empty_table()]
    for branch, rows in _entries(core):
        if not names or names[-1] != branch:
            names.append(branch)
        hashes = address_hash(rows["address"])
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
    with _snapshot(core) as (tx, branches):
        for branch in branches:
            for token in branch.tokens:
                for changes in staging.changes(tx, [token]):
                    entries = changes.filter(pc.is_valid(changes["value"]))  # the others hide what a commit has
                    rows = pointing_in(entry_columns(entries, f"staging area {token}"), Below(core.prefix), 0)
                    if rows.num_rows:
                        yield branch.name, rows


@contextmanager
def _snapshot(core: Core) -> Iterator[tuple[Transaction, list[LakeBranch]]]:
    """One moment, and the branches that it has; a staging area that belongs to none of them stops everything."""
    with core.database.read() as tx:
        if stray := staging.strays(tx):
            raise Unreadable(f"staging area {stray[0]} belongs to no branch: rows are missing; see `desilt fsck`")
        yield tx, refs.branches(tx, core.uid)
