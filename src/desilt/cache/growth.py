"""Small cache files grow together, so that a year of daily runs leaves about as many as one run over all of it.

Files of a class (:mod:`desilt.columns.classes`) become one, on an executor: what is in
them is verified, tables that are no more are left behind, and what comes out is in
the order of hashes again. So a year leaves some twenty files. Nothing is removed here:
a file that is replaced lies there until a collection tidies up, for those who are reading it.
"""

import hashlib
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from desilt.cache.known import VERSION, CacheFile, Owner, say
from desilt.columns import classes
from desilt.columns.buckets import HASH, Bucket
from desilt.columns.files import Files, put_in_order
from desilt.errors import Damaged, NotReadBack
from desilt.objects import open_store

WHOLE = Bucket(0, 1)


@dataclass(frozen=True, slots=True)
class MergePiece:
    """Files to become one, and what it says of itself."""

    store: str
    sources: tuple[CacheFile, ...]
    kept: tuple[frozenset[str], ...]  # of each of them, the ranges that are taken
    target: str
    replaces: frozenset[str]
    dropped: frozenset[str]


def due(files: Sequence[CacheFile]) -> list[list[CacheFile]]:
    """Groups of files that are to become one each."""
    return classes.due(files, rows=lambda one: one.file.rows, name=lambda one: one.file.key)


def pieces(
    store: str, folder: str, files: Sequence[CacheFile], idle: Sequence[CacheFile], there: AbstractSet[str]
) -> Iterator[MergePiece]:
    """What is to be merged of ``files``: ranges whose tables are ``there``, each once.

    A file is replaced by one that has all of its ranges, or says which it dropped: so no
    range is ever looked for in a file that is passed over. ``idle`` files have nothing that others have not.
    """
    for group in due(files):
        kept: list[frozenset[str]] = []
        for one in group:
            kept.append(frozenset(owner.id for owner in one.owners if owner.id in there).difference(*kept))
        taken = frozenset().union(*kept)
        owned = frozenset(owner.id for one in group for owner in one.owners)
        covered = (one for one in idle if taken.issuperset(owner.id for owner in one.owners))
        sources = [one.file.key for one in group]
        name = hashlib.sha256("\n".join([f"merged {VERSION}", *sources, *sorted(taken)]).encode()).hexdigest()[:32]
        yield MergePiece(
            store,
            tuple(group),
            tuple(kept),
            f"{folder}{name}.parquet",
            frozenset([*sources, *(one.file.key for one in covered)]).union(*(one.replaces for one in group)),
            owned.union(*(one.dropped for one in group)) - taken,
        )


def merge(piece: MergePiece) -> str:
    """On an executor: the new file first, then the word that it is there; the key of a file that is damaged, or ""."""
    store = open_store(piece.store)
    files = Files(store)
    tables: list[pa.Table] = []
    owners: list[Owner] = []
    try:
        for source, kept in zip(piece.sources, piece.kept, strict=True):
            tables.append(_taken(files, source, kept, len(owners)))
            owners += [owner for owner in source.owners if owner.id in kept]
    except Damaged as error:
        return error.name
    table = pa.concat_tables(tables).combine_chunks()
    generation = 1 + max(source.generation for source in piece.sources)
    if table.num_rows != sum(owner.rows for owner in owners):
        raise NotReadBack(piece.target, "rows were lost on the way into it")
    file = put_in_order(store, piece.target, table.drop_columns([HASH]), table[HASH].to_numpy())
    cached = CacheFile(file, tuple(owners), piece.replaces, piece.dropped, generation)
    say(store, cached, store.head(file.key).size)
    return ""


def _taken(files: Files, source: CacheFile, kept: AbstractSet[str], first: int) -> pa.Table:
    """The rows of those owners that are ``kept``, numbered from ``first`` on; every owner must have what it had."""
    rows = files.rows(source.file, WHOLE, [HASH, "address", "owner", "path", "size_bytes", "created_at"])
    owner = rows["owner"].to_numpy()
    said = np.array([one.rows for one in source.owners], np.int64)
    if (owner < 0).any() or (owner >= len(said)).any() or (np.bincount(owner, minlength=len(said)) != said).any():
        raise NotReadBack(source.file.key, "its owners do not have the rows that were written")
    stays = np.array([one.id in kept for one in source.owners], np.bool_)
    number = (first + np.cumsum(stays) - 1).astype(np.int32)
    rows = rows.set_column(rows.schema.get_field_index("owner"), "owner", pa.array(number[owner]))
    return rows if stays.all() else rows.filter(pa.array(stays[owner]))
